# shellcheck shell=bash
# What all integration scripts of a run share: accounts, an engine with the image in it, an audit trail and
# a copy of the programs in a place that every account can reach. tests/run makes it once; a script that is
# started by hand makes one for itself.
#
#   HST_RUN     its folder: bin/, engine/, audit/, and one folder a script
#   HST_ENGINE  the engine's socket
#   HST_IMAGE   the image that the shipped config names
#   HST_AUDIT   the kernel trail's file, as auditd writes it

here=${BASH_SOURCE[0]%/*}
TOP=$(cd "$here/../.." && pwd)
# shellcheck source=tests/lib/engine.sh
. "$here/engine.sh"
# shellcheck source=tests/lib/accounts.sh
. "$here/accounts.sh"
# shellcheck source=tests/lib/audit.sh
. "$here/audit.sh"

BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$TOP/$BUILD ;; esac
HST_IMAGE=debian:bookworm-slim
PROGRAMS=(hermes-sandbox docker hermes-sandbox-config hermes-sandbox-audit hermes-sandbox-doctor hermes-sandbox-image
	hermes-sandbox-setup hermes-docker-enable hermes-sandboxd hermes-engined agent supervisor hermes-sandbox-ssh-gateway)
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C.UTF-8

# The packages that the image needs so that the agent runs in it: none, unless it is a sanitizer build,
# which is linked dynamically. Such an image is of this machine's own suite, as the agent is.
world_image() {
	local suite
	if readelf -lW "$BUILD/agent" | grep -q INTERP; then
		suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
		image_archive "$suite" libasan8 libubsan1
	else
		image_archive bookworm
	fi
}

# world_bare: without an engine.
world_bare() {
	local program
	# Below /var/lib, as /tmp and /run may be noexec, are writable by all, or are small.
	mkdir -p /var/lib/hermes-sandbox-tests
	HST_RUN=$(mktemp -d /var/lib/hermes-sandbox-tests/XXXXXX)
	chmod 0755 "$HST_RUN"
	mkdir "$HST_RUN/bin"
	for program in "${PROGRAMS[@]}"; do
		install -m 0755 "$BUILD/$program" "$HST_RUN/bin/"
	done
	accounts_make "$TOP/systemd/hermes-sandbox.sysusers"
	audit_begin "$HST_RUN/audit" || { echo "auditd does not start" && return 1; }
	HST_AUDIT=$AUDIT_LOG
	export HST_RUN HST_AUDIT
}

world_begin() {
	local archive
	world_bare || return 1
	archive=$(world_image) || { echo "no image could be made" && return 1; }
	HST_ENGINE=$HST_RUN/engine/docker.sock
	if ! engine_private "$HST_RUN/engine"; then
		echo "dockerd does not start:"
		tail -n 20 "$HST_RUN/engine/log"
		return 1
	fi
	image_import "$HST_ENGINE" "$HST_IMAGE" "$archive"
	export HST_ENGINE
}

world_end() {
	[ -n "${HST_RUN:-}" ] || return 0
	[ -z "${ENGINE_PID:-}" ] || engine_private_end "$HST_RUN/engine" "$ENGINE_PID"
	audit_end
	rm -rf --one-file-system "$HST_RUN"
	rmdir /var/lib/hermes-sandbox-tests 2>/dev/null || true
}
