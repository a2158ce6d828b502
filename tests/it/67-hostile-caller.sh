#!/bin/bash
# Callers that ask for sessions and for other people's commands against every rule. The manager lives, keeps nothing of
# theirs, and what others have is not touched. (The frames of one-shot commands: 50-hostile.sh.)
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"

OPENS=500
[ -z "${HST_LONG:-}" ] || OPENS=10000
OTHER=hstest-other
getent passwd $OTHER >/dev/null || useradd --system --user-group --home-dir /nonexistent $OTHER
accounts_member $OTHER hermes-sandbox
install -m 0644 "$TOP/tests/it/hostile-caller.py" "$HST_DIR/"

it_config <<END
limits:
  sessions: 4
pool:
  size: 2
  max_sandboxes: 10
END
it_start
MANAGER=$(it_pid sandboxd)

# hostile WAY [WORD…]: as the other account.
hostile() { as $OTHER python3 "$HST_DIR/hostile-caller.py" "$HST_DIR/run/pool.sock" "$@"; }

kib() { awk '$1 == "Anonymous:" { print $2 }' "/proc/$MANAGER/smaps_rollup"; }
fds() { find "/proc/$MANAGER/fd" -mindepth 1 | wc -l; }
# A sanitizer keeps what was freed for a while.
slack() {
	if readelf -d "$HST_RUN/bin/hermes-sandboxd" | grep -q libasan; then echo 65536; else echo "$1"; fi
}

# The caller's own session, in which a detached command counts.
expect_eq mine "$(hs session open mine)"
# shellcheck disable=SC2016 # the sandbox's shell expands it
DETACHED=$(hs exec --session mine --detach 'n=0; while n=$((n + 1)); do echo $n; sleep 0.1; done')
expect_match '^[0-9a-f]{16}$' "$DETACHED"
RUNS=$(hs ps --json)

# all_well: all that is ours is as it was, and the manager has what it had.
all_well() {
	! gone "$MANAGER" || fail "the manager has ended"
	[ ! -s "$HST_DIR/sandboxd.rc" ] || fail "the manager has ended"
	expect_eq "$(jq -c '[.[] | [.exec, .state]]' <<<"$RUNS")" "$(hs ps --json | jq -c '[.[] | [.exec, .state]]')"
	expect_eq mine "$(hs session list --json | jq -r '.[].session')"
	expect_eq hello "$(hs exec --session mine 'echo hello')"
	expect_eq hello "$(hs exec 'echo hello')"
	wait_for 30 it_warm 2 || fail "the pool is not full"
	# shellcheck disable=SC2317 # called by wait_for
	closed() { [ "$(fds)" -le "$FDS" ]; }
	wait_for 20 closed || fail "$(fds) descriptors, before: $FDS"
	[ $(($(kib) - KIB)) -lt "$(slack 1024)" ] || fail "memory went from $KIB to $(kib) KiB"
}
expect_eq hello "$(hs exec --session mine 'echo hello')"
expect_eq hello "$(hs exec 'echo hello')"
hostile opens 1 >/dev/null
hostile closes 1 >/dev/null
wait_for 30 it_warm 2
FDS=$(fds) KIB=$(kib)

garbage() {
	local said
	said=$(hostile garbage)
	# None of it was a question: what is answered at all is refused.
	expect_eq "" "$(grep -vE '^(closed|REJECT (64|125)) [0-9]+$' <<<"$said" || true)"
	expect_eq "" "$(hostile closes 0)"
	expect_eq "[]" "$(hs_as $OTHER session list --json | jq -c .)"
	all_well
}
it_case "questions that are none: each ends its connection or is refused" garbage

# 77 where the name or the id is another's; or it is not there for him at all.
not_theirs() {
	local said
	said=$(hostile others mine "$DETACHED")
	expect_eq "" "$(grep -vE '^([a-z ]+ REJECT (77|125)|hidden)$' <<<"$said" || true)"
	expect_eq "13 2" "$(wc -l <<<"$said") $(grep -c hidden <<<"$said")"
	expect_eq 77 "$(sed -n 's/^exec REJECT //p' <<<"$said")"
	expect_eq 77 "$(sed -n 's/^close REJECT //p' <<<"$said")"
	all_well
}
it_case "nobody runs, ends, reads or sees anything in another's session" not_theirs

flood() {
	local said
	said=$(hostile opens "$OPENS")
	expect_eq "ANSWER 4" "$(grep ANSWER <<<"$said")"
	expect_eq "REJECT 125 $((OPENS - 4))" "$(grep REJECT <<<"$said")"
	# Whoever has filled his own quota has not filled another's.
	expect_eq second "$(hs session open second)"
	hs session close second
	hostile closes 4 >/dev/null
	all_well
}
it_case "$OPENS sessions of one user: as many as he may have, and a line for each of the others" flood

resizes() {
	hostile opens 1 >/dev/null
	expect_match '^RESULT 0$' "$(hostile resizes flood-0)"
	hostile closes 1 >/dev/null
	all_well
}
it_case "100,000 sizes of a terminal cost nothing" resizes

passed_along() {
	hostile opens 1 >/dev/null
	hostile descriptors flood-0 >"$HST_DIR/said"
	hostile closes 1 >/dev/null
	expect_eq "[]" "$(hs_as $OTHER session list --json | jq -c .)"
	all_well
}
it_case "descriptors that come along, asked for or not, are not kept" passed_along

deaf() {
	local id reader before
	hostile opens 1 >/dev/null
	id=$(hs_as $OTHER exec --session flood-0 --detach yes)
	before=$(kib)
	mkfifo "$HST_DIR/end"
	hostile deaf "$id" 24 >"$HST_DIR/said" <"$HST_DIR/end" &
	reader=$!
	exec {hold}>"$HST_DIR/end"
	wait_for 20 grep -q attached "$HST_DIR/said" || fail "they do not attach"
	for _ in 1 2 3; do expect_eq hello "$(hs exec --session mine 'echo hello')"; done
	# Both credits of each, at most, and what the sockets hold is the kernel's.
	[ $(($(kib) - before)) -lt "$(slack 16384)" ] || fail "memory went from $before to $(kib) KiB"
	exec {hold}>&-
	wait $reader
	hostile closes 1 >/dev/null
	all_well
}
it_case "24 who attach to a flood and do not read it stall nobody, and cost a bounded amount" deaf

half() {
	expect_eq "closed" "$(hostile half | sort -u)"
	all_well
}
it_case "half a request has a deadline" half

expect_eq 0 "$(hs session close mine >/dev/null; echo $?)"
expect_settled 2
expect_recorded 0
