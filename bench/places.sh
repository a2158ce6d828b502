# shellcheck shell=bash disable=SC2034,SC2154 # bench/run reads these variables, and has set $bench
# Where a bench runs. Both kinds of place give the rows the same few words:
#
#   CLI DOCKER SHIM    command words, separated by blanks, absolute
#   IMAGE              the default profile's
#   PLACE              one line: what is measured
#   SCRATCH            a folder, removed at the end
#   place_begin        accounts, engine, image, auditd, daemons with a warm pool
#   place_config       its stdin becomes a drop-in over the shipped config, and both daemons start anew
#   place_pid NAME     the pid of sandboxd or engined
#   place_records PID  how many records of execs the kernel trail holds of that manager
#   place_gateway KEY  the ssh gateway listens on 127.0.0.1, port GATEWAY_PORT, and knows this public key
#   place_gateway_end  it is as it was
#   place_end STATUS   takes all of it away again, also after a failure
#
# The installed package is the default. BENCH_BUILD=DIR: the programs of that folder, with an engine, an
# auditd and sockets of their own, so that the machine's package is left alone.

# The shim's sandboxes are of the profile that is measured everywhere here.
export HERMES_SANDBOX_PROFILE=default

count_records() { ausearch "$@" -m USER_CMD --raw </dev/null 2>/dev/null | grep -cE 'op=exec-(start|end)' || true; }

if [ -n "${BENCH_BUILD:-}" ]; then
	BUILD=$BENCH_BUILD
	# shellcheck source=tests/lib/it.sh
	. "$bench/../tests/lib/it.sh"
	# shellcheck source=tests/lib/ssh.sh
	. "$bench/../tests/lib/ssh.sh"
	SCRATCH=$HST_DIR
	CLI="$HST_RUN/bin/hermes-sandbox --socket $HST_DIR/run/pool.sock"
	DOCKER="/usr/bin/docker -H unix://$HST_ENGINE"
	SHIM=$HST_RUN/bin/docker
	export HERMES_SANDBOX_SOCKET=$HST_DIR/run/pool.sock
	IMAGE=$HST_IMAGE
	PLACE="the programs of a build folder, an engine of their own"

	place_begin() { it_start; }
	place_config() {
		it_config
		[ -s "$HST_DIR/etc/sandbox.d/50-test.yaml" ] || rm "$HST_DIR/etc/sandbox.d/50-test.yaml"
		it_restart
	}
	place_pid() { it_pid "$1"; }
	place_records() { count_records --input "$HST_AUDIT" -p "$1"; }
	GATEWAY_PORT=2297
	place_gateway() {
		gateway_add_key bench "$1"
		gateway_up $GATEWAY_PORT
	}
	place_gateway_end() { gateway_down; }
	place_end() {
		(exit "$1")
		it_exit
	}
	return 0
fi

TOP=$(cd "$bench/.." && pwd)
# shellcheck source=tests/lib/engine.sh
. "$TOP/tests/lib/engine.sh"
# shellcheck source=tests/lib/audit.sh
. "$TOP/tests/lib/audit.sh"
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C.UTF-8

CLI=/usr/bin/hermes-sandbox
DOCKER="/usr/bin/docker -H unix:///run/docker.sock"
SHIM=/usr/libexec/hermes-sandbox/docker
IMAGE=debian:bookworm-slim
PLACE="the installed package"
GATEWAY_PORT=2222
DROPIN=/etc/hermes-sandbox/sandbox.d/90-bench.yaml

fail() {
	echo "bench: $*" >&2
	exit 1
}

place_begin() {
	[ "$(id -u)" -eq 0 ] || fail "it installs the package and starts daemons: run it as root"
	mkdir -p /var/lib/hermes-sandbox-tests
	SCRATCH=$(mktemp -d /var/lib/hermes-sandbox-tests/bench.XXXXXX)
	chmod 0755 "$SCRATCH"
	rm -f "$DROPIN"
	audit_begin "$SCRATCH/audit" || fail "auditd does not start"
	# Builds and installs the package, sees to an engine and the image, and starts the daemons.
	"$TOP/tests/try.sh"
	# Also where the same version of it ran before.
	restart
}

restart() {
	hermes-sandbox stop
	hermes-sandbox start
}

place_config() {
	install -m 0644 /dev/stdin "$DROPIN"
	[ -s "$DROPIN" ] || rm "$DROPIN"
	restart
}

place_pid() {
	local exe
	for exe in /proc/[0-9]*/exe; do
		[ "$(readlink "$exe" 2>/dev/null)" != "/usr/libexec/hermes-sandbox/hermes-$1" ] ||
			{ exe=${exe%/exe} && echo "${exe#/proc/}" && return 0; }
	done
	return 1
}

place_records() {
	if [ -n "$AUDIT_PID" ]; then
		count_records --input "$AUDIT_LOG" -p "$1"
	else
		count_records --input-logs -p "$1"
	fi
}

# A gateway that was on before stays on; the key goes in any case. Its session ends soon after.
place_gateway() {
	gateway_was=$({ $CLI ssh status 2>/dev/null || true; } | sed -n 's/^ssh: *//p')
	$CLI ssh enable >/dev/null
	gateway_key=$1
	$CLI ssh add-key --name bench --profile default --ttl 1m "$1" >/dev/null
}

place_gateway_end() {
	[ -n "${gateway_key:-}" ] || return 0
	$CLI ssh remove-key bench >/dev/null
	[ "$gateway_was" = enabled ] || $CLI ssh disable >/dev/null
	gateway_key=
}

place_end() {
	if [ -e "$DROPIN" ]; then
		rm -f "$DROPIN"
		restart || true
	fi
	audit_end
	[ -z "${SCRATCH:-}" ] || rm -rf "$SCRATCH"
	rmdir /var/lib/hermes-sandbox-tests 2>/dev/null || true
}
