#!/bin/bash
# Ends: time-outs, escapes from the process group, background children, a caller that is gone (cases 1, 2,
# 3 and 16).
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 6
  max_sandboxes: 40
limits:
  grace: 300ms
END
it_start

# --- cases 1 and 2 -----------------------------------------------------------------------------------

timed_out() {
	local json
	json=$(hs exec --json --timeout 500ms \
		'sleep 7201 & sh -c "sleep 7202; :" & (sh -c "sleep 7203; :" &) & sleep 7204; :') || expect_eq 124 $?
	expect_gone 7201 7202 7203 7204
	expect_fields "$json" exit_code 124 cause timeout
	expect_match 'timed out after 500 ms' "$(field .error "$json")"
	expect_eq next "$(hs exec 'echo next')"
}
it_case "case 1: a time-out takes children and grandchildren along" timed_out

escapes='setsid sh -c "sleep 7211; :" &
	(setsid sh -c "(sleep 7212; :) & " &)
	nohup sh -c "sleep 7213; :" >/dev/null 2>&1 &
	(trap "" TERM HUP INT; sleep 7214; :) &
	perl -e "use POSIX; fork and exit; POSIX::setsid(); fork and exit; \$0 = q(renamed); exec q(sleep), 7215" &'
wait_for_escapes='until [ "$(cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -o "sleep 721[1-5]" | sort -u | wc -l)" -ge 5 ]; do sleep 0.02; done'

escaped_timeout() {
	expect_rc 124 hs exec --timeout 2s "$escapes sleep 7216; :" 2>/dev/null
	expect_gone 7211 7212 7213 7214 7215 7216
}
it_case "case 2: setsid, double forks and nohup do not outlive a time-out" escaped_timeout

escaped_end() {
	expect_eq "on their way" "$(hs exec "$escapes $wait_for_escapes; echo on their way" 2>/dev/null)"
	expect_gone 7211 7212 7213 7214 7215
}
it_case "case 2: nor the end of the command" escaped_end

killed_caller() {
	hs_begin killed exec "$escapes sleep 7216; :"
	wait_for 20 sleeps 7211 7212 7213 7214 7215 7216 || fail "the command did not start"
	kill -KILL "$HS_PID"
	wait_for 10 none_left 7211 7212 7213 7214 7215 7216 || fail "it outlived its caller"
	wait_for 10 grep -q 'cause=cancelled' "$HST_DIR/log/sandbox-audit.log"
}
it_case "a caller killed with SIGKILL takes the whole tree along" killed_caller

# --- case 3 ------------------------------------------------------------------------------------------

background() {
	local begin json
	begin=$(now_ms)
	json=$(hs exec --json 'sleep 7221 & echo hi')
	[ $(($(now_ms) - begin)) -lt 5000 ] || fail "the end took $(($(now_ms) - begin)) ms"
	expect_gone 7221
	expect_fields "$json" stdout hi background_left 1 cause exited exit_code 0
	json=$(hs exec --json 'sleep 7222 & (sleep 7223; :) & echo hi; exit 4') || expect_eq 4 $?
	expect_gone 7222 7223
	expect_fields "$json" stdout hi exit_code 4
	[ "$(field .background_left "$json")" -ge 2 ] || fail "$json"
	expect_fields "$(hs exec --json 'sleep 0.01 & wait; echo hi')" background_left 0
}
it_case "case 3: a background child holds nobody, is counted and is killed" background

background_writer() {
	expect_eq hi "$(hs exec 'echo hi; (while :; do sleep 0.01; echo later; done) & :' | head -n 1)"
	hs exec 'yes 7141 & echo >/tmp/f; exit 0' >"$HST_DIR/out"
	! running yes 7141 || fail "yes is still there"
}
it_case "case 3: one that writes without end does not either" background_writer

# --- case 16 -----------------------------------------------------------------------------------------

ignores_term() {
	local begin json took
	begin=$(now_ms)
	json=$(hs exec --json --timeout 300ms 'trap "" TERM; while :; do sleep 7231; done') || expect_eq 124 $?
	took=$(($(now_ms) - begin))
	expect_gone 7231
	expect_fields "$json" exit_code 124 cause timeout signal 9
	[ $took -ge 600 ] || fail "no grace: $took ms"
	[ $took -lt 10000 ] || fail "it took $took ms"
	expect_rc 124 hs exec --timeout 300ms 'trap "" TERM; while :; do sleep 7231; done' 2>"$HST_DIR/err"
	expect_match '^hermes-sandbox: exec: timed out after 300 ms' "$(cat "$HST_DIR/err")"
}
it_case "case 16: TERM, grace, KILL" ignores_term

uses_grace() {
	local json
	json=$(hs exec --json --timeout 300ms 'trap "echo bye; exit 3" TERM; sleep 7232 & wait') || expect_eq 124 $?
	expect_gone 7232
	expect_fields "$json" exit_code 124 cause timeout stdout bye signal null
}
it_case "case 16: a command can tidy up in the grace time" uses_grace

real_signals() {
	local json
	json=$(hs exec --json 'kill -KILL $$') || expect_eq 137 $?
	expect_fields "$json" exit_code 137 cause signaled signal 9
	json=$(hs exec --json 'kill -TERM $$') || expect_eq 143 $?
	expect_fields "$json" exit_code 143 cause signaled signal 15
	json=$(hs exec --json 'exit 124') || expect_eq 124 $?
	expect_fields "$json" exit_code 124 cause exited signal null
}
it_case "case 16: a real 124, 137 or 143 is told apart" real_signals

stop_ends() {
	hs_begin stopped exec 'sleep 7241; :'
	wait_for 20 sleeps 7241 || fail "the command did not start"
	it_end sandboxd
	expect_gone 7241
	hs_end "$HS_PID"
	expect_eq 125 "$HS_RC"
	expect_eq 1 "$(wc -l <"$HST_DIR/stopped.err")"
}
it_case "a stop of the manager ends what runs, and its caller is told" stop_ends
