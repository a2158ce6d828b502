# shellcheck shell=bash
# What an integration script is written in. It sources this file, starts the daemons and has its cases:
#
#   . "${0%/*}/../lib/it.sh"
#   it_start
#   says_hello() { expect_eq hello "$(hs exec 'echo hello')"; }
#   it_case "a command's output arrives" says_hello
#
# The daemons live in a folder of this script, HST_DIR, and end with it.
set -euo pipefail

# shellcheck source=tests/lib/world.sh
. "${BASH_SOURCE[0]%/*}/world.sh"
# shellcheck source=tests/lib/cases.sh
. "${BASH_SOURCE[0]%/*}/cases.sh"

it_name=$(basename "${0%.sh}")

# --- the daemons -------------------------------------------------------------------------------------

# it_config <<EOF: a drop-in over the shipped config, for the next it_start or it_restart.
it_config() {
	cat >"$HST_DIR/etc/sandbox.d/50-test.yaml"
}

# it_spawn NAME COMMAND…: in the background, its log in NAME.log, its pid in NAME.pid, its status in NAME.rc.
it_spawn() {
	local name=$1
	shift
	rm -f "$HST_DIR/$name.rc"
	(
		trap - EXIT
		umask 077
		cd /
		env -i PATH=/usr/bin:/bin LANG=C.UTF-8 ${ASAN_OPTIONS:+ASAN_OPTIONS="$ASAN_OPTIONS"} \
			"$@" >>"$HST_DIR/$name.log" 2>&1 </dev/null &
		echo $! >"$HST_DIR/$name.pid"
		rc=0
		wait $! || rc=$?
		echo $rc >"$HST_DIR/$name.rc"
	) >/dev/null 2>&1 &
	wait_for 5 test -s "$HST_DIR/$name.pid"
}

it_pid() { cat "$HST_DIR/$1.pid"; }

# The broker and the manager, each as the supervisor starts it (src/supervisor/main.c).
it_engined() {
	it_spawn engined setpriv --reuid=_hermes-engine --regid=_hermes-engine --init-groups \
		--inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs \
		"$HST_RUN/bin/hermes-engined" --config "$HST_DIR/etc/sandbox.yaml" \
		--config-dir "$HST_DIR/etc/sandbox.d" --runtime-dir "$HST_DIR/engine" \
		--state-dir "$HST_DIR/engine-state" --agent "${HST_AGENT:-$HST_RUN/bin/agent}"
	it_up engined "$HST_DIR/engine/engine.sock"
}

it_sandboxd() {
	it_spawn sandboxd setpriv --reuid=_hermes-sandbox --regid=_hermes-sandbox --clear-groups \
		--inh-caps=-all,+audit_write --ambient-caps=-all,+audit_write \
		--bounding-set=-all,+audit_write --no-new-privs \
		"$HST_RUN/bin/hermes-sandboxd" --config "$HST_DIR/etc/sandbox.yaml" \
		--config-dir "$HST_DIR/etc/sandbox.d" --runtime-dir "$HST_DIR/run" \
		--engine-socket "$HST_DIR/engine/engine.sock" --state-dir "$HST_DIR/state" --log-dir "$HST_DIR/log"
	it_up sandboxd "$HST_DIR/run/pool.sock"
}

# it_up NAME SOCKET: until it listens there.
it_up() {
	# shellcheck disable=SC2317 # called by wait_for
	up_or_ended() { [ -s "$HST_DIR/$1.rc" ] || listens "$(it_pid "$1")" "$2"; }
	wait_for 20 up_or_ended "$1" "$2" || fail "$1 does not listen at $2"
	[ ! -s "$HST_DIR/$1.rc" ] || fail "$1 ended with status $(cat "$HST_DIR/$1.rc")"
}

# listens PID NAME: the process has a listening socket (flag 00010000) that was bound under a path which
# ends like NAME. The rest of the path is how its process saw it, and may go through /proc.
listens() {
	find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n' |
		awk -v name="/${2##*/}" 'NR == FNR { mine[$1]; next }
			$7 in mine && $4 == "00010000" && substr($8, length($8) - length(name) + 1) == name { f = 1 }
			END { exit !f }' - /proc/net/unix
}

# it_start: both daemons, and a warm sandbox in the default profile. It keeps what it_config said.
it_start() {
	it_engined
	it_sandboxd
	wait_for 60 it_warm 1 || fail "no sandbox is warm after 60 s"
}

