# shellcheck shell=bash
# An engine and an image for it, without systemd and without a registry. "make try" uses it for the
# machine's own engine, the integration tests for one of theirs.

# shellcheck source=tests/lib/wait.sh
. "${BASH_SOURCE[0]%/*}/wait.sh"

IMAGE_CACHE=${IMAGE_CACHE:-/var/cache/hermes-sandbox-tests}

engine_answers() {
	timeout 5 docker -H "unix://$1" version >/dev/null 2>&1
}

# engine_wait SOCKET PID SECONDS: 1 when the engine's process ends or the deadline passes first.
engine_wait() {
	# shellcheck disable=SC2317 # called by wait_for
	answers_or_gone() { engine_answers "$1" || gone "$2"; }
	wait_for "$3" answers_or_gone "$1" "$2" && engine_answers "$1"
}

# engine_private DIR [CONFIG]: starts a dockerd whose every file is below DIR (its socket DIR/docker.sock, its pid
# in ENGINE_PID). It has no bridge and touches no firewall, so that it disturbs no other.
engine_private() {
	local dir=$1
	mkdir -p "$dir"
	echo "${2:-"{}"}" >"$dir/daemon.json"
	dockerd --config-file "$dir/daemon.json" --data-root "$dir/data" --exec-root "$dir/exec" \
		--host "unix://$dir/docker.sock" --group docker --pidfile "$dir/pid" \
		--bridge none --iptables=false --ip6tables=false >"$dir/log" 2>&1 &
	ENGINE_PID=$!
	engine_wait "$dir/docker.sock" "$ENGINE_PID" 60
}

# engine_private_end DIR PID: ends it, with whatever it still ran and had mounted.
engine_private_end() {
	local dir=$1 pid=$2 left
	left=$(docker -H "unix://$dir/docker.sock" ps -aq 2>/dev/null) || left=
	# shellcheck disable=SC2086 # one word an id
	[ -z "$left" ] || docker -H "unix://$dir/docker.sock" rm -f $left >/dev/null 2>&1 || true
	end_process "$pid" 30 || true
	# An engine that was killed leaves the shims of its containers: this engine's alone are named by its folder.
	for left in $(pgrep -f -- "^[^ ]*containerd-shim[^ ]* .* -address $dir/" || true); do
		end_process "$left" 10 || true
	done
	# Deepest mounts first.
	awk -v d="$dir/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
		while read -r mount; do umount -l "$mount" || true; done
}

# What an image has where the programs of this machine do not run in the one of the run: scp, sftp, rsync, sanitizers.
# shellcheck disable=SC2034 # the scripts read it
IMAGE_SSH_PACKAGES="openssh-sftp-server openssh-client rsync libasan8 libubsan1"

# image_archive SUITE [PACKAGE…]: prints the name of a tar of a minimal SUITE that also has the packages,
# made once and then kept. It appears under its name complete or not at all.
image_archive() {
	local suite=$1 file tmp packages
	shift
	packages=$(IFS=, && echo "$*")
	file=$IMAGE_CACHE/$suite${packages:++$packages}.tar
	if [ ! -s "$file" ]; then
		mkdir -p "$IMAGE_CACHE"
		tmp=$(mktemp "$IMAGE_CACHE/.new.XXXXXX")
		if ! mmdebstrap --quiet --variant=minbase ${packages:+--include="$packages"} "$suite" - >"$tmp"; then
			rm -f "$tmp"
			return 1
		fi
		mv "$tmp" "$file"
	fi
	echo "$file"
}

# image_import SOCKET NAME FILE
image_import() {
	docker -H "unix://$1" import "$3" "$2" >/dev/null
}

image_present() {
	docker -H "unix://$1" image inspect "$2" >/dev/null 2>&1
}
