#!/bin/bash
# The manager is killed, restarted, away for too long, or finds its state damaged: sessions and what runs in them are
# there again within a second of its start, callers are told, and nothing is left over. (One-shot commands alone:
# 35-recovery.sh, 39-drain.sh.)
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"
it_config <<END
pool:
  size: 2
  max_sandboxes: 12
  reconnect_grace: 60s
profiles:
  hasty:
    size: 0
    cold_after: 0ms
    reconnect_grace: 2s
END
it_start

# back SESSION: within a second of the manager's start it is there, with its processes.
back() {
	local began
	began=$(now_ms)
	it_sandboxd
	# shellcheck disable=SC2317 # called by wait_for
	adopted() { hs exec --session "$1" true 2>/dev/null; }
	wait_for 10 adopted "$1" || fail "session $1 is not there again: $(hs session list)"
	echo "session $1 answers $(($(now_ms) - began)) ms after the start"
	[ $(($(now_ms) - began)) -lt $((2000 * ${HST_SLOW:-1})) ] || fail "it took $(($(now_ms) - began)) ms"
	unharmed "$1"
}

killed_at_work() {
	local attached one_shot
	expect_settled 2
	at_work work
	hs_begin attached exec --session work 'sleep 7941; :'
	attached=$HS_PID
	hs_begin one_shot exec 'sleep 7942; :'
	one_shot=$HS_PID
	wait_for 20 sleeps 7941 7942 || fail "the commands do not start"
	killed sandboxd
	for pid in $attached $one_shot; do
		hs_end "$pid"
		expect_eq 125 "$HS_RC"
	done
	expect_eq "1 1" "$(wc -l <"$HST_DIR/attached.err") $(wc -l <"$HST_DIR/one_shot.err")"
	back work
	# Who waited for them has gone, and so have they.
	wait_for 10 none_left 7941 7942 || fail "a command outlives its caller"
	expect_settled 2 1
	expect_recorded 1
}
it_case "killed: a session is there again with its job, its detached commands and their output; callers get 125" killed_at_work

killed_again() {
	for _ in 1 2 3; do
		killed sandboxd
		it_sandboxd
	done
	killed sandboxd
	back work
	expect_settled 2 1
	expect_recorded 1
}
it_case "killed four times, before it has looked around" killed_again

restarted() {
	kill -TERM "$(it_pid sandboxd)"
	wait_for 20 test -s "$HST_DIR/sandboxd.rc" || fail "it does not end"
	expect_eq 0 "$(cat "$HST_DIR/sandboxd.rc")"
	# The sandboxes that are nobody's have gone, the session's has not.
	expect_eq "$(cat "$HST_DIR/work.sandbox")" "$(ours)"
	back work
	expect_settled 2 1
	expect_recorded 1
}
it_case "stopped and started: likewise" restarted

ends_are_told() {
	local id
	id=$(hs exec --session work --detach 'sleep 1; echo late; exit 9')
	killed sandboxd
	# It ends while there is no manager.
	sleep 1.5
	back work
	expect_rc 9 hs wait "$id" >/dev/null
	expect_eq late "$(hs attach "$id" || true)"
	hs kill "$(counts_in work)"
	expect_rc 137 hs wait "$(counts_in work)" >/dev/null
	close_session work
	expect_settled 2
	expect_recorded 0
	! ours | grep -qxF "$(cat "$HST_DIR/work.sandbox")" || fail "its container is left"
}
it_case "a detached command ends while there is no manager: its end and its output are there" ends_are_told

