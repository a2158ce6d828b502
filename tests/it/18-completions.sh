#!/bin/bash
# The completions for bash, zsh and fish, each in its own shell: every command and option that the help names is
# offered and no other, and so are profiles, users and a command's own words. It needs neither engine nor manager.
# shellcheck disable=SC2317 # the cases are called by check
set -euo pipefail
cd "${0%/*}/../.."
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

check() {
	local text=$1 rc
	shift
	set +e
	(
		set -e
		"$@"
	) >"$dir/log" 2>&1
	rc=$?
	set -e
	if [ $rc -eq 0 ]; then
		echo "ok - $text"
	else
		sed 's/^/  /' "$dir/log"
		echo "FAIL - $text"
		failed=1
	fi
}

# --- hermes-sandbox as it is found by the shells: the built one, with a configuration of our own ---------------

mkdir -p "$dir/bin" "$dir/etc/sandbox.d"
install -m 0644 etc/sandbox.yaml "$dir/etc/"
printf 'profiles:\n  dev: {}\n  web-2: {}\n' >"$dir/etc/sandbox.d/profiles.yaml"
cat >"$dir/bin/hermes-sandbox" <<END
#!/bin/bash
if [ "\$1" = config ]; then
	exec -a config "$BUILD/hermes-sandbox-config" "\${@:2}" --config-dir "$dir/etc"
fi
# As a manager would answer.
case \$* in
'session list') printf 'SESSION  UID\nwork  1\nw-2  1\n' && exit ;;
ps) printf 'EXEC  SESSION\n0123456789abcdef  work\n' && exit ;;
esac
exec "$BUILD/hermes-sandbox" "\$@"
END
chmod 0755 "$dir/bin/hermes-sandbox"
export PATH=$dir/bin:$PATH HOME=$dir LC_ALL=C.UTF-8
unset BASH_ENV ENV XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME

# --- what each shell offers: offers_SHELL WORD…, of which the last is being typed --------------------------------

# shellcheck disable=SC2016 # the inner shell expands it
offers_bash() {
	# --option=word is three words to bash.
	local words=()
	local word
	for word in "$@"; do
		case $word in
		--*=*) words+=("${word%%=*}" "=" "${word#*=}") ;;
		*) words+=("$word") ;;
		esac
	done
	bash --norc -c '. "$1"; shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
		_hermes_sandbox
		printf "%s\n" "${COMPREPLY[@]%=}"' - completions/hermes-sandbox.bash hermes-sandbox "${words[@]}"
}

# shellcheck disable=SC2016 # so does it
offers_fish() {
	fish --no-config -c 'source $argv[1]; complete -C "$argv[2..]"' completions/hermes-sandbox.fish \
		hermes-sandbox "$@" | cut -f1 | sed 's/=$//'
}

# zsh completes only in its line editor: a terminal is needed, and what it lists is read there.
offers_zsh() {
	python3 - "$PWD/completions" "hermes-sandbox $*" <<-'END'
		import os, pty, re, select, sys, time
		folder, line = sys.argv[1:]
		pid, fd = pty.fork()
		if pid == 0:
		    os.environ.update(TERM="dumb", COLUMNS="80", LINES="1000")
		    os.execvp("zsh", ["zsh", "-f", "-i"])
		def until(end):
		    text, deadline = "", time.time() + 30
		    while not re.search(end, text):
		        assert time.time() < deadline and select.select([fd], [], [], 30)[0], f"zsh says no more: {text!r}"
		        text += os.read(fd, 65536).decode()
		    return text
		def say(text):
		    os.write(fd, text.encode())
		say("stty -echo cols 80 rows 1000; PS1=; unsetopt zle_bracketed_paste 2>/dev/null; echo REA''DY\r")
		until("READY")
		say(f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -d {os.environ['HOME']}/zcompdump; LISTMAX=0; zstyle ':completion:*' verbose no;"
		    " zstyle ':completion:*' insert-tab false; bindkey '^D' list-choices; bindkey '^G' kill-buffer; zle-line-init() {{ echo SET''UP }}; zle -N zle-line-init\r")
		# What is typed before the line editor reads is the terminal's, and its ^D an end of file.
		until("SETUP")
		say(line + "\x04\x07echo EN''D\r")
		text = until("END")
		os.close(fd)
		# The line, what is listed, the line again.
		lines = [l.strip() for l in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "\n", text).split("\n")]
		lines = [l for l in lines if l][[l for l in lines if l].index(line.strip()) + 1:]
		print("\n".join(" ".join(lines[:lines.index(line.strip())]).split()) if line.strip() in lines else "")
	END
}

# --- what the help names -----------------------------------------------------------------------------------------

commands() { hermes-sandbox help | sed -n '/^The manager/q; s/^  \([a-z]*\)  .*/\1/p'; }

