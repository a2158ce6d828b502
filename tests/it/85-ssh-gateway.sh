#!/bin/bash
# The ssh gateway: Debian's sshd with the configuration that we ship, on the machine's own loopback, in front of this
# script's manager. Nothing but the paths is different from what `hermes-sandbox ssh enable` writes.
# shellcheck disable=SC2016 # what stands in single quotes is expanded by the shell at the other end
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "$TOP/tests/lib/caller.sh"
# shellcheck source=tests/lib/ssh.sh
. "$TOP/tests/lib/ssh.sh"

for tool in ssh scp sftp rsync sshd; do
	command -v $tool >/dev/null || skip "$tool is not here (Debian: openssh-client, openssh-server, rsync)"
done
PORT=2287 HOME_DIR=$GATEWAY_HOME IMAGE=hermes-ssh-gateway-test
KNOWN=$HST_DIR/known_hosts

# --- what it takes -------------------------------------------------------------------------------------------

# The image of the run with the programs that scp, sftp and rsync run at the other end: this machine's own, where they fit.
image() {
	local suite tar=$HST_DIR/image.tar libs programs=(usr/lib/openssh/sftp-server usr/bin/scp usr/bin/rsync)
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	if [ "$suite" = bookworm ] && ! readelf -lW "$BUILD/agent" | grep INTERP >/dev/null; then
		cp "$(image_archive bookworm)" "$tar" || return 1
	else
		# shellcheck disable=SC2086 # one word a package
		cp "$(image_archive "$suite" $IMAGE_SSH_PACKAGES)" "$tar" || return 1
	fi
	tar -tf "$tar" | sed 's|^[./]*||' | sort >"$HST_DIR/has"
	mapfile -t libs < <(ldd "${programs[@]/#//}" | awk '$2 == "=>" { sub("^/(usr/)?", "usr/", $3); print $3 }' | sort -u |
		comm -23 - "$HST_DIR/has")
	mapfile -t programs < <(printf '%s\n' "${programs[@]}" | sort | comm -23 - "$HST_DIR/has")
	# sftp-server and scp want a name for who runs them.
	mkdir -p "$HST_DIR/etc-of-image/etc"
	tar -x -O -f "$tar" ./etc/passwd >"$HST_DIR/etc-of-image/etc/passwd"
	echo "sandbox:x:10000:10000::/home/sandbox:/bin/bash" >>"$HST_DIR/etc-of-image/etc/passwd"
	tar --delete -f "$tar" ./etc/passwd
	tar -r -h -f "$tar" -C / "${programs[@]}" "${libs[@]}" -C "$HST_DIR/etc-of-image" etc/passwd &&
		image_import "$HST_ENGINE" $IMAGE "$tar" && rm "$tar"
}

sshd_down() {
	local pid
	gateway_down
	# Masters of connections that a case left.
	for pid in "$HST_DIR"/master*; do [ ! -S "$pid" ] || ssh -F none -S "$pid" -O exit x 2>/dev/null || true; done
	rm -rf "${HOME_DIR:?}"/.[a-z]*
}
trap 'rc=$?; set +e; sshd_down; (exit $rc); it_exit' EXIT

OPTIONS=(-F none -o "Port=$PORT" -o BatchMode=yes -o IdentitiesOnly=yes -o IdentityAgent=none
	-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile="$KNOWN" -o ConnectTimeout=10 -o LogLevel=ERROR)
TO=hermes-ssh@127.0.0.1
# with KEY ARGUMENT…: ssh with that key.
with() { ssh "${OPTIONS[@]}" -i "$HST_DIR/$1" "${@:2}"; }
on() { with one $TO "$@" </dev/null; }
root() { "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"; }
session_of() { ssh-keygen -lf "$HST_DIR/$1.pub" | sed 's/.*SHA256:\([^ ]*\).*/ssh-\1/' | tr +/ -_; }

# --- cases ---------------------------------------------------------------------------------------------------

codes() {
	local code
	for code in 0 1 7 126 255; do expect_rc $code on "exit $code"; done
	expect_rc 137 on 'kill -KILL $$'
	expect_rc 143 on 'kill -TERM $$'
	expect_rc 127 on 'no-such-program-here' 2>/dev/null
	expect_eq "out" "$(on 'echo out; echo err >&2' 2>"$HST_DIR/err")"
	expect_eq "err" "$(cat "$HST_DIR/err")"
}

