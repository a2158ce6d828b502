#!/bin/bash
# limits.exec_rate: who asks for more commands a second gets 125 and one line; the trails get one record for the
# burst, not one for each; other users feel nothing of it.
. "${0%/*}/../lib/it.sh"

cc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -o "$HST_DIR/crowd" "$TOP/tests/it/crowd.c"
it_config <<END
pool:
  size: 2
limits:
  exec_rate: 5
profiles:
  free:
    size: 1
    limits: { exec_rate: 0 }
END
it_start
wait_for 30 it_warm 1 free
TRAIL=$HST_DIR/log/sandbox-audit.log

root_hs() { "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"; }

# kernel OP: this manager's records of it.
kernel() { audit_records --raw -p "$(it_pid sandboxd)" | grep -a "op=$1 " || true; }

# burst: 50 at once as the caller; SERVED and REFUSED, which got the one line.
burst() {
	rm -rf "$HST_DIR/burst"
	install -d -o "$CALLER" -g "$CALLER" "$HST_DIR/burst"
	as "$CALLER" "$HST_DIR/crowd" -o "$HST_DIR/burst" 50 "$HST_RUN/bin/hermes-sandbox" \
		--socket "$HST_DIR/run/pool.sock" exec "$@" 'echo ran' >"$HST_DIR/ends"
	SERVED=$(grep -c ' 0$' "$HST_DIR/ends") || true
	REFUSED=$(grep -c ' 125$' "$HST_DIR/ends") || true
	expect_eq 50 $((SERVED + REFUSED))
	expect_eq "$SERVED" "$(cat "$HST_DIR"/burst/*.out | grep -cx ran)"
}

suppressed_lines() { grep -c 'Z SUPPRESSED ' "$TRAIL"; }
there_are() { [ "$(suppressed_lines)" -eq "$1" ]; }

over_the_rate() {
	local line
	line=$(wc -l <"$TRAIL")
	burst
	[ "$SERVED" -ge 5 ] || fail "only $SERVED were served"
	[ "$REFUSED" -ge 10 ] || fail "only $REFUSED of 50 were refused"
	expect_eq "$REFUSED" "$(cat "$HST_DIR"/burst/*.err | wc -l)"
	expect_eq "" "$(cat "$HST_DIR"/burst/*.err | grep -vE '^hermes-sandbox: rejected: .*limits\.exec_rate' || true)"
	wait_for 20 there_are 1 || fail "$(suppressed_lines) SUPPRESSED lines"
	expect_match "Z SUPPRESSED requests=$REFUSED dur=[0-9]+ms uid=$(id -u "$CALLER") seq=" \
		"$(grep SUPPRESSED "$TRAIL")"
	# Nothing else of them: the lines since are those of the commands that ran, and this one.
	expect_eq "$SERVED 0" "$(tail -n "+$((line + 1))" "$TRAIL" | grep -c 'cmd="echo ran"') $(grep -c REJECTED "$TRAIL")"
	expect_eq "$REFUSED" "$(hs status --json | jq .suppressed)"
}
it_case "of 50 at once some are served, the rest get 125 and a line, the trail one line" over_the_rate

one_record() {
	# shellcheck disable=SC2317 # called by wait_for
	recorded() { [ -n "$(kernel exec-suppressed)" ]; }
	wait_for 10 recorded || fail "no kernel record"
	expect_eq 1 "$(kernel exec-suppressed | wc -l)"
	expect_match " uid=$(id -u "$CALLER") .* requests=$REFUSED .*hash=\"?$(grep SUPPRESSED "$TRAIL" | tr -d '\n' |
		sha256sum | cut -d' ' -f1)" "$(kernel exec-suppressed | sed "s/.*msg='/ /")"
	expect_eq "$(kernel exec-start | wc -l)" "$(grep -c ' cmd=' "$TRAIL")"
	expect_eq 0 "$(kernel exec-rejected | wc -l)"
	# By the caller's uid, as every record of his.
	expect_eq 1 "$(audit_records --raw -ua "$(id -u "$CALLER")" -p "$(it_pid sandboxd)" |
		grep -ac op=exec-suppressed)"
}
REFUSED=$(sed -n 's/.* SUPPRESSED requests=\([0-9]*\) .*/\1/p' "$TRAIL" | head -n 1)
it_case "the kernel trail has one record of the burst, with its number" one_record

served_again() { expect_eq again "$(hs exec 'echo again')"; }
it_case "after the burst the caller is served again" served_again

others() {
	local caller n
	install -d -o "$CALLER" -g "$CALLER" "$HST_DIR/flood"
	as "$CALLER" "$HST_DIR/crowd" -w 4 400 "$HST_RUN/bin/hermes-sandbox" \
		--socket "$HST_DIR/run/pool.sock" exec true >"$HST_DIR/flood.ends" &
	caller=$!
	# shellcheck disable=SC2317 # called by wait_for
	flooding() { grep -q ' 125$' "$HST_DIR/flood.ends"; }
	wait_for 20 flooding || fail "nothing is refused"
	for n in 1 2 3 4; do expect_eq "$n" "$(root_hs exec "echo $n")"; done
	expect_rc 0 wait $caller
}
it_case "another user is served meanwhile" others

no_rate() {
	burst --profile free
	expect_eq "50 0" "$SERVED $REFUSED"
}
it_case "a profile may be without a rate" no_rate

# Also what would be refused for another reason leaves no record each.
refusals() {
	local before rejected
	before=$(suppressed_lines)
	# shellcheck disable=SC2317 # called by wait_for
	calm() { hs exec true 2>/dev/null; }
	wait_for 20 calm || fail "the rate does not recover"
	for _ in $(seq 40); do hs exec --profile nowhere true 2>/dev/null || true; done
	rejected=$(grep -c 'REJECTED no_profile' "$TRAIL")
	[ "$rejected" -lt 30 ] || fail "$rejected records of 40"
	# shellcheck disable=SC2317 # called by wait_for
	more() { [ "$(suppressed_lines)" -gt "$1" ]; }
	wait_for 20 more "$before" || fail "no SUPPRESSED line"
}
it_case "refusals count as well" refusals

at_the_end() {
	local before
	wait_for 20 quiet_trail || fail "a burst stays open"
	before=$(suppressed_lines)
	burst
	[ "$REFUSED" -gt 0 ] || fail "nothing was refused"
	it_stop
	expect_eq $((before + 1)) "$(suppressed_lines)"
	expect_match "SUPPRESSED requests=$REFUSED " "$(grep SUPPRESSED "$TRAIL" | tail -n 1)"
}
# No burst is open: all that was ever refused stands in a line.
quiet_trail() {
	[ "$(sed -n 's/.* SUPPRESSED requests=\([0-9]*\) .*/\1/p' "$TRAIL" | awk '{ n += $1 } END { print n + 0 }')" \
		-eq "$(hs status --json | jq .suppressed)" ]
}
it_case "a burst that is open when the manager stops is reported" at_the_end
