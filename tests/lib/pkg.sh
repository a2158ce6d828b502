# shellcheck shell=bash
# shellcheck disable=SC2119,SC2120 # options of pkg_install are for some of the scripts
# What a script of the group pkg is written in. It is root on a booted Debian that nobody needs afterwards, with an
# engine that systemd starts: a container of tests/pkg/run, the machine of tests/vm/run, or autopkgtest's testbed.
# Each script brings the package into the state that it starts from, and has its cases (cases.sh).
#
#   HST_DISPOSABLE  1: this system may be changed in any way. Without it nothing runs
#   HST_DEB         the package, a file
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

TOP=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
# shellcheck source=tests/lib/cases.sh
. "$TOP/tests/lib/cases.sh"
# shellcheck source=tests/lib/engine.sh
. "$TOP/tests/lib/engine.sh"
# shellcheck source=tests/lib/accounts.sh
. "$TOP/tests/lib/accounts.sh"

[ "${HST_DISPOSABLE:-}" = 1 ] || skip "it installs and purges the package: only where HST_DISPOSABLE=1 says that nobody minds"
[ "$(id -u)" -eq 0 ] || skip "it installs a package, which takes root"
[ -d /run/systemd/system ] || skip "systemd does not run here"
[ -f "${HST_DEB:-}" ] || skip "HST_DEB names no package"

# shellcheck disable=SC2034 # for the scripts
{
	PACKAGE=hermes-sandbox
	ENGINE_SOCKET=/run/docker.sock
	IMAGE=debian:bookworm-slim
	HELPER=/usr/sbin/hermes-docker-enable
	SUDOERS=/etc/sudoers.d/hermes-docker
	RULES=/etc/audit/rules.d/50-hermes-sandbox.rules
	STATE=/var/lib/hermes-sandbox-package
	DROPINS=/etc/hermes-sandbox/sandbox.d
	SSH=/etc/hermes-sandbox/ssh
	# A container has the ports of its machine: another one may be beside it.
	GATEWAY_PORT=$((20000 + RANDOM % 10000))
	UNITS=(hermes-sandbox-engine.socket hermes-sandbox-pool.socket
		hermes-sandbox-engine.service hermes-sandbox-pool.service)
}
PKG_TMP=$(mktemp -d /var/tmp/hermes-pkg.XXXXXX)
chmod 0755 "$PKG_TMP"

it_logs() {
	[ ! -s "$PKG_TMP/out" ] || sed 's/^/    | /' "$PKG_TMP/out" | tail -n 40
	systemctl --no-pager --lines=0 status 'hermes-sandbox-*' 2>&1 | grep -E '●|×|○|Active:' || true
	journalctl --no-pager -q -n 25 -o cat -u 'hermes-sandbox-*' || true
}

pkg_exit() {
	local rc=$?
	trap - EXIT
	if [ $rc -eq 0 ] && [ "$it_failed" -gt 0 ]; then
		rc=1
	elif [ $rc -ne 0 ] && [ $rc -ne 77 ]; then
		it_logs
	fi
	rm -rf "$PKG_TMP"
	exit $rc
}
trap pkg_exit EXIT

# apt_ ARGUMENT…: without questions, its output in OUT and in a file. Its status is apt's.
apt_() {
	local rc=0
	apt-get -y -q -o Dpkg::Use-Pty=0 "$@" >"$PKG_TMP/out" 2>&1 </dev/null || rc=$?
	# shellcheck disable=SC2034 # for the scripts
	OUT=$(cat "$PKG_TMP/out")
	return $rc
}

pkg_install() { apt_ install --no-install-recommends --allow-downgrades --reinstall "$@" "$HST_DEB" || fail "apt does not install it"; }
pkg_remove() { apt_ remove "$PACKAGE" || fail "apt does not remove it"; }
pkg_purge() { apt_ purge "$PACKAGE" || fail "apt does not purge it"; }

pkg_status() { dpkg-query -W -f '${db:Status-Status}' "$PACKAGE" 2>/dev/null || echo not-installed; }

# pkg_purged: as if it had never been installed, but for the accounts.
pkg_purged() {
	[ "$(pkg_status)" = not-installed ] || pkg_purge
}

