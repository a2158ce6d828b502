#!/bin/bash
# More commands than sandboxes: cold starts, the queue and its bounds, and nobody gets a sandbox that another
# one has (case 21).
. "${0%/*}/../lib/it.sh"
it_config <<END
pool:
  size: 1
profiles:
  cold:
    size: 0
    cold_after: 0ms
  tight:                # one sandbox at a time, and little patience
    size: 1
    max_sandboxes: 1
    queue_limit: 1
    queue_timeout: 700ms
  patient:
    size: 1
    max_sandboxes: 1
    on_empty: wait
    queue_timeout: 60s
  crowd:
    reuse: replace
    size: 3
    max_sandboxes: 3
    queue_timeout: 60s
  busy:
    size: 1
    max_sandboxes: 2
    queue_timeout: 60s
  mine:                 # of whose two sandboxes nobody can have one who has two elsewhere
    size: 1
    max_sandboxes: 2
    queue_timeout: 700ms
END
it_start
for profile in tight patient; do
	wait_for 30 it_warm 1 $profile || fail "no sandbox of profile $profile"
done
wait_for 30 it_warm 3 crowd || fail "no sandboxes of profile crowd"
for profile in busy mine; do
	wait_for 30 it_warm 1 $profile || fail "no sandbox of profile $profile"
done

# pool PROFILE FIELD
pool() { hs status --json | jq --arg p "$1" ".pools[] | select(.profile == \$p) | .$2"; }
pool_is() { [ "$(pool "$1" "$2")" -eq "$3" ]; }

# hold PROFILE: a caller in the background whose command runs until let_go: HOLDER.
hold() {
	hs exec --profile "$1" 'sleep 300; :' 2>/dev/null &
	HOLDER=$!
	wait_for 20 pool_is "$1" busy 1 || fail "profile $1 is not busy"
}
let_go() {
	kill -TERM "$(pgrep -P "$HOLDER")"
	expect_rc 143 wait "$HOLDER"
}

refused() {
	expect_rc 125 hs exec "${@:2}" 2>"$HST_DIR/err"
	expect_eq "hermes-sandbox: $1" "$(cat "$HST_DIR/err")"
}

cold_start() {
	local json
	json=$(hs exec --profile cold --json 'echo hello')
	expect_eq "hello false" "$(jq -r '"\(.stdout | rtrimstr("\n")) \(.pool_hit)"' <<<"$json")"
	expect_match 'Z COLD DONE rc=0 dur=[0-9]+ms out=1L .*profile="cold"' \
		"$(grep " exec=$(jq -r .exec_id <<<"$json") " "$HST_DIR/log/sandbox-audit.log" | grep cmd=)"
	# With size 0 it is not kept for long, and no other one is made for later.
	wait_for 40 pool_is cold warm 0 || fail "the sandbox stays"
	expect_eq "0 0" "$(pool cold busy) $(pool cold starting)"
}
it_case "on_empty: cold starts a sandbox for the command" cold_start

# Not a size of 0, but all that there are at work.
all_busy() {
	local json
	hold busy
	json=$(hs exec --profile busy --json 'echo hello')
	expect_eq "hello" "$(jq -r '.stdout | rtrimstr("\n")' <<<"$json")"
	# One that the pool made in its place meanwhile is as good.
	[ "$(jq -r .pool_hit <<<"$json")" = true ] || expect_match 'Z COLD DONE rc=0 ' \
		"$(grep " exec=$(jq -r .exec_id <<<"$json") " "$HST_DIR/log/sandbox-audit.log" | grep cmd=)"
	expect_eq 1 "$(pool busy busy)"
	expect_eq 2 "$(docker_ ps -q --filter label=hermes-sandbox.profile=busy | wc -l)"
	let_go
}
it_case "all sandboxes are busy: one more is started" all_busy

# Over all profiles.
for_each_uid() {
	local first
	hold busy
	first=$HOLDER
	hs exec --profile busy 'sleep 300; :' 2>/dev/null &
	HOLDER=$!
	wait_for 20 pool_is busy busy 2 || fail "the second command does not run"
	wait_for 20 it_warm 1 mine
	refused 'rejected: no sandbox became free within queue_timeout: try again, or raise size or max_sandboxes' \
		--profile mine true
	expect_eq "1 0" "$(pool mine warm) $(pool mine busy)"
	expect_eq hello "$("$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" exec --profile mine 'echo hello')"
	let_go
	HOLDER=$first
	let_go
	wait_for 20 pool_is busy busy 0 || fail "the two commands do not end"
	wait_for 20 it_warm 1 mine
	expect_eq hello "$(hs exec --profile mine 'echo hello')"
}
it_case "max_sandboxes bounds a user over all profiles, and nobody else" for_each_uid

