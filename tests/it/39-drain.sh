#!/bin/bash
# The end of the manager: SIGTERM lets commands end and takes no new one, a second one or SIGINT does not wait.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
it_config <<END
pool:
  size: 2
  max_sandboxes: 2
END
it_start

# begin NAME COMMAND: a command of ours has said "begun" in NAME.out.
begin() {
	rm -f "$HST_DIR/$1.out"
	hs_begin "$1" exec "$2"
	wait_for 20 grep -qx begun "$HST_DIR/$1.out" || fail "$1 does not start"
}

# ended SECONDS: the manager has, with status 0, and left nothing; the record of the stop is the last one.
ended() {
	wait_for "$1" test -s "$HST_DIR/sandboxd.rc" || fail "the manager does not end within $1 s"
	expect_eq 0 "$(cat "$HST_DIR/sandboxd.rc")"
	rm -f "$HST_DIR/sandboxd.pid"
	expect_match ' POOL-STOP containers=[0-9]+' "$(tail -n 1 "$HST_DIR/log/sandbox-audit.log")"
	expect_eq "" "$(docker_ ps -aq)"
}

trail() { grep -F "$1" "$HST_DIR/log/sandbox-audit.log"; }

idle() {
	SECONDS=0
	kill -TERM "$(it_pid sandboxd)"
	ended 15
	it_sandboxd
	wait_for 30 it_warm 2
}
it_case "nothing runs: TERM ends it at once" idle

drains() {
	local runs waits other
	begin runs 'echo begun; sleep 3; echo done; exit 7'
	runs=$HS_PID
	begin other 'echo begun; sleep 7801; :'
	other=$HS_PID
	hs_begin waits exec 'echo never'
	waits=$HS_PID
	# shellcheck disable=SC2317 # called by wait_for
	one_waits() { [ "$(hs status --json | jq '.pools[0].waiting')" -eq 1 ]; }
	wait_for 20 one_waits || fail "nobody waits"
	kill -TERM "$(it_pid sandboxd)"
	# Who waits is told at once, and so is who comes now.
	hs_end "$waits"
	expect_eq 125 "$HS_RC"
	expect_match '^hermes-sandbox: rejected: hermes-sandboxd is stopping: ask again' "$(cat "$HST_DIR/waits.err")"
	expect_rc 125 hs exec 'echo never' 2>"$HST_DIR/err"
	expect_match '^hermes-sandbox: rejected: hermes-sandboxd is stopping: ask again' "$(cat "$HST_DIR/err")"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_match 'reason=stopping' "$(tail -n 1 "$HST_DIR/log/sandbox-audit.log")"
	# What runs ends as it would have.
	hs_end "$runs"
	expect_eq 7 "$HS_RC"
	expect_eq "begun done" "$(paste -sd' ' "$HST_DIR/runs.out")"
	# And the other one still goes on.
	running sleep 7801 || fail "the other command was ended"
	kill -0 "$(it_pid sandboxd)"
	# Until somebody has had enough.
	kill -TERM "$(it_pid sandboxd)"
	hs_end "$other"
	expect_eq 125 "$HS_RC"
	expect_match '^hermes-sandbox: exec: cancelled, as hermes-sandboxd is stopping$' "$(cat "$HST_DIR/other.err")"
	ended 15
	expect_eq 1 "$(trail 'cause=cancelled' | wc -l)"
	! running sleep 7801 || fail "the command lives on"
}
it_case "TERM: a command runs to its end with its exit code, new ones are refused, a second TERM cancels the rest" drains

interrupted() {
	it_sandboxd
	wait_for 30 it_warm 2
	begin long 'echo begun; sleep 7802; :'
	kill -INT "$(it_pid sandboxd)"
	hs_end "$HS_PID"
	expect_eq 125 "$HS_RC"
	ended 15
}
it_case "INT does not wait" interrupted

# What a command wrote before its end is the caller's, however slowly it reads.
slow_reader() {
	it_sandboxd
	wait_for 30 it_warm 2
	mkfifo "$HST_DIR/slow.out"
	exec {hold}<>"$HST_DIR/slow.out"
	hs_begin slow exec 'head -c 600000 /dev/zero | tr "\0" x'
	# shellcheck disable=SC2317 # called by wait_for
	busy() { [ "$(hs status --json | jq '.pools[0].busy')" -eq 1 ]; }
	wait_for 20 busy || fail "it does not start"
	kill -TERM "$(it_pid sandboxd)"
	timeout 30 head -c 600000 <&"$hold" | tr -d x | wc -c >"$HST_DIR/count"
	hs_end "$HS_PID"
	expect_eq 0 "$HS_RC"
	expect_eq 0 "$(tr -d ' ' <"$HST_DIR/count")"
	ended 15
}
it_case "output that is still to be read is not lost" slow_reader

# With a shorter wait than the 30 s that are the default.
deadline() {
	it_spawn sandboxd setpriv --reuid=_hermes-sandbox --regid=_hermes-sandbox --clear-groups \
		--inh-caps=-all,+audit_write --ambient-caps=-all,+audit_write \
		--bounding-set=-all,+audit_write --no-new-privs \
		"$HST_RUN/bin/hermes-sandboxd" --config "$HST_DIR/etc/sandbox.yaml" \
		--config-dir "$HST_DIR/etc/sandbox.d" --runtime-dir "$HST_DIR/run" --drain 1 \
		--engine-socket "$HST_DIR/engine/engine.sock" --state-dir "$HST_DIR/state"
	it_up sandboxd "$HST_DIR/run/pool.sock"
	wait_for 30 it_warm 2
	begin late 'echo begun; sleep 7803; :'
	SECONDS=0
	kill -TERM "$(it_pid sandboxd)"
	hs_end "$HS_PID"
	expect_eq 125 "$HS_RC"
	[ $SECONDS -ge 1 ] || fail "it was not waited for"
	ended 15
	expect_gone 7803
}
it_case "a command that does not end in time is cancelled" deadline