# Nothing of it means anything to a shell of this machine.
verbatim() {
	local word=$' a  b"\'\\$(touch /tmp/owned)`touch /tmp/owned`;&|<>*?~\t\x01\x7f \xc3\xa9\n# last'
	expect_eq "$(printf %q "$word")" "$(printf %q "$(on "printf %s $(printf %q "$word")")")"
	expect_eq sandbox "$(on '[ -e /.hermes-sandbox/agent ] && echo sandbox')"
	[ ! -e /tmp/owned ] || fail "a shell of the host read it"
}

# The account's shell runs what sshd forces, and that is itself; it is sshd's own child.
no_shell() {
	local shell=$HST_RUN/bin/hermes-sandbox-ssh-gateway line
	for line in id "$shell; id" "$shell&&id" "sh -c $shell" '' ' ' "$shell $(printf 'x %.0s' {1..9})"; do
		expect_rc 77 "$shell" -c "$line" >"$HST_DIR/out" 2>"$HST_DIR/err"
		expect_match 'sshd_config has to have the ForceCommand' "$(cat "$HST_DIR/err")"
		[ ! -s "$HST_DIR/out" ] || fail "it ran: $line"
	done
	expect_rc 64 "$shell" -c "$shell ; id" 2>"$HST_DIR/err"
	expect_match 'unexpected argument' "$(cat "$HST_DIR/err")"
	on 'sleep 7849' &
	wait_for 10 sleeps 7849 || fail "it does not run"
	line=$(ps -o ppid= -p "$(pgrep -u hermes-ssh -f "^hermes-sandbox-ssh-gateway -c $shell")")
	# From OpenSSH 9.8 on a connection has a program of its own.
	expect_match "^sshd(-session)?\$" "$(ps -o comm= -p "${line// /}")"
	on 'kill $(grep -lx sleep /proc/[0-9]*/comm | cut -d/ -f3)'
	expect_rc 143 wait $!
}

# The kernel takes no variable of over 128 KiB, and sshd says so as for any login.
long() {
	local word
	word=$(head -c 100000 /dev/zero | tr '\0' x)
	expect_eq 100000 "$(on "word=$word; echo \${#word}")"
	# Two of them: this machine takes no longer argument for ssh either.
	! on "one=$word" "two=$word; echo hello" >"$HST_DIR/out" 2>"$HST_DIR/err" || fail "it ran"
	expect_match 'Argument list too long' "$(tail -c 300 "$HST_DIR/err")"
	expect_eq after "$(on 'echo after')"
}

input() {
	expect_eq "$(sha256sum <"$HST_DIR/data")" "$(with one $TO sha256sum <"$HST_DIR/data")"
	with one $TO cat <"$HST_DIR/data" >"$HST_DIR/copy"
	cmp "$HST_DIR/copy" "$HST_DIR/data"
	# Without a command it is a login shell's.
	expect_eq "in a shell" "$(echo 'echo in a $0; exit 0' | with one -T $TO | sed 's|a .*/.*|a shell|')"
	# A command that does not read it ends all the same.
	expect_eq ended "$(head -c 3000000 /dev/zero | with one $TO 'echo ended')"
}

environment() {
	local out
	out=$(env -u LC_ALL LANG=C.UTF-8 LC_TIME=POSIX BASH_ENV=/tmp/x FOO=bar ssh "${OPTIONS[@]}" -i "$HST_DIR/one" -o SendEnv='LANG LC_* BASH_ENV FOO' -o SetEnv=LD_PRELOAD=x \
		$TO 'env | sort' </dev/null)
	expect_match $'(^|\n)HOME=/' "$out"
	expect_match $'\nLANG=C.UTF-8\nLC_TIME=POSIX\nLOGNAME=hermes-ssh\n' "$out"
	expect_match $'\nSHELL=/bin/bash\n' "$out"
	expect_match $'\nSSH_CLIENT=127.0.0.1 [0-9]+ 2287\nSSH_CONNECTION=127.0.0.1 [0-9]+ 127.0.0.1 2287\n' "$out"
	expect_match $'\nUSER=hermes-ssh' "$out"
	! grep -E '^(BASH_ENV|FOO|LD_PRELOAD|SSH_TTY|TERM|SSH_USER_AUTH|SSH_ORIGINAL_COMMAND|SSH_AUTH_SOCK|DISPLAY)=' <<<"$out" || fail "these are there"
	expect_eq "here" "$(on 'cd && touch "$HOME/f" && rm f && [ -w /tmp ] && echo here')"
	# A folder that is named without its path is found from home, as by any sshd.
	expect_eq home "$(on '[ "$(pwd -P)" = "$(cd && pwd -P)" ] && echo home')"
}

# A terminal of 33 rows and 101 columns, which then has 20 and 80.
terminal() {
	local out
	out=$(python3 - ssh "${OPTIONS[@]}" -i "$HST_DIR/one" -tt $TO \
		'stty size; tty; echo $TERM $SSH_TTY
		until [ "$(stty size)" = "20 80" ]; do sleep 0.1; done; echo resized; read -r x; echo "got $x"; sleep 7850; exit 9' <<-'END'
		import fcntl, os, pty, struct, sys, termios, time

		def size(fd, rows, cols):
		    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

		pid, fd = pty.fork()
		if pid == 0:
		    os.environ["TERM"] = "xterm-256color"
		    size(0, 33, 101)
		    os.execvp(sys.argv[1], sys.argv[1:])
		text = b""

		def until(word):
		    global text
		    deadline = time.monotonic() + 30
		    while word not in text:
		        if time.monotonic() > deadline:
		            sys.exit("no %r in %r" % (word, text))
		        try:
		            text += os.read(fd, 4096)
		        except OSError:
		            sys.exit("it ended: %r" % text)

		until(b"/dev/tty\r\n")
		size(fd, 20, 80)
		until(b"resized\r\n")
		os.write(fd, b"hello\r")
		until(b"got hello")
		os.write(fd, b"\x03")
		try:
		    while True:
		        text += os.read(fd, 4096)
		except OSError:
		    pass
		print(text.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	END
	) || fail "$out"
	expect_match $'^33 101\r\n/dev/pts/[0-9]+\r\nxterm-256color /dev/tty\r\n' "$out"
	expect_match $'\nresized\r\nhello\r\ngot hello\r\n' "$out"
	# ^C ended the command there, and the shell with it.
	expect_match ' 130$' "$out"
}

# Files and jobs of the background stay; a job that holds the output does not hold its caller.
session() {
	local begin
	on 'echo kept >/tmp/kept; nohup sleep 7851 >/dev/null 2>&1 &'
	expect_eq kept "$(on 'cat /tmp/kept')"
	sleeps 7851 || fail "the job is gone"
	begin=$(now_ms)
	expect_eq bg "$(on 'sleep 7852 & echo bg')"
	[ $(($(now_ms) - begin)) -lt 5000 ] || fail "it waited for the job"
	sleeps 7852 || fail "the job is gone"
	on 'kill $(grep -lx sleep /proc/[0-9]*/comm | cut -d/ -f3)'
}

two_keys() {
	local names
	on 'echo secret >/tmp/secret; sleep 7853 >/dev/null 2>&1 &'
	expect_eq "none" "$(with two $TO '[ -e /tmp/secret ] && cat /tmp/secret || echo none' </dev/null)"
	expect_eq "none" "$(with two $TO 'grep -ls "785[3]" /proc/[0-9]*/cmdline | grep -v "/$$/" || echo none' </dev/null)"
	names=$(root session list --all --json)
	jq -e --arg n "$(session_of one)" 'any(.[]; .session == $n or .name == $n)' <<<"$names" >/dev/null || fail "not there: $names"
	jq -e --arg n "$(session_of two)" 'any(.[]; (.session == $n or .name == $n))' <<<"$names" >/dev/null || fail "not there: $names"
	# What the key's line says holds.
	root session list --all | grep -F "$(session_of two)" | grep 45m >/dev/null || fail "$(root session list --all)"
	expect_eq "small" "$(with small $TO 'echo $PROFILE_IS' </dev/null)"
}

# Each waits until it sees all the others run.
channels() {
	local i rc pids=() n=60
	with one -M -S "$HST_DIR/master" -f -N $TO </dev/null >/dev/null 2>&1
	for ((i = 1; i <= n; i++)); do
		timeout 100 ssh -F none -S "$HST_DIR/master" $TO "mkdir -p /tmp/c && touch /tmp/c/$i
			until set -- /tmp/c/* && [ \$# -eq $n ]; do sleep 0.2; done
			head -c 100000 | sha256sum; exit $i" <"$HST_DIR/data" >"$HST_DIR/c$i.out" 2>"$HST_DIR/c$i.err" &
		pids+=($!)
	done
	for ((i = 1; i <= n; i++)); do
		rc=0; wait "${pids[i - 1]}" || rc=$?; [ $rc -eq $i ] || fail "status $rc: $(cat "$HST_DIR/c$i.err")"
		expect_eq "$(head -c 100000 "$HST_DIR/data" | sha256sum)" "$(cat "$HST_DIR/c$i.out")"
		expect_eq "" "$(cat "$HST_DIR/c$i.err")"
	done
	ssh -F none -S "$HST_DIR/master" $TO 'rm -r /tmp/c' </dev/null
	ssh -F none -S "$HST_DIR/master" -O exit $TO 2>/dev/null
}

files() {
	local legacy options=("${OPTIONS[@]}" -i "$HST_DIR/one")
	mkdir "$HST_DIR/tree" "$HST_DIR/back"
	cp "$HST_DIR/data" "$HST_DIR/tree/a b"
	for legacy in '' -O; do
		scp -q $legacy -r "${options[@]}" "$HST_DIR/tree" "$TO:"
		scp -q $legacy "${options[@]}" "$TO:tree/a*" "$HST_DIR/back/scp$legacy"
		cmp "$HST_DIR/data" "$HST_DIR/back/scp$legacy"
		on 'rm -r tree'
	done
	sftp -q -b - "${options[@]}" $TO >/dev/null <<-END
		mkdir made
		put "$HST_DIR/tree/a b" made/x
		get made/x $HST_DIR/back/sftp
		rm made/x
		rmdir made
	END
	cmp "$HST_DIR/data" "$HST_DIR/back/sftp"
	rsync -a -e "ssh ${options[*]}" "$HST_DIR/tree/" "$TO:rsynced/"
	rsync -a -e "ssh ${options[*]}" "$TO:rsynced/" "$HST_DIR/back/rsync/"
	cmp "$HST_DIR/data" "$HST_DIR/back/rsync/a b"
	tar -c -C "$HST_DIR/tree" . | with one $TO 'mkdir -p .hermes && tar xf - --no-overwrite-dir -C .hermes'
	on 'tar cf - .hermes' | tar -x -C "$HST_DIR/back"
	cmp "$HST_DIR/data" "$HST_DIR/back/.hermes/a b"
	on 'rm -r rsynced .hermes'
}

# A caller that is killed, with its command silent, on a connection of its own and as one of many, with a terminal and without.
hang_up() {
	local mark=7860 tty client pids
	with one -M -S "$HST_DIR/master2" -f -N $TO </dev/null >/dev/null 2>&1
	mkfifo "$HST_DIR/never"
	exec 7<>"$HST_DIR/never"
	for tty in -T -tt; do
		ssh "${OPTIONS[@]}" -i "$HST_DIR/one" $tty $TO "sh -c 'sleep $((mark + 1)) & sleep $mark'" <&7 >/dev/null 2>&1 &
		pids=$!
		ssh -F none -S "$HST_DIR/master2" $tty $TO "sh -c 'sleep $((mark + 3)) & sleep $((mark + 2))'" <&7 >/dev/null 2>&1 &
		pids+=" $!"
		wait_for 20 sleeps $mark $((mark + 1)) $((mark + 2)) $((mark + 3)) || fail "they do not start ($tty)"
		for client in $pids; do kill -KILL "$client"; done
		wait_for 20 none_left $mark $((mark + 1)) $((mark + 2)) $((mark + 3)) || fail "they go on ($tty)"
		mark=$((mark + 4))
	done
	exec 7<&-
	ssh -F none -S "$HST_DIR/master2" -O exit $TO 2>/dev/null
	wait_for 10 no_programs || fail "programs of the gateway are left: $(pgrep -u hermes-ssh -a)"
}
no_programs() { ! pgrep -u hermes-ssh -x hermes-sandbox- >/dev/null; }

# refused PATTERN ARGUMENT…: ssh ends with 255, and says so.
# shellcheck disable=SC2029 # what the other end shall expand is in single quotes
refused() {
	local out rc=0
	out=$(ssh "${OPTIONS[@]}" "${@:2}" </dev/null 2>&1) || rc=$?
	expect_eq 255 $rc
	expect_match "$1" "$out"
}

nothing_else() {
	local key=(-i "$HST_DIR/one")
	refused 'Permission denied \(publickey\)' "${key[@]}" root@127.0.0.1 id
	refused 'Permission denied \(publickey\)' "${key[@]}" _hermes-sandbox@127.0.0.1 id
	refused 'Permission denied \(publickey\)' -i "$HST_DIR/stranger" $TO id
	refused 'Permission denied \(publickey\)' "${key[@]}" -o PreferredAuthentications=password,keyboard-interactive $TO id
	refused 'forwarding failed|administratively prohibited|open failed' "${key[@]}" -W 127.0.0.1:$PORT $TO
	refused 'remote port forwarding failed' "${key[@]}" -o ExitOnForwardFailure=yes -R 2288:127.0.0.1:22 $TO id
	refused 'Tunnel forwarding failed' "${key[@]}" -o ExitOnForwardFailure=yes -o LogLevel=INFO -w 0:0 $TO id
	refused 'subsystem request failed' "${key[@]}" -s $TO netconf
	expect_eq "none none" "$(DISPLAY=:7 ssh-agent ssh "${OPTIONS[@]/IdentityAgent=none/IdentityAgent=SSH_AUTH_SOCK}" "${key[@]}" -A -X \
		$TO 'echo ${SSH_AUTH_SOCK-none} ${DISPLAY-none}' </dev/null 2>/dev/null)"
	# -L and -D listen at the client: what comes in there goes nowhere.
	with one -M -S "$HST_DIR/master3" -f -N -L 2289:127.0.0.1:$PORT -D 2290 $TO </dev/null >/dev/null 2>&1
	! timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/2289 && head -c 4 <&3 | grep -q SSH-' 2>/dev/null || fail "a port is forwarded"
	! timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/2290 && printf "\5\1\0\5\1\0\1\177\0\0\1\10\357" >&3 && head -c 12 <&3 | grep -q SSH-' \
		2>/dev/null || fail "a proxy is there"
	ssh -F none -S "$HST_DIR/master3" -O exit $TO 2>/dev/null
}

# Whatever root has left in the account's home does nothing either.
home_is_not_read() {
	local file mark=$HST_DIR/mark
	mkdir -p "$HOME_DIR/.ssh"
	: >"$mark"
	chmod 0666 "$mark"
	echo "echo rc >>$mark" | tee "$HOME_DIR/.ssh/rc" "$HOME_DIR/.profile" "$HOME_DIR/.bashrc" "$HOME_DIR/.bash_profile" >/dev/null
	echo "PLANTED=yes" >"$HOME_DIR/.ssh/environment"
	cp "$HST_DIR/stranger.pub" "$HOME_DIR/.ssh/authorized_keys"
	expect_eq none "$(on 'echo ${PLANTED-none}')"
	echo exit | with one -tt $TO >/dev/null 2>&1 || true
	expect_eq "" "$(cat "$mark")"
	refused 'Permission denied \(publickey\)' -i "$HST_DIR/stranger" $TO id
	for file in .ssh .profile .bashrc .bash_profile; do rm -r "${HOME_DIR:?}/$file"; done
}

# The account speaks for keys and for nothing else; nobody else does.
the_role() {
	local out rc=0 auth=$HST_DIR/auth
	out=$(as hermes-ssh "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" exec id 2>&1) || rc=$?
	expect_eq 77 "$rc"
	expect_eq 1 "$(wc -l <<<"$out")"
	echo "publickey $(cut -d' ' -f1,2 "$HST_DIR/one.pub")" >"$auth"
	chown "$CALLER" "$auth"
	rc=0
	out=$(as "$CALLER" env SSH_USER_AUTH="$auth" SSH_CONNECTION="127.0.0.1 1 127.0.0.1 2" SSH_ORIGINAL_COMMAND=id \
		"$HST_RUN/bin/hermes-sandbox-ssh-gateway" --keys "$HST_DIR/ssh/authorized_keys" --socket "$HST_DIR/run/pool.sock" </dev/null 2>&1) || rc=$?
	expect_eq 77 "$rc"
	expect_eq 1 "$(wc -l <<<"$out")"
	# Nor does a member see or reach the session of a key.
	expect_eq "" "$(hs session list | grep ssh- || true)"
	expect_rc 77 hs exec --session "$(session_of one)" true 2>/dev/null
}

audited() {
	local fp records
	fp=$(ssh-keygen -lf "$HST_DIR/one.pub" | cut -d' ' -f2)
	on 'echo audited-7871' >/dev/null
	wait_for 10 in_trail "op=ssh-login" || fail "no record of the login"
	records=$(grep -F op=ssh-login "$HST_AUDIT")
	grep -F "$fp" <<<"$records" | grep -F 127.0.0.1 >/dev/null || fail "no login of $fp: $records"
	wait_for 10 ended_in_trail "$fp" || fail "no command of $fp"
	grep -F "audited-7871" "$HST_DIR/log/sandbox-audit.log" | grep -F "fp=$fp" >/dev/null || fail "the readable trail has it not"
}
ended_in_trail() { grep -F op=exec-end "$HST_AUDIT" | grep -F "fp=\"$1\"" >/dev/null; }
in_trail() { grep -F "$1" "$HST_AUDIT" >/dev/null; }

# A key that is taken out can do nothing any more, on a connection that it has either.
taken_out() {
	local keys=$HST_DIR/ssh/authorized_keys
	with two -M -S "$HST_DIR/master4" -f -N $TO </dev/null >/dev/null 2>&1
	expect_eq in "$(ssh -F none -S "$HST_DIR/master4" $TO 'echo in' </dev/null)"
	sed -i '/ two$/d' "$keys"
	expect_rc 77 ssh -F none -S "$HST_DIR/master4" $TO 'echo in' </dev/null 2>"$HST_DIR/err"
	expect_match 'has no such key any more' "$(cat "$HST_DIR/err")"
	refused 'Permission denied' -i "$HST_DIR/two" $TO id
	ssh -F none -S "$HST_DIR/master4" -O exit $TO 2>/dev/null
}

image || fail "no image"
for key in one two small stranger; do ssh-keygen -q -t ed25519 -N '' -C '' -f "$HST_DIR/$key"; done
head -c 3000000 /dev/urandom >"$HST_DIR/data"
it_config <<-END
	pool:
	  size: 1
	  image: $IMAGE
	  memory_limit: 512m
	  pids_limit: 256
	  limits:
	    command_bytes: 2m
	profiles:
	  small:
	    size: 0
	    workdir: /tmp
	    env:
	      PROFILE_IS: small
END
it_start
gateway_add_key one "$HST_DIR/one.pub"
gateway_add_key two "$HST_DIR/two.pub" --ttl 45m
gateway_add_key small "$HST_DIR/small.pub" --profile small
gateway_up $PORT

it_case "exit codes and the two streams" codes
it_case "a command arrives as it was written, and in the sandbox alone" verbatim
it_case "no shell of this machine is in between" no_shell
it_case "a command of 100 KB runs; one that no variable holds is refused by the kernel" long
it_case "stdin is passed on to its end" input
it_case "the environment is that of a login, and nothing else comes along" environment
it_case "a terminal has its size, its name, and keys that do what they do" terminal
it_case "files and background jobs stay from command to command" session
it_case "two keys do not see each other, and have what their lines say" two_keys
it_case "60 commands at once on one connection" channels
it_case "scp both ways, sftp, rsync and tar carry files" files
it_case "a caller that is gone takes its command's tree along" hang_up
it_case "no other user, no password, no forwarding" nothing_else
it_case "nothing in the account's home is read" home_is_not_read
it_case "the account speaks for keys alone, and nobody else speaks for them" the_role
it_case "a login and a command are in the trails, with the key's fingerprint" audited
it_case "a key that is taken out is out" taken_out
sshd_down
