#!/bin/bash
# stats, metrics, top and the log file: numbers after a known sequence of commands are exact, a scrape is answered, what a
# sandbox uses is told, and the log is where, and only as long as, the config says.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "$TOP/tests/lib/caller.sh"

log=$HST_DIR/log/manager.log
parser=$TOP/tests/it/openmetrics.py
config() {
	it_config <<-END
		pool:
		  size: 2
		logging:
		  level: ${1:-INFO}
		  file: ${2:-manager.log}
		  max_size_mb: 1
		  backup_count: 2
	END
}
config
# Nearly full: it is rotated before long.
head -c $((1048576 - 40)) /dev/zero | tr '\0' x >"$log"
chown _hermes-sandbox:adm "$log"
it_start
wait_for 30 it_warm 2

# numbers: those that the sequence below changes, and those that it must not.
numbers() {
	hs stats --json | jq -c '[.ended.exited, .ended.signaled, .ended.timeout, .ended.not_found, .ended.oom, .warm + .cold,
		.stdout_bytes, .stderr_bytes, .start.count, .wall.count, ([.wall.buckets[].count] | add),
		.refused.no_profile // 0, .refused.too_long // 0, (.sessions.opened), (.sessions.closed.closed // 0),
		.sessions.open, .audit.failures, .running, .waiting]'
}

sequence() {
	for _ in 1 2 3 4 5; do hs exec true; done
	expect_rc 3 hs exec 'printf 12345; printf 123 >&2; exit 3' >/dev/null 2>&1
	# shellcheck disable=SC2016 # the command's shell expands it
	expect_rc 137 hs exec 'kill -KILL $$' 2>/dev/null
	expect_rc 124 hs exec --timeout 1s 'sleep 30' 2>/dev/null
	expect_rc 127 hs exec -- nosuchprogram one 2>/dev/null
	expect_rc 64 hs exec --profile nowhere true 2>/dev/null
	expect_rc 64 hs exec --profile nowhere true 2>/dev/null
	hs session open counted >/dev/null
	hs session close counted
	head -c 20000 /dev/zero | tr '\0' a >"$HST_DIR/long"
	expect_rc 64 hs exec "$(cat "$HST_DIR/long")" 2>/dev/null
}

exact() {
	local before wanted
	before=$(numbers)
	sequence
	wanted=$(jq -c '[., [6, 1, 1, 1, 0, 9, 5, 3, 9, 9, 9, 2, 1, 1, 1, 0, 0, 0, 0]] | transpose | map(add)' <<<"$before")
	expect_eq "$wanted" "$(numbers)"
	wanted=$(hs stats --json | jq '.scrubs.clean')
	expect_match '^[0-9]+$' "$wanted"
}
it_case "after a known sequence of commands each number is exact" exact

text() {
	local text
	text=$(hs stats)
	expect_match $'^since the start, [0-9]+ s ago\ncommands: [0-9]+ ended, 0 running, 0 waiting\n' "$text"
	expect_match $'\n    exited [0-9]+, signaled 1, timeout 1, not_found 1\n' "$text"
	expect_match 'from the request to the start: +p50 (<=|> ) [0-9]+ (us|ms|s) +p90' "$text"
	expect_match $'refused: [0-9]+\n    no_profile 2, too_long 1' "$text"
	[ "$(wc -L <<<"$text")" -lt 80 ] || fail "wider than a terminal: $text"
	! grep -qP '[^\x20-\x7e]' <<<"$text" || fail "an odd character in: $text"
}
it_case "stats for people fits a terminal" text

# metric TEXT: the value of that sample.
metric() { grep -F "hermes_sandbox_$1 " "$HST_DIR/metrics" | sed 's/.* //'; }

open_metrics() {
	local stats
	hs metrics >"$HST_DIR/metrics.txt"
	"$parser" <"$HST_DIR/metrics.txt" >"$HST_DIR/metrics" || fail "$(cat "$HST_DIR/metrics")"
	stats=$(hs stats --json)
	expect_eq "$(jq .ended.exited <<<"$stats")" "$(metric 'execs_total{profile="default",cause="exited"}')"
	expect_eq 1 "$(metric 'execs_total{profile="default",cause="timeout"}')"
	expect_eq "$(jq .warm <<<"$stats")" "$(metric 'exec_starts_total{profile="default",sandbox="warm"}')"
	expect_eq "$(jq .start.count <<<"$stats")" "$(metric 'exec_start_latency_seconds_bucket{profile="default",le="+Inf"}')"
	expect_eq "$(jq .stdout_bytes <<<"$stats")" "$(metric 'output_bytes_total{profile="default",stream="stdout"}')"
	expect_eq 2 "$(metric 'rejections_total{reason="no_profile"}')"
	expect_eq 1 "$(metric 'sessions_closed_total{reason="closed"}')"
	expect_eq 0 "$(metric 'audit_failures_total{}')"
	expect_eq 1 "$(metric 'engine_up{}')"
}
it_case "metrics is OpenMetrics, and has the same numbers" open_metrics

