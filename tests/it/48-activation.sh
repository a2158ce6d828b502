#!/bin/bash
# The daemons with a socket that somebody else holds, as systemd does: who connects while the config is bad gets the
# line and the daemon is not started over and over; who connects while it is stopped waits for the next one.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

GOOD=$'pool:\n  size: 2'
BAD=$'pool:\n  size: many'
it_config <<<"$GOOD"

# activated NAME SOCKET TYPE COMMAND…
activated() {
	it_spawn "$1" python3 "$TOP/tests/it/activate.py" "$2" "$3" "$HST_DIR/$1.starts" "${@:4}"
	wait_for 10 test -S "$2"
}
count() { grep -c "^$2" "$HST_DIR/$1.starts" || true; }
last_pid() { sed -n 's/^start //p' "$HST_DIR/$1.starts" | tail -n 1; }

activated sandboxd "$HST_DIR/run/pool.sock" stream /usr/bin/setpriv --reuid=_hermes-sandbox --regid=_hermes-sandbox \
	--clear-groups --inh-caps=-all,+audit_write --ambient-caps=-all,+audit_write \
	--bounding-set=-all,+audit_write --no-new-privs \
	"$HST_RUN/bin/hermes-sandboxd" --config "$HST_DIR/etc/sandbox.yaml" \
	--config-dir "$HST_DIR/etc/sandbox.d" --runtime-dir "$HST_DIR/run" \
	--engine-socket "$HST_DIR/engine/engine.sock" --state-dir "$HST_DIR/state"
activated engined "$HST_DIR/engine/engine.sock" seqpacket /usr/bin/setpriv --reuid=_hermes-engine \
	--regid=_hermes-engine --init-groups --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs \
	"$HST_RUN/bin/hermes-engined" --config "$HST_DIR/etc/sandbox.yaml" \
	--config-dir "$HST_DIR/etc/sandbox.d" --runtime-dir "$HST_DIR/engine" \
	--state-dir "$HST_DIR/engine-state" --agent "$HST_RUN/bin/agent"

bad_config() {
	it_config <<<"$BAD"
	SECONDS=0
	for _ in $(seq 40); do
		expect_rc 78 hs exec 'echo never' >"$HST_DIR/out" 2>"$HST_DIR/err"
		expect_match '^hermes-sandbox: bad config: .*50-test.yaml:2:[0-9]+: pool.size: found "many".*config check' \
			"$(cat "$HST_DIR/err")"
		expect_eq 1 "$(wc -l <"$HST_DIR/err")"
		expect_eq "" "$(cat "$HST_DIR/out")"
	done
	expect_rc 78 hs status 2>/dev/null
	expect_eq 78 "$(hs exec --json true 2>/dev/null | jq .exit_code)"
	# It answers for two seconds each time it is started: systemd gives a socket up after 20 starts in two.
	[ "$(count sandboxd start)" -le $((2 + SECONDS / 2)) ] || fail "started $(count sandboxd start) times in $SECONDS s"
	# And then it ends, with the status for it.
	# shellcheck disable=SC2317 # called by wait_for
	all_ended() { [ "$(count sandboxd start)" -eq "$(count sandboxd 'end 78')" ]; }
	wait_for 10 all_ended || fail "it does not end: $(cat "$HST_DIR/sandboxd.starts")"
}
it_case "a bad config: 78 and the line for each caller, and few starts" bad_config

mended() {
	it_config <<<"$GOOD"
	expect_eq hello "$(hs exec 'echo hello')"
	wait_for 30 it_warm 2
}
it_case "the config is mended: the next caller is served, with no other step" mended

broker_bad() {
	local starts
	it_config <<<"$BAD"
	starts=$(count engined start)
	kill -TERM "$(last_pid engined)"
	# shellcheck disable=SC2317 # called by wait_for
	told() { hs status --json | jq -r .engine.why | grep -q 'the engine broker cannot start: .*50-test.yaml:2:'; }
	wait_for 10 told || fail "status says: $(hs status --json | jq -c .engine)"
	# What is warm serves.
	expect_eq hello "$(hs exec 'echo hello')"
	SECONDS=0
	# shellcheck disable=SC2317 # called by wait_for
	passed() { [ "$SECONDS" -ge 7 ]; }
	wait_for 15 passed
	[ $(($(count engined start) - starts)) -le 5 ] ||
		fail "started $(($(count engined start) - starts)) times: $(cat "$HST_DIR/engined.starts")"
	it_config <<<"$GOOD"
	# shellcheck disable=SC2317 # called by wait_for
	up() { [ "$(hs status --json | jq -r .engine.state)" = up ] && it_warm 2; }
	wait_for 20 up || fail "it does not come back: $(hs status)"
}
it_case "a bad config for the broker alone: status says it, few starts, and it mends itself" broker_bad

# Between two lives nobody is refused.
restart() {
	local runs waits
	hs_begin runs exec 'echo begun; sleep 2; echo done; exit 5'
	runs=$HS_PID
	wait_for 20 grep -qx begun "$HST_DIR/runs.out"
	kill -TERM "$(last_pid sandboxd)"
	hs_begin waits exec 'echo served'
	waits=$HS_PID
	hs_end "$runs"
	expect_eq 5 "$HS_RC"
	expect_eq "begun done" "$(paste -sd' ' "$HST_DIR/runs.out")"
	hs_end "$waits"
	expect_eq "0 served" "$HS_RC $(cat "$HST_DIR/waits.out")"
	expect_eq 0 "$(grep '^end' "$HST_DIR/sandboxd.starts" | tail -n 1 | cut -d' ' -f2)"
}
it_case "TERM while a command runs: it ends as it would, and who comes meanwhile is served by the next manager" restart
