#!/bin/bash
# Output: byte-exact whatever it is and however much, at a reader's own pace, and never without a bound in
# the manager (cases 4, 6, 12 and 13).
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 6
  max_sandboxes: 40
profiles:
  capped:
    size: 1
    limits:
      output_bytes: 100k
END
it_start

hash() { sha256sum | cut -d' ' -f1; }

# --- case 4 ------------------------------------------------------------------------------------------

tail_kept() {
	local n
	for n in 1 2 3; do
		hs exec 'head -c 5242880 /dev/urandom >/tmp/f; sha256sum </tmp/f >&2; exec cat /tmp/f' \
			>"$HST_DIR/got" 2>"$HST_DIR/want"
		expect_eq "$(cut -d' ' -f1 "$HST_DIR/want")" "$(hash <"$HST_DIR/got")"
	done
}
it_case "case 4: 5 MiB and an exit at once lose no tail" tail_kept

both_kept() {
	# Less than a pipe holds: it is all written before anybody reads.
	hs exec 'seq 1 9000; seq 1 9000 >&2' >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "$(seq 1 9000 | hash)" "$(hash <"$HST_DIR/out")"
	expect_eq "$(seq 1 9000 | hash)" "$(hash <"$HST_DIR/err")"
	hs exec 'seq 1 600000 & seq 1 500000 >&2; wait' >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "$(seq 1 600000 | hash)" "$(hash <"$HST_DIR/out")"
	expect_eq "$(seq 1 500000 | hash)" "$(hash <"$HST_DIR/err")"
}
it_case "case 4: stdout and stderr stay apart, each whole and in order" both_kept

# --- case 6 ------------------------------------------------------------------------------------------

never_empty() {
	local n count=30
	[ -z "${HST_LONG:-}" ] || count=10000
	for ((n = 0; n < count; n++)); do
		expect_eq x "$(hs exec 'echo x')"
	done
}
it_case "case 6: echo x is never empty" never_empty

many_lines() { expect_eq "$(yes x | head -n 10000 | hash)" "$(hs exec 'i=0; while [ $i -lt 10000 ]; do echo x; i=$((i+1)); done' | hash)"; }
it_case "case 6: 10,000 echoes of one command all arrive" many_lines

long_stream() {
	expect_eq "$(seq 1 14000000 | head -c 104857600 | hash)" \
		"$(hs exec 'seq 1 14000000 | head -c 104857600' | hash)"
}
it_case "case 6: a stream of 100 MiB has the same hash" long_stream

# --- case 12 -----------------------------------------------------------------------------------------

rss_kib() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$(it_pid sandboxd)/status"; }

# A sanitizer keeps what was freed for a while.
rss_slack() {
	if readelf -d "$HST_RUN/bin/hermes-sandboxd" | grep -q libasan; then echo 65536; else echo 4096; fi
}

# quiet PID: it has used no CPU time since the last five looks.
quiet() {
	local now
	now=$(cut -d' ' -f14,15 "/proc/$1/stat")
	if [ "$now" = "$quiet_last" ]; then
		quiet_looks=$((quiet_looks + 1))
	else
		quiet_looks=0
		quiet_last=$now
	fi
	[ $quiet_looks -ge 5 ]
}

stalled_reader() {
	local before writer
	mkfifo "$HST_DIR/stalled.out"
	exec 7<>"$HST_DIR/stalled.out"
	before=$(rss_kib)
	hs_begin stalled exec 'exec yes 7140'
	wait_for 20 running yes 7140
	writer=$(pid_of yes 7140)
	quiet_last='' quiet_looks=0
	wait_for 20 quiet "$writer" || fail "yes goes on without a reader"
	[ $(($(rss_kib) - before)) -lt "$(rss_slack)" ] || fail "the manager grew from $before to $(rss_kib) KiB"
	# It holds up nobody else.
	expect_eq through "$(hs exec 'echo through')"
	kill -KILL "$HS_PID"
	# shellcheck disable=SC2317 # called by wait_for
	no_writer() { ! running yes 7140; }
	wait_for 10 no_writer || fail "yes outlived its caller"
}
it_case "case 12: yes and a caller that never reads leave the manager's memory alone" stalled_reader

