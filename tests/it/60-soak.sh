#!/bin/bash
# 2,000 commands with eight callers, and 30 sessions beside them, with HST_LONG 100,000 and 1,000: memory, descriptors,
# threads, containers, cgroups, mounts and files are at the end what they were after the first part.
. "${0%/*}/../lib/it.sh"

cc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -o "$HST_DIR/crowd" "$TOP/tests/it/crowd.c"
EXECS=2000 SESSIONS=30 SESSIONS_FIRST=10
[ -z "${HST_LONG:-}" ] || EXECS=100000 SESSIONS=1000 SESSIONS_FIRST=100

# Every container that this engine makes, as the cgroups are named after it.
docker -H "unix://$HST_ENGINE" events --filter event=create --format '{{.Actor.ID}}' >"$HST_DIR/created" 2>&1 &
EVENTS=$!
trap 'rc=$?; end_process $EVENTS 5; set +e; (exit $rc); it_exit' EXIT

it_config <<END
pool:
  size: 3
  max_sandboxes: 8
END
it_start
wait_for 60 it_warm 3 || fail "the pool does not fill"

# quiet: all is served, what was too much has gone, and the engine has removed it.
quiet() {
	[ "$(hs status --json | jq -c '[.callers, (.pools[0] | .warm, .busy + .scrubbing + .starting + .waiting)]')" = "[1,3,0]" ] &&
		[ "$(containers)" -eq 3 ]
}
containers() { docker_ ps -aq --filter label=hermes-sandbox.profile | wc -l; }

# kib PID FIELD of smaps_rollup.
kib() { awk -v f="$2:" '$1 == f { print $2 }' "/proc/$1/smaps_rollup"; }
count() { find "$@" 2>/dev/null | wc -l; }
# cgroups that are named after a container of this engine, of any controller.
cgroups() { find /sys/fs/cgroup -type d 2>/dev/null | grep -cFf "$HST_DIR/created" || true; }
# kept PID: its connected stream sockets without a name. The broker's are those to the engine, kept for its next
# calls: how many there are depends on how many calls met at some time.
kept() {
	find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n' |
		awk 'NR == FNR { mine[$1]; next } $7 in mine && $5 == "0001" && $6 == "03" && NF == 7 { n++ }
			END { print n + 0 }' - /proc/net/unix
}
mounts() { awk -v d="$HST_RUN/" 'index($2, d) == 1' /proc/mounts | wc -l; }

# Processes of all our sandboxes, and of these and the daemons' children those that nobody has reaped.
processes() {
	local c
	for c in $(docker_ ps -q); do docker_ top "$c" -eo pid,stat | tail -n +2; done
}
zombies() {
	local name
	{
		processes | awk '{ print $2 }'
		for name in sandboxd engined; do ps -o stat= --ppid "$(it_pid $name)" || true; done
	} | grep -c '^Z' || true
}

# reading: lines "NAME NUMBER".
reading() {
	local name pid kept
	for name in sandboxd engined; do
		pid=$(it_pid $name)
		echo "${name}_private_dirty_kib $(kib "$pid" Private_Dirty)"
		echo "${name}_anonymous_kib $(kib "$pid" Anonymous)"
		if [ $name = engined ]; then kept=$(kept "$pid"); else kept=0; fi
		echo "${name}_descriptors $(($(count "/proc/$pid/fd" -mindepth 1) - kept))"
		echo "${name}_threads $(awk '$1 == "Threads:" { print $2 }' "/proc/$pid/status")"
	done
	echo "engine_connections $(kept "$(it_pid engined)")"
	echo "containers $(containers)"
	echo "cgroups $(cgroups)"
	echo "mounts $(mounts)"
	echo "runtime_files $(count "$HST_DIR/run" "$HST_DIR/engine")"
	echo "state_files $(count "$HST_DIR/state" "$HST_DIR/engine-state")"
	echo "sandbox_processes $(processes | wc -l)"
	echo "zombies $(zombies)"
}

# execs N: eight callers at a time, each command with a status that only it can have; the figures in RATE.
execs() {
	as "$CALLER" timeout 7000 "$HST_DIR/crowd" -w 8 -s "$1" "$HST_RUN/bin/hermes-sandbox" \
		--socket "$HST_DIR/run/pool.sock" exec 'echo x >/tmp/file; exit 42' >"$HST_DIR/ends"
	expect_eq "42 $1" "$(head -n 1 "$HST_DIR/ends")"
	RATE=$(sed -n 's/^rate //p' "$HST_DIR/ends")
	echo "$1 commands with 8 callers: $RATE a second"
}

