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
	expect_recorded
}
it_case "an agent is killed under a command: 125, sandbox_lost, and its sandbox is replaced" killed_busy

# Both at once, as each takes the time of the missing answers: 15 to 20 s.
stopped() {
	local idle caller began=$SECONDS
	expect_settled 2
	busy_one victim 7912
	caller=$HS_PID
	wait_for 30 it_warm 2
	idle=$(comm -23 <(ours) <(echo "$BUSY") | head -n 1)
	kill -STOP "$(agent_pid "$BUSY")" "$(agent_pid "$idle")"
	wait_for 60 gone "$caller" || fail "the caller of a stopped agent is not told"
	lost victim "$caller"
	[ $((SECONDS - began)) -lt $((40 * ${HST_SLOW:-1})) ] || fail "it took $((SECONDS - began)) s"
	expect_gone 7912
	expect_settled 2
	! ours | grep -qxF -e "$BUSY" -e "$idle" || fail "a sandbox with a stopped agent is kept"
	expect_eq hello "$(hs exec 'echo hello')"
	expect_recorded
}
it_case "agents are stopped, one of them under a command: both are found and replaced, the caller is told" stopped
