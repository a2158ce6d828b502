#!/bin/bash
# systemctl reload: a new config is taken, a bad one is refused and the old one stays.
. "${0%/*}/../lib/pkg.sh"

pkg_ready

reload() { systemctl reload hermes-sandbox-engine.service hermes-sandbox-pool.service; }
size_is() { [ "$(hermes-sandbox status --json | jq '.pools[] | select(.profile == "default") | .size')" = "$1" ]; }

taken() {
	printf 'pool:\n  size: 2\n' >"$DROPINS/50-test.yaml"
	reload
	wait_for 20 size_is 2 || fail "the pool's size is not 2: $(hermes-sandbox status)"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "a new config is taken" taken

refused() {
	local pids
	pids=$(for unit in "${UNITS[@]:2}"; do unit_property "$unit" MainPID; done)
	echo 'pool: { size: many }' >"$DROPINS/50-test.yaml"
	expect_rc 78 hermes-sandbox config check >"$PKG_TMP/out" 2>&1
	reload || true
	size_is 2 || fail "the bad config changed the pool"
	expect_eq hello "$(hs exec 'echo hello')"
	expect_eq "$pids" "$(for unit in "${UNITS[@]:2}"; do unit_property "$unit" MainPID; done)"
	expect_eq "active active" "$(systemctl is-active "${UNITS[@]:2}" | paste -sd' ')"
	# shellcheck disable=SC2317 # called by wait_for
	said() { journalctl -q -o cat -u hermes-sandbox-pool -n 20 | grep -q '50-test.yaml'; }
	wait_for 5 said || fail "the log does not name the bad file"
}
it_case "a bad config is refused, and the old one stays" refused

rm "$DROPINS/50-test.yaml"
reload
