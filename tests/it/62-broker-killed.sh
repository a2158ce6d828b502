#!/bin/bash
# The broker is killed: sessions do not notice, what would need it is told so or waits, and once it is back nothing is
# left over. (One-shot commands: 35-recovery.sh.)
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"
it_config <<END
pool:
  size: 2
  max_sandboxes: 12
  queue_timeout: 5s
  reconnect_grace: 60s
END
it_start

without() {
	local i
	expect_settled 2
	at_work work
	expect_settled 2 1
	killed engined
	unharmed work
	i=$(hs exec --session work --detach 'echo still')
	expect_rc 0 hs wait "$i" >/dev/null
	expect_eq still "$(hs attach "$i")"
	# What is warm can be leased, and then there is no more.
	for i in first second; do expect_eq $i "$(hs session open $i)"; done
	expect_rc 125 hs session open third >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "0 1" "$(wc -c <"$HST_DIR/out") $(wc -l <"$HST_DIR/err")"
	expect_match 'broker' "$(cat "$HST_DIR/err")"
	# One that is closed meanwhile is closed at once; its container goes when it can.
	close_session second
	it_engined
	expect_settled 2 2
	unharmed work
	close_session first
	expect_settled 2 1
	expect_recorded 1
}
it_case "sessions go on, one can be opened in what is warm, and one that is closed leaves no container" without

restarted() {
	kill -TERM "$(it_pid engined)"
	wait_for 20 test -s "$HST_DIR/engined.rc" || fail "it does not end"
	expect_eq 0 "$(cat "$HST_DIR/engined.rc")"
	it_engined
	unharmed work
	expect_settled 2 1
}
it_case "stopped and started: likewise" restarted

both() {
	killed engined sandboxd
	it_engined
	it_sandboxd
	wait_for 20 unharmed_yet || fail "the session is not there again"
	unharmed work
	expect_settled 2 1
	expect_recorded 1
}
# shellcheck disable=SC2317 # called by wait_for
unharmed_yet() { hs exec --session work true 2>/dev/null; }
it_case "both are killed: the session is there again" both

# The manager is first, and looks for its sessions when there is somebody to ask.
manager_first() {
	killed sandboxd engined
	it_sandboxd
	# Nothing is lost by asking too early.
	expect_rc 125 hs exec --session work true 2>"$HST_DIR/err"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	it_engined
	wait_for 20 unharmed_yet || fail "the session is not there again"
	unharmed work
	expect_settled 2 1
	expect_recorded 1
}
it_case "the manager is back before the broker: the session is there when both are" manager_first

killed_while_adopting() {
	local i
	for i in 1 2 3; do
		killed sandboxd
		it_sandboxd
		killed engined
		it_engined
	done
	wait_for 20 unharmed_yet || fail "the session is not there again"
	unharmed work
	expect_settled 2 1
	close_session work
	expect_settled 2
	expect_recorded 0
}
it_case "it is killed each time that the manager looks for its sessions" killed_while_adopting