strict() {
	local edit
	# shellcheck disable=SC2016 # it is sed's $
	for edit in '$d' 's/_total{/{/' 's/le="0.001"/le="0.0010"/' 's/le="+Inf"/le="9e9"/' '/_sum{/d' '/^# TYPE/d' \
		's/profile="default",cause/cause="x",cause/' 's/^# UNIT \(.*\) seconds/# UNIT \1 s/' '/^# HELP/p' \
		's/_count{\(.*\)} /_count{\1} 1/' '5{h;d};${x;G}'; do
		sed "$edit" "$HST_DIR/metrics.txt" | "$parser" >/dev/null && fail "the parser takes what $edit makes of it"
	done
	true
}
it_case "and the parser that says so is one" strict

# http REQUEST: what comes back from the service unit's command line.
http() {
	exec 9<>"/dev/tcp/127.0.0.1/$port"
	# shellcheck disable=SC2059 # it has the escapes
	printf "$1" >&9
	timeout 20 cat <&9
	exec 9>&-
}

scraped() {
	local port got command
	command=$(sed -n 's|^ExecStart=/usr/bin/hermes-sandbox ||p' "$TOP/systemd/hermes-sandbox-metrics@.service")
	expect_eq "metrics --http" "$command"
	mkfifo "$HST_DIR/port"
	# shellcheck disable=SC2086 # they are words
	as "$CALLER" python3 "$parser" --serve "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" $command \
		>"$HST_DIR/port" 2>"$HST_DIR/scrape.err" &
	# It is the child of what bash has started.
	read -r port server <"$HST_DIR/port"
	trap 'kill $server' EXIT
	got=$(http 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n')
	expect_match $'^HTTP/1.1 200 OK\r\n' "$got"
	expect_match $'\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n' "$got"
	sed '1,/^\r$/d' <<<"$got" >"$HST_DIR/body"
	expect_eq "$(stat -c %s "$HST_DIR/body")" "$(sed -n 's/^Content-Length: \([0-9]*\)\r$/\1/p' <<<"$got")"
	"$parser" <"$HST_DIR/body" >"$HST_DIR/metrics" || fail "$(cat "$HST_DIR/metrics")"
	expect_eq 2 "$(metric 'rejections_total{reason="no_profile"}')"
	python3 - "$port" <<-'END' || fail "an ordinary client does not get it"
		import sys, urllib.request
		with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics") as answer:
		    sys.exit(not (answer.status == 200 and answer.read().endswith(b"# EOF\n")))
	END
	expect_match '^HTTP/1.1 404 ' "$(http 'GET / HTTP/1.0\r\n\r\n')"
	expect_match '^HTTP/1.1 405 ' "$(http 'DELETE /metrics HTTP/1.0\r\n\r\n')"
	expect_match '^HTTP/1.1 400 ' "$(http 'hello\n\n')"
	# Who says nothing has five seconds.
	SECONDS=0
	expect_match '^HTTP/1.1 408 ' "$(http 'GET /metrics HTTP/1.1\r\n')"
	[ "$SECONDS" -ge 4 ] || fail "the time-out came after $SECONDS s"
	expect_eq "" "$(cat "$HST_DIR/scrape.err")"
}
it_case "the service unit's command answers a scrape, and nothing else" scraped

no_manager() {
	"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/nothing" metrics --http <<<$'GET /metrics HTTP/1.0\n' \
		>"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match '^HTTP/1.1 503 Service Unavailable' "$(cat "$HST_DIR/out")"
	expect_match "no manager at $HST_DIR/nothing" "$(cat "$HST_DIR/err")"
	expect_rc 69 "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/nothing" metrics 2>/dev/null
	expect_rc 77 hs_as "$STRANGER" metrics 2>/dev/null
	expect_rc 64 hs metrics --nonsense 2>/dev/null
}
it_case "without a manager a scrape is 503, and it takes the group" no_manager

# busy: a row of the caller's, of which each number is known.
busy() {
	local row=$1
	hs top --once --json >"$HST_DIR/top.json"
	jq -e '.[] | select(.state == "busy" and .commands == 1 and .cpu_us > 200000 and .memory_bytes > 0 and .pids >= 2 and
		.cpu_per_mille > 50)' "$HST_DIR/top.json" >"$row"
}

root_top() { "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" top "$@"; }

