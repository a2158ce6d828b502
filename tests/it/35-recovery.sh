#!/bin/bash
# Case 23 and its kin: manager, broker or container are killed. Nothing leaks, callers are told, and what is
# not ours is never touched.
. "${0%/*}/../lib/it.sh"
it_config <<END
pool:
  size: 2
END
it_start

# The containers with our labels that the engine has, as ids.
ours() { docker_ ps -aq --no-trunc --filter "label=hermes-sandbox.installation=$INSTALLATION" | sort; }
INSTALLATION=$(docker_ inspect -f '{{index .Config.Labels "hermes-sandbox.installation"}}' "$(docker_ ps -q | head -n 1)")

# Not ours: a plain one, and one that has our name's prefix and all our labels but is in no record.
FOREIGN=$(docker_ run -d --network none --name hst-foreign "$HST_IMAGE" sleep 1000000)
FORGED=$(docker_ run -d --network none --name "hermes-sandbox-$(printf '%032d' 7)" \
	--label "hermes-sandbox.installation=$INSTALLATION" --label hermes-sandbox.profile=default \
	--label "hermes-sandbox.recipe=$(printf '%064d' 0)" "$HST_IMAGE" sleep 1000000)

untouched() {
	expect_eq "true true" "$(docker_ inspect -f '{{.State.Running}}' "$FOREIGN" "$FORGED" | paste -sd' ')"
}

mine() { ours | grep -vxF "$FORGED" || true; }

# settled N: exactly N of our sandboxes, all of them warm, and a folder for each.
settled() { settled_containers "$1" && [ "$(folders)" -eq "$1" ]; }
settled_containers() { it_warm "$1" && [ "$(mine | wc -l)" -eq "$1" ]; }
folders() { find "$HST_DIR/engine" -mindepth 1 -maxdepth 1 -type d | wc -l; }

# long_command: a caller with a command that runs, in the background: CALLER_PID.
long_command() {
	rm -f "$HST_DIR/out"
	hs exec 'echo begun; sleep 300; :' >"$HST_DIR/out" 2>"$HST_DIR/err" &
	CALLER_PID=$!
	wait_for 20 grep -qx begun "$HST_DIR/out" || fail "the command does not start"
}

# caller_lost REGEX: it got 125 and one line.
caller_lost() {
	expect_rc 125 wait "$CALLER_PID"
	expect_match "$1" "$(cat "$HST_DIR/err")"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
}

# killed_one NAME…: SIGKILL, and until that is known.
killed_one() {
	local name
	for name in "$@"; do
		kill -KILL "$(it_pid "$name")"
		wait_for 5 test -s "$HST_DIR/$name.rc" || fail "$name survives SIGKILL"
		expect_eq 137 "$(cat "$HST_DIR/$name.rc")"
	done
}

manager_killed() {
	local before left
	wait_for 30 settled 2 || fail "not settled"
	before=$(mine)
	long_command
	killed_one sandboxd
	caller_lost 'lost the manager'
	it_sandboxd
	wait_for 40 settled 2 || fail "the pool does not come back: $(mine | wc -l) containers, $(folders) folders"
	left=$(comm -12 <(echo "$before") <(mine))
	expect_eq "" "$left"
	expect_eq hello "$(hs exec 'echo hello')"
	untouched
}
it_case "case 23: the manager is killed: its sandboxes are replaced, the caller is told" manager_killed

broker_killed() {
	wait_for 30 settled 2 || fail "not settled"
	long_command
	wait_for 30 it_warm 2 || fail "the pool is not full"
	killed_one engined
	# What is warm still serves, and what runs goes on.
	expect_eq hello "$(hs exec 'echo hello')"
	expect_match 'broker' "$(hs status --json | jq -r .engine.why)"
	it_engined
	wait_for 40 it_warm 2 || fail "the pool does not fill again"
	# The caller itself is the child of the shell in the background; it passes TERM on.
	kill -TERM "$(pgrep -P "$CALLER_PID")"
	expect_rc 143 wait "$CALLER_PID"
	kill -0 "$(it_pid sandboxd)"
	wait_for 40 settled 2 || fail "left behind: $(mine | wc -l) containers, $(folders) folders"
	untouched
}
it_case "the broker is killed: what is warm serves on, and the pool fills once it is back" broker_killed