slow_reader() {
	python3 -c '
import sys, time
while block := sys.stdin.buffer.read1(32768):
    time.sleep(0.001)
    sys.stdout.buffer.write(block)'
}

slow() {
	local before
	before=$(rss_kib)
	expect_eq "$(seq 1 2500000 | hash)" "$(hs exec 'seq 1 2500000' | slow_reader | hash)"
	[ $(($(rss_kib) - before)) -lt "$(rss_slack)" ] || fail "the manager grew from $before to $(rss_kib) KiB"
}
it_case "case 12: a slow reader gets every byte" slow

capped() {
	local json
	seq 1 100000 >"$HST_DIR/whole"
	json=$(hs exec --profile capped --json 'seq 1 100000; seq 1 100 >&2; exit 5') || expect_eq 5 $?
	expect_fields "$json" truncated true cause exited exit_code 5 \
		stdout_bytes "$(wc -c <"$HST_DIR/whole")" stdout_lines 100000 stderr_lines 100
	expect_eq "$(head -c 102400 "$HST_DIR/whole" | hash)" "$(field .stdout "$json" | head -c 102400 | hash)"
	expect_rc 5 hs exec --profile capped 'seq 1 100000; exit 5' >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "$(head -c 102400 "$HST_DIR/whole" | hash)" "$(hash <"$HST_DIR/out")"
	expect_match '102400' "$(cat "$HST_DIR/err")"
}
it_case "case 12: at the cap of output the rest is counted and drained, and the command runs on" capped

gone_reader() {
	local rc=0
	hs exec 'yes 7141' 2>"$HST_DIR/err" | head -n 3 >"$HST_DIR/out" || rc=$?
	expect_eq "7141 7141 7141" "$(paste -sd' ' "$HST_DIR/out")"
	expect_eq 141 "$rc"
	# shellcheck disable=SC2317 # called by wait_for
	no_writer() { ! running yes 7141; }
	wait_for 10 no_writer || fail "yes outlived its caller"
}
it_case "a reader that goes away ends the command" gone_reader

# --- case 13 -----------------------------------------------------------------------------------------

every_byte() {
	local json all='i=0; while [ $i -lt 256 ]; do printf "\\$(printf %o $i)"; i=$((i+1)); done'
	hs exec "$all" >"$HST_DIR/out"
	python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)))' | cmp - "$HST_DIR/out"
	json=$(hs exec --json "$all; echo plain >&2")
	expect_fields "$json" stdout_encoding base64 stdout_bytes 256 stderr_encoding utf-8 stderr plain
	field .stdout "$json" | base64 -d | cmp - "$HST_DIR/out"
}
it_case "case 13: bytes that are no text are exact, and marked in JSON" every_byte

split_character() {
	local json
	json=$(hs exec --json "printf 'a\\303'; sleep 0.2; printf '\\244b\\342\\202'; sleep 0.2; printf '\\254'")
	expect_fields "$json" stdout aäb€ stdout_encoding utf-8
	json=$(hs exec --json "printf 'a\\303'")
	expect_fields "$json" stdout_encoding base64 stdout YcM=
	json=$(hs exec --json "printf 'a\\000\\033b\"\\\\\\n'")
	expect_fields "$json" stdout_encoding utf-8
	expect_eq 610 "$(field .stdout "$json" | head -c 2 | od -An -tx1 | tr -d ' \n' | head -c 3)"
	expect_eq '"a\u0000\u001bb\"\\\n"' "$(jq .stdout <<<"$json")"
}
it_case "case 13: a character split over two writes is one in JSON" split_character
