#!/bin/bash
# A daemon that is killed comes back, and one that cannot read its config stays down without a loop.
. "${0%/*}/../lib/pkg.sh"

pkg_ready

killed() {
	local unit=$1 pid
	pid=$(unit_property "$unit" MainPID)
	kill -KILL "$pid"
	# shellcheck disable=SC2317 # called by wait_for
	back() { [ "$(systemctl is-active "$1")" = active ] && [ "$(unit_property "$1" MainPID)" != "$2" ]; }
	wait_for 15 back "$unit" "$pid" || fail "$unit does not come back"
	wait_for 30 warm || fail "no sandbox is warm again"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "the broker is killed: it comes back and the pool is warm" killed hermes-sandbox-engine.service
it_case "the manager is killed: it comes back and the pool is warm" killed hermes-sandbox-pool.service

# starts UNIT: how often systemd began to start it, by the ids of its runs.
starts() { journalctl -q -o json -u "$1" --since "@$2" | jq -r '.INVOCATION_ID // empty' | sort -u | wc -l; }

bad_config() {
	local begin i rc
	echo 'pool: { size: many }' >"$DROPINS/50-test.yaml"
	begin=$(date +%s)
	systemctl restart hermes-sandbox-engine.service hermes-sandbox-pool.service >/dev/null 2>&1 || true
	for i in $(seq 30); do
		rc=0
		timeout 20 setpriv --reuid "$CALLER" --regid "$CALLER" --init-groups hermes-sandbox exec true \
			>"$PKG_TMP/out" 2>&1 || rc=$?
		[ $rc -ne 0 ] || fail "call $i runs with a bad config"
		[ $rc -ne 124 ] || fail "call $i hangs"
	done
	expect_eq "active active" "$(systemctl is-active "${UNITS[@]:0:2}" | paste -sd' ')"
	for i in "${UNITS[@]:2}"; do
		[ "$(starts "$i" "$begin")" -le 40 ] || fail "$i started $(starts "$i" "$begin") times for 30 calls"
	done
}
it_case "a bad config: 30 callers get an error each, nothing loops, the sockets stay" bad_config

mended() {
	rm -f "$DROPINS/50-test.yaml"
	# A start that was under way for the last caller may still fail on the old file.
	wait_for 10 hermes-sandbox start || fail "it does not start"
	wait_for 30 warm || fail "no sandbox is warm"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "once it is mended, hermes-sandbox start is all that it takes" mended
