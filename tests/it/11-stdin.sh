#!/bin/bash
# stdin: none, an empty one, one that never ends (case 5).
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 6
  max_sandboxes: 40
limits:
  grace: 200ms
END
it_start

# What follows gets a stdin that never ends and never brings a byte.
mkfifo "$HST_DIR/endless"
exec 8<>"$HST_DIR/endless"

not_passed() {
	expect_eq /dev/null "$(hs exec 'readlink /proc/self/fd/0' <&8)"
	expect_eq "" "$(echo not for you | hs exec cat)"
	expect_eq "" "$(hs exec cat <&8)"
}
it_case "case 5: without -i a command reads /dev/null" not_passed

empty() {
	expect_eq "end 0" "$(hs exec -i 'cat; echo end $?' </dev/null)"
	expect_eq "end 0" "$(: | hs exec -i 'cat; echo end $?')"
	expect_eq "end 0" "$(hs exec -i 'cat; echo end $?' <&-)"
}
it_case "case 5: an empty stdin, or a closed one, is end of file" empty

passed() {
	expect_eq "two words" "$(printf 'two words' | hs exec -i cat)"
	head -c 20971520 /dev/urandom >"$HST_DIR/data"
	hs exec -i cat <"$HST_DIR/data" >"$HST_DIR/copy"
	cmp "$HST_DIR/data" "$HST_DIR/copy"
	# A producer with pauses: each part arrives when it is written.
	expect_eq "one two three" "$(for w in one two three; do echo $w; sleep 0.05; done |
		hs exec -i 'while read -r w; do echo "$w"; done' | paste -sd' ')"
}
it_case "-i passes stdin on to its end, byte for byte" passed

endless() {
	local begin
	begin=$(now_ms)
	expect_eq hi "$(hs exec -i 'echo hi' <&8)"
	[ $(($(now_ms) - begin)) -lt 5000 ] || fail "the end took $(($(now_ms) - begin)) ms"
	expect_rc 124 hs exec -i --timeout 300ms 'cat; sleep 7150; :' <&8 2>/dev/null
	expect_gone 7150
}
it_case "case 5: a stdin that never ends delays no end and no time-out" endless

flood() {
	endless_y() { yes || true; }
	expect_eq y "$(endless_y | hs exec -i 'head -n 1')"
	expect_eq unread "$(endless_y | hs exec -i 'exec <&-; sleep 0.1; echo unread')"
	endless_y | expect_rc 124 hs exec -i --timeout 300ms 'sleep 7151; :' 2>/dev/null
	expect_gone 7151
}
it_case "a command that leaves its stdin alone is not held up by what comes" flood

odd() {
	expect_eq "end" "$(hs exec -i 'cat; echo end' <"$HST_DIR/etc" 2>"$HST_DIR/err")"
	expect_match 'cannot read stdin' "$(cat "$HST_DIR/err")"
	expect_rc 3 hs exec 'exit 3' <&- >&- 2>&-
	expect_eq out "$(hs exec 'echo out; echo err >&2' 2>&- || true)"
}
it_case "closed streams and a folder as stdin are no trouble" odd