# The package of the tests under a lower version and with other words in a configuration file. Prints its name.
pkg_before() {
	local file=${HST_DEB%/*}/before.deb old=$PKG_TMP/before
	if [ ! -s "$file" ]; then
		dpkg-deb -R "$HST_DEB" "$old"
		sed -i 's/^Version: .*/&~before/' "$old/DEBIAN/control"
		echo "# the version before" >>"$old/etc/hermes-sandbox/sandbox.yaml"
		dpkg-deb --root-owner-group -b "$old" "$file" >/dev/null
		rm -r "$old"
	fi
	echo "$file"
}
# shellcheck disable=SC2031 # the other package, for one call
pkg_install_before() { HST_DEB=$(pkg_before) pkg_install; }

engine_up() {
	engine_answers "$ENGINE_SOCKET" || systemctl start docker.service
	wait_for 60 engine_answers "$ENGINE_SOCKET" || fail "no engine answers: $(journalctl -q -n 5 -o cat -u docker)"
}

image_there() {
	engine_up
	image_present "$ENGINE_SOCKET" "$IMAGE" || image_import "$ENGINE_SOCKET" "$IMAGE" "$(image_archive bookworm)"
}

# Two callers: one in the group, which the package has made, and one outside of it.
callers() {
	local user
	for user in "$CALLER" "$STRANGER"; do
		getent passwd "$user" >/dev/null || useradd --system --user-group --home-dir /nonexistent --shell /bin/sh "$user"
	done
	accounts_member "$CALLER" hermes-sandbox
}

# pkg_ready: installed, with an image, a caller and a warm sandbox.
pkg_ready() {
	image_there
	[ "$(pkg_status)" = installed ] || pkg_install
	callers
	wait_for 60 warm || fail "no sandbox is warm after 60 s: $(hermes-sandbox status 2>&1)"
}

warm() {
	[ "$(hermes-sandbox status --json 2>/dev/null |
		jq '[.pools[] | select(.profile == "default") | .warm] | add // 0')" -ge 1 ] 2>/dev/null
}

hs() { as "$CALLER" hermes-sandbox "$@"; }
docker_() { docker -H "unix://$ENGINE_SOCKET" "$@"; }
sandboxes() { docker_ ps -aq; }
no_sandboxes() { [ -z "$(sandboxes)" ]; }

# gateway_up [OPTION…]: the ssh gateway is enabled and takes this script's key, added with these options.
gateway_up() {
	[ -x /usr/sbin/sshd ] || fail "openssh-server is not here"
	[ -e "$PKG_TMP/key" ] || ssh-keygen -q -t ed25519 -N '' -C pkg -f "$PKG_TMP/key"
	hermes-sandbox ssh enable --listen "127.0.0.1:$GATEWAY_PORT" >"$PKG_TMP/out" 2>&1 || fail "it cannot be enabled"
	hermes-sandbox ssh add-key "$@" "$PKG_TMP/key.pub" >"$PKG_TMP/out" 2>&1 || fail "it takes no key"
}
# gateway ARGUMENT…: a command there.
gateway() {
	ssh -F none -i "$PKG_TMP/key" -o Port="$GATEWAY_PORT" -o BatchMode=yes -o IdentitiesOnly=yes -o IdentityAgent=none \
		-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile="$PKG_TMP/known" -o ConnectTimeout=10 \
		-o LogLevel=ERROR -o ControlPath="$PKG_TMP/master" hermes-ssh@127.0.0.1 "$@"
}

# Neither the gateway's sshd nor who was logged in, and nothing that would start it.
no_gateway() {
	# shellcheck disable=SC2317 # called by wait_for
	ended() { ! pgrep -u hermes-ssh >/dev/null && ! pgrep -f "^sshd: /usr/sbin/sshd -D -f $SSH/" >/dev/null; }
	wait_for 10 ended || fail "its sshd or a connection is left"
	! (exec 9<>/dev/tcp/127.0.0.1/"$GATEWAY_PORT") 2>/dev/null || fail "something listens at the gateway's port"
	expect_eq "" "$(find /etc/systemd/system -name 'hermes-sandbox-ssh*')"
}

# in_group USER GROUP: so says the group file.
in_group() { getent group "$2" | cut -d: -f4 | tr ',' '\n' | grep -qxF "$1"; }

# unit_property UNIT PROPERTY
unit_property() { systemctl show --value -p "$2" "$1"; }

# Whether the kernel's audit trail can be reached: not in a container of systemd-nspawn.
audited() { auditctl -s >/dev/null 2>&1; }
