#!/bin/bash
# hermes-sandbox setup where systemd runs: it starts what is stopped, reloads what runs, and takes everything back.
. "${0%/*}/../lib/pkg.sh"

pkg_ready
rm -f "$DROPINS/50-setup.yaml"

setup() { hermes-sandbox setup "$@" >"$PKG_TMP/out" 2>&1 </dev/null; }
size_is() { [ "$(hermes-sandbox status --json | jq '.pools[] | select(.profile == "default") | .size')" = "$1" ]; }

started() {
	systemctl stop "${UNITS[@]}"
	setup --yes --pool-size 2 || fail "status $?"
	expect_eq "active active" "$(systemctl is-active "${UNITS[@]:2}" | paste -sd' ')"
	grep -q 'hello from a sandbox' "$PKG_TMP/out"
	grep -qE '^  limits +(active|degraded) ' "$PKG_TMP/out"
	size_is 2 || fail "the pool's size is not 2"
}
it_case "what is stopped is started, configured and proved" started

reloaded() {
	local pids
	pids=$(for unit in "${UNITS[@]:2}"; do unit_property "$unit" MainPID; done)
	setup --yes --pool-size 1 || fail "status $?"
	size_is 1 || fail "the pool's size is not 1"
	expect_eq "$pids" "$(for unit in "${UNITS[@]:2}"; do unit_property "$unit" MainPID; done)"
	setup --yes --pool-size 1 || fail "status $?"
	grep -q '^config:  nothing to change' "$PKG_TMP/out"
	expect_eq "644 root root" "$(stat -c '%a %U %G' "$DROPINS/50-setup.yaml")"
}
it_case "what runs is told to read again, and goes on" reloaded

scripts() {
	local home
	home=$(getent passwd root | cut -d: -f6)
	setup --yes --install-scripts || fail "status $?"
	expect_eq 3 "$("$home/.hermes/scripts/sandbox-exec.sh" 'echo 3')"
	"$home/.hermes/scripts/sandbox-daemon.sh" status | grep -q '^hermes-sandboxd '
	"$home/.hermes/scripts/sandbox-daemon.sh" start 2 >/dev/null </dev/null
	size_is 2 || fail "start 2 did not make the pool's size 2"
	rm -r "$home/.hermes/scripts"
	rmdir "$home/.hermes" 2>/dev/null || true
}
it_case "the scripts of before, where they were" scripts

taken_back() {
	rm "$DROPINS/50-setup.yaml"
	setup --yes || fail "status $?"
	size_is 3 || fail "the pool's size is not the default"
}
it_case "without its file all is as shipped" taken_back
