#!/bin/bash
# What systemd's confinement leaves of what can be observed: metrics by the socket unit, which is off until it is wanted;
# what a sandbox uses; the log file; what the doctor says of a package as it is installed.
. "${0%/*}/../lib/pkg.sh"

pkg_ready
METRICS=hermes-sandbox-metrics.socket

# scrape REQUEST: what 127.0.0.1:9468 answers.
scrape() {
	exec 9<>/dev/tcp/127.0.0.1/9468 || return 1
	printf '%s HTTP/1.1\r\nHost: localhost\r\n\r\n' "$1" >&9
	timeout 20 cat <&9
	exec 9>&-
}

off() {
	expect_eq "disabled inactive" "$(systemctl is-enabled $METRICS) $(systemctl is-active $METRICS)"
	(scrape 'GET /metrics') 2>/dev/null && fail "something listens at the port"
	true
}
it_case "nothing listens until the socket is enabled" off

scraped() {
	local got
	hs exec true
	systemctl enable --now $METRICS
	got=$(scrape 'GET /metrics')
	expect_match $'^HTTP/1.1 200 OK\r\n' "$got"
	expect_match $'\nhermes_sandbox_execs_total\{profile="default",cause="exited"\} [1-9]' "$got"
	expect_match $'\n# EOF$' "$got"
	expect_match '^HTTP/1.1 404 ' "$(scrape 'GET /')"
	# shellcheck disable=SC2317 # called by wait_for
	ended() { [ -z "$(systemctl list-units --no-legend --plain --all 'hermes-sandbox-metrics@*')" ]; }
	wait_for 10 ended || fail "a service stays: $(systemctl list-units --all 'hermes-sandbox-metrics@*')"
	expect_eq active "$(systemctl is-active $METRICS)"
}
it_case "enabled it answers a scrape, as a user of its own" scraped

upgraded() {
	pkg_install
	expect_eq "enabled active" "$(systemctl is-enabled $METRICS) $(systemctl is-active $METRICS)"
	expect_match '^HTTP/1.1 (200|503) ' "$(scrape 'GET /metrics')"
	systemctl disable --now $METRICS
	pkg_install
	expect_eq "disabled inactive" "$(systemctl is-enabled $METRICS) $(systemctl is-active $METRICS)"
	wait_for 60 warm || fail "no sandbox is warm after the upgrade"
}
it_case "an upgrade leaves it as the administrator has it" upgraded

top() {
	local row
	hs exec true
	row=$(hermes-sandbox top --once --all --json | jq -c '.[0]')
	expect_eq "true true true true" "$(jq -r '[.cpu_us, .memory_bytes, .memory_max_bytes, .pids] | map(. != null) |
		map(tostring) | join(" ")' <<<"$row")"
}
it_case "the manager reads what its sandboxes use" top

log() {
	local file=/var/log/hermes-sandbox/sandbox-log.log
	expect_eq "640 _hermes-sandbox:adm" "$(stat -c '%a %U:%G' $file)"
	systemctl reload hermes-sandbox-pool.service
	# shellcheck disable=SC2317 # called by wait_for
	said() { grep -q 'INFO the config was read again' "$file"; }
	wait_for 10 said || fail "it is not in the log: $(tail -n 3 $file)"
}
it_case "the log file is written" log

doctor_says() {
	hermes-sandbox doctor --json >"$PKG_TMP/out" 2>&1 || true
	expect_eq "" "$(jq -r '.[] | select(.result == "failure") | "\(.check): \(.text)"' "$PKG_TMP/out")"
	expect_eq "accounts config helper manager sockets" "$(jq -r '[.[] | select(.result == "ok") | .check] | unique |
		map(select(IN("accounts", "config", "helper", "manager", "sockets"))) | join(" ")' "$PKG_TMP/out")"
}
it_case "the doctor finds no failure, and sockets and helper as the package has them" doctor_says