# it_stop: both end cleanly, in the order of a shutdown, and a sanitizer found nothing.
it_stop() {
	it_end sandboxd
	it_end engined
}

it_end() {
	local pid
	[ -s "$HST_DIR/$1.pid" ] || return 0
	pid=$(it_pid "$1")
	# INT: what commands still run are not waited for.
	end_process "$pid" 30 INT || fail "$1 did not end on INT within 30 s"
	wait_for 5 test -s "$HST_DIR/$1.rc" || fail "the status of $1 is lost"
	rm "$HST_DIR/$1.pid"
	expect_eq "0 ($1)" "$(cat "$HST_DIR/$1.rc") ($1)"
	it_sanitized "$1"
}

it_sanitized() {
	! grep -nE '(Address|Leak|UndefinedBehavior)Sanitizer|runtime error:' "$HST_DIR/$1.log" ||
		fail "a sanitizer speaks in the log of $1"
}

it_restart() {
	it_stop
	it_start
}

# it_warm N [PROFILE]: at least N sandboxes of it are warm.
it_warm() {
	local warm
	warm=$(hs status --json 2>/dev/null |
		jq --arg p "${2:-default}" '[.pools[] | select(.profile == $p) | .warm] | add // 0') || return 1
	[ "${warm:-0}" -ge "$1" ]
}

# --- callers -----------------------------------------------------------------------------------------

# hs_as USER ARGUMENT…: the command line as that account, against this script's manager.
hs_as() {
	local user=$1
	shift
	as "$user" "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"
}

hs() { hs_as "$CALLER" "$@"; }

# docker_ ARGUMENT…: docker against the run's engine.
docker_() { docker -H "unix://$HST_ENGINE" "$@"; }

# audit_records ARGUMENT…: ausearch over the run's trail, raw and without a terminal for its stdin.
audit_records() { ausearch --input "$HST_AUDIT" "$@" </dev/null; }

# --- this script's folder ----------------------------------------------------------------------------

it_logs() {
	local log
	for log in "$HST_DIR"/*.log; do
		[ -s "$log" ] || continue
		echo "--- the end of $(basename "$log")"
		tail -n 40 "$log"
	done
}

it_folders() {
	HST_DIR=$HST_RUN/$it_name
	rm -rf "$HST_DIR"
	install -d -m 0755 "$HST_DIR" "$HST_DIR/etc" "$HST_DIR/etc/sandbox.d"
	install -d -m 2755 -o _hermes-sandbox -g hermes-sandbox "$HST_DIR/run"
	install -d -m 2750 -o _hermes-engine -g _hermes-sandbox "$HST_DIR/engine"
	install -d -m 0700 -o _hermes-sandbox -g _hermes-sandbox "$HST_DIR/state"
	install -d -m 0700 -o _hermes-engine -g _hermes-engine "$HST_DIR/engine-state"
	install -d -m 2750 -o _hermes-sandbox -g adm "$HST_DIR/log"
	install -m 0644 "$TOP/etc/sandbox.yaml" "$HST_DIR/etc/"
	cat >"$HST_DIR/etc/sandbox.d/10-place.yaml" <<-END
		engine:
		  socket: ${HST_ENGINE:-/run/docker.sock}
		audit:
		  file: $HST_DIR/log/sandbox-audit.log
	END
	chmod 0644 "$HST_DIR/etc/sandbox.d/10-place.yaml"
}

it_exit() {
	local rc=$? name pid
	trap - EXIT
	set +e
	if [ $rc -eq 0 ]; then
		(it_stop) || rc=1
	fi
	if [ $rc -eq 0 ] && [ "$it_failed" -gt 0 ]; then
		rc=1
	elif [ $rc -ne 0 ] && [ $rc -ne 77 ]; then
		it_logs
	fi
	for name in sandboxd engined; do
		[ ! -s "$HST_DIR/$name.pid" ] || end_process "$(it_pid "$name")" 5 INT
	done
	[ -z "${it_own_world:-}" ] || world_end
	exit $rc
}

[ "$(id -u)" -eq 0 ] || skip "integration tests need root: they make accounts and start an engine"
trap it_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [ -z "${HST_RUN:-}" ]; then
	HST_DIR=/nonexistent
	it_own_world=1
	${it_world:-world_begin}
fi
umask 022
it_folders