busy_container_killed() {
	local json
	wait_for 30 settled 2 || fail "not settled"
	hs exec --json 'echo begun; sleep 300; :' >"$HST_DIR/out" 2>"$HST_DIR/err" &
	CALLER_PID=$!
	# shellcheck disable=SC2317 # called by wait_for
	busy() { [ "$(hs status --json | jq '.pools[] | select(.profile == "default") | .busy')" -eq 1 ]; }
	wait_for 20 busy || fail "the command does not start"
	# The one that runs it has a process of the command's uid in it.
	for c in $(mine); do
		docker_ top "$c" | grep 'sleep 300' >/dev/null && docker_ kill "$c" >/dev/null
	done
	expect_rc 125 wait "$CALLER_PID"
	json=$(cat "$HST_DIR/out")
	expect_eq sandbox_lost "$(jq -r .cause <<<"$json")"
	expect_eq 125 "$(jq -r .exit_code <<<"$json")"
	expect_match 'cause=sandbox_lost' "$(tail -n 1 "$HST_DIR/log/sandbox-audit.log")"
	expect_eq hello "$(hs exec 'echo hello')"
	# Nobody else gets it, even for a moment.
	for _ in 1 2 3 4; do
		[ "$(hs exec --json true | jq -r .sandbox)" != "$(jq -r .sandbox <<<"$json")" ] ||
			fail "the dead sandbox was handed out"
	done
	wait_for 30 settled 2 || fail "the pool does not fill again"
}
it_case "a sandbox dies under its command: 125, cause sandbox_lost, and the next exec works" busy_container_killed

raw_line() {
	wait_for 30 settled 2 || fail "not settled"
	long_command
	for c in $(mine); do
		docker_ top "$c" | grep 'sleep 300' >/dev/null && docker_ kill "$c" >/dev/null
	done
	caller_lost '^hermes-sandbox: .*sandbox'
}
it_case "without --json the caller gets one line" raw_line