# options COMMAND: of its usage lines what stands in brackets, and the front of the lines that describe one.
options() {
	{
		if [ -n "$1" ]; then hermes-sandbox help "$1"; else hermes-sandbox help; fi
		case $1 in
		config) "$BUILD/hermes-sandbox-config" --help ;;
		audit) "$BUILD/hermes-sandbox-audit" --help ;;
		doctor) "$BUILD/hermes-sandbox-doctor" --help ;;
		setup) "$BUILD/hermes-sandbox-setup" --help ;;
		image) "$BUILD/hermes-sandbox-image" --help ;;
		ssh) "$BUILD/hermes-sandbox-ssh" --help ;;
		esac
	} | sed '/^examples:/,/^$/d' |
		{ grep -oE '^  +(-[a-z]|--[a-z-]+)( [A-Z]+)?(, (-[a-z]|--[a-z-]+)( [A-Z]+)?)*|\[--?[a-z-]+|config [a-z]+ \[--[a-z-]+' || true; } |
		{ grep -oE '(^|[ [])--?[a-z][a-z-]*' || true; } | tr -d ' [' | sort -u
	printf '%s\n' --help -h
	[ -n "$1" ] || echo --version
}

# --- cases -------------------------------------------------------------------------------------------------------

same() {
	diff -u --label "the help of $1" <(sort -u <<<"$2") --label "offered" <(sort -u <<<"$3")
}

# every SHELL
every() {
	local command want got
	same commands "$(commands)" "$("offers_$1" '' | grep -v '^-')"
	same "help" "$(commands)" "$("offers_$1" help '' | grep -v '^-')"
	for command in '' $(commands); do
		want=$(options "$command")
		got=$("offers_$1" ${command:+"$command"} -)
		same "${command:-hermes-sandbox}" "$want" "$(grep -xE -- '-[a-z]|--[a-z-]+' <<<"$got")"
	done
}

offered() {
	local shell=$1 word=$2
	shift 2
	"offers_$shell" "$@" >"$dir/got"
	grep -qxF -- "$word" "$dir/got" || {
		echo "$word is not offered behind: $*"
		cat "$dir/got"
		return 1
	}
}

expect_not() {
	if (offered "$@" >/dev/null); then
		echo "$2 is offered behind: ${*:3}"
		return 1
	fi
}

values() {
	# What zsh lists is without the colon that it adds.
	local remote=work:
	[ "$1" != zsh ] || remote=work
	offered "$1" dev exec --profile ''
	offered "$1" web-2 exec --json --profile w
	offered "$1" default exec --profile ''
	offered "$1" root audit --user roo
	offered "$1" yesterday audit --since y
	offered "$1" check config ''
	offered "$1" bridge setup --network b
	offered "$1" --dry-run setup --user --d
	offered "$1" build image ''
	offered "$1" hermes image build --flavour h
	offered "$1" mkdir exec mkdi
	offered "$1" mkdir exec -i -e A --timeout 1s mkdi
	offered "$1" exec --socket /x e
	offered "$1" work exec --session w
	offered "$1" w-2 exec --json --session w
	offered "$1" open session ''
	offered "$1" w-2 session close ''
	offered "$1" --ttl session open --t
	offered "$1" dev session open --profile d
	offered "$1" verify image v
	offered "$1" web-2 image pull w
	offered "$1" dev image verify --json d
	offered "$1" work ps ''
	offered "$1" 0123456789abcdef wait ''
	offered "$1" 0123456789abcdef kill -s INT ''
	offered "$1" INT kill -s I
	offered "$1" end attach --offset e
	offered "$1" "$remote" cat w
	offered "$1" "$remote" cp w
}

# Behind the command's own operand options are the command's.
operands() {
	expect_not "$1" --profile exec true --
	expect_not "$1" --profile exec -- true -
	expect_not "$1" --ttl session list --
	expect_not "$1" --all session open --
	expect_not "$1" --json image pull --
}

# Where the configuration cannot be read there is the default profile, and no word of complaint.
silent() {
	(
		printf 'bad: [\n' >"$dir/etc/sandbox.d/bad.yaml"
		trap 'rm "$dir/etc/sandbox.d/bad.yaml"' EXIT
		"offers_$1" exec --profile '' >"$dir/silent" 2>&1
	)
	diff <(echo default) "$dir/silent"
}

[ -x "$BUILD/hermes-sandbox-audit" ] || echo "hermes-sandbox-audit is not built" >"$dir/log"
for shell in bash zsh fish; do
	check "$shell: every command and every option of the help, and no other" every $shell
	check "$shell: profiles, users, times and commands" values $shell
	check "$shell: what stands behind a command is the command's" operands $shell
	check "$shell: silence where the configuration is bad" silent $shell
done
equals() { offered bash dev exec --profile=d; }
check "bash: --profile=NAME" equals
exit $failed
