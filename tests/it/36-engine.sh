#!/bin/bash
# The engine is not there, may not be used, has no image, pulls one, is killed: callers get one line that
# says what to do, and everything goes on by itself once that was done. The engine is this script's own.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

OWN=$HST_DIR/own
SOCKET=$OWN/docker.sock
# Where nothing listens, and where a registry will.
read -r NOWHERE PORT < <(python3 -c '
import socket
a, b = socket.socket(), socket.socket()
a.bind(("127.0.0.1", 0)); b.bind(("127.0.0.1", 0))
print(a.getsockname()[1], b.getsockname()[1])')
MAIN=127.0.0.1:$NOWHERE/hst-main:1
ABSENT=127.0.0.1:$NOWHERE/hst-absent:1
PULLED=127.0.0.1:$PORT/hst-pulled:1

it_config <<END
engine:
  socket: $SOCKET
pool:
  size: 2
  image: $MAIN
  queue_timeout: 5s
profiles:
  absent:
    size: 0
    cold_after: 0ms
    image: $ABSENT
  pulled:
    size: 0
    cold_after: 0ms
    image: $PULLED
END

own() { docker -H "unix://$SOCKET" "$@"; }

own_start() {
	local world_engine=${ENGINE_PID:-}
	engine_private "$OWN" || fail "the engine does not start: $(tail -n 5 "$OWN/log")"
	echo "$ENGINE_PID" >"$HST_DIR/own.pid"
	ENGINE_PID=$world_engine
}

# shellcheck disable=SC2317 # the trap calls it
own_end() {
	local pid
	for pid in "$HST_DIR/own.pid" "$HST_DIR/registry.pid"; do
		[ ! -s "$pid" ] || case $pid in
		*/own.pid) engine_private_end "$OWN" "$(cat "$pid")" ;;
		*) end_process "$(cat "$pid")" 10 || true ;;
		esac
		rm -f "$pid"
	done
}
trap 'rc=$?; own_end; set +e; (exit $rc); it_exit' EXIT

# refused REGEX ARGUMENT…: 125 and one line.
refused() {
	expect_rc 125 hs exec "${@:2}" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match "$1" "$(cat "$HST_DIR/err")"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
}

# hold_all: the two sandboxes of the default profile are busy with the commands of HOLDERS.
hold_all() {
	local i
	HOLDERS=()
	for i in 1 2; do
		hs_begin "holder.$i" exec 'sleep 7701; :'
		HOLDERS+=("$HS_PID")
	done
	# shellcheck disable=SC2317 # called by wait_for
	all_busy() { [ "$(hs status --json | jq '.pools[] | select(.profile == "default") | .busy')" -eq 2 ]; }
	wait_for 20 all_busy || fail "the commands do not start"
}
# held_ended STATUS
held_ended() {
	local i
	for i in "${HOLDERS[@]}"; do
		hs_end "$i"
		expect_eq "$1" "$HS_RC"
	done
}

it_engined
it_sandboxd

no_engine() {
	# shellcheck disable=SC2317 # called by wait_for
	known() { hs status --json | jq -r .engine.why | grep -q '^no engine answers'; }
	wait_for 10 known || fail "status does not say it"
	refused "^hermes-sandbox: rejected: no engine answers at $SOCKET: start docker \\(systemctl start docker\\)\$" true
	expect_match 'reason=no_engine' "$(tail -n 1 "$HST_DIR/log/sandbox-audit.log")"
}
it_case "no engine: one line that says so, and 125" no_engine

own_start
image_import "$SOCKET" "$MAIN" "$(world_image)"

