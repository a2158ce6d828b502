#!/bin/bash
# A thousand callers at once: each is served or told no, in turns between users; no sandbox has two owners, no
# more are made than may be, and what the manager needed for them it gives back (cases 12 and 21).
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

cc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -o "$HST_DIR/crowd" "$TOP/tests/it/crowd.c"

it_config <<END
pool:
  size: 1
profiles:
  crowd:
    size: 3
    max_sandboxes: 6
    queue_limit: 2000
    queue_timeout: 10m
  bounded:
    size: 2
    max_sandboxes: 2
    queue_limit: 100
    queue_timeout: 10m
  single:               # one sandbox in all: users take turns with it
    size: 1
    max_sandboxes: 1
    on_empty: wait
    queue_limit: 1000
    queue_timeout: 10m
  several:
    size: 2
    max_sandboxes: 3
    queue_limit: 1000
    queue_timeout: 10m
END

# What the engine makes, as it says so: a line with the profile for each container.
docker -H "unix://$HST_ENGINE" events --filter event=create --format '{{index .Actor.Attributes "hermes-sandbox.profile"}}' \
	>"$HST_DIR/created" 2>&1 &
EVENTS=$!
trap 'rc=$?; end_process $EVENTS 5; set +e; (exit $rc); it_exit' EXIT
created_of() { grep -cx "$1" "$HST_DIR/created" || true; }

it_start
TRAIL=$HST_DIR/log/sandbox-audit.log
MANAGER=$(it_pid sandboxd)

# pool PROFILE JQ: of its status.
pool() { hs status --json | jq --arg p "$1" ".pools[] | select(.profile == \$p) | $2"; }
pool_is() { [ "$(pool "$1" ".$2")" -eq "$3" ]; }
for profile in crowd:3 bounded:2 single:1 several:2; do
	wait_for 60 it_warm "${profile#*:}" "${profile%:*}" || fail "no sandboxes of profile ${profile%:*}"
done

# callers NAME COUNT ARGUMENT…: so many at once, as the caller; their ends are in NAME.ends, what they said in
# the folder said-NAME.
callers() {
	local name=$1 count=$2
	shift 2
	rm -rf "${HST_DIR:?}/said-$name"
	install -d -o "$CALLER" -g "$CALLER" "$HST_DIR/said-$name"
	as "$CALLER" timeout $((500 * ${HST_SLOW:-1})) "$HST_DIR/crowd" -o "$HST_DIR/said-$name" "$count" \
		"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@" >"$HST_DIR/$name.ends"
}

# hold PROFILE: a command that keeps a sandbox of it busy until let_go.
hold() {
	hs_begin holder exec --profile "$1" 'sleep 7501; :'
	wait_for 20 pool_is "$1" busy 1 || fail "profile $1 is not busy"
}
let_go() {
	kill -TERM "$HS_PID"
	hs_end "$HS_PID"
	expect_eq 143 "$HS_RC"
}

descriptors() { find "/proc/$MANAGER/fd" -mindepth 1 | wc -l; }
rss_kib() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$MANAGER/status"; }
# A sanitizer keeps what was freed for a while.
slack() {
	if readelf -d "$HST_RUN/bin/hermes-sandboxd" | grep -q libasan; then echo 65536; else echo "$1"; fi
}

# quiet: nobody is served, nothing is on its way, and every pool is at its size again.
quiet() {
	[ "$(hs status --json | jq -c '[.callers, ([.pools[] |
		select(.warm != .size or .busy + .scrubbing + .starting + .waiting > 0)] | length)]')" = "[1,0]" ]
}

# Case 21. Each command sees that nobody was there before it, that nobody comes while it is there, and that no
# other process runs; its own number comes back to its own caller.
owner='[ ! -e /tmp/owner ] && echo {} >/tmp/owner || exit 91
	n=0; for p in /proc/[0-9]*; do n=$((n + 1)); done; [ $n -le 3 ] || exit 92
	sleep 0.01; [ "$(ls -A /tmp)" = owner ] || exit 93; cat /tmp/owner'

# shellcheck disable=SC2317 # called in the background
watch_pool() {
	local all most=0
	while [ ! -e "$HST_DIR/watched" ]; do
		all=$(pool crowd '.warm + .busy + .starting + .scrubbing') || continue
		[ "$all" -le "$most" ] || most=$all
	done
	echo "$most" >"$HST_DIR/most"
}

