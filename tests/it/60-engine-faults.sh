#!/bin/bash
# An engine that is slow, stopped, restarted, out of disk, or that answers nonsense: what is warm serves on, each caller
# gets its command's result or one line, and afterwards nothing is left over. Between the broker and an engine of this
# script's own stands tests/lib/engine-proxy.py.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

OWN=$HST_DIR/own
PROXY=$HST_DIR/proxy.sock
SLOW=${HST_LONG:+10}
SLOW=${SLOW:-2}

it_config <<END
engine:
  socket: $PROXY
pool:
  size: 1
  max_sandboxes: 4
  queue_timeout: 5s
allowed_file_paths:
  - $HST_DIR/files
profiles:
  cold:
    size: 0
    cold_after: 0ms
    reuse: replace
END
install -d -m 0755 -o "$CALLER" -g "$CALLER" "$HST_DIR/files" "$HST_DIR/files/folder"

own() { docker -H "unix://$OWN/docker.sock" "$@"; }

# own_start [CONFIG]
own_start() {
	local world_engine=${ENGINE_PID:-}
	engine_private "$OWN" "$@" || fail "the engine does not start: $(tail -n 5 "$OWN/log")"
	echo "$ENGINE_PID" >"$HST_DIR/own.pid"
	ENGINE_PID=$world_engine
}

# own_stop: by TERM, as a service is stopped.
own_stop() {
	end_process "$(cat "$HST_DIR/own.pid")" 60 || fail "the engine does not end"
	rm "$HST_DIR/own.pid"
}

# shellcheck disable=SC2317 # the trap calls it
own_end() {
	[ ! -s "$HST_DIR/proxy.pid" ] || end_process "$(cat "$HST_DIR/proxy.pid")" 5 || true
	[ ! -s "$HST_DIR/own.pid" ] || {
		kill -CONT "$(cat "$HST_DIR/own.pid")" || true
		engine_private_end "$OWN" "$(cat "$HST_DIR/own.pid")"
	}
	rm -f "$HST_DIR/own.pid" "$HST_DIR/proxy.pid"
}
trap 'rc=$?; set +e; own_end; (exit $rc); it_exit' EXIT

# rules LINE…: from the next call on.
rules() {
	printf '%s\n' "$@" >"$HST_DIR/rules.new"
	mv "$HST_DIR/rules.new" "$HST_DIR/rules"
}

# called PATTERN: the proxy has seen such a line.
called() { grep -qE "$1" "$HST_DIR/calls"; }

# refused REGEX ARGUMENT…: 125 and one line.
refused() {
	expect_rc 125 hs exec "${@:2}" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match "$1" "$(cat "$HST_DIR/err")"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
}

# What the engine has of ours is what is warm, which is one. The folder of a creation whose answer nobody saw stays for two
# minutes, as its container may appear yet (ORPHAN_MS in listing.c).
engine_up() { [ "$(hs status --json | jq -r .engine.state)" = up ]; }
settled() { engine_up && it_warm 1 && [ "$(own ps -aq | wc -l)" -eq 1 ]; }
expect_settled() {
	wait_for 60 settled || fail "not settled: $(own ps -a) $(hs status)"
}

# works: warm and cold.
works() {
	expect_eq hello "$(hs exec 'echo hello')"
	expect_eq hello "$(hs exec --profile cold 'echo hello')"
}

own_start
image_import "$OWN/docker.sock" "$HST_IMAGE" "$(world_image)"
: >"$HST_DIR/calls"
python3 "$TOP/tests/lib/engine-proxy.py" "$PROXY" "$OWN/docker.sock" "$HST_DIR/rules" "$HST_DIR/calls" \
	>"$HST_DIR/proxy.out" 2>&1 &
echo $! >"$HST_DIR/proxy.pid"
wait_for 10 test -S "$PROXY" || fail "no proxy: $(cat "$HST_DIR/proxy.out")"

slow() {
	local began
	rules ".* delay $SLOW"
	it_engined
	it_sandboxd
	wait_for 120 it_warm 1 || fail "no sandbox is warm: $(hs status)"
	began=$(now_ms)
	expect_eq hello "$(hs exec 'echo hello')"
	[ $(($(now_ms) - began)) -lt $((SLOW * 1000)) ] || fail "a warm one took $(($(now_ms) - began)) ms"
	rules
	expect_settled
	works
	expect_settled
}
it_case "each answer takes $SLOW s: a pool all the same, and what is warm is as fast as ever" slow

