#!/bin/bash
# The host has no descriptors, no processes or no memory left for the daemons. What runs goes on or is told of its
# end, who comes waits or is told no, nothing spins, and what was missing is all that it takes to go on.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"

it_config <<END
limits:
  command_bytes: 2097152
pool:
  size: 4
  max_sandboxes: 6
  queue_timeout: 60s
END

# own_group CONTROLLER: a control group of this script's with that controller, in GROUP. 1: the machine has none.
own_group() {
	local root=/sys/fs/cgroup/$1
	if [ ! -d "$root" ]; then
		root=/sys/fs/cgroup
		grep -qw "$1" "$root/cgroup.controllers" 2>/dev/null || return 1
		echo "+$1" >"$root/cgroup.subtree_control" 2>/dev/null || return 1
	fi
	GROUP=$root/hst-$it_name-$$
	mkdir -p "$GROUP"
}
# shellcheck disable=SC2317 # the trap calls it
groups_end() {
	local group
	# A group goes only when the kernel has let go of the last of its processes.
	for group in /sys/fs/cgroup/{,*/}"hst-$it_name-$$"; do
		[ ! -d "$group" ] || wait_for 5 rmdir "$group" 2>/dev/null || true
	done
}
trap 'rc=$?; set +e; (exit $rc); (it_exit); rc=$?; groups_end; exit $rc' EXIT
it_start

fds() { find "/proc/$1/fd" -mindepth 1 -printf '%f\n' | sort -n; }
# limit PID LIMIT…: as its own account, which may: root's right to do so is not everywhere.
limit() {
	setpriv --reuid="$(ps -o ruid= "$1" | tr -d ' ')" --regid="$(ps -o rgid= "$1" | tr -d ' ')" --clear-groups \
		prlimit --pid "$@"
}
# room PID N: it may open N descriptors more, in the numbers that are free now.
room() {
	limit "$1" --nofile="$(fds "$1" | awk -v n="$2" '{ used[$1] }
		END { for (i = 0; n > 0 || (i in used); i++) n -= !(i in used); print i }')":
}
unbounded() { limit "$1" --nofile="$(limit "$1" --nofile -o HARD --noheadings | tr -d ' ')": ; }
# ticks PID: hundredths of a second that it has used of a CPU.
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

# expect_idle PID SECONDS: in that time it takes less than a third of a CPU.
expect_idle() {
	local before
	before=$(ticks "$1")
	sleep "$2"
	[ $(($(ticks "$1") - before)) -lt $(($2 * 33)) ] ||
		fail "$(($(ticks "$1") - before)) hundredths of a second of CPU in $2 s"
}

# crowd N COMMAND: so many callers at once, in CROWD; each COMMAND with its number behind it.
crowd() {
	local i
	CROWD=()
	for i in $(seq "$1"); do
		hs_begin "crowd.$i" exec "$2 $i"
		CROWD+=("$HS_PID")
	done
}
crowd_served() {
	local i n=0
	for i in "${CROWD[@]}"; do
		n=$((n + 1))
		hs_end "$i"
		expect_eq "0 $n" "$HS_RC $(cat "$HST_DIR/crowd.$n.out" "$HST_DIR/crowd.$n.err")"
	done
}

manager_descriptors() {
	local manager
	manager=$(it_pid sandboxd)
	expect_settled 4
	room "$manager" 3
	crowd 12 'sleep 2; echo'
	# Three are being served, the others wait in the socket.
	expect_idle "$manager" 3
	crowd_served
	unbounded "$manager"
	expect_settled 4
	expect_recorded 0
}
it_case "the manager has three descriptors left for twelve callers: all are served, and nothing spins" manager_descriptors

# A new sandbox takes a descriptor, too: its socket.
manager_none() {
	local manager
	manager=$(it_pid sandboxd)
	expect_settled 4
	hs_begin long exec 'echo begun; sleep 7931; echo done'
	wait_for 20 running sleep 7931
	room "$manager" 0
	# shellcheck disable=SC2046 # one word an id
	docker_ kill $(ours | grep -vxF "$(grep -oE '[0-9a-f]{64}' "/proc/$(pid_of sleep 7931)/cgroup" | head -n 1)") >/dev/null
	expect_idle "$manager" 5
	running sleep 7931 || fail "the command that ran was ended"
	unbounded "$manager"
	kill -TERM "$(pid_of sleep 7931)"
	hs_end "$HS_PID"
	expect_eq "0 begun done" "$HS_RC $(paste -sd' ' "$HST_DIR/long.out")"
	expect_settled 4
	expect_eq hello "$(hs exec 'echo hello')"
	expect_recorded 0
}
it_case "it has none while sandboxes die: what runs goes on, and the pool fills afterwards" manager_none

broker_none() {
	local broker
	broker=$(it_pid engined)
	expect_settled 4
	room "$broker" 0
	# shellcheck disable=SC2046 # one word an id
	docker_ kill $(ours | head -n 3) >/dev/null
	expect_idle "$broker" 3
	expect_eq hello "$(hs exec 'echo hello')"
	unbounded "$broker"
	expect_settled 4
	expect_eq "$broker $(it_pid sandboxd)" "$(pgrep -d' ' -x -f "$HST_RUN/bin/hermes-(engined|sandboxd) .*" | tr ' ' '\n' | sort -n | paste -sd' ')"
}
it_case "the broker has none: what is warm serves, and the pool fills afterwards" broker_none