# Whoever heard of his session has it; one that nobody heard of may be there, and is listed.
killed_while_opening() {
	local i pids=() told=0
	expect_settled 2
	for i in $(seq 10); do
		hs_begin "open.$i" session open "open-$i"
		pids+=("$HS_PID")
	done
	# shellcheck disable=SC2317 # called by wait_for
	some() { grep -qs . "$HST_DIR"/open.*.out; }
	wait_for 30 some || fail "none is opened"
	killed sandboxd
	for i in $(seq 10); do
		hs_end "${pids[i - 1]}"
		if [ "$HS_RC" -eq 0 ]; then
			expect_eq "open-$i" "$(cat "$HST_DIR/open.$i.out")"
			told=$((told + 1))
		else
			# 69: he found none any more.
			expect_match '^(125|69) 1$' "$HS_RC $(wc -l <"$HST_DIR/open.$i.err")"
		fi
	done
	it_sandboxd
	wait_for 30 it_warm 2
	hs session list --json | jq -r '.[].session' | sort >"$HST_DIR/listed"
	expect_eq "" "$(cat "$HST_DIR"/open.*.out | sort | comm -23 - "$HST_DIR/listed")"
	while read -r i; do expect_eq "$i" "$(hs exec --session "$i" "echo $i")"; done <"$HST_DIR/listed"
	expect_settled 2 "$(wc -l <"$HST_DIR/listed")"
	echo "$told were told of their session, $(wc -l <"$HST_DIR/listed") are there"
	while read -r i; do close_session "$i"; done <"$HST_DIR/listed"
	expect_settled 2
	expect_recorded 0
}
it_case "killed while ten sessions are being opened: who heard of his has it, and no sandbox is left over" killed_while_opening

# Longer than an agent has to answer: a suspended machine, a disk or an audit queue that does not move.
stood_still() {
	local attached
	at_work still
	hs_begin attached exec --session still 'sleep 2; echo out; exit 5'
	attached=$HS_PID
	kill -STOP "$(it_pid sandboxd)"
	sleep 20
	kill -CONT "$(it_pid sandboxd)"
	hs_end "$attached"
	expect_eq "5 out" "$HS_RC $(cat "$HST_DIR/attached.out")"
	sleep 3
	unharmed still
	grep -q 'nothing was done for 2[0-9] s: ' "$HST_DIR/sandboxd.log" || fail "the log says nothing of it"
	close_session still
	expect_settled 2
	expect_recorded 0
}
it_case "it stands still for 20 s: no sandbox is taken for lost, and who waits gets his result" stood_still

# Longer than the sandbox waits for a manager.
away() {
	local id
	expect_eq brief "$(hs session open --profile hasty brief)"
	id=$(hs exec --session brief --detach sleep 7943)
	wait_for 10 running sleep 7943
	killed sandboxd
	wait_for 20 none_left 7943 || fail "a sandbox without a manager lives on"
	it_sandboxd
	# shellcheck disable=SC2317 # called by wait_for
	closed() { grep -qE " SESSION-CLOSE .*brief" "$TRAIL"; }
	wait_for 20 closed || fail "its end is not recorded: $(tail -n 3 "$TRAIL")"
	expect_eq "[]" "$(hs session list --json | jq -c .)"
	expect_rc 125 hs exec --session brief true 2>"$HST_DIR/err"
	expect_match 'no session' "$(cat "$HST_DIR/err")"
	expect_match 'res=unknown' "$(audit_records --raw -m USER_CMD -x "$HST_RUN/bin/hermes-sandboxd" | grep -a "$id" | tail -n 1)"
	expect_settled 2
	expect_recorded 0
}
it_case "away for longer than reconnect_grace: the session is recorded as lost, and its command's end as unknown" away

damaged() {
	local file
	at_work whole
	expect_eq torn "$(hs session open torn)"
	expect_settled 2 2
	killed sandboxd
	for file in "$HST_DIR"/state/sessions/*torn*; do
		truncate -s $(($(stat -c %s "$file") / 2)) "$file"
	done
	head -c 300 /dev/urandom >"$HST_DIR/state/sessions/noise"
	: >"$HST_DIR/state/sessions/empty"
	mkdir "$HST_DIR/state/sessions/folder"
	chown -R _hermes-sandbox:_hermes-sandbox "$HST_DIR/state/sessions"
	back whole
	expect_eq "whole" "$(hs session list --json | jq -r '.[].session')"
	# What nobody can say whose it is goes.
	expect_settled 2 1
	close_session whole
	expect_settled 2
	expect_recorded 0
}
it_case "its state is damaged: what can be read is there again, what cannot is removed" damaged