# One call of a creation goes wrong in one way.
one_call() {
	local call=$1 action=$2 line=$3
	: >"$HST_DIR/calls"
	rules "$call $action"
	refused "^hermes-sandbox: rejected: .*$line" --profile cold true
	called "^${action%% *} " || fail "$call was not called"
	rules
	expect_settled
	works
}
nonsense() {
	local line create='POST/containers/create' start='POST/containers/[0-9a-f]+/start' look='GET/containers/[0-9a-f]+/json'
	for call in "$create" "$start" "$look"; do
		for action in noise cut half lose; do
			case $call-$action in
			# An answer of which nothing but the status counts is as good as whole.
			"$start-half") continue ;;
			# Where it ends decides what is noticed first.
			*-half) line="(the engine at .* went away|the engine's answer is not JSON)" ;;
			*) line='the engine at .* went away \(.*\): start docker' ;;
			esac
			one_call "$call" $action "$line"
		done
	done
	one_call "$create" garble "the engine's answer is not JSON"
	one_call "$look" garble "the engine's answer is not JSON"
	one_call "$create" 'say 500 out of order' 'the engine says: out of order'
	one_call "$start" 'say 500 out of order' 'the engine says: out of order'
	one_call "$look" 'say 500 out of order' 'the engine says: out of order'
}
it_case "nonsense, half an answer, none: one line, and nothing of the creation stays" nonsense

full() {
	local engine_says='mkdir /var/lib/docker/overlay2/x: no space left on device'
	for call in POST/containers/create 'POST/containers/[0-9a-f]+/start'; do
		one_call "$call" "say 500 $engine_says" \
			"the engine has no room: $engine_says: make some \\(docker system df shows what takes it\\)"
	done
}
it_case "the engine's disk is full: a line that says so, and then it goes on" full

# A sandbox whose start was not seen, and whose removal fails: it runs, and nobody wants it.
unwanted() {
	rules 'POST/containers/[0-9a-f]+/start lose' 'DELETE/ cut'
	refused 'went away' --profile cold true
	[ "$(own ps -q | wc -l)" -gt 1 ] || fail "the container does not run"
	rules
	expect_settled
	works
}
it_case "a start is not seen and the removal fails: it is removed as soon as that can be" unwanted

link_nonsense() {
	local what
	for what in 'GET/containers/json garble' 'GET/info garble' 'GET/_ping noise' 'GET/events noise' '.* half'; do
		rules "$what"
		it_end engined
		it_engined
		# shellcheck disable=SC2317 # called by wait_for
		down() { hs status --json | jq -r '.engine.state + " " + .engine.why' | grep -q '^down .*the engine'; }
		wait_for 30 down || fail "$what: $(hs status --json | jq -c .engine)"
		expect_eq hello "$(hs exec 'echo hello')"
		rules
		wait_for 30 it_warm 1 || fail "$what: it does not come up again"
	done
	expect_settled
	works
}
it_case "nonsense at the broker's start: status says it, what is warm serves, and it comes up by itself" link_nonsense

hangs() {
	rules 'POST/containers/create hang'
	SECONDS=0
	refused '^hermes-sandbox: rejected: ' --profile cold true
	[ $SECONDS -lt 15 ] || fail "it took $SECONDS s"
	expect_eq hello "$(hs exec 'echo hello')"
	rules
	expect_settled
	works
}
it_case "a creation hangs: the caller waits queue_timeout, and what comes late is used or removed" hangs

hangs_long() {
	rules 'POST/containers/create hang'
	expect_rc 125 hs exec --profile cold true 2>/dev/null
	# shellcheck disable=SC2317 # called by wait_for
	told() { hs status | grep -q 'does not answer'; }
	wait_for 120 told || fail "the broker waits for ever: $(hs status)"
	rules
	expect_settled
	works
}
[ -z "${HST_LONG:-}" ] || it_case "a creation hangs for longer than the broker waits" hangs_long

# The engine speaks nonsense, then is slow, just when the manager asks for its sessions' sandboxes.
manager_back() {
	local what
	hs session open m >/dev/null
	hs exec --session m 'echo kept >/tmp/file'
	for what in garble 'say 500 out of order' cut "delay $SLOW"; do
		kill -KILL "$(it_pid sandboxd)"
		wait_for 5 test -s "$HST_DIR/sandboxd.rc" || fail "the manager survives SIGKILL"
		: >"$HST_DIR/calls"
		rules "GET/containers/[0-9a-f]+/json $what"
		it_sandboxd
		wait_for 20 called "^${what%% *} GET/containers/[0-9a-f]+/json" || fail "nobody asked for it"
		rules
		# shellcheck disable=SC2317 # called by wait_for
		is_back() { [ "$(hs exec --session m 'cat /tmp/file' 2>/dev/null)" = kept ]; }
		wait_for 30 is_back || fail "$what: the session is lost: $(hs session list)"
	done
	hs session close m
	expect_settled
	works
}
it_case "nonsense, refusals and slowness while the manager comes back: its sessions stay" manager_back