# sessions N: one after the other; in each a command, one that nobody waits for and that goes on, one that has ended,
# and a background job.
sessions() {
	local id
	for _ in $(seq "$1"); do
		[ "$(hs session open soak)" = soak ] || return 1
		expect_rc 43 hs exec --session soak 'echo x >/tmp/file; setsid sleep 7961 & exit 43'
		hs exec --session soak --detach 'yes | head -c 300000; exec sleep 7962' >"$HST_DIR/soak.id"
		id=$(hs exec --session soak --detach 'exit 44')
		expect_rc 44 hs wait "$id" >/dev/null
		hs session close soak
	done
}
# both EXECS SESSIONS: at the same time.
both() {
	local beside
	sessions "$2" &
	beside=$!
	execs "$1"
	expect_rc 0 wait $beside
	expect_eq "[]" "$(hs session list --json | jq -c .)"
	echo "$2 sessions beside them"
}

first_part() {
	both 1000 $SESSIONS_FIRST
	wait_for 90 quiet || fail "not quiet: $(hs status)"
	reading >"$HST_DIR/first"
	[ "$(cgroups)" -ge 3 ] || fail "the sandboxes' cgroups are not found"
}
it_case "the first thousand commands, and the first sessions" first_part

the_rest() {
	both $((EXECS - 1000)) $((SESSIONS - SESSIONS_FIRST))
	wait_for 90 quiet || fail "not quiet: $(hs status)"
	reading >"$HST_DIR/last"
}
it_case "the rest" the_rest

# What the allocator keeps at hand may change a little. A sanitizer keeps what was freed for a while.
ALLOWED_KIB=256
! readelf -d "$HST_RUN/bin/hermes-sandboxd" | grep -q libasan || ALLOWED_KIB=65536
same() {
	local name first last wrong=
	while read -r name first last; do
		case $name in
		*_kib) [ "$last" -le $((first + ALLOWED_KIB)) ] || wrong+=" $name" ;;
		engine_connections) [ "$last" -le 16 ] || wrong+=" $name" ;;
		*) [ "$last" -eq "$first" ] || wrong+=" $name" ;;
		esac
		echo "$name: $first after 1000, $last after $EXECS"
	done < <(join <(sort "$HST_DIR/first") <(sort "$HST_DIR/last"))
	expect_eq "$(wc -l <"$HST_DIR/first")" "$(join <(sort "$HST_DIR/first") <(sort "$HST_DIR/last") | wc -l)"
	[ -z "$wrong" ] || fail "grown:$wrong"
	expect_eq "zombies 0" "$(grep zombies "$HST_DIR/last")"
}
it_case "all is at the end as after the first part" same

# A sandbox is scrubbed after each command but the last of max_uses.
counted() {
	local status made scrubs
	status=$(hs status --json)
	made=$(sort -u "$HST_DIR/created" | wc -l)
	scrubs=$(jq '.pools[0].scrubs' <<<"$status")
	# Three in each session.
	expect_eq "$((EXECS + 3 * SESSIONS)) 0 0" "$(jq -r '"\(.commands) \(.pools[0].scrubs_failed) \(.rejected)"' <<<"$status")"
	[ "$scrubs" -ge $((EXECS - made + 3)) ] || fail "only $scrubs scrubs, $made containers"
	[ "$made" -lt $((60 + SESSIONS)) ] || fail "$made containers were made"
	echo "$EXECS commands and $SESSIONS sessions, $scrubs scrubs, $made containers"
}
it_case "a scrub for each command, all of them proved clean, in a handful of containers" counted

left() {
	it_stop
	# shellcheck disable=SC2317 # called by wait_for
	nothing() { [ "$(containers)" -eq 0 ] && [ "$(cgroups)" -eq 0 ]; }
	wait_for 30 nothing || fail "left behind: $(containers) containers, $(cgroups) cgroups"
	expect_eq 0 "$(count "$HST_DIR/engine" -mindepth 1 -type d)"
}
it_case "and nothing is left after the stop" left
