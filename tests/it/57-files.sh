#!/bin/bash
# Files into a session's sandbox and out of it: exact, with holes, in constant memory, whole or not at all; and what a
# hostile sandbox can do to the stream that comes out.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 1
limits:
  grace: 200ms
END
it_start
WORK=$HST_DIR/work
install -d -m 0755 -o "$CALLER" "$WORK"
cd "$WORK"
hs session open s1 >"$HST_DIR/opened"

in_s1() { hs exec --session s1 "$@"; }

# mine COMMAND…: as the caller, here.
mine() { as "$CALLER" "$@"; }

# nothing_half: no temporary name, here or in the sandbox.
nothing_half() {
	expect_eq "" "$(find "$WORK" -name '.hermes-*')"
	expect_eq "" "$(in_s1 'find /home/sandbox /tmp -name ".hermes-*"')"
}

# --- exactness -------------------------------------------------------------------------------------------------

mine bash -c 'umask 022; mkdir -p tree/sub/deep tree/closed
	head -c 5242880 /dev/urandom >tree/random
	printf "a\0b\n\377" >tree/sub/bytes; : >tree/sub/empty
	printf x >"tree/sub/deep/"$'"'new\\\\nline \\\\x1b[31m \\\\xff'"'
	chmod 0750 tree/sub; chmod 0444 tree/sub/bytes; chmod 0440 tree/sub/empty; : >secret; chmod 0 secret; chmod 0711 tree/random
	touch -d "2001-02-03 04:05:06.789" tree/random tree/sub/deep; chmod 0500 tree/closed'

# Modes and times of all, sizes and sums of files: a folder's size is its file system's.
look='cd "$1" && export LC_ALL=C; { find . -type d -exec stat -c "%n %a %y" {} +; find . -type f -exec stat -c "%n %a %s %y" {} +; find . -type f -exec sha256sum {} +; } | sort'

exact() {
	mine bash -c "$look" - tree >before
	hs cp tree s1:
	in_s1 sh -c "$look" - tree >inside
	diff before inside
	hs cp s1:tree back
	mine bash -c "$look" - back >after
	diff before after
	nothing_half
}
it_case "a tree goes in and comes out: bytes, names, modes, times" exact

# peak COMMAND…: the memory of the largest process, in KiB, on fd 3.
peak() {
	python3 -c 'import os, resource, subprocess, sys
r = subprocess.run(sys.argv[1:]).returncode
os.write(3, b"%d\n" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(r)' "$@"
}

sparse() {
	local out=() kib
	mine bash -c 'truncate -s 1G big
		for at in 0 500 1023; do head -c 1048576 /dev/urandom | dd of=big bs=1M seek=$at conv=notrunc status=none; done'
	kib=$(peak "$(type -P setpriv)" --reuid "$CALLER" --regid "$CALLER" --init-groups \
		"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" cp big s1:/tmp/big 3>&1 >/dev/null)
	[ "$kib" -lt ${ASAN_OPTIONS:+10}49152 ] || fail "cp took $kib KiB"
	read -ra out < <(in_s1 'stat -c "%s %b" /tmp/big')
	expect_eq 1073741824 "${out[0]}"
	[ "${out[1]}" -lt 10000 ] || fail "the holes were filled: ${out[1]} blocks"
	expect_eq "$(sha256sum <big)" "$(in_s1 'sha256sum </tmp/big')"
	kib=$(peak "$(type -P setpriv)" --reuid "$CALLER" --regid "$CALLER" --init-groups \
		"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" cp s1:/tmp/big copy 3>&1 >/dev/null)
	[ "$kib" -lt ${ASAN_OPTIONS:+10}49152 ] || fail "cp took $kib KiB"
	cmp big copy
	[ "$(stat -c %b copy)" -lt 10000 ] || fail "the holes were filled"
	hs rm s1:/tmp/big
	rm big copy
}
it_case "1 GiB with holes: they stay holes, in a sandbox of 128 MiB and a few MiB here" sparse

streams() {
	seq 200000 | hs cp - s1:numbers
	expect_eq "$(seq 200000 | sha256sum)" "$(hs cat s1:numbers | sha256sum)"
	expect_eq "$(seq 200000 | sha256sum)" "$(in_s1 'sha256sum <numbers')"
	hs cp s1:numbers .
	cmp numbers <(seq 200000)
	in_s1 'printf "\033[2J\377" >odd'
	expect_eq "$(printf '\033[2J\377' | od -c)" "$(hs cat s1:odd | od -c)"
}
it_case "stdin into a file, a file to stdout" streams

listed() {
	in_s1 'mkdir -p list/sub; cd list; ln -s /etc/passwd link; printf 12345 >b; touch -d @1000000000 b; chmod 640 b; touch ".h
id"'
	expect_eq "$(printf '%s\n' '.h\x0aid' b link sub)" "$(hs ls s1:list)"
	expect_match '^-rw-r----- 1 10000 10000 5 2001-09-09 [0-9:]+ list/b$' "$(hs ls -l s1:list/b)"
	expect_match ' link -> /etc/passwd' "$(hs ls -la s1:list)"
	expect_rc 1 hs rm s1:list 2>/dev/null
	hs rm -r s1:list
	expect_rc 1 hs ls s1:list 2>err
	expect_match "^hermes-sandbox: ls: in s1: cannot read 'list': No such file or directory$" "$(<err)"
}
it_case "ls and rm" listed

rights() {
	local rc=0
	expect_rc 1 hs cp tree/random s1:/etc/ 2>err
	expect_match "^hermes-sandbox: cp: in s1: cannot write '/etc/random': Read-only file system$" "$(<err)"
	expect_rc 1 hs cat s1:/etc/shadow 2>err
	expect_match "cannot read '/etc/shadow': Permission denied" "$(<err)"
	expect_rc 1 hs cp tree/closed secret s1:/tmp 2>err
	expect_match "^hermes-sandbox: cp: cannot read 'secret': Permission denied$" "$(<err)"
	expect_eq "500" "$(in_s1 'stat -c %a /tmp/closed')"
	expect_rc 77 hs_as "$STRANGER" cat s1:numbers 2>/dev/null
	expect_rc 125 hs cat none:numbers 2>err
	expect_eq 1 "$(wc -l <err)"
	usermod -aG hermes-sandbox "$STRANGER"
	hs_as "$STRANGER" cat s1:numbers 2>err || rc=$?
	gpasswd -d "$STRANGER" hermes-sandbox >/dev/null
	expect_eq 77 "$rc"
}
it_case "the rights are those of a command in the session, and of its owner" rights

# --- whole or not at all -----------------------------------------------------------------------------------------

full_inside() {
	mine bash -c 'mkdir full; head -c 1000 /dev/urandom >full/a; head -c 60000000 /dev/zero | tr "\0" x >full/z'
	hs rm -rf s1:/tmp/closed
	expect_rc 1 hs cp full/a full/z s1:/tmp 2>err
	expect_eq "hermes-sandbox: cp: in s1: cannot write '/tmp/z': No space left on device" "$(<err)"
	expect_eq "a" "$(hs ls s1:/tmp)"
	expect_eq "$(sha256sum <full/a)" "$(hs cat s1:/tmp/a | sha256sum)"
	nothing_half
	rm -r full
}
it_case "a full sandbox: one line, what is whole stays, what is not is gone" full_inside

full_here() {
	mine mkdir small
	mount -t tmpfs -o size=2m,mode=0777 small small
	(
		trap 'umount "$WORK/small"' EXIT
		expect_rc 1 hs cp s1:tree/random small 2>err
		expect_match 'more than [0-9]+ bytes came: --max-size takes more$' "$(<err)"
		expect_rc 1 hs cp --max-size 1G s1:numbers s1:tree/random small 2>err
		expect_eq "hermes-sandbox: cp: cannot write 'small/random': No space left on device" "$(<err)"
		expect_eq numbers "$(ls -A small)"
		cmp numbers small/numbers
		[ "$(stat -f -c %f small)" -ge 100 ] || fail "something still takes room"
	)
}
it_case "a full disk here: the same; and half of what is free is the bound" full_here

# tool: its pid on the host, while one runs.
tool() {
	local file words
	for file in /proc/[0-9]*/cmdline; do
		{ mapfile -d '' -t words <"$file"; } 2>/dev/null || continue
		[ "${words[0]:-}" = hermes-files ] || continue
		file=${file%/cmdline}
		echo "${file##*/}"
		return 0
	done
	return 1
}
tool_runs() { tool >/dev/null; }
tool_gone() { ! tool_runs; }

broken_off() {
	mkfifo "$HST_DIR/slow"
	exec 7<>"$HST_DIR/slow"
	head -c 60000 /dev/zero >&7
	hs_begin cut cp - s1:cut <"$HST_DIR/slow"
	wait_for 20 tool_runs || fail "the tool does not run"
	kill -KILL "$HS_PID"
	wait_for 10 tool_gone || fail "the tool outlives its caller"
	hs_begin cut cp - s1:cut <"$HST_DIR/slow"
	wait_for 20 tool_runs || fail "the tool does not run"
	kill -INT "$HS_PID"
	hs_end "$HS_PID"
	expect_eq 130 "$HS_RC"
	expect_rc 124 hs cp --timeout 300ms - s1:cut <"$HST_DIR/slow" 2>/dev/null
	exec 7>&-
	expect_rc 1 hs ls s1:cut 2>/dev/null
	nothing_half
}
it_case "a caller who is killed, interrupted or too slow leaves nothing half-done" broken_off

# --- what comes out is hostile -------------------------------------------------------------------------------------

left_out() {
	in_s1 'mkdir -p odd.d/sub; cd odd.d; ln -s /etc/passwd link; mkfifo fifo; echo x >file; chmod 6777 file
		chmod 1777 sub; ln file sub/hard; perl -e "use Socket; socket(S,AF_UNIX,SOCK_STREAM,0); bind(S,pack_sockaddr_un(q(sock)))"'
	expect_rc 1 hs cp s1:odd.d . 2>err
	expect_eq "$(printf '%s\n' "hermes-sandbox: cp: in s1: left out 'odd.d/fifo': it is a named pipe" \
		"hermes-sandbox: cp: in s1: left out 'odd.d/sock': it is a socket" \
		"hermes-sandbox: cp: left out './odd.d/link': it is a symbolic link")" "$(LC_ALL=C sort err)"
	expect_eq "$(printf '%s\n' ./file ./sub ./sub/hard)" "$(cd odd.d && find . -mindepth 1 | LC_ALL=C sort)"
	expect_eq "777 1" "$(stat -c '%a %h' odd.d/file)"
	expect_eq "777" "$(stat -c %a odd.d/sub)"
}
it_case "links, pipes and sockets stay inside, and so do special bits" left_out

# The stream's pipe is the command's own: another process of the session can stop the tool and write in its name.
in_its_name() {
	local rc=0 hit=0
	mine bash -c 'mkdir into; echo mine >into/.bashrc'
	in_s1 'head -c 30000000 /dev/zero | tr "\0" x >/tmp/large
		perl -e "print pack(q(C V V q V Q V a8), 4, 36, 0644, 0, 0, 0, 8, qq(.bashrc\0)) x 500" >/tmp/evil
		cat >/tmp/attack <<"END"
while :; do
	for p in /proc/[0-9]*; do
		case $(tr "\0" " " <$p/cmdline 2>/dev/null) in
		"hermes-files get"*) kill -STOP ${p#/proc/}; cat /tmp/evil >$p/fd/1; kill -CONT ${p#/proc/} ;;
		esac
	done
done
END
		sh /tmp/attack >/dev/null 2>&1 &'
	for _ in $(seq 30); do
		rc=0
		hs cp s1:/tmp/large into 2>err || rc=$?
		expect_eq mine "$(cat into/.bashrc)"
		case $rc in
		0) cmp -s <(head -c 30000000 /dev/zero | tr '\0' x) into/large && continue ;;
		125) ;;
		*) fail "status $rc: $(<err)" ;;
		esac
		hit=1
		break
	done
	[ $hit -eq 1 ] || fail "no attack came in time"
	[ $rc -ne 125 ] || expect_match '^hermes-sandbox: cp: stopped at .*: the stream makes no sense: ' "$(<err)"
	expect_eq "" "$(find into -mindepth 1 ! -name .bashrc ! -name large)"
	nothing_half
}
it_case "a process of the session that writes in the tool's name spoils the copy and nothing else" in_its_name

closed() {
	hs session close s1
	expect_rc 125 hs cp tree s1: 2>err
	expect_eq 1 "$(wc -l <err)"
}
it_case "without its session there is nothing to copy to" closed

recorded() {
	wait_for 10 grep -q 'session=.*s1' "$HST_DIR/log/sandbox-audit.log"
	grep -q 'tree' "$HST_DIR/log/sandbox-audit.log" || fail "$(tail -n 3 "$HST_DIR/log/sandbox-audit.log")"
}
it_case "each copy is in the trail as a command of its session" recorded
