# shellcheck shell=bash
# Waiting for an event with a deadline. Sourced by everything else here.

# wait_for SECONDS COMMAND…: runs COMMAND until it succeeds. 1 when the deadline passes first. HST_SLOW is how
# many times as long everything may take, as in a machine that is emulated.
wait_for() {
	local deadline=$((SECONDS + $1 * ${HST_SLOW:-1})) step=0.05
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep "$step"
	done
}

# gone PID: no such process, or one that only waits to be reaped.
gone() {
	local state
	state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || return 0
	[ -z "$state" ] || [ "$state" = Z ]
}

# end_process PID SECONDS [SIGNAL]: TERM, and KILL when that was not enough in time. 1 when it took KILL.
end_process() {
	kill -"${3:-TERM}" "$1" 2>/dev/null || return 0
	wait_for "$2" gone "$1" && return 0
	kill -KILL "$1" 2>/dev/null || true
	return 1
}
