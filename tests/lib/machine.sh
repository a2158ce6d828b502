# shellcheck shell=bash
# Root file systems that boot, run tests by tests/run and switch off: the virtual machine of tests/vm/run and the
# containers of tests/pkg/run. Sourced behind engine.sh.

MACHINE_HERE=$(cd "${BASH_SOURCE[0]%/*}" && pwd)

# machine_archive NAME SUITE PACKAGE…: prints the name of a tar of a minimal SUITE with these packages, made once for
# a list of packages and then kept. It needs a Debian mirror.
machine_archive() {
	local name=$1 suite=$2 packages file tmp
	shift 2
	packages=$(printf '%s\n' "$@" | sort -u | paste -sd,)
	file=$IMAGE_CACHE/$name-$suite-$(sha256sum <<<"$packages" | cut -c1-12).tar
	if [ ! -s "$file" ]; then
		mkdir -p "$IMAGE_CACHE"
		tmp=$(mktemp "$IMAGE_CACHE/.new.XXXXXX")
		if ! mmdebstrap --quiet --variant=minbase --include="$packages" "$suite" - >"$tmp"; then
			rm -f "$tmp"
			return 1
		fi
		mv "$tmp" "$file"
	fi
	echo "$file"
}

# machine_tree TREE DIR: the tree as a clone would have it.
machine_tree() {
	mkdir -p "$2"
	tar -C "$1" -c --exclude=./build --exclude=./dist --exclude=./.git . | tar -C "$2" -x --no-same-owner
}

# machine_tests ROOT OUTPUT GROUPS [NAME=VALUE]…: when it boots, tests/run tests the groups in ROOT/opt/hermes-sandbox
# with these variables, writes to OUTPUT (a file or a serial port) and the machine ends.
machine_tests() {
	local root=$1 unit
	# Nothing else is to use the processor. Nor are a hundred AppArmor profiles to be compiled for programs that
	# are not here; nor is the machine's own sshd to take a port, which may be that of the machine around it.
	for unit in ssh.service ssh.socket apparmor.service docker-registry.service systemd-journald-audit.socket apt-daily.timer \
		apt-daily-upgrade.timer dpkg-db-backup.timer man-db.timer e2scrub_all.timer fstrim.timer \
		systemd-timesyncd.service getty@tty1.service serial-getty@ttyS0.service serial-getty@ttyS1.service \
		console-getty.service; do
		ln -sfn /dev/null "$root/etc/systemd/system/$unit"
	done
	echo sandbox-tests >"$root/etc/hostname"
	echo "127.0.0.1 localhost sandbox-tests" >"$root/etc/hosts"
	install -m 0644 "$MACHINE_HERE/../vm/hermes-sandbox-tests.service" "$root/etc/systemd/system/"
	mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
	ln -sfn ../hermes-sandbox-tests.service "$root/etc/systemd/system/multi-user.target.wants/"
	printf '%s\n' "TEST_OUTPUT=\"$2\"" "TEST_GROUPS=\"$3\"" "STRICT=\"${STRICT:-0}\"" \
		"HST_LONG=\"${HST_LONG:-}\"" >"$root/etc/hermes-sandbox-tests.env"
	shift 3
	while [ $# -gt 0 ]; do
		echo "${1%%=*}=\"${1#*=}\"" >>"$root/etc/hermes-sandbox-tests.env"
		shift
	done
}

# machine_result FILE: its last line, in PASSED, FAILED and SKIPPED. 1: it is no result.
machine_result() {
	[[ $(tail -n 1 "$1" | tr -d '\r') =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]] || return 1
	# shellcheck disable=SC2034 # for the caller
	PASSED=${BASH_REMATCH[1]} FAILED=${BASH_REMATCH[2]} SKIPPED=${BASH_REMATCH[3]}
}