stopped() {
	local pid held
	pid=$(cat "$HST_DIR/own.pid")
	expect_settled
	kill -STOP "$pid"
	expect_eq hello "$(hs exec 'echo hello')"
	hs_begin held exec 'sleep 7731; :'
	held=$HS_PID
	wait_for 20 sleeps 7731 || fail "the command does not start"
	SECONDS=0
	refused '^hermes-sandbox: rejected: ' true
	[ $SECONDS -lt 15 ] || fail "it took $SECONDS s"
	[ -z "${HST_LONG:-}" ] || sleep 60
	kill -CONT "$pid"
	kill -TERM "$held"
	hs_end "$held"
	expect_eq 143 "$HS_RC"
	expect_settled
	works
}
it_case "the engine is stopped for a while: what is warm serves, others are told, and it goes on" stopped

restarted() {
	local running
	expect_settled
	hs_begin held exec 'echo begun; sleep 7732; :'
	running=$HS_PID
	wait_for 20 sleeps 7732 || fail "the command does not start"
	own_stop
	own_start
	hs_end "$running"
	expect_eq 125 "$HS_RC"
	expect_eq 1 "$(wc -l <"$HST_DIR/held.err")"
	expect_settled
	works
}
it_case "the engine is restarted: its sandboxes end with it, callers are told, and the pool fills" restarted

# Older engines remove containers with auto-remove at their start, whatever live-restore says (moby 46857).
keeps_sandboxes() {
	printf '%s\n' 24.0.8 "$(own version -f '{{.Server.Version}}')" | sort -CV
}

live_restore() {
	local running before
	own_stop
	own_start '{"live-restore": true}'
	expect_settled
	before=$(own ps -q --no-trunc)
	hs_begin held exec 'echo begun; until [ -e /tmp/go ]; do sleep 0.1; done; echo ended'
	running=$HS_PID
	wait_for 20 grep -qx begun "$HST_DIR/held.out" || fail "the command does not start"
	own_stop
	# Nothing is there to create one, and what there is runs on.
	kill -0 "$running"
	own_start '{"live-restore": true}'
	if keeps_sandboxes; then
		own exec -u 10000 "$before" sh -c ': >/tmp/go'
		hs_end "$running"
		expect_eq 0 "$HS_RC"
		expect_eq "begun ended" "$(paste -sd' ' "$HST_DIR/held.out")"
	else
		hs_end "$running"
		expect_eq 125 "$HS_RC"
		expect_eq 1 "$(wc -l <"$HST_DIR/held.err")"
	fi
	expect_settled
	works
}
it_case "the engine is restarted with live-restore: what runs in a sandbox does not notice, or on an old engine its caller is told" live_restore

# The engine unmounts a folder before it removes the volume that stands for it, however it ended itself.
folder_holds() { expect_eq "kept" "$(cat "$HST_DIR/files/folder/kept")"; }
folders() {
	echo kept >"$HST_DIR/files/folder/kept"
	hs session open m --mount "$HST_DIR/files/folder:/work" >/dev/null
	expect_eq kept "$(hs exec --session m 'cat /work/kept')"
	own_stop
	own_start '{"live-restore": true}'
	if keeps_sandboxes; then
		expect_eq kept "$(hs exec --session m 'cat /work/kept; : >/work/new')"
		[ -e "$HST_DIR/files/folder/new" ] || fail "the folder is not there any more"
		hs session close m
	fi
	expect_settled
	folder_holds
	own_stop
	own_start
	expect_settled
	hs session open m --mount "$HST_DIR/files/folder:/work" >/dev/null
	kill -KILL "$(cat "$HST_DIR/own.pid")"
	wait_for 10 gone "$(cat "$OWN/exec/containerd/containerd.pid")" || fail "containerd lives on"
	rm -f "$OWN/exec/containerd/containerd.pid"
	own_start
	expect_settled
	folder_holds
	expect_rc 125 hs exec --session m true 2>/dev/null
}
it_case "a host folder outlives an engine that is restarted, and one that is killed" folders

it_stop
expect_eq "" "$(own ps -aq)"
folder_holds
