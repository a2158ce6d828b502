#!/bin/bash
# Exit codes and causes: a command's own failures and ours are told apart (case 15), limits are named as
# what they are (cases 8 and 9), signals arrive.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 5
  max_sandboxes: 40
  pids_limit: 64
limits:
  grace: 200ms
END
it_start

# says CODE FIELDS ARGUMENT…: FIELDS are "NAME VALUE NAME VALUE".
says() {
	local code=$1 fields=$2 rc=0
	shift 2
	JSON=$(hs exec --json "$@") || rc=$?
	expect_eq "$code" "$rc"
	# shellcheck disable=SC2086 # they are words
	expect_fields "$JSON" exit_code "$code" $fields
}

# --- case 15 -----------------------------------------------------------------------------------------

own_codes() {
	says 125 "cause exited signal null" 'exit 125'
	says 137 "cause exited signal null" 'exit 137'
	says 127 "cause exited" 'no-such-program-at-all'
	expect_match 'not found' "$(field .stderr "$JSON")"
	expect_match 'not found in image' "$(field .error "$JSON")"
}
it_case "case 15: a command's own 125, 127 and 137 are its own" own_codes

not_started() {
	says 127 "cause not_found stdout_bytes 0" -- no-such-program
	expect_match 'no-such-program.*no such program in image' "$(field .error "$JSON")"
	says 126 "cause not_executable" -- /etc/passwd
	expect_match '/etc/passwd.*Permission denied' "$(field .error "$JSON")"
	says 126 "cause not_executable" -- /etc
	says 126 "cause not_executable" -w /no/such/folder 'echo never'
	expect_match '/no/such/folder.*No such file' "$(field .error "$JSON")"
	expect_rc 127 hs exec -- no-such-program 2>"$HST_DIR/err"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
}
it_case "case 15: a missing program, a file that is none, a missing folder have causes of their own" not_started

lost() {
	local id
	hs_begin lost exec --json 'sleep 7301; :'
	wait_for 20 sleeps 7301 || fail "the command did not start"
	# The engine names a container's cgroup after it.
	id=$(grep -oE '[0-9a-f]{64}' "/proc/$(pid_of sleep 7301)/cgroup" | tail -n 1)
	docker_ rm -f "$id" >/dev/null
	hs_end "$HS_PID"
	expect_eq 125 "$HS_RC"
	expect_fields "$(cat "$HST_DIR/lost.out")" cause sandbox_lost exit_code 125 signal null
	expect_match "$id" "$(cat "$HST_DIR/lost.out")"
}
it_case "case 15: a sandbox that ends under its command is our 125, with its cause" lost

# --- cases 8 and 9 -----------------------------------------------------------------------------------

memory() {
	says 137 "cause oom signal 9" 'exec tail /dev/zero'
	expect_match 'memory limit of 128 MiB was reached \(peak [0-9]+ KiB\)' "$(field .error "$JSON")"
	[ "$(field .sandbox_peak_bytes "$JSON")" -gt $((100 << 20)) ] || fail "the peak: $JSON"
	# Its grandchild alone; once, not again and again.
	says 5 "cause oom signal null stdout once" 'echo once; (sh -c "tail /dev/zero; :"; :) 2>/dev/null; exit 5'
	expect_eq next "$(hs exec 'echo next')"
}
it_case "case 8: the memory limit is named, also when only a grandchild ran into it" memory

processes() {
	local rc=0
	JSON=$(hs exec --json --timeout 20s 'i=0; while [ $i -lt 100 ]; do sleep 7311 & i=$((i+1)); done') || rc=$?
	expect_fields "$JSON" cause pids_limit exit_code "$rc"
	expect_match '^(2|125)$' "$rc"
	expect_match 'limit of 64 processes' "$(field .error "$JSON")"
	expect_gone 7311
}
it_case "case 9: the pids limit is named" processes

fork_bomb() {
	says 124 "cause timeout" --timeout 1s -- perl -e '$0 = "bomb 7312"; fork while 1'
	! running 'bomb 7312' || fail "a bomb is left"
	says 2 "cause pids_limit" --timeout 10s 'f() { f | f & f; }; f 2>/dev/null'
	expect_eq next "$(hs exec 'echo next')"
}
it_case "case 9: a fork bomb ends at its time-out" fork_bomb

# --- signals -----------------------------------------------------------------------------------------

forwarded() {
	hs_begin signals exec 'for s in USR1 USR2 HUP INT QUIT TERM; do trap "echo $s" $s; done
		trap "echo TERM; exit 9" TERM; echo ready; while :; do sleep 0.02; done'
	wait_for 20 grep -q ready "$HST_DIR/signals.out" || fail "the command did not start"
	for s in USR1 USR2 HUP INT QUIT TERM; do
		kill -s "$s" "$HS_PID"
		wait_for 10 grep -q "^$s\$" "$HST_DIR/signals.out" || fail "$s does not arrive"
	done
	hs_end "$HS_PID"
	expect_eq 9 "$HS_RC"
}
it_case "signals to the caller reach the command" forwarded

undefended() {
	hs_begin undefended exec --json 'sleep 7321; :'
	# It says nothing: by its age alone the caller has heard that it runs.
	wait_for 20 sleeps 7321 || fail "the command did not start"
	wait_for 20 aged "$(pid_of sleep 7321)"
	kill -TERM "$HS_PID"
	hs_end "$HS_PID"
	expect_gone 7321
	expect_eq 143 "$HS_RC"
	expect_fields "$(cat "$HST_DIR/undefended.out")" cause signaled signal 15
}
it_case "and end it as they would have here" undefended

twice_int() {
	hs_begin twice exec 'trap "" INT; sleep 7331; :'
	wait_for 20 sleeps 7331 || fail "the command did not start"
	wait_for 20 aged "$(pid_of sleep 7331)"
	# shellcheck disable=SC2317 # called by wait_for
	int_gone() { kill -INT "$HS_PID" 2>/dev/null; gone "$HS_PID"; }
	wait_for 10 int_gone || fail "it cannot be interrupted"
	hs_end "$HS_PID"
	expect_eq 130 "$HS_RC"
	wait_for 10 none_left 7331 || fail "the command outlived its caller"
}
it_case "a command that ignores INT does not hold a caller that insists" twice_int
