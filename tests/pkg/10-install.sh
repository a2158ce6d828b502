#!/bin/bash
# apt install on a machine that never had it: what is there, with which rights, and what it says.
# shellcheck disable=SC2119 # no options for pkg_install
. "${0%/*}/../lib/pkg.sh"

pkg_purged
engine_up
docker_ rmi "$IMAGE" >/dev/null 2>&1 || true
getent passwd hermes >/dev/null || useradd --system --user-group --home-dir /nonexistent hermes
gpasswd -d hermes hermes-sandbox >/dev/null 2>&1 || true
rm -rf "$STATE"

install_says() {
	pkg_install
	expect_eq installed "$(pkg_status)"
	expect_eq 1 "$(grep -c "docker pull $IMAGE" <<<"$OUT")"
	expect_eq 1 "$(grep -c 'usermod -aG hermes-sandbox USER' <<<"$OUT")"
	if audited; then
		! grep -q '^hermes-sandbox: .*audit' <<<"$OUT" || fail "it complains about auditd, which runs"
	else
		expect_eq 1 "$(grep -c '^hermes-sandbox: auditd does not run; .*augenrules --load' <<<"$OUT")"
	fi
}
it_case "apt installs it, and it says once each what is missing and what to run" install_says

accounts() {
	local user
	for user in _hermes-engine _hermes-sandbox; do
		expect_match "^$user:[^:]*:[0-9]+:[0-9]+:[^:]*:/nonexistent:/usr/sbin/nologin$" "$(getent passwd "$user")"
		expect_match '^[!*]' "$(getent shadow "$user" | cut -d: -f2)"
		expect_eq "" "$(getent shadow "$user" | cut -d: -f8)"
	done
	in_group _hermes-engine docker || fail "_hermes-engine is not in group docker"
	expect_eq _hermes-sandbox "$(id -nG _hermes-sandbox)"
	in_group hermes hermes-sandbox || fail "hermes is not in group hermes-sandbox"
}
it_case "two locked accounts, one of them in group docker, and hermes may use it" accounts

# The account that keys log in to has a shell, for the one program that sshd runs, and no password.
gateway_account() {
	local unit=hermes-sandbox-ssh.service
	expect_match '^hermes-ssh:[^:]*:[0-9]+:[0-9]+:[^:]*:/var/lib/hermes-sandbox-ssh:/usr/libexec/hermes-sandbox/hermes-sandbox-ssh-gateway$' "$(getent passwd hermes-ssh)"
	expect_match '^[!*]' "$(getent shadow hermes-ssh | cut -d: -f2)"
	expect_eq "" "$(getent shadow hermes-ssh | cut -d: -f8)"
	expect_eq "hermes-ssh hermes-sandbox" "$(id -nG hermes-ssh)"
	expect_eq "755 root:root" "$(stat -c '%a %U:%G' /var/lib/hermes-sandbox-ssh)"
	expect_eq "" "$(ls -A /var/lib/hermes-sandbox-ssh)"
	expect_eq "disabled inactive" "$(systemctl is-enabled $unit) $(systemctl is-active $unit)"
	[ ! -e /etc/hermes-sandbox/ssh ] || fail "there is a folder for keys"
}
it_case "the ssh gateway's account is locked, in one group more than its own, and nothing listens" gateway_account

modes() {
	expect_eq "4750 root:hermes-sandbox" "$(stat -c '%a %U:%G' "$HELPER")"
	expect_eq "root hermes-sandbox 4750 $HELPER" "$(dpkg-statoverride --list "$HELPER")"
	expect_eq "$HELPER" "$(dpkg -L "$PACKAGE" | while read -r f; do [ ! -f "$f" ] || find "$f" -perm /6000; done)"
	expect_eq "" "$(dpkg -L "$PACKAGE" | while read -r f; do [ -L "$f" ] || find "$f" -maxdepth 0 \( -perm /022 -o ! -user root \); done)"
}
it_case "one setuid program, for the group alone; nothing that others than root may write" modes

sudo_rule() {
	expect_eq "440 root:root" "$(stat -c '%a %U:%G' "$SUDOERS")"
	cmp "$SUDOERS" /usr/share/hermes-sandbox/hermes-docker.sudoers
	expect_eq "$SUDOERS" "$(echo "$SUDOERS"*)"
	visudo -c >"$PKG_TMP/out" 2>&1 || fail "visudo complains"
}
it_case "sudo's rule is in place as shipped, and sudo accepts all of it" sudo_rule

units() {
	local unit
	for unit in hermes-sandbox-pool.socket hermes-sandbox-engine.socket hermes-sandbox-pool.service; do
		expect_eq "$unit enabled active" "$unit $(systemctl is-enabled "$unit") $(systemctl is-active "$unit")"
	done
	expect_eq active "$(systemctl is-active hermes-sandbox-engine.service)"
}
it_case "its units are enabled and run" units

first_command() {
	image_there
	callers
	systemctl restart hermes-sandbox-pool.service
	wait_for 60 warm || fail "no sandbox is warm"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "once there is an image a command runs" first_command

again() {
	local before
	before=$(getent passwd && getent group && stat -c '%a %U:%G %Y' "$SUDOERS")
	/var/lib/dpkg/info/hermes-sandbox.postinst configure 0 >"$PKG_TMP/out" 2>&1
	expect_eq "$before" "$(getent passwd && getent group && stat -c '%a %U:%G %Y' "$SUDOERS")"
	! grep -q "docker pull" "$PKG_TMP/out" || fail "it says that there is no image"
}
it_case "postinst once more changes nothing" again