timed_out() {
	hold tight
	refused 'rejected: no sandbox became free within queue_timeout: try again, or raise size or max_sandboxes' \
		--profile tight true
	expect_match 'reason=queue_timeout' "$(tail -n 1 "$HST_DIR/log/sandbox-audit.log")"
	expect_eq "1 0" "$(pool tight busy) $(pool tight starting)"
	let_go
}
it_case "who waits longer than queue_timeout is rejected" timed_out

full() {
	local waiter rc=0
	wait_for 30 it_warm 1 tight
	hold tight
	hs exec --profile tight true 2>/dev/null &
	waiter=$!
	wait_for 5 pool_is tight waiting 1
	refused 'rejected: the queue is full: try again, or raise queue_limit' --profile tight true
	expect_match 'reason=queue_full' "$(tail -n 1 "$HST_DIR/log/sandbox-audit.log")"
	wait $waiter || rc=$?
	expect_eq 125 "$rc"
	let_go
}
it_case "with queue_limit waiting, one more is rejected at once" full

waits() {
	local waiters=() i
	wait_for 30 it_warm 1 patient
	hold patient
	for i in 1 2 3; do
		hs exec --profile patient "echo $i" >/dev/null &
		waiters+=($!)
		wait_for 5 pool_is patient waiting $i || fail "the queue is not $i long"
	done
	let_go
	for i in "${waiters[@]}"; do expect_rc 0 wait "$i"; done
	# As the manager has it: the callers themselves may be told in another order than they wake up in. The line comes
	# after the result.
	served() { sed -n 's/.* cmd="echo \([1-3]\)" .*/\1/p' "$HST_DIR/log/sandbox-audit.log" | paste -sd' '; }
	# shellcheck disable=SC2317 # wait_for calls it
	is_served() { [ "$(served)" = "1 2 3" ]; }
	wait_for 5 is_served || fail "served were: $(served)"
}
it_case "on_empty: wait serves who waits, first come first served" waits

gives_up() {
	local waiter
	wait_for 30 it_warm 1 patient
	hold patient
	hs exec --profile patient true 2>/dev/null &
	waiter=$!
	wait_for 5 pool_is patient waiting 1
	kill -KILL "$(pgrep -P "$waiter")"
	wait $waiter 2>/dev/null || true
	wait_for 5 pool_is patient waiting 0 || fail "a caller that has gone still waits"
	let_go
	wait_for 30 it_warm 1 patient
}
it_case "a caller that goes away leaves the queue" gives_up

# Case 21. Each command looks whether somebody was there before it, and stays a moment.
crowd() {
	local pids=() pid i
	wait_for 30 it_warm 3 crowd
	for i in $(seq 20); do
		# shellcheck disable=SC2016 # the sandbox's shell expands it
		hs exec --profile crowd --json '[ ! -e /tmp/owner ] && echo mine >/tmp/owner && sleep 0.5 &&
			[ "$(ls -A /tmp)" = owner ] && cat /tmp/owner' >"$HST_DIR/crowd.$i" &
		pids+=($!)
	done
	wait_for 20 pool_is crowd busy 3 || fail "not all sandboxes are busy"
	# Nor are there ever more of them than max_sandboxes.
	while [ "$(pool crowd 'busy + .waiting')" -gt 0 ]; do
		i=$(pool crowd 'warm + .busy + .starting')
		[ "$i" -le 3 ] || fail "$i sandboxes at once"
	done
	for pid in "${pids[@]}"; do expect_rc 0 wait "$pid"; done
	expect_eq 20 "$(jq -r .stdout "$HST_DIR"/crowd.* | grep -cx mine)"
	expect_eq 20 "$(jq -r .sandbox "$HST_DIR"/crowd.* | sort -u | wc -l)"
	expect_eq 20 "$(jq -r .exec_id "$HST_DIR"/crowd.* | sort -u | wc -l)"
}
it_case "20 callers at once over 3 sandboxes: all are served, each in its own" crowd
