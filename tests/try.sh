#!/bin/bash
# "make try": from a clone on a bare Debian machine, as root, to a first command in a warm sandbox. With or
# without systemd, with or without a container registry in reach. It may be run again at any time.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tests/lib/engine.sh
. tests/lib/engine.sh
export DEBIAN_FRONTEND=noninteractive PATH=$PATH:/usr/sbin:/sbin

SOCKET=/run/docker.sock
IMAGE=debian:bookworm-slim
DOCKERD_LOG=/var/log/dockerd-try.log
BUILD_LOG=$(mktemp)
trap 'rm -f "$BUILD_LOG"' EXIT

step() { echo "==> $*"; }
die() {
	echo "make try: $*" >&2
	exit 1
}
# quietly COMMAND…: its output is shown only if it fails.
quietly() {
	"$@" >"$BUILD_LOG" 2>&1 </dev/null || {
		tail -n 60 "$BUILD_LOG" >&2
		die "this failed: $*"
	}
}

[ "$(id -u)" -eq 0 ] || die "it installs packages and starts daemons: run it as root (sudo make try)"

step "packages to build with (apt)"
quietly apt-get update -q
quietly apt-get build-dep -y -q --no-install-recommends .

step "the package (make deb)"
quietly make deb

step "its installation (apt install dist/hermes-sandbox.deb)"
quietly apt-get install -y -q --no-install-recommends --reinstall --allow-downgrades \
	-o Dpkg::Options::=--force-confold ./dist/hermes-sandbox.deb

# dockerd in the background, for a machine without systemd; where it may not touch the firewall, it can do
# without: the default profile has no network.
by_hand() {
	setsid dockerd "$@" >>"$DOCKERD_LOG" 2>&1 </dev/null &
	engine_wait "$SOCKET" $! 60
}

if engine_answers "$SOCKET"; then
	step "the engine at $SOCKET answers"
elif [ -d /run/systemd/system ]; then
	step "the engine (systemctl start docker)"
	systemctl start docker
	wait_for 60 engine_answers "$SOCKET" || die "no answer at $SOCKET: see journalctl -u docker"
else
	step "the engine (dockerd, its log is $DOCKERD_LOG)"
	by_hand || by_hand --iptables=false --ip6tables=false --bridge=none ||
		die "dockerd does not start: $(tail -n 1 "$DOCKERD_LOG")"
fi

docker_pull() {
	timeout 60 docker -H "unix://$SOCKET" pull -q "$IMAGE" >/dev/null 2>&1
}
if image_present "$SOCKET" "$IMAGE"; then
	step "the image $IMAGE is there"
elif step "the image $IMAGE (docker pull)" && docker_pull; then
	:
else
	step "no registry gave it; it is made of Debian's packages (hermes-sandbox image build)"
	command -v mmdebstrap >/dev/null ||
		quietly apt-get install -y -q --no-install-recommends mmdebstrap
	quietly hermes-sandbox image build --name "$IMAGE" --engine-socket "$SOCKET"
fi

step "the sandbox (hermes-sandbox start)"
hermes-sandbox start

warm() { hermes-sandbox status 2>/dev/null | grep -qE '^pool default: [1-9][0-9]* of '; }
step "a warm sandbox (hermes-sandbox status)"
wait_for 60 warm || {
	hermes-sandbox status >&2 || true
	die "no sandbox is warm after 60 s"
}
hermes-sandbox status | grep -E '^(hermes-sandboxd|engine|pool default)'

first='id; uname -sr; echo hello from a sandbox'
echo "\$ hermes-sandbox exec '$first'"
hermes-sandbox exec "$first"

cat <<END
==> done. Go on with:
    hermes-sandbox exec --json 'ls -la /'     what it cost, as JSON
    hermes-sandbox status                     what is enforced, layer by layer
    hermes-sandbox doctor                     what is wrong with this machine, and what mends it
    hermes-sandbox setup --add-user USER      who else may use it; without options it asks
    hermes-sandbox stop                       nothing runs any more
END
