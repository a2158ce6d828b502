#!/bin/bash
# Cases 3, 7 and 17 as sessions and terminals make them possible.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"
it_config <<END
pool:
  size: 1
  max_sandboxes: 3
END
it_start
expect_eq s "$(hs session open s)"

background() {
	local json began
	began=$(now_ms)
	json=$(hs exec --session s --json 'sleep 7951 & echo hi')
	[ $(($(now_ms) - began)) -lt $((5000 * ${HST_SLOW:-1})) ] || fail "it took $(($(now_ms) - began)) ms"
	expect_fields "$json" exit_code 0 background_left 1 session s
	expect_eq '"hi\n"' "$(jq -c .stdout <<<"$json")"
	# Kept, for as long as the session is.
	hs exec --session s true
	running sleep 7951 || fail "the background job was killed"
	expect_eq other "$(hs session open other)"
	hs exec --session other 'sleep 7952 & setsid sleep 7953 & :'
	wait_for 10 sleeps 7952 7953 || fail "the jobs of the other session do not run"
	hs session close other
	wait_for 10 none_left 7952 7953 || fail "a job outlives its session"
	running sleep 7951 || fail "another session's job was killed"
}
it_case "case 3: a session keeps a background child, which is counted and holds nobody" background

FORKS=1000
[ -z "${HST_LONG:-}" ] || FORKS=10000
# zombies: processes of the sandbox that nobody has reaped.
zombies() { docker_ top "$(sandbox_of s)" -eo pid,stat | awk '$2 ~ /^Z/' | wc -l; }
forks() {
	local i forker statuses=""
	hs_begin forker exec --session s --timeout 10m \
		"i=0; while [ \$i -lt $FORKS ]; do i=\$((i + 1)); (sh -c 'exit 3' &); done; echo \$i; exit 17"
	forker=$HS_PID
	# Its orphans' ends are no other command's.
	for i in $(seq 1 60); do
		expect_rc "$i" hs exec --session s "exit $i"
		statuses+=x
	done
	expect_eq 60 ${#statuses}
	wait_for 300 gone "$forker" || fail "the forks do not end"
	hs_end "$forker"
	expect_eq "17 $FORKS" "$HS_RC $(cat "$HST_DIR/forker.out")"
	# shellcheck disable=SC2317 # called by wait_for
	reaped() { [ "$(zombies)" -eq 0 ]; }
	wait_for 10 reaped || fail "$(zombies) zombies are left"
	expect_eq 0 "$(hs exec --session s 'exit 0' && echo 0)"
}
it_case "case 7: $FORKS double forks in a session leave no zombie and take no command's status" forks

# terminal ARGUMENT…: the command line on a terminal of 31 rows and 97 columns, which gets 41 and 111 once it says
# "ready". Prints all that it says; the status is the command line's.
terminal() {
	as "$CALLER" python3 -c '
import fcntl, os, pty, select, struct, sys, termios, time
def size(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
master, slave = pty.openpty()
size(31, 97)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(slave, fd)
    os.execv(sys.argv[1], sys.argv[1:])
os.close(slave)
data, deadline, resized = b"", time.monotonic() + 30, False
while time.monotonic() < deadline:
    if not select.select([master], [], [], 1)[0]:
        continue
    try:
        more = os.read(master, 65536)
    except OSError:
        break
    if not more:
        break
    data += more
    if b"ready" in data and not resized:
        resized = True
        size(41, 111)
else:
    os.kill(pid, 9)
sys.stdout.write(data.decode().replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
' "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"
}
ON_TERMINAL='stty size; trap "stty size; exit 5" WINCH; echo ready; while :; do sleep 0.1; done'
sizes() {
	local out rc=0
	out=$(terminal exec -it "$@" "$ON_TERMINAL") || rc=$?
	expect_eq "31 97 ready 41 111" "$(paste -sd' ' <<<"$out")"
	expect_eq 5 $rc
}
it_case "case 17: a terminal has its size before the first byte, and SIGWINCH comes with another one" sizes
it_case "case 17: in a session, too" sizes --session s

hs session close s
expect_settled 1
expect_recorded 0
