#!/bin/bash
# Long commands (case 14). Linux takes at most 128 KiB in one argument: a longer script comes from a file
# (--script), or by the protocol, as a caller sends it that links the frames itself.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

# The raw client asks for the default profile: its limit is the high one.
it_config <<END
pool:
  size: 4
  max_sandboxes: 40
  limits:
    command_bytes: 2m
profiles:
  short:
    size: 1
    limits:
      command_bytes: 16k
  crowd:
    size: 1
    memory_limit: 1g
    queue_timeout: 5m
END
it_start

raw_script() { python3 "${0%/*}/raw-client.py" "$HST_DIR/run/pool.sock" "$CALLER" script "$1"; }

# script BYTES: a script of just that size whose every line counts, which ends with status 42.
script() {
	python3 -c '
import sys
size, end = int(sys.argv[1]), "echo $0 $n; exit 42"
head = "n=0\n"
line = "n=$((n+1))\n"
count = (size - len(head) - len(end)) // len(line)
rest = size - len(head) - len(end) - count * len(line)
sys.stdout.write(head + line * count + "#" * (rest - 1) + "\n" * (rest > 0) + end)' "$1"
}

runs() {
	local size rc lines
	for size in "$@"; do
		script "$size" >"$HST_DIR/script"
		expect_eq "$size" "$(stat -c %s "$HST_DIR/script")"
		lines=$(grep -c '^n=\$((' "$HST_DIR/script")
		rc=0
		raw_script "$HST_DIR/script" >"$HST_DIR/out" 2>"$HST_DIR/err" || rc=$?
		expect_eq "42 sh $lines" "$rc $(cat "$HST_DIR/out")$(cat "$HST_DIR/err")"
	done
}
it_case "case 14: a script of 200 KB runs" runs 204800
it_case "case 14: a script of 1 MiB runs" runs 1048576
it_case "case 14: just below and just above what one argument takes" runs 131071 131072 131073

words() {
	local list
	mapfile -t list < <(printf '%050d\n' $(seq 4000))
	expect_eq "4000 203999" "$(hs exec -- sh -c 'echo "$# $(printf %s "$*" | wc -c)"' sh "${list[@]}")"
	script 131071 >"$HST_DIR/script"
	expect_rc 42 hs exec "$(cat "$HST_DIR/script")" >/dev/null
	script 1048576 >"$HST_DIR/script"
	expect_rc 42 hs exec --script - <"$HST_DIR/script" >"$HST_DIR/out"
	expect_eq "sh $(grep -c '^n=\$((' "$HST_DIR/script")" "$(cat "$HST_DIR/out")"
	chmod 0644 "$HST_DIR/script"
	expect_rc 42 hs exec --script "$HST_DIR/script" >/dev/null
}
it_case "case 14: by the command line: the longest argument, many words, a file" words

too_long() {
	local script
	script=$(script 16384)
	expect_rc 42 hs exec --profile short "$script" >/dev/null
	script=$(script 16385)
	expect_rc 64 hs exec --profile short "$script" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "0 1" "$(wc -c <"$HST_DIR/out") $(wc -l <"$HST_DIR/err")"
	expect_match '16385 bytes, the limit is 16384: .*limits.command_bytes' "$(cat "$HST_DIR/err")"
	expect_rc 64 hs exec --profile short --json -- true "$script" >"$HST_DIR/out"
	expect_fields "$(cat "$HST_DIR/out")" cause rejected exit_code 64
	printf '%s' "$script" >"$HST_DIR/script"
	chmod 0644 "$HST_DIR/script"
	expect_rc 64 hs exec --profile short --script "$HST_DIR/script" 2>"$HST_DIR/err"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	# Beyond what a request may be at all.
	script 5000000 >"$HST_DIR/script"
	expect_rc 64 hs exec --script "$HST_DIR/script" 2>"$HST_DIR/err"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_rc 64 raw_script "$HST_DIR/script" 2>"$HST_DIR/err"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
}
it_case "case 14: above the limit it is 64 and one line" too_long

quoted() {
	expect_eq "sh 1 2" "$(hs exec 'echo $0 1 2')"
	{
		printf ': "a filler that makes it %s"\n' $(seq 8000)
		printf 'cat <<"EOT"\nno $expansion `here`\nEOT\nexit 7\n'
	} >"$HST_DIR/script"
	expect_rc 7 raw_script "$HST_DIR/script" >"$HST_DIR/out"
	expect_eq 'no $expansion `here`' "$(cat "$HST_DIR/out")"
	printf ': %0200000d\nif\n' 0 >"$HST_DIR/script"
	expect_rc 2 raw_script "$HST_DIR/script" 2>"$HST_DIR/err"
	expect_match 'Syntax error' "$(cat "$HST_DIR/err")"
}
it_case "a long script behaves as a short one: here-documents, syntax errors" quoted

# An agent takes them in one after another: none is lost for that, and the session not.
at_once() {
	local i pids=()
	python3 -c 'print("v=" + "x" * 2000000 + "; echo ${#v}; exit 42")' >"$HST_DIR/script"
	chmod 0644 "$HST_DIR/script"
	hs session open --profile crowd crowd >/dev/null
	hs exec --session crowd 'echo kept >/tmp/kept'
	for i in $(seq 64); do
		hs exec --session crowd --script "$HST_DIR/script" >"$HST_DIR/crowd.$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do expect_rc 42 wait "$i"; done
	expect_eq "64 2000000" "$(cat "$HST_DIR"/crowd.* | sort | uniq -c | xargs)"
	expect_eq kept "$(hs exec --session crowd 'cat /tmp/kept')"
}
it_case "case 14: 64 commands of 2 MB at once in a session" at_once