thousand() {
	local watcher before created rc=0
	wait_for 30 quiet || fail "not quiet"
	before=$(created_of crowd)
	watch_pool &
	watcher=$!
	callers crowd 1000 exec --json --profile crowd "$owner" || rc=$?
	touch "$HST_DIR/watched"
	wait $watcher
	expect_eq 0 "$rc"
	expect_eq "1000 0" "$(cut -d' ' -f2 "$HST_DIR/crowd.ends" | sort | uniq -c | xargs)"
	expect_eq 1000 "$(wc -l <"$HST_DIR/crowd.ends")"
	# Not one of them has another one's answer.
	expect_eq "" "$(jq -r '(input_filename | capture("/(?<n>[0-9]+).out$").n) as $n |
		select(.exit_code != 0 or .stdout != "\($n)\n" or .truncated) | "\($n): \(.)"' "$HST_DIR"/said-crowd/*.out)"
	expect_eq 1000 "$(jq -r .exec_id "$HST_DIR"/said-crowd/*.out | sort -u | wc -l)"
	[ "$(cat "$HST_DIR/most")" -le 6 ] || fail "$(cat "$HST_DIR/most") sandboxes at once"
	# A crowd is no reason to make more than there may be: what comes back serves the next.
	created=$(($(created_of crowd) - before))
	[ "$created" -le $((6 - 3 + $(pool crowd .scrubs_failed))) ] || fail "$created sandboxes were created"
}
it_case "case 21: 1,000 callers over a few sandboxes are all served, each alone in its own" thousand

# As the manager recorded it before each start and at each end: a sandbox' owners come one after the other.
alternate() {
	# shellcheck disable=SC2317 # called by wait_for
	complete() {
		audit_records --raw -m USER_CMD -p "$MANAGER" | grep -aoE "op=exec-(start|end) .*" >"$HST_DIR/records"
		[ "$(grep -c '^op=exec-end' "$HST_DIR/records")" -eq "$(hs status --json | jq .commands)" ]
	}
	wait_for 20 complete || fail "records are missing: $(wc -l <"$HST_DIR/records")"
	[ "$(wc -l <"$HST_DIR/records")" -ge 2000 ] || fail "only $(wc -l <"$HST_DIR/records") records"
	expect_eq "" "$(awk '{
			match($0, / cid="[0-9a-f]+"/); cid = substr($0, RSTART + 6, RLENGTH - 7)
			start = $1 == "op=exec-start"
			if (busy[cid] == start) print
			busy[cid] = start
		}' "$HST_DIR/records")"
}
it_case "case 21: in the kernel trail no sandbox has two owners at a time" alternate

gives_back() {
	local fds first
	wait_for 60 quiet || fail "not quiet: $(hs status)"
	fds=$(descriptors) first=$(rss_kib)
	callers crowd 1000 exec --profile crowd 'echo {}'
	expect_eq "1000 0" "$(cut -d' ' -f2 "$HST_DIR/crowd.ends" | sort | uniq -c | xargs)"
	wait_for 60 quiet || fail "not quiet: $(hs status)"
	# shellcheck disable=SC2317 # called by wait_for
	closed() { [ "$(descriptors)" -le "$fds" ]; }
	wait_for 10 closed || fail "$(descriptors) descriptors, before: $fds"
	[ $(($(rss_kib) - first)) -lt "$(slack 512)" ] || fail "memory went from $first to $(rss_kib) KiB"
	echo "resident after one crowd and after two: $first $(rss_kib) KiB; descriptors $fds $(descriptors)"
}
it_case "a second crowd costs the manager neither memory nor descriptors" gives_back

told_no() {
	local served refused before
	before=$(hs status --json | jq .rejected)
	callers bounded 1000 exec --profile bounded 'sleep 0.01; echo {}' || fail "not all came to an end"
	served=$(grep -c ' 0$' "$HST_DIR/bounded.ends") refused=$(grep -c ' 125$' "$HST_DIR/bounded.ends")
	expect_eq 1000 $((served + refused))
	[ "$served" -ge 100 ] || fail "only $served were served"
	[ "$refused" -ge 1 ] || fail "nobody was refused"
	while read -r n rc; do
		if [ "$rc" = 0 ]; then
			expect_eq "$n 0" "$(cat "$HST_DIR/said-bounded/$n.out") $(wc -c <"$HST_DIR/said-bounded/$n.err")"
		else
			expect_eq "0 hermes-sandbox: rejected: the queue is full: try again, or raise queue_limit" \
				"$(wc -c <"$HST_DIR/said-bounded/$n.out") $(cat "$HST_DIR/said-bounded/$n.err")"
		fi
	done <"$HST_DIR/bounded.ends"
	expect_eq "$refused" $(($(hs status --json | jq .rejected) - before))
}
it_case "with a bounded queue each of 1,000 is served or gets one line, and the two add up" told_no

