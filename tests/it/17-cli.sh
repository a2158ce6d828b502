#!/bin/bash
# The command line: what is an option and what is the command, help, bad usage, the shapes of JSON.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 4
  max_sandboxes: 40
limits:
  timeout: 30s
  timeout_max: 1m
END
it_start

operands() {
	expect_eq 2 "$(hs exec 'echo $((1 + 1))')"
	expect_eq '$((1 + 1))' "$(hs exec echo '$((1 + 1))')"
	expect_eq '--json -e A=b -- x' "$(hs exec echo --json -e A=b -- x)"
	expect_eq '-n' "$(hs exec -- printf %s -n)"
	expect_rc 127 hs exec -- 'echo hi' 2>/dev/null
	expect_eq 'a  b||*' "$(hs exec printf '%s|%s|%s' 'a  b' '' '*')"
}
it_case "options end at the first operand; one operand is a line, several are words" operands

help() {
	local words
	for words in --help -h help 'help exec' 'help status' 'help start' 'help stop' 'help config' 'help version' \
		'exec --help' 'exec -h' 'exec --json --help' 'status --help' 'start --help' 'stop --help' \
		'config --help' 'version --help'; do
		# shellcheck disable=SC2086 # one word each
		hs $words >"$HST_DIR/out" 2>"$HST_DIR/err" || fail "$words ends with $?"
		expect_match '^usage: hermes-sandbox.*example' "$(tr '\n' ' ' <"$HST_DIR/out")"
		expect_eq 0 "$(wc -c <"$HST_DIR/err")"
	done
	expect_match '^hermes-sandbox [0-9]' "$(hs version)"
	expect_eq "$(hs version)" "$(hs --version)"
}
it_case "help is everywhere, with examples, on stdout" help

# refused CODE ARGUMENT…: with that status, one line on stderr and nothing on stdout.
refused() {
	local code=$1
	shift
	expect_rc "$code" "$@" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "0 1 ($*)" "$(wc -c <"$HST_DIR/out") $(wc -l <"$HST_DIR/err") ($*)"
	expect_match '^hermes-sandbox: ' "$(cat "$HST_DIR/err")"
}

bad_usage() {
	refused 64 hs
	refused 64 hs nonsense
	refused 64 hs --nonsense
	refused 64 hs help nonsense
	refused 64 hs exec
	refused 64 hs exec --
	refused 64 hs exec --nonsense true
	refused 64 hs exec -x true
	refused 64 hs exec -e
	refused 64 hs exec --json=yes true
	refused 64 hs exec -w relative true
	refused 64 hs exec --timeout 0 true
	refused 64 hs exec --timeout 1x true
	refused 64 hs exec --timeout -1s true
	refused 64 hs exec --timeout 99999999999999999999 true
	refused 64 hs exec --timeout 2m true
	expect_match 'limits.timeout_max' "$(cat "$HST_DIR/err")"
	refused 64 hs exec --profile '' true
	refused 64 hs exec --profile nowhere true
	expect_match 'no profile "nowhere"' "$(cat "$HST_DIR/err")"
	refused 64 hs exec --profile $'a\nb' true
	refused 64 hs status more
	refused 64 hs version more
	refused 64 hs --socket '' status
}
it_case "bad usage is 64 and one line" bad_usage

sockets() {
	refused 69 as "$CALLER" "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/nobody" exec true
	expect_match "no manager at $HST_DIR/nobody: start it" "$(cat "$HST_DIR/err")"
	refused 77 hs_as "$STRANGER" exec true
	refused 77 hs_as "$STRANGER" status
	expect_eq "found" "$(as "$CALLER" env HERMES_SANDBOX_SOCKET="$HST_DIR/run/pool.sock" \
		"$HST_RUN/bin/hermes-sandbox" exec 'echo found')"
	expect_rc 69 as "$CALLER" "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/nobody" exec --json true >"$HST_DIR/out"
	expect_fields "$(cat "$HST_DIR/out")" cause rejected exit_code 69 signal null sandbox null
}
it_case "the socket: by option, by environment, none, not allowed" sockets

json_shape() {
	local json rejected names
	names='["background_left","captured_truncated","cause","error","exec_id","exit_code","maxrss_bytes","pool_hit","profile","sandbox","sandbox_peak_bytes","session","signal","stderr","stderr_bytes","stderr_encoding","stderr_lines","stdout","stdout_bytes","stdout_encoding","stdout_lines","system_us","truncated","user_us","wall_us"]'
	json=$(hs exec --json 'echo out; echo err >&2; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 3') || expect_eq 3 $?
	expect_eq 1 "$(wc -l <<<"$json")"
	expect_eq "$names" "$(jq -c keys <<<"$json")"
	expect_fields "$json" exit_code 3 cause exited signal null stdout out stderr err stdout_bytes 4 stderr_lines 1 \
		truncated false captured_truncated false background_left 0 profile default error null
	expect_eq true "$(jq '(.exec_id | test("^[0-9a-f]{16}$")) and (.sandbox | test("^[0-9a-f]{64}$"))
		and .wall_us >= .user_us and .user_us > 0 and .maxrss_bytes > 100000
		and (.pool_hit | type == "boolean")' <<<"$json")"
	rejected=$(hs exec --json --profile nowhere true) || expect_eq 64 $?
	expect_eq "$names" "$(jq -c keys <<<"$rejected")"
	expect_fields "$rejected" exit_code 64 cause rejected stdout '' stdout_bytes 0 wall_us null background_left null
}
it_case "exec --json is one object of one shape" json_shape

capture() {
	hs exec --json 'yes | head -c 20000000' >"$HST_DIR/out"
	expect_eq "20000000 10000000 false true 16777216" "$(jq -r '"\(.stdout_bytes) \(.stdout_lines) " +
		"\(.truncated) \(.captured_truncated) \(.stdout | length)"' "$HST_DIR/out")"
}
it_case "exec --json keeps so much of an output and counts it all" capture

status_shape() {
	local json
	json=$(hs status --json)
	expect_eq '["audit","callers","commands","commands_warm","engine","pools","privilege_separation","rejected","sessions","sessions_open","suppressed","unenforced","uptime_seconds","version"]' \
		"$(jq -c keys <<<"$json")"
	expect_eq "up default" "$(field '.engine.state + " " + .pools[0].profile' "$json")"
	expect_eq true "$(jq '.commands > 0 and (.pools[0].layers | length) > 3 and
		([.pools[0].layers[].state] - ["active", "degraded", "disabled", "unsupported", "unenforced"] == [])' <<<"$json")"
	expect_match 'waf_mode' "$(field '.unenforced | join(" ")' "$json")"
	expect_match 'engine: up' "$(hs status)"
	expect_match 'waf_mode: unenforced' "$(hs status)"
}
it_case "status says what holds, for people and as JSON" status_shape
