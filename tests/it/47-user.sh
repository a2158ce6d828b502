#!/bin/bash
# The pair of a single user (--user): both daemons are one ordinary account's, config, sockets and state are below its
# XDG folders. The run's engine stands for a rootless one; the account may use it by an additional group.
. "${0%/*}/../lib/it.sh"

HOME_DIR=$HST_DIR/home
DOCKER=$(getent group docker | cut -d: -f3)
install -d -m 0700 -o "$CALLER" -g "$CALLER" "$HOME_DIR" "$HOME_DIR"/.config{,/hermes-sandbox{,/sandbox.d}} \
	"$HST_DIR/xdg"
install -m 0644 -o "$CALLER" -g "$CALLER" "$TOP/etc/sandbox.yaml" "$HOME_DIR/.config/hermes-sandbox/"

# own_config <<EOF: the user's drop-in.
own_config() {
	cat >"$HOME_DIR/.config/hermes-sandbox/sandbox.d/50-test.yaml"
	chmod 0644 "$HOME_DIR/.config/hermes-sandbox/sandbox.d/50-test.yaml"
	chown "$CALLER": "$HOME_DIR/.config/hermes-sandbox/sandbox.d/50-test.yaml"
}

# user_as ACCOUNT GROUP COMMAND…: without privileges, in the environment of systemctl --user.
user_as() {
	setpriv --reuid="$1" --regid="$1" --groups="$2" --inh-caps=-all --ambient-caps=-all --bounding-set=-all \
		--no-new-privs -- env -i PATH=/usr/bin:/bin LANG=C.UTF-8 HOME="$HOME_DIR" \
		XDG_RUNTIME_DIR="$HST_DIR/xdg" ${ASAN_OPTIONS:+ASAN_OPTIONS="$ASAN_OPTIONS"} "${@:3}"
}
# Without --socket.
hs() { user_as "$CALLER" "$DOCKER" "$HST_RUN/bin/hermes-sandbox" "$@"; }

own_daemon() {
	it_spawn "$1" setpriv --reuid="$CALLER" --regid="$CALLER" --groups="$DOCKER" --inh-caps=-all --ambient-caps=-all \
		--bounding-set=-all --no-new-privs -- env HOME="$HOME_DIR" XDG_RUNTIME_DIR="$HST_DIR/xdg" \
		"$HST_RUN/bin/hermes-$1" --user "${@:2}"
}

own_config <<END
engine:
  socket: $HST_ENGINE
pool:
  size: 1
END
own_daemon engined --agent "$HST_RUN/bin/agent"
it_up engined "$HST_DIR/xdg/hermes-sandbox-engine/engine.sock"
own_daemon sandboxd
it_up sandboxd "$HST_DIR/xdg/hermes-sandbox/pool.sock"

runs() {
	wait_for 30 it_warm 1 || fail "the pool does not fill: $(hs status)"
	expect_eq hello "$(hs exec 'echo hello')"
	expect_rc 3 hs exec 'exit 3'
	expect_eq "10000" "$(hs exec 'id -u')"
	expect_match ' POOL HIT=true rc=0 ' "$(grep 'cmd="echo hello"' "$HOME_DIR/.local/state/hermes-sandbox/sandbox-audit.log")"
}
it_case "a command runs; the command line finds the user's own socket" runs

says_so() {
	expect_match 'no privilege separation' "$(hs status)"
	expect_eq "false unsupported" "$(hs status --json | jq -r '"\(.privilege_separation) \(.audit.kernel)"')"
}
it_case "status says that there is no privilege separation, and no kernel audit trail" says_so

# Without root, and the files below the XDG folders.
own_setup() {
	local dropin=$HOME_DIR/.config/hermes-sandbox/sandbox.d/50-setup.yaml
	local setup=(user_as "$CALLER" "$DOCKER" "$HST_RUN/bin/hermes-sandbox-setup" --user --yes --no-systemd)
	"${setup[@]}" --no-start --cpus 0.5 >"$HST_DIR/out"
	expect_eq "644 $CALLER" "$(stat -c '%a %U' "$dropin")"
	kill -HUP "$(it_pid engined)" "$(it_pid sandboxd)"
	"${setup[@]}" --cpus 0.5 >"$HST_DIR/out" </dev/null
	expect_match $'^config:  nothing to change\nservice: left alone' "$(cat "$HST_DIR/out")"
	expect_match 'hello from a sandbox' "$(cat "$HST_DIR/out")"
}
it_case "hermes-sandbox-setup --user" own_setup

# Only the agent reaches the stream: not a command, whose uid is another one than the agent's.
stream() {
	# shellcheck disable=SC2016 # perl expands it
	local script='-d "/.hermes-sandbox/stream" or die "no folder";
		socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die "socket";
		connect($s, pack_sockaddr_un("/.hermes-sandbox/stream/agent.sock")) and die "connected";
		print "$!"'
	expect_eq "Permission denied" "$(hs exec -- perl -MSocket -e "$script")"
}
it_case "a command cannot connect to its agent's socket" stream

others() {
	expect_rc 77 user_as "$STRANGER" "$(id -g "$STRANGER")" "$HST_RUN/bin/hermes-sandbox" \
		--socket "$HST_DIR/xdg/hermes-sandbox/pool.sock" exec true 2>/dev/null
	expect_eq "600 700" "$(stat -c %a "$HST_DIR/xdg/hermes-sandbox/pool.sock" "$HST_DIR/xdg/hermes-sandbox" | paste -sd' ')"
	expect_eq "700 700" "$(stat -c %a "$HOME_DIR"/.local/state/hermes-sandbox{,-engine} | paste -sd' ')"
	# Members of the system's group are no more than others here.
	chmod 0777 "$HST_DIR/xdg" "$HST_DIR/xdg/hermes-sandbox" "$HST_DIR/xdg/hermes-sandbox/pool.sock"
	expect_rc 77 user_as "$STRANGER" "$(getent group hermes-sandbox | cut -d: -f3)" "$HST_RUN/bin/hermes-sandbox" \
		--socket "$HST_DIR/xdg/hermes-sandbox/pool.sock" exec true 2>/dev/null
	chmod 0700 "$HST_DIR/xdg" "$HST_DIR/xdg/hermes-sandbox"
}
it_case "nobody else may use it" others

places() {
	local log
	log=$(expect_rc 78 setpriv --reuid="$CALLER" --regid="$CALLER" --clear-groups -- env -i \
		"$HST_RUN/bin/hermes-sandboxd" --user 2>&1)
	expect_eq "hermes-sandboxd: XDG_RUNTIME_DIR is not set to an absolute path: --user is for systemctl --user, or set it" "$log"
	unshare --user true || {
		echo "no user namespaces here"
		return 0
	}
	log=$(expect_rc 78 unshare --user "$HST_RUN/bin/hermes-sandboxd" --config "$HST_DIR/etc/sandbox.yaml" \
		--config-dir "$HST_DIR/etc/sandbox.d" --runtime-dir "$HST_DIR/run" --state-dir "$HST_DIR/state" 2>&1)
	expect_match '^hermes-sandboxd: /proc/self/uid_map is not the identity, .*--user\)$' "$log"
}
it_case "no XDG_RUNTIME_DIR, or another user namespace without --user: one line and 78" places
