#!/bin/bash
# Who may do what: the socket, the group, a profile's own lists, the broker's socket, the agent's socket.
. "${0%/*}/../lib/it.sh"
it_config <<END
pool:
  size: 1
profiles:
  roots:
    size: 0
    allow_users: [root]
  daemons:
    size: 0
    allow_groups: [daemon]
  callers:
    size: 0
    cold_after: 0ms
    allow_users: [${CALLER:?}]
END
it_start

# refused CODE REGEX COMMAND…: that exit status, nothing on stdout, one line on stderr.
refused() {
	local code=$1 regex=$2
	shift 2
	expect_rc "$code" "$@" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match "$regex" "$(cat "$HST_DIR/err")"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_eq "" "$(cat "$HST_DIR/out")"
}

stranger() {
	refused 77 "^hermes-sandbox: $STRANGER is not in group hermes-sandbox: sudo usermod -aG hermes-sandbox $STRANGER\$" \
		hs_as "$STRANGER" exec true
	refused 77 'not in group' hs_as "$STRANGER" status
}
it_case "who is not in the group is refused, with the command that mends it" stranger

# Without a supplementary group that the account has meanwhile.
before_joining() {
	setpriv --reuid "$CALLER" --regid "$CALLER" --clear-groups --inh-caps=-all --no-new-privs -- \
		"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"
}
joined_later() {
	refused 77 "^hermes-sandbox: $CALLER joined group hermes-sandbox after this login: run newgrp hermes-sandbox" \
		before_joining exec true
}
it_case "who joined the group after logging in is told so" joined_later

# The socket's mode is the first of two checks. Where it lets somebody through, the manager looks itself.
open_socket() {
	chmod 0666 "$HST_DIR/run/pool.sock"
	refused 77 "^hermes-sandbox: exec: uid $(id -u "$STRANGER") is not in group hermes-sandbox" \
		hs_as "$STRANGER" exec true
	refused 77 'not in group hermes-sandbox' hs_as "$STRANGER" status
	refused 77 'not in group hermes-sandbox' before_joining exec true
	chmod 0660 "$HST_DIR/run/pool.sock"
}
it_case "with a socket that is open to all, the manager refuses by the peer's groups" open_socket

json_refusal() {
	local json
	json=$(hs_as "$STRANGER" exec --json true) && fail "not refused"
	expect_eq "rejected 77" "$(jq -r '"\(.cause) \(.exit_code)"' <<<"$json")"
}
it_case "a refusal is JSON with --json" json_refusal

# root with its capabilities, which as() would take away.
hs_root() { "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"; }

root_may() {
	expect_eq hello "$(hs_root exec 'echo hello')"
	wait_for 30 it_warm 1
}
it_case "root may" root_may

profiles() {
	refused 77 "may not use profile \"roots\"" hs exec --profile roots true
	refused 77 "may not use profile \"daemons\"" hs exec --profile daemons true
	refused 64 "no profile \"nowhere\" in the config" hs exec --profile nowhere true
	expect_eq hello "$(hs exec --profile callers 'echo hello')"
	expect_rc 0 hs_root exec --profile roots true
}
it_case "a profile's lists decide who may use it" profiles

lifecycle() {
	refused 77 "^hermes-sandbox: start is root's: sudo hermes-sandbox start\$" hs start
	refused 77 "^hermes-sandbox: stop is root's: sudo hermes-sandbox stop\$" hs stop
}
it_case "start and stop are root's" lifecycle

no_manager() {
	refused 69 "^hermes-sandbox: no manager at /nonexistent/pool.sock: " \
		as "$CALLER" "$HST_RUN/bin/hermes-sandbox" --socket /nonexistent/pool.sock exec true
}
it_case "no manager is 69" no_manager

# ask_broker USER: connects, greets as the manager would, and prints what came back.
ask_broker() {
	setpriv --reuid "$1" --regid "$1" --init-groups -- /usr/bin/env python3 - "$HST_DIR/engine/engine.sock" <<-'END'
		import socket, struct, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.settimeout(10)
		try:
		    s.connect(sys.argv[1])
		except PermissionError:
		    sys.exit('no permission')
		try:
		    s.send(struct.pack('<IHH', 1, 1, 1))
		    answer = s.recv(8192)
		except (ConnectionResetError, BrokenPipeError):
		    answer = b''
		print(len(answer))
	END
}

broker() {
	expect_eq 0 "$(ask_broker root)"
	expect_match 'connection of uid 0 pid [0-9]+ refused: only _hermes-sandbox may ask' \
		"$(tail -n 1 "$HST_DIR/engined.log")"
	# The group's members and strangers do not get as far as the socket.
	! as "$CALLER" test -e "$HST_DIR/engine/engine.sock" || fail "a caller sees the broker's socket"
	! as "$STRANGER" test -e "$HST_DIR/engine/engine.sock" || fail "a stranger sees the broker's socket"
	# Nor does the manager reach the engine.
	! setpriv --reuid _hermes-sandbox --regid _hermes-sandbox --init-groups -- \
		test -w "$HST_ENGINE" || fail "the manager's account may write to the engine's socket"
	# None of this disturbed the manager.
	wait_for 30 it_warm 1
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "the broker takes requests from the manager's account alone" broker

# Debian's perl-base is in the image.
agent_socket() {
	local out
	out=$(hs exec 'ls /.hermes-sandbox/stream 2>&1; id -G' || true)
	expect_match 'Permission denied' "$out"
	! tail -n 1 <<<"$out" | tr ' ' '\n' | grep -qx "$(id -g _hermes-sandbox)" ||
		fail "a command has the group of the agent's socket"
	wait_for 30 it_warm 1
	# shellcheck disable=SC2016 # perl expands it
	out=$(hs exec -- perl -MSocket -e '
		socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
		print connect($s, pack_sockaddr_un("/.hermes-sandbox/stream/agent.sock")) ? "connected" : $!;')
	expect_eq 'Permission denied' "$out"
	wait_for 30 it_warm 1
	out=$(hs exec 'echo x >/.hermes-sandbox/agent' 2>&1 || true)
	expect_match 'Read-only|Permission denied' "$out"
}
it_case "a command cannot reach the agent's socket or binary" agent_socket