idle_killed() {
	local before
	wait_for 30 settled 2 || fail "not settled"
	before=$(mine)
	# shellcheck disable=SC2046 # one word an id
	docker_ kill $(mine) >/dev/null
	# Whoever comes at once gets another one.
	expect_eq hello "$(hs exec 'echo hello')"
	# shellcheck disable=SC2317 # called by wait_for
	refilled() { settled 2 && [ -z "$(comm -12 <(echo "$before") <(mine))" ]; }
	wait_for 40 refilled || fail "the pool does not refill"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "idle sandboxes are killed from outside: the pool refills" idle_killed

frozen() {
	local victim
	wait_for 30 settled 2 || fail "not settled"
	victim=$(mine | head -n 1)
	docker_ pause "$victim" >/dev/null
	# shellcheck disable=SC2317 # called by wait_for
	replaced() { settled 2 && ! mine | grep -qxF "$victim"; }
	wait_for 60 replaced || fail "a sandbox whose agent does not answer is kept"
}
[ -z "${HST_LONG:-}" ] || it_case "a frozen sandbox is found by its missing answers and replaced" frozen

both_killed() {
	local before
	wait_for 30 settled 2 || fail "not settled"
	before=$(mine)
	# The manager has asked for the next sandbox, and the engine is at work on it.
	long_command
	killed_one engined sandboxd
	caller_lost 'lost the manager'
	it_engined
	it_sandboxd
	wait_for 40 settled_containers 2 || fail "left behind: $(mine | wc -l) containers"
	expect_eq "" "$(comm -12 <(echo "$before") <(mine))"
	expect_eq hello "$(hs exec 'echo hello')"
	untouched
}
it_case "both are killed during a creation: no container leaks" both_killed

# --- another installation on the same engine ---------------------------------------------------------

# other COMMAND…: for the second broker and manager, with folders, sockets and an id of their own.
OTHER=$HST_RUN/$it_name-other
other() {
	local HST_DIR=$OTHER
	"$@"
}
other_begin() {
	local it_name=$it_name-other HST_DIR
	it_folders
	it_config <<<$'pool:\n  size: 2'
	it_start
}
# shellcheck disable=SC2317 # the trap calls it
other_end() {
	local name
	for name in sandboxd engined; do
		[ ! -s "$OTHER/$name.pid" ] || end_process "$(cat "$OTHER/$name.pid")" 5 || true
	done
}
trap 'rc=$?; other_end; set +e; (exit $rc); it_exit' EXIT
others() { docker_ ps -q --no-trunc --filter "label=hermes-sandbox.installation=$OTHERS" | sort; }
# shellcheck disable=SC2317 # called by wait_for
others_settled() { other it_warm 2 && [ "$(others | wc -l)" -eq 2 ]; }

# killed_and_back: manager and broker by SIGKILL; the next life removes what the former left.
killed_and_back() {
	killed_one engined sandboxd
	it_engined
	it_sandboxd
}

two_installations() {
	local before caller
	other_begin
	OTHERS=$(docker_ ps -q --filter label=hermes-sandbox.profile |
		xargs docker -H "unix://$HST_ENGINE" inspect -f '{{index .Config.Labels "hermes-sandbox.installation"}}' |
		grep -vxF "$INSTALLATION" | sort -u)
	expect_match '^[0-9a-f]{32}$' "$OTHERS"
	wait_for 40 settled_containers 2 || fail "not settled"
	wait_for 40 others_settled || fail "the other one is not settled"
	# One of its sandboxes is at work, and stays so.
	other hs exec 'echo begun >/tmp/mark; echo begun; until [ -e /tmp/go ]; do sleep 0.1; done; cat /tmp/mark' \
		>"$HST_DIR/theirs" 2>&1 &
	caller=$!
	wait_for 20 grep -qx begun "$HST_DIR/theirs" || fail "their command does not start"
	wait_for 40 other it_warm 2 || fail "their pool is not full"
	before=$(others)
	killed_and_back
	wait_for 60 settled_containers 2 || fail "our pool does not come back: $(mine | wc -l) containers"
	expect_eq "$before" "$(others)"
	for c in $before; do
		docker_ exec -u 10000 "$c" sh -c '[ ! -e /tmp/mark ] || : >/tmp/go'
	done
	expect_rc 0 wait "$caller"
	expect_eq "begun begun" "$(paste -sd' ' "$HST_DIR/theirs")"
	expect_eq hello "$(other hs exec 'echo hello')"
	# And the other way round.
	wait_for 40 others_settled || fail "the other one is not settled"
	before=$(mine)
	other killed_and_back
	wait_for 60 others_settled || fail "their pool does not come back: $(others | wc -l) containers"
	expect_eq "$before" "$(mine)"
	expect_eq hello "$(hs exec 'echo hello')"
	# The stop of one is not the other's.
	other it_stop
	expect_eq "" "$(others)"
	expect_eq "$before" "$(mine)"
	expect_eq hello "$(hs exec 'echo hello')"
	untouched
}
it_case "case 23: two installations on one engine leave each other alone: killed, swept, stopped" two_installations

# A creation whose end nobody saw keeps its record and folder for a while (ORPHAN_MS in listing.c): the
# container may appear yet. So folders are not counted here.
stopped() {
	it_stop
	expect_eq "$FORGED" "$(ours)"
	untouched
}
it_case "a stop leaves what is not ours" stopped

docker_ rm -f "$FOREIGN" "$FORGED" >/dev/null