usage() {
	local text row=$HST_DIR/row
	hs_begin spin exec 'while :; do :; done'
	trap 'kill $HS_PID' EXIT
	hs top --once --json >/dev/null
	wait_for 20 busy "$row" || fail "no such row: $(cat "$HST_DIR/top.json")"
	expect_eq "default null $(id -u "$CALLER")" "$(jq -r '"\(.profile) \(.session) \(.uid)"' "$row")"
	# What the engine says that it has set, in its own words.
	docker_ inspect --format '{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}' "$(jq -r .container "$row")" >"$HST_DIR/limits"
	expect_eq "$(cat "$HST_DIR/limits")" "$(jq -r '"\(.memory_max_bytes) \(.pids_max)"' "$row")"
	text=$(hs top --once)
	expect_match $'^PROFILE +STATE +SESSION +OWNER +CMD +CPU% +TIME +MEM/LIMIT +PIDS +AGE *\n' "$text"
	expect_match $'\ndefault  busy      -          (hstest-cal|[0-9]+) +1 +[0-9]+ +0:[0-9.]+ +[0-9.]+[KMG]/[0-9.]+[KMG] ' "$text"
	[ "$(wc -L <<<"$text")" -lt 80 ] || fail "wider than a terminal: $text"
	! root_top --once | grep -q busy || fail "root's own are the caller's"
	expect_match $'\ndefault +busy' "$(root_top --once --all)"
	expect_match $'\ndefault +warm +- +- ' "$(root_top --once --all)"
	expect_rc 77 hs top --once --all 2>/dev/null
}
it_case "top says what a sandbox uses, to its user and to root" usage

leased() {
	hs session open shown >/dev/null
	expect_match $'\ndefault  leased    shown ' "$(hs top --once)"
	expect_eq 1 "$(hs stats --json | jq .sandboxes.leased)"
	hs session close shown
	! hs top --once | grep -q shown || fail "a closed session is shown"
}
it_case "a session's sandbox is shown under its name" leased

rotated() {
	expect_eq "640 adm" "$(stat -c '%a %G' "$log")"
	expect_match '^20[0-9-]+T[0-9:]+Z (INFO|WARNING) ' "$(head -n 1 "$log")"
	expect_match '^xxxx' "$(head -c 4 "$log.1")"
	[ "$(stat -c %s "$log")" -lt 1048576 ] || fail "it was not rotated"
	grep -q 'INFO the engine is up' "$log" "$log.1" || fail "it is not the manager's"
	# Beside it, not in place of it.
	grep -q 'the engine is up' "$HST_DIR/sandboxd.log" || fail "the log has taken the lines away"
}
it_case "the log file is there, and is rotated at its size" rotated

# says TEXT FILE: within a while.
says() { wait_for 10 grep -q "$1" "$2" || fail "no \"$1\" in $2: $(tail -n 3 "$2")"; }

# A caller that speaks nonsense, until the manager has closed the connection.
broken() {
	python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"\xff" * 64)
s.recv(1)' "$HST_DIR/run/pool.sock"
}

reloaded() {
	local lines
	kill -HUP "$(it_pid sandboxd)"
	says 'INFO the config was read again' "$log"
	mv "$log" "$log.moved"
	kill -HUP "$(it_pid sandboxd)"
	says 'INFO the config was read again' "$log"
	broken
	says 'WARNING a client of uid 0 (pid [0-9]*) broke the protocol' "$log"
	config ERROR
	kill -HUP "$(it_pid sandboxd)"
	# Nothing says when it has been read again: what was said before is not said any more.
	# shellcheck disable=SC2317 # called by wait_for
	quiet() {
		lines=$(cat "$log" "$HST_DIR/sandboxd.log" | wc -l)
		broken
		[ "$(cat "$log" "$HST_DIR/sandboxd.log" | wc -l)" = "$lines" ]
	}
	wait_for 10 quiet || fail "a WARNING is said although level is ERROR"
	lines=$(wc -l <"$log")
	config INFO other.log
	kill -HUP "$(it_pid sandboxd)"
	says 'INFO the config was read again' "$HST_DIR/log/other.log"
	expect_eq "$lines" "$(wc -l <"$log")"
}
it_case "a reload obeys level and name, and a file that was moved away is made again" reloaded

lost() {
	local n before
	before=$(grep -c 'read again' "$HST_DIR/sandboxd.log")
	# shellcheck disable=SC2317 # called by wait_for
	read_again() { [ "$(grep -c 'read again' "$HST_DIR/sandboxd.log")" -ge "$1" ]; }
	rm -f "$HST_DIR/log/other.log"
	mkdir "$HST_DIR/log/other.log"
	for n in 1 2; do
		kill -HUP "$(it_pid sandboxd)"
		wait_for 10 read_again $((before + n)) || fail "it does not go on"
	done
	says "log file $HST_DIR/log/other.log: Is a directory: its lines are here alone" "$HST_DIR/sandboxd.log"
	expect_eq hello "$(hs exec 'echo hello')"
	rmdir "$HST_DIR/log/other.log"
	kill -HUP "$(it_pid sandboxd)"
	says 'WARNING [0-9]* lines before this one could not be written' "$HST_DIR/log/other.log"
	expect_eq 1 "$(grep -c 'its lines are here alone' "$HST_DIR/sandboxd.log")"
}
it_case "a log file that cannot be written costs its lines and nothing else" lost