# Without a descriptor the broker cannot look for the sandbox: it is asked again, until it can.
none_for_a_session() {
	expect_settled 4
	at_work work
	room "$(it_pid engined)" 0
	killed sandboxd
	it_sandboxd
	sleep 3
	unbounded "$(it_pid engined)"
	# shellcheck disable=SC2317 # called by wait_for
	back() { hs exec --session work true 2>/dev/null; }
	wait_for 30 back || fail "the session is not there again"
	unharmed work
	expect_settled 4 1
	close_session work
	expect_recorded 0
}
it_case "it has none while the manager comes back and looks for its sessions: none is given up" none_for_a_session

# The daemons are one thread each, and start nothing.
processes() {
	own_group pids || fail "this machine counts no processes: no control group with pids"
	it_pid sandboxd >"$GROUP/cgroup.procs"
	it_pid engined >"$GROUP/cgroup.procs"
	expect_eq 2 "$(cat "$GROUP/pids.current")"
	echo 2 >"$GROUP/pids.max"
	expect_settled 4
	for _ in 1 2 3; do expect_eq hello "$(hs exec 'echo hello')"; done
	# shellcheck disable=SC2046 # one word an id
	docker_ kill $(ours | head -n 2) >/dev/null
	expect_settled 4
	expect_eq hello "$(hs exec 'echo hello')"
	[ ! -e "$GROUP/pids.events" ] || expect_eq "max 0" "$(head -n 1 "$GROUP/pids.events")"
	echo max >"$GROUP/pids.max"
}
it_case "neither may have another process: both need none" processes

# told: each of the crowd was served, or told in one line that it was not.
told() {
	local i n=0
	for i in "${CROWD[@]}"; do
		n=$((n + 1))
		hs_end "$i"
		case $HS_RC in
		0) expect_eq "$n" "$(cat "$HST_DIR/crowd.$n.out")" ;;
		69 | 125) expect_eq 1 "$(wc -l <"$HST_DIR/crowd.$n.err")" ;;
		*) fail "caller $n ended with $HS_RC: $(cat "$HST_DIR/crowd.$n.err")" ;;
		esac
	done
}

# pressure: requests of a megabyte each, all at once.
pressure() {
	local i
	{ printf ': ' && head -c 1000000 /dev/zero | tr '\0' x && echo; } >"$HST_DIR/large"
	CROWD=()
	for i in $(seq 40); do
		{ cat "$HST_DIR/large" && echo "sleep 1; echo $i"; } >"$HST_DIR/large.$i"
		chmod 0644 "$HST_DIR/large.$i"
		hs_begin "crowd.$i" exec --script - <"$HST_DIR/large.$i"
		CROWD+=("$HS_PID")
	done
}

# after_pressure [SESSIONS]: whether it ended or not, the next moment is as if nothing had been.
after_pressure() {
	told
	if [ -s "$HST_DIR/sandboxd.rc" ]; then
		rm -f "$HST_DIR/sandboxd.pid"
		it_sandboxd
	fi
	expect_settled 4 "${1:-0}"
	expect_eq hello "$(hs exec 'echo hello')"
	expect_recorded "${1:-0}"
}

allocation_fails() {
	local manager size
	manager=$(it_pid sandboxd)
	expect_settled 4
	size=$(awk '$1 == "VmSize:" { print $2 * 1024 }' "/proc/$manager/status")
	limit "$manager" --as=$((size + 2000000)):
	pressure
	# shellcheck disable=SC2317 # called by wait_for
	over() { [ -s "$HST_DIR/sandboxd.rc" ] || all_gone; }
	# shellcheck disable=SC2317 # called by wait_for
	all_gone() {
		local i
		for i in "${CROWD[@]}"; do gone "$i" || return 1; done
	}
	wait_for 60 over || fail "neither the manager nor its callers end"
	[ ! -s "$HST_DIR/sandboxd.rc" ] || expect_eq 134 "$(cat "$HST_DIR/sandboxd.rc")"
	[ -s "$HST_DIR/sandboxd.rc" ] || limit "$manager" --as=unlimited:
	after_pressure
}
it_case "the manager's allocations fail: it ends, every caller is told, and the next life is whole" allocation_fails

oom_killed() {
	local long
	own_group memory || fail "this machine bounds no memory: no control group with memory"
	expect_settled 4
	at_work spared
	hs_begin long exec 'echo begun; sleep 7932; :'
	long=$HS_PID
	wait_for 20 running sleep 7932
	it_pid sandboxd >"$GROUP/cgroup.procs"
	# What it has already is charged where it was.
	if [ -e "$GROUP/memory.max" ]; then
		echo 0 >"$GROUP/memory.swap.max" 2>/dev/null || true
		echo 4M >"$GROUP/memory.max"
	else
		echo 4M >"$GROUP/memory.limit_in_bytes"
	fi
	pressure
	wait_for 60 test -s "$HST_DIR/sandboxd.rc" || fail "it is not killed"
	expect_eq 137 "$(cat "$HST_DIR/sandboxd.rc")"
	hs_end "$long"
	expect_eq 125 "$HS_RC"
	after_pressure 1
	expect_gone 7932
	unharmed spared
	close_session spared
	expect_settled 4
	expect_recorded 0
}
it_case "the kernel kills the manager for want of memory: likewise" oom_killed