comes_up() {
	wait_for 60 it_warm 2 || fail "the pool does not fill: $(hs status)"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "the engine comes up: the pool fills by itself" comes_up

absent() {
	refused "^hermes-sandbox: rejected: image \"$ABSENT\" is not there and cannot be pulled: .*: docker pull $ABSENT, or docker load / docker import it\$" \
		--profile absent true
	# Again, and not only after a long back-off.
	SECONDS=0
	refused 'is not there and cannot be pulled' --profile absent true
	[ $SECONDS -lt 10 ] || fail "the answer took $SECONDS s"
	expect_match "last failure: image \"$ABSENT\" is not there" "$(hs status)"
	own tag "$MAIN" "$ABSENT"
	expect_eq hello "$(hs exec --profile absent 'echo hello')"
	! hs status | grep -q 'last failure' || fail "status still shows the failure"
	# None of it was another profile's trouble.
	wait_for 30 it_warm 2
}
it_case "an image is missing: a line that says how to get it, and then it works without a restart" absent

registry_start() {
	mkdir "$HST_DIR/registry"
	cat >"$HST_DIR/registry.yaml" <<-END
		version: 0.1
		storage:
		  filesystem:
		    rootdirectory: $HST_DIR/registry
		http:
		  addr: 127.0.0.1:$PORT
	END
	docker-registry serve "$HST_DIR/registry.yaml" >"$HST_DIR/registry.out" 2>&1 &
	echo $! >"$HST_DIR/registry.pid"
	# shellcheck disable=SC2317 # called by wait_for
	serves() { (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; }
	wait_for 20 serves || fail "no registry: $(tail -n 3 "$HST_DIR/registry.out")"
}

pull() {
	registry_start
	own tag "$MAIN" "$PULLED"
	own push "$PULLED" >/dev/null
	own rmi "$PULLED" "$ABSENT" >/dev/null
	expect_eq hello "$(hs exec --profile pulled 'echo hello')"
	own image inspect "$PULLED" >/dev/null
}
it_case "an image that a registry has is pulled" pull

kept_out() {
	local began=$SECONDS
	chmod 0600 "$SOCKET"
	it_end engined
	it_engined
	# shellcheck disable=SC2317 # called by wait_for
	known() { hs status --json | jq -r .engine.why | grep -q 'its mode keeps us out'; }
	wait_for 10 known || fail "status does not say it"
	# What is warm still serves.
	expect_eq hello "$(hs exec 'echo hello')"
	expect_eq hello "$(hs exec 'echo hello')"
	hold_all
	refused "^hermes-sandbox: rejected: no engine at $SOCKET: its mode keeps us out: look at its owner and group, or set engine: socket: in sandbox.yaml\$" true
	kill -TERM "${HOLDERS[@]}"
	held_ended 143
	chmod 0660 "$SOCKET"
	wait_for 30 it_warm 2 || fail "the pool does not fill after $((SECONDS - began)) s"
}
it_case "the socket keeps the broker out, a member of docker: a line that says so, and then it goes on" kept_out

# Each caller meanwhile is served or told why not.
# shellcheck disable=SC2317 # called in the background
keep_calling() {
	local rc
	while [ ! -e "$HST_DIR/enough" ]; do
		rc=0
		hs exec 'echo hello' >"$HST_DIR/said" 2>&1 || rc=$?
		echo "$rc $(paste -sd'|' "$HST_DIR/said")"
	done >"$HST_DIR/answers"
}

engine_killed() {
	local callers
	kill -KILL "$(cat "$HST_DIR/own.pid")"
	# shellcheck disable=SC2317 # called by wait_for
	down() { [ "$(hs status --json | jq -r .engine.state)" = down ]; }
	wait_for 20 down || fail "the engine's death is not seen"
	expect_eq hello "$(hs exec 'echo hello')"
	# Nothing is warm any more, and no more can be made.
	hold_all
	refused "^hermes-sandbox: rejected: no engine answers at $SOCKET: start docker \\(systemctl start docker\\)\$" true
	rm -f "$HST_DIR/enough"
	keep_calling &
	callers=$!
	# shellcheck disable=SC2317 # called by wait_for
	one_waits() { [ "$(hs status --json | jq '.pools[] | select(.profile == "default") | .waiting')" -ge 1 ]; }
	wait_for 20 one_waits || fail "nobody waits"
	# Its containerd dies with it. Where nobody reaps that, the next engine would take it for alive.
	wait_for 10 gone "$(cat "$OWN/exec/containerd/containerd.pid")" || fail "containerd lives on"
	rm -f "$OWN/exec/containerd/containerd.pid"
	own_start
	# shellcheck disable=SC2317 # called by wait_for
	settled() { it_warm 2 && [ "$(own ps -aq | wc -l)" -eq 2 ]; }
	wait_for 60 settled || fail "not settled: $(own ps -a)"
	expect_eq hello "$(hs exec 'echo hello')"
	touch "$HST_DIR/enough"
	wait $callers
	# The new engine ended what the old one had started.
	held_ended 125
	expect_eq "" "$(grep -vE '^(0 hello|125 hermes-sandbox: [^|]+)$' "$HST_DIR/answers" || true)"
	expect_eq "0 hello" "$(tail -n 1 "$HST_DIR/answers")"
}
it_case "the engine is killed and started again: nothing leaks, and the pool fills" engine_killed

it_stop
expect_eq "" "$(own ps -aq)"
