#!/bin/bash
# Agents that a sandbox has taken over: each way of hostile-agent.c in a profile of its own, all at once. Only their
# own sandboxes go: what others run lives on, and the manager is afterwards as large as before.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"

# The way; how it ends for the caller of a command; and what he does beside. It is "refused", as there is no sandbox,
# "lost", as it is thrown away, "gone", one of these, "served", or "bounded": served if he reads fast enough.
WAYS="
	noise refused
	mute refused
	giant-hello refused
	old refused
	posing refused
	held-full refused
	held-more refused
	held-twice gone
	words served
	garbage lost
	giant lost
	half lost
	deaf lost stdin
	stall lost timeout
	over-credit lost
	others lost
	others-end lost
	managers lost
	callers lost
	reserved lost
	ends-twice served
	ends-lost lost
	scrub-first lost
	window lost
	attached lost
	held-late lost
	hello-late lost
	hang-up lost
	die lost
	hollow bounded
	pongs served
	drip served
	descriptors served
	tame served
"
# How they greet a manager that comes back for their session.
AGAIN="again-noise again-mute again-full again-more again-twice again-foreign again-tame"
ways() { awk 'NF { print $1 }' <<<"$WAYS"; }

# The fake one, and behind it the real one for sandboxes without a way.
musl-gcc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -static -o "$HST_DIR/fake" "$TOP/tests/it/hostile-agent.c"
python3 - "$HST_DIR/fake" "$HST_RUN/bin/agent" "$HST_DIR/agent" <<'END'
import struct, sys
fake, real = (open(name, "rb").read() for name in sys.argv[1:3])
with open(sys.argv[3], "wb") as f:
    f.write(fake + real + struct.pack("<Q", len(real)))
END
chmod 0755 "$HST_DIR/agent"
export HST_AGENT=$HST_DIR/agent

{
	cat <<-END
		pool:
		  size: 1
		  max_sandboxes: 100
		  queue_timeout: 60s
		profiles:
	END
	for way in $(ways) $AGAIN; do
		cat <<-END
			  $way:
			    size: 0
			    cold_after: 0ms
			    tmpfs:
			      /tmp: 1m
			      /hostile/$way: 1m
		END
	done
} | it_config
it_start
MANAGER=$(it_pid sandboxd)

kib() { awk '$1 == "Anonymous:" { print $2 }' "/proc/$MANAGER/smaps_rollup"; }
fds() { find "/proc/$MANAGER/fd" -mindepth 1 | wc -l; }
# A sanitizer keeps what was freed for a while.
slack() {
	if readelf -d "$HST_RUN/bin/hermes-sandboxd" | grep -q libasan; then echo 65536; else echo 1024; fi
}
# root as it is, with its right to reach the socket.
hs_root() { "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"; }
# quiet: the bystander alone is served, and there is no sandbox but his and the default profile's warm one.
quiet() {
	[ "$(hs status --json | jq -c '[.callers, ([.pools[] | .warm + .busy + .scrubbing + .starting + .waiting] | add)]')" = "[2,2]" ] &&
		[ "$(docker_ ps -aq --filter label=hermes-sandbox.profile | wc -l)" -eq 2 ]
}
others_live() {
	! gone "$MANAGER" || fail "the manager has ended"
	! gone "$BYSTANDER" || fail "another caller's command was ended"
	running sleep 7901 || fail "another caller's command was ended"
	expect_eq hello "$(hs exec 'echo hello')"
}

# The first command of a life, and what it takes for the first time.
expect_rc 0 hs exec --profile tame true
wait_for 30 it_warm 1
hs_begin bystander exec --timeout 20m 'sleep 7901; :'
BYSTANDER=$HS_PID
wait_for 20 running sleep 7901 || fail "the other caller's command does not start"
wait_for 30 it_warm 1
FDS=$(fds) KIB=$(kib)

# attack WAY OUTCOME [stdin|timeout]: in the background; its status in WAY.rc.
attack() {
	local rc=0
	if [ "${3:-}" = stdin ]; then
		# shellcheck disable=SC2216 # what yes says is not read to the end
		yes 2>/dev/null | hs exec -i --json --profile "$1" true >"$HST_DIR/$1.out" 2>"$HST_DIR/$1.err" || rc=$?
	elif [ "${3:-}" = timeout ]; then
		hs exec --timeout 1s --json --profile "$1" true >"$HST_DIR/$1.out" 2>"$HST_DIR/$1.err" || rc=$?
	else
		hs exec --json --profile "$1" true >"$HST_DIR/$1.out" 2>"$HST_DIR/$1.err" || rc=$?
	fi
	echo "$rc" >"$HST_DIR/$1.rc"
}

