#!/bin/bash
# An agent is killed or stopped on the host, behind everybody's back. Only its own sandbox goes, and whoever had a
# command in it is told. (docker kill and docker pause of one-shot sandboxes: 35-recovery.sh.)
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"
it_config <<END
pool:
  size: 2
END
it_start

# busy_one NAME MARK: a command in the background; its caller in HS_PID, its container in BUSY.
busy_one() {
	hs_begin "$1" exec --json "sleep $2; :"
	wait_for 20 running sleep "$2" || fail "the command does not start"
	BUSY=$(container_of "$(pid_of sleep "$2")")
}
# container_of PID: the id of the container that it runs in.
container_of() { grep -oE '[0-9a-f]{64}' "/proc/$1/cgroup" | head -n 1; }

# lost NAME: the caller of that name got 125, and which sandbox it was it will never get again.
lost() {
	hs_end "$2"
	expect_eq 125 "$HS_RC"
	expect_fields "$(cat "$HST_DIR/$1.out")" cause sandbox_lost exit_code 125
}

killed_busy() {
	expect_settled 2
	busy_one victim 7911
	kill -KILL "$(agent_pid "$BUSY")"
	lost victim "$HS_PID"
	expect_gone 7911
	expect_eq hello "$(hs exec 'echo hello')"
	expect_settled 2
	! ours | grep -qxF "$BUSY" || fail "its container is still there"
	expect_recorded 0
}
it_case "an agent is killed under a command: 125, sandbox_lost, and its sandbox is replaced" killed_busy

# session_lost NAME CALLER: who had a command in it is told, it is closed, recorded, and no session any more.
session_lost() {
	hs_end "$2"
	expect_eq 125 "$HS_RC"
	expect_fields "$(cat "$HST_DIR/$1.out")" cause sandbox_lost exit_code 125 session "$1"
	# shellcheck disable=SC2317 # called by wait_for
	closed() { grep -qE " SESSION-CLOSE .*$1" "$TRAIL"; }
	wait_for 10 closed "$1" || fail "its end is not recorded"
	expect_eq "" "$(sandbox_of "$1")"
	expect_rc 125 hs exec --session "$1" true 2>"$HST_DIR/err"
	expect_match 'no session' "$(cat "$HST_DIR/err")"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
}

killed_session() {
	local caller
	expect_settled 2
	at_work stays
	expect_eq victim "$(hs session open victim)"
	hs exec --session victim --detach 'sleep 7913; :' >/dev/null
	hs_begin victim exec --session victim --json 'sleep 7914; :'
	caller=$HS_PID
	wait_for 20 sleeps 7913 7914 || fail "the commands do not start"
	kill -KILL "$(agent_pid "$(sandbox_of victim)")"
	session_lost victim "$caller"
	expect_gone 7913 7914
	unharmed stays
	expect_settled 2 1
	expect_recorded 1
}
it_case "an agent is killed in a session: it is closed and recorded, and another session does not notice" killed_session

# Both at once, as each takes the time of the missing answers: 15 to 20 s.
stopped() {
	local idle caller frozen began=$SECONDS
	expect_settled 2 1
	busy_one victim 7912
	caller=$HS_PID
	expect_eq frozen "$(hs session open frozen)"
	hs_begin frozen exec --session frozen --json 'sleep 7915; :'
	frozen=$HS_PID
	wait_for 20 running sleep 7915
	wait_for 30 it_warm 2
	idle=$(ours | grep -vxF -e "$BUSY" -e "$(sandbox_of frozen)" -e "$(sandbox_of stays)" | head -n 1)
	for agent in "$BUSY" "$idle" "$(sandbox_of frozen)"; do kill -STOP "$(agent_pid "$agent")"; done
	wait_for 60 gone "$caller" || fail "the caller of a stopped agent is not told"
	lost victim "$caller"
	session_lost frozen "$frozen"
	[ $((SECONDS - began)) -lt $((40 * ${HST_SLOW:-1})) ] || fail "it took $((SECONDS - began)) s"
	# The idle one may be the last to be asked.
	# shellcheck disable=SC2317 # called by wait_for
	replaced() { ! ours | grep -qxF -e "$BUSY" -e "$idle"; }
	wait_for 30 replaced || fail "a sandbox with a stopped agent is kept"
	expect_settled 2 1
	expect_gone 7912 7915
	expect_eq hello "$(hs exec 'echo hello')"
	unharmed stays
	close_session stays
	expect_settled 2
	expect_recorded 0
}
it_case "agents are stopped, idle, under a command and in a session: all are found, the callers are told" stopped
