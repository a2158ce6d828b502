#!/bin/bash
# Sessions that are stopped and started: what ends and what stays, who is refused, what the trails say, and what the next
# manager makes of a stop that this one has begun. And one that has less than its profile gives.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
# shellcheck disable=SC2317 # the cases are called by it_case
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"
it_config <<END
pool:
  size: 1
  max_sandboxes: 6
  pids_limit: 128
END
it_start

of() { hs session list --json | jq -r --arg n "$1" ".[] | select(.session == \$n) | $2"; }
trail() { grep -E "$1" "$HST_DIR/log/sandbox-audit.log"; }

stops() {
	local caller id
	hs session open work >/dev/null
	hs exec --session work 'echo kept >/tmp/file; mkdir /tmp/dir; sleep 7841 & :'
	id=$(hs exec --session work --detach 'sleep 7842; :')
	hs_begin attached exec --session work 'sleep 7843; :'
	caller=$HS_PID
	wait_for 20 sleeps 7841 7842 7843 || fail "the commands do not start"
	expect_rc 0 hs session stop work
	none_left 7841 7842 7843 || fail "something runs on"
	hs_end "$caller"
	expect_eq 137 "$HS_RC"
	grep -q "its session was stopped" "$HST_DIR/attached.err" || fail "$(cat "$HST_DIR/attached.err")"
	expect_eq "ended cancelled 137" "$(hs ps work --json | jq -r --arg i "$id" '.[] | select(.exec == $i) | "\(.state) \(.cause) \(.exit_code)"')"
	expect_eq stopped "$(of work .state)"
	expect_rc 0 hs session stop work
}
it_case "stop ends the jobs, the detached commands and the others, which exit with 137" stops

refuses() {
	local sandbox line rc=0
	sandbox=$(of work .sandbox)
	line=$(hs exec --session work true 2>&1) || rc=$?
	expect_eq '125 hermes-sandbox: exec: session "work" is stopped: hermes-sandbox session start work' "$rc $line"
	expect_rc 125 hs exec --session "${sandbox:0:12}" true
	expect_rc 125 hs exec --session work --open true
	expect_eq "$sandbox" "$(docker_ ps -q --no-trunc --filter "id=$sandbox")"
}
it_case "a command in it is refused with the reason, and its container is there" refuses

starts() {
	expect_rc 0 hs session start work
	expect_eq open "$(of work .state)"
	expect_eq kept "$(hs exec --session work 'cat /tmp/file && test -d /tmp/dir')"
	none_left 7841 7842 7843 || fail "something runs again"
	expect_rc 0 hs session start work
	[ "$(of work .stopped)" != null ] || fail "it does not say when it was stopped"
}
it_case "started again it has its files" starts

grace() {
	local caller began
	hs_begin caller exec --session work 'trap "echo bye; exit 3" TERM; sleep 7844 & wait'
	caller=$HS_PID
	wait_for 20 sleeps 7844 || fail "the command does not start"
	expect_rc 0 hs session stop work
	hs_end "$caller"
	expect_eq "3 bye" "$HS_RC $(cat "$HST_DIR/caller.out")"
	expect_rc 0 hs session start work
	hs_begin caller exec --session work 'trap "" TERM; while :; do sleep 7845; done'
	caller=$HS_PID
	wait_for 20 sleeps 7845 || fail "the command does not start"
	began=$(now_ms)
	expect_rc 0 hs session stop --grace 1s work
	[ $(($(now_ms) - began)) -ge 900 ] || fail "the grace time was not waited for"
	hs_end "$caller"
	expect_eq 137 "$HS_RC"
	expect_rc 0 hs session start work
}
it_case "what ends by itself in its time of grace has its own end; what does not is killed" grace

recorded() {
	local n
	trail "SESSION-STOP .* session=\"work\" .* processes=[1-9][0-9]* by=$(id -u "$CALLER") " >/dev/null || fail "no line of the stop"
	trail "SESSION-START .* session=\"work\" .* by=$(id -u "$CALLER") " >/dev/null || fail "no line of the start"
	trail 'cause=cancelled .*' | grep -q 'rc=137' || fail "no line of a command that it ended"
	n=$(audit_records --raw -m TRUSTED_APP | grep -c 'op=session-stop .*session="work"') || :
	[ "$n" -ge 3 ] || fail "$n records of stops"
	expect_recorded 0
}
it_case "both trails have the stops, the starts and the end of each command" recorded

killed_between() {
	local id
	id=$(hs exec --session work --detach 'trap "" TERM; while :; do sleep 7846; done')
	wait_for 20 sleeps 7846 || fail "the command does not start"
	hs_begin stopper session stop --grace 60s work
	wait_for 20 is_stopping || fail "it is not being stopped"
	killed sandboxd
	hs_end "$HS_PID"
	[ "$HS_RC" -ne 0 ] || fail "the stop says that it was done"
	it_sandboxd
	wait_for 20 is_stopped || fail "the next manager does not go on with it: $(hs session list)"
	none_left 7846 || fail "something runs on"
	expect_rc 125 hs exec --session work true
	trail 'SESSION-STOP .* session="work" .* by=\? ' >/dev/null || fail "no line of the stop"
	trail "exec=$id .* cause=(cancelled|unknown)" >/dev/null || fail "no line of its end"
	killed sandboxd
	it_sandboxd
	wait_for 20 is_stopped || fail "it does not stay stopped: $(hs session list)"
	expect_rc 0 hs session start work
	expect_eq kept "$(hs exec --session work 'cat /tmp/file')"
	expect_recorded 0
}
is_stopping() { [ "$(of work .state)" = stopping ]; }
is_stopped() { [ "$(of work .state)" = stopped ]; }
it_case "the manager is killed meanwhile: the next one goes on with the stop, and keeps it stopped" killed_between

ttl() {
	hs session open --ttl 3s brief >/dev/null
	hs session stop brief
	expect_eq stopped "$(of brief .state)"
	is_gone() { [ -z "$(of brief .state)" ]; }
	wait_for 15 is_gone || fail "it stays"
	trail 'SESSION-CLOSE .* session="brief" .* reason=idle' >/dev/null || fail "it was not closed as idle"
}
it_case "one that is stopped ends with its time to live" ttl

narrowed() {
	local limits
	hs session open --memory 96m --pids-limit 40 --shm-size 1m --tmpfs /tmp=2m --cpus 0.25 --env A=session \
		--workdir /tmp narrow >/dev/null
	limits=$(hs exec --session narrow 'df -k /tmp | tail -n 1 | tr -s " " | cut -d" " -f2; echo "$A $PWD"')
	expect_eq $'2048\nsession /tmp' "$limits"
	expect_eq "100663296 40" "$(docker_ inspect --format "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}" "$(of narrow .sandbox)")"
	expect_eq "own" "$(hs exec --session narrow --env A=own 'echo $A')"
	expect_eq "40 100663296" "$(of narrow '"\(.pids_limit) \(.memory_bytes)"')"
	expect_rc 0 hs session close narrow
}
it_case "a session that has less: its limits, variables and folder hold inside" narrowed