attacks() {
	local way outcome more pids=()
	set +o pipefail
	while read -r way outcome more; do
		[ -n "$way" ] || continue
		attack "$way" "$outcome" "$more" &
		pids+=($!)
	done <<<"$WAYS"
	others_live
	# All come to an end: the slowest is the one whose agent never answers again.
	# shellcheck disable=SC2317 # called by wait_for
	ended() { [ "$(cat "$HST_DIR"/*.rc 2>/dev/null | wc -l)" -ge ${#pids[@]} ]; }
	wait_for 90 ended || fail "these do not end: $(for way in $(ways); do [ -s "$HST_DIR/$way.rc" ] || echo "$way"; done)"
	others_live
}
it_case "while all of them attack, other callers are served" attacks

# outcome WAY EXPECTED
outcome() {
	local json rc
	json=$(cat "$HST_DIR/$1.out") rc=$(cat "$HST_DIR/$1.rc")
	case $2 in
	served) expect_eq "0 exited" "$rc $(field .cause "$json")" ;;
	lost) expect_eq "125 sandbox_lost" "$rc $(field .cause "$json")" ;;
	bounded) expect_match '^(0 exited|125 sandbox_lost)$' "$rc $(field .cause "$json")" ;;
	gone) expect_match '^125 (rejected|sandbox_lost)$' "$rc $(field .cause "$json")" ;;
	refused) expect_eq "125 rejected" "$rc $(field .cause "$json")" ;;
	esac
}
while read -r way how _; do
	[ -z "$way" ] || it_case "the way \"$way\": the caller's command is $how" outcome "$way" "$how"
done <<<"$WAYS"

# Whose words they were, a terminal and a parser must survive them.
said() {
	local text
	hs status --json | jq -e . >/dev/null || fail "status is no JSON any more"
	text=$(hs status | tr -d '[:print:]\n')
	expect_eq "" "$text"
}
it_case "what such an agent says of itself harms neither a terminal nor JSON" said

same() {
	wait_for 60 quiet || fail "not quiet: $(hs status)"
	others_live
	wait_for 30 it_warm 1
	# shellcheck disable=SC2317 # called by wait_for
	closed() { [ "$(fds)" -le "$FDS" ]; }
	wait_for 10 closed || fail "$(fds) descriptors, before: $FDS"
	[ $(($(kib) - KIB)) -lt "$(slack)" ] || fail "memory went from $KIB to $(kib) KiB"
	echo "anonymous memory $KIB and $(kib) KiB, descriptors $FDS and $(fds)"
}
it_case "their sandboxes are gone, and the manager has what it had" same

# Frames that cost no credit cannot pile up for a caller that does not read: it is the one that goes.
stopped_reader() {
	hs_begin stopped exec --profile hollow true
	kill -STOP "$HS_PID"
	# shellcheck disable=SC2317 # called by wait_for
	let_go() { [ "$(hs status --json | jq '.pools[] | select(.profile == "hollow") | .busy + .starting + .waiting')" -eq 0 ]; }
	wait_for 60 let_go || fail "it is still served: $(hs status)"
	kill -CONT "$HS_PID"
	hs_end "$HS_PID"
	wait_for 30 quiet || fail "not quiet: $(hs status)"
	[ $(($(kib) - KIB)) -lt "$(slack)" ] || fail "memory went from $KIB to $(kib) KiB"
	others_live
}
it_case "endless empty frames to a caller that does not read: what waits is bounded" stopped_reader

kill -TERM "$BYSTANDER"
hs_end "$BYSTANDER"
expect_eq 143 "$HS_RC"

# A manager that comes back asks the agents which detached commands they hold. One of them names another user's.
sessions() {
	local way left
	at_work mine
	sed -i "s|/hostile/again-foreign:|/hostile/again-foreign.$(counts_in mine):|" "$HST_DIR/etc/sandbox.d/50-test.yaml"
	kill -HUP "$(it_pid engined)" "$(it_pid sandboxd)"
	# shellcheck disable=SC2317 # called by wait_for
	opens() { hs_root session open --profile again-foreign again-foreign >"$HST_DIR/out" 2>&1; }
	wait_for 20 opens || fail "the config is not read again: $(cat "$HST_DIR/out")"
	for way in $AGAIN; do
		[ "$way" = again-foreign ] || expect_eq "$way" "$(hs_root session open --profile "$way" "$way")"
	done
	killed sandboxd
	it_sandboxd
	# shellcheck disable=SC2317 # called by wait_for
	decided() {
		left=$(hs_root session list --json | jq -r '[.[] | select(.state == "open") | .session] | sort | join(" ")') &&
			[ "$(hs_root session list --json | jq '[.[] | select(.state != "open")] | length')" -eq 0 ]
	}
	wait_for 40 decided || fail "not decided: $(hs_root session list)"
	# Nothing but made-up commands, which are its own user's to look at, is no lie that could be known.
	expect_eq "again-full again-tame" "$left"
	unharmed mine
	expect_eq 1 "$(hs_root ps --all --json | jq --arg id "$(counts_in mine)" '[.[] | select(.exec == $id)] | length')"
	hs kill "$(counts_in mine)"
	expect_rc 137 hs wait "$(counts_in mine)" >/dev/null
	# The one that does not end the 192 that nobody knows may have been given up meanwhile.
	hs_root session close again-full 2>/dev/null || true
	hs_root session close again-tame
	close_session mine
	expect_settled 1
	expect_recorded 0
}
it_case "a manager that comes back: agents that lie about their commands lose their sessions, and nobody else does" sessions
