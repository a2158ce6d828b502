#!/bin/bash
# What a session is to the manager: a lease that counts, that nothing takes away but its owner, and that both trails
# know; and 64 commands at once in one.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
# shellcheck disable=SC2317 # the cases are called by it_case
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"

config() {
	it_config <<-END
		pool:
		  size: 1
		  max_sandboxes: 3
		  pids_limit: 512
		  queue_timeout: 3s
		limits: { sessions: 3, execs: 70, queued: 3 }
		$1
	END
}
config $'profiles:\n  brief: { size: 0, max_age: 1s, max_uses: 1 }'
it_start

# reload: both daemons, and until the manager has said that it has read the config.
reload() {
	local n
	n=$(wc -l <"$HST_DIR/sandboxd.log")
	kill -HUP "$(it_pid engined)" "$(it_pid sandboxd)"
	again() { tail -n +$((n + 1)) "$HST_DIR/sandboxd.log" | grep -q 'read again'; }
	wait_for 10 again
}

of() { hs session list --json | jq -r --arg n "$1" ".[] | select(.session == \$n) | $2"; }

together() {
	local i pids=()
	hs session open work >/dev/null
	for i in $(seq 64); do
		hs_begin "p$i" exec --session work -i "read -r line; echo out \$line; echo err $i >&2; sleep 76$((100 + i)) &
			until [ -e /tmp/go ]; do sleep 0.3; done; kill \$!; exit $i" <<<"$i"
		pids[i]=$HS_PID
	done
	all_run() { [ "$(of work .running)" -eq 64 ]; }
	wait_for 60 all_run || fail "$(of work .running) of 64 run"
	for i in $(seq 64); do
		wait_for 30 sleeps "76$((100 + i))"
	done
	# One caller goes, and one command is killed: the others do not notice.
	kill -KILL "${pids[30]}"
	hs_end "${pids[30]}"
	hs kill "$(hs ps --json | jq -r '.[] | select(.command | test("err 31 ")) | .exec')"
	hs_end "${pids[31]}"
	expect_eq 137 "$HS_RC"
	wait_for 10 none_left 76130 76131
	expect_eq 62 "$(of work .running)"
	hs exec --session work 'touch /tmp/go'
	for i in $(seq 29) $(seq 32 64); do
		hs_end "${pids[i]}"
		expect_eq "$i out $i err $i" "$HS_RC $(cat "$HST_DIR/p$i.out" "$HST_DIR/p$i.err" | xargs)"
	done
	expect_eq 0 "$(of work .running)"
}
it_case "64 commands at once in one session, each with its own streams, end and kill" together

counts() {
	local json
	# Two sandboxes are leased, a third is all that there may be.
	hs session open second >/dev/null
	expect_eq "2 2" "$(hs status --json | jq -r '"\(.sessions_open) \(.pools[] | select(.profile == "default") | .leased)"')"
	expect_match $'\nsessions: 2\n  SESSION ' "$(hs status)"
	expect_match 'work ' "$(hs status)"
	expect_eq one "$(hs exec 'echo one')"
	hs session open third >/dev/null
	# The bound of sandboxes: who has no session waits, and is told.
	expect_rc 125 hs exec true 2>"$HST_DIR/err"
	expect_match 'queue_timeout' "$(cat "$HST_DIR/err")"
	expect_rc 125 hs session open fourth 2>"$HST_DIR/err"
	expect_match 'limits.sessions' "$(cat "$HST_DIR/err")"
	hs session close third
	expect_eq two "$(hs exec 'echo two')"
	json=$("$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" status --json)
	expect_eq 2 "$(jq '.sessions | length' <<<"$json")"
	hs session close second
}
it_case "a session counts against the bounds of its user and of the pool; status has it" counts

at_once() {
	local i pids=()
	for i in 1 2 3 4 5 6; do
		hs_begin "o$i" exec --session shared --open "echo $i >>/tmp/all; sleep 0.2; echo done"
		pids[i]=$HS_PID
	done
	for i in 1 2 3 4 5 6; do
		hs_end "${pids[i]}"
		expect_eq "0 done" "$HS_RC $(cat "$HST_DIR/o$i.out")"
	done
	expect_eq 6 "$(hs exec --session shared 'wc -l </tmp/all')"
	expect_eq 1 "$(hs session list --json | jq '[.[] | select(.session == "shared")] | length')"
	hs session close shared
}
it_case "six who open the same session by a command share one" at_once

lasting() {
	local id
	hs session open old --profile brief >/dev/null
	id=$(of old .sandbox)
	hs exec --session old 'echo kept >/tmp/file'
	# Past max_uses and max_age, with another recipe.
	config $'profiles:\n  brief: { size: 0, max_age: 1s, max_uses: 1, pids_limit: 100 }'
	reload
	aged_out() { [ "$(of old .idle_ms)" -gt 1200 ]; }
	wait_for 10 aged_out
	expect_eq "kept $id" "$(hs exec --session old 'cat /tmp/file') $(of old .sandbox)"
	# Its profile goes: nothing new begins, and it can still be closed.
	config ''
	reload
	expect_rc 125 hs exec --session old true 2>"$HST_DIR/err"
	expect_match 'has gone from the config' "$(cat "$HST_DIR/err")"
	expect_eq "$id" "$(of old .sandbox)"
	hs session close old
}
it_case "neither max_uses, max_age, another recipe nor a dropped profile takes it away" lasting

trails() {
	local events
	review --session work --json >"$HST_DIR/events"
	events=$(jq -rs '[(.[0] | "\(.event) \(.op)"), ([.[] | select(.event == "exec")] | length)] | join(" ")' "$HST_DIR/events")
	expect_eq "session session-open" "${events% *}"
	[ "${events##* }" -ge 64 ] || fail "$events"
	expect_eq 0 "$(jq -s '[.[] | select(.session != "work")] | length' "$HST_DIR/events")"
	expect_eq "opened closed" "$(review --session second --json | jq -rs '[.[] | select(.event == "session") | .op] | map(sub("session-open"; "opened") | sub("session-close"; "closed")) | join(" ")')"
	# Refusals name the session, too.
	expect_eq no_session "$(hs exec --session nothing true 2>/dev/null; review --session nothing --json | jq -r .reason)"
	expect_match 'SESSION-CLOSE cid=[0-9a-f]{12} session="second" uid=[0-9]+ profile="default" reason=closed by=[0-9]+ seq=' \
		"$(cat "$TRAIL")"
	expect_recorded 0
}
it_case "audit --session finds its opening, its commands, its end and what was refused in it" trails

ended() {
	hs exec --session work --detach 'sleep 76001' >/dev/null
	it_end sandboxd
	expect_match 'SESSION-CLOSE .* session="work" .* reason=stopped by=\?' "$(tail -n 3 "$TRAIL")"
	expect_match 'cause=cancelled' "$(tail -n 4 "$TRAIL")"
	expect_match 'POOL-STOP' "$(tail -n 1 "$TRAIL")"
	expect_eq "" "$(ls "$HST_DIR/state/sessions")"
	wait_for 30 none_left 76001
	it_sandboxd
	expect_recorded 0
}
it_case "INT ends the manager and its sessions, and records both" ended