# turn PROFILE: the place of another user's one command among those that waited before it.
turn() {
	local flood other mark="echo flood-$1"
	wait_for 60 quiet || fail "not quiet"
	hold "$1"
	callers "$1" 300 exec --profile "$1" "$mark; sleep 0.02" &
	flood=$!
	# shellcheck disable=SC2317 # called by wait_for
	flooded() { [ "$(pool "$1" .waiting)" -ge "$2" ]; }
	wait_for 60 flooded "$1" "$2" || fail "only $(pool "$1" .waiting) wait"
	"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" exec --profile "$1" "echo single-$1" \
		>"$HST_DIR/single.out" 2>&1 &
	other=$!
	let_go
	expect_rc 0 wait $other
	expect_eq "single-$1" "$(cat "$HST_DIR/single.out")"
	expect_rc 0 wait $flood
	expect_eq "300 0" "$(cut -d' ' -f2 "$HST_DIR/$1.ends" | sort | uniq -c | xargs)"
	TURN=$(grep -E "cmd=\"echo (flood|single)-$1" "$TRAIL" | grep -n "single-$1" | cut -d: -f1)
	echo "of 301 commands the other user's was number $TURN (profile $1)"
}

one_sandbox() {
	turn single 300
	[ "$TURN" -le 10 ] || fail "number $TURN"
}
it_case "300 of one user wait for one sandbox: another user's command is among the next" one_sandbox

# Here the flood goes on in the sandboxes it has while one is made for the other user.
some_sandboxes() {
	turn several 100
	[ "$TURN" -le 200 ] || fail "number $TURN"
}
it_case "and with a few sandboxes it does not wait for the flood's end either" some_sandboxes

# Not even where the flood has filled the queue.
full_queue() {
	local flood rc=0
	wait_for 60 quiet || fail "not quiet"
	hold bounded
	callers bounded 300 exec --profile bounded "echo flood-full; sleep 0.02" &
	flood=$!
	wait_for 60 pool_is bounded waiting 100 || fail "the queue is not full: $(pool bounded .waiting)"
	"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" exec --profile bounded "echo single-full" \
		>"$HST_DIR/single.out" 2>&1 || rc=$?
	let_go
	expect_rc 0 wait $flood
	expect_eq "0 single-full" "$rc $(cat "$HST_DIR/single.out")"
}
it_case "one user alone cannot fill the queue for the others" full_queue

# Case 12.
slow_reader() {
	local before
	wait_for 60 quiet || fail "not quiet"
	before=$(rss_kib)
	mkfifo "$HST_DIR/stalled.out"
	exec 7<>"$HST_DIR/stalled.out"
	hs_begin stalled exec --profile crowd 'exec yes 7502'
	wait_for 20 running yes 7502
	callers crowd 300 exec --profile crowd 'seq 1 2000; echo {}'
	expect_eq "300 0" "$(cut -d' ' -f2 "$HST_DIR/crowd.ends" | sort | uniq -c | xargs)"
	expect_eq "" "$(for n in $(seq 300); do seq 1 2000 | cat - <(echo "$n") | cmp - "$HST_DIR/said-crowd/$n.out"; done 2>&1)"
	! gone "$HS_PID" || fail "the slow reader's command was ended"
	[ $(($(rss_kib) - before)) -lt "$(slack 4096)" ] || fail "memory went from $before to $(rss_kib) KiB"
	kill -KILL "$HS_PID"
	exec 7>&-
	# shellcheck disable=SC2317 # called by wait_for
	no_writer() { ! running yes 7502; }
	wait_for 10 no_writer || fail "yes outlived its caller"
}
it_case "case 12: a caller that does not read stalls none of 300 others" slow_reader

done_() {
	wait_for 60 quiet || fail "not quiet: $(hs status)"
	[ ! -s "$HST_DIR/sandboxd.rc" ] || fail "the manager has ended"
	expect_eq "$MANAGER" "$(it_pid sandboxd)"
}
it_case "at the end all pools are at their size again" done_
