#!/bin/bash
# Environment and place of a command (cases 18 and 19).
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 4
  max_sandboxes: 40
  env:
    PROFILE_SAYS: "so"
    OVERRIDDEN: "by the profile"
END
it_start

# hs_env NAME=VALUE… -- ARGUMENT…: with more in the caller's own environment.
hs_env() {
	local vars=()
	while [ "$1" != -- ]; do
		vars+=("$1")
		shift
	done
	shift
	as "$CALLER" env "${vars[@]}" "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"
}

exactly() {
	local name want
	want=$(
		cat <<-END
			HOME=/home/sandbox
			HOSTNAME=sandbox
			LANG=C.UTF-8
			OVERRIDDEN=by the profile
			PROFILE_SAYS=so
			TMPDIR=/tmp
		END
	)
	name=$(hs_env SECRET=hunter2 LC_ALL=de_DE LD_PRELOAD= -- exec -- env | grep -v '^PATH=' | sort)
	expect_eq "$want" "$name"
}
it_case "case 18: a command has LANG=C.UTF-8, its profile's variables and nothing of its caller's" exactly

utf8() {
	expect_eq "6 3" "$(hs exec 'printf "äöü" | wc -c; printf "äöü" | wc -m' | paste -sd' ')"
	expect_eq "1.5" "$(hs exec 'printf "%.1f" 1.5')"
}
it_case "case 18: locale-dependent programs work in UTF-8" utf8

values() {
	local newline=$'first\nsecond\n' bytes=$'\xff\xfe\x80a' all
	all=$'"\'\\ $HOME `id` \t\x01\x1b[0m*'
	hs exec -e "NEWLINE=$newline" -e 'EQUALS==a=b=' -e EMPTY= -e "BYTES=$bytes" -e "ALL=$all" -e npm_config_a-b=1 \
		-e 'OVERRIDDEN=first' -e 'OVERRIDDEN=by the caller' -- env -0 >"$HST_DIR/env"
	for want in "NEWLINE=$newline" 'EQUALS==a=b=' EMPTY= "BYTES=$bytes" "ALL=$all" npm_config_a-b=1 \
		'OVERRIDDEN=by the caller' PROFILE_SAYS=so; do
		grep -azqxF -- "${want//$'\n'/$'\n'}" "$HST_DIR/env" || exact_line "$want"
	done
	expect_eq 1 "$(grep -azc '^OVERRIDDEN=' "$HST_DIR/env")"
}
# grep splits a pattern at its newlines: such a value is looked for whole.
exact_line() {
	WANT=$1 python3 -c '
import os, sys
sys.exit(os.environb[b"WANT"] not in sys.stdin.buffer.read().split(b"\0"))' <"$HST_DIR/env" ||
		fail "no $(printf %q "$1")"
}
it_case "case 19: values with newline, =, nothing and bytes that are no text are exact" values

own_value() {
	local newline=$'a\nb=c'
	expect_eq "[$newline][set][]" "$(hs_env "HERE=$newline" "EMPTY=" -- exec -e HERE -e EMPTY -e NOT_HERE \
		'printf "[%s][%s][%s]" "$HERE" "${EMPTY+set}" "${NOT_HERE+set}"')"
}
it_case "-e K takes the caller's value, and leaves out what it does not have" own_value

bad_names() {
	local name
	for name in '' =x 1A=x 'A B=x' 'A$=x' $'A\n=x'; do
		expect_rc 64 hs exec -e "$name" true 2>"$HST_DIR/err"
		expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	done
}
it_case "case 19: a name that is none is refused" bad_names

nul() {
	python3 "${0%/*}/raw-client.py" "$HST_DIR/run/pool.sock" "$CALLER" nul >"$HST_DIR/raw" 2>"$HST_DIR/err"
	expect_eq "64 64 64 0" "$(paste -sd' ' "$HST_DIR/raw")"
}
it_case "case 19: a NUL inside a value, a name or an argument is refused" nul

places() {
	expect_eq /home/sandbox "$(hs exec pwd)"
	expect_eq /tmp "$(hs exec -w /tmp pwd)"
	expect_eq /usr/share "$(hs exec --workdir=/usr/share -- pwd)"
	expect_eq "a b" "$(hs exec 'printf "#!/bin/sh\necho a b\n" >"$TMPDIR/x" && chmod +x "$TMPDIR/x" &&
		cp "$TMPDIR/x" "$HOME/y" && "$HOME/y" >"$HOME/z" && "$TMPDIR/x" | cmp - "$HOME/z" && cat "$HOME/z"')"
	expect_eq 022 "$(hs exec 'umask | tail -c 4')"
}
it_case "-w chooses the place; HOME is writable and TMPDIR executable" places
