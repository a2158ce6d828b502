#!/bin/bash
# remove ends all and takes every permission away; an installation after it brings them back as they were; purge
# leaves nothing but the accounts.
. "${0%/*}/../lib/pkg.sh"

# everything: files of the system with owner, mode and, below /etc, content; less what any installation of any package
# changes, and the accounts.
everything() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/tmp -o -path /srv -o -path /opt \
		-o -path /var/lib/docker -o -path /var/lib/containerd -o -path /var/log/journal -o -path /var/cache \
		-o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /run/systemd -o -path /run/udev \
		-o -path /run/docker -o -path /run/containerd \) -prune -o \
		-printf '%p %y %m %u:%g\n' | grep -vE '^/(results|etc/(passwd|group|shadow|gshadow|subuid|subgid)-?|etc/\.pwd\.lock|var/log/[^ ]*|var/lib/systemd/[a-z-]*|run/[^ ]*) [fd] '
	find /etc -xdev -type f ! -path /etc/passwd ! -path /etc/group ! -path /etc/shadow ! -path /etc/gshadow ! -name '*-' \
		! -path /etc/audit/audit.rules.prev -exec sha256sum {} +
	find /run /var/log /var/lib/dpkg /var/cache /etc/systemd /var/lib/systemd -name '*hermes*' ! -path '*/.pkg-*' ! -path /var/cache/hermes-sandbox-tests
	dpkg-statoverride --list
	{ systemctl list-unit-files --no-legend '*hermes*' && systemctl list-units --all --no-legend '*hermes*'; } |
		sed '/hermes-sandbox-tests/d'
	! audited || auditctl -l
	grep -vE '^(_hermes-|hermes-sandbox:|hermes-ssh:|docker:)' /etc/passwd /etc/group /etc/shadow /etc/gshadow
	getent group docker
}

pkg_purged
engine_up
callers_first() {
	getent group hermes-sandbox >/dev/null || groupadd --system hermes-sandbox
	callers
}
callers_first
systemctl reset-failed
everything | sort >"$PKG_TMP/before"
pkg_ready
gateway_up

removed() {
	[ -n "$(sandboxes)" ] || fail "there is no sandbox to begin with"
	pkg_remove
	expect_eq config-files "$(pkg_status)"
	wait_for 45 no_sandboxes || fail "these containers are left: $(docker_ ps -a)"
	! pgrep -u _hermes-engine,_hermes-sandbox >"$PKG_TMP/out" || fail "a process is left"
	! in_group _hermes-engine docker || fail "the membership is left"
	[ ! -e "$SUDOERS" ] || fail "sudo's rule is left"
	! runuser -u "$CALLER" -- sudo -n "$HELPER" >"$PKG_TMP/out" 2>&1 || fail "sudo still runs something"
	[ ! -e "$RULES" ] || fail "the audit rules are left"
	! audited || ! auditctl -l | grep -q hermes- || fail "audit rules are in force: $(auditctl -l)"
	[ -e /etc/hermes-sandbox/sandbox.yaml ] || fail "the config is gone, which only a purge may do"
	no_gateway
	[ -s "$SSH/authorized_keys" ] || fail "its keys are gone, which only a purge may do"
	[ -s "$SSH/ssh_host_ed25519_key" ] || fail "its host key is gone, which only a purge may do"
	visudo -c >"$PKG_TMP/out" 2>&1 || fail "visudo complains"
}
it_case "remove ends the sandboxes and takes away every permission" removed

back() {
	pkg_install
	in_group _hermes-engine docker || fail "the membership is not back"
	cmp "$SUDOERS" /usr/share/hermes-sandbox/hermes-docker.sudoers
	expect_eq "4750 root:hermes-sandbox" "$(stat -c '%a %U:%G' "$HELPER")"
	expect_eq "$SUDOERS $RULES" "$(echo "$SUDOERS"* "$RULES"*)"
	wait_for 60 warm || fail "no sandbox is warm"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "an installation after it brings all of it back" back

as_they_were() {
	gpasswd -d _hermes-engine docker >/dev/null
	echo "# mine" >>"$SUDOERS"
	echo "# mine" >>"$RULES"
	pkg_remove
	pkg_install -o Dpkg::Options::=--force-confold
	! in_group _hermes-engine docker || fail "the membership is back, which the administrator took"
	grep -qx "# mine" "$SUDOERS" || fail "sudo's rule is not as it was"
	grep -qx "# mine" "$RULES" || fail "the audit rules are not as they were"
	rm "$SUDOERS"
	pkg_remove
	pkg_install
	[ ! -e "$SUDOERS" ] || fail "sudo's rule is back, which the administrator took"
}
it_case "and brings nothing back that was not there" as_they_were

purged() {
	local user
	"$HELPER"
	gateway_up
	pkg_purge
	no_gateway
	expect_eq not-installed "$(pkg_status)"
	wait_for 45 no_sandboxes || fail "these containers are left: $(docker_ ps -a)"
	systemctl reset-failed
	everything | sort >"$PKG_TMP/after"
	diff "$PKG_TMP/before" "$PKG_TMP/after" || fail "the system is not as it was before"
	for user in _hermes-engine _hermes-sandbox hermes-ssh; do
		expect_eq "1" "$(getent shadow "$user" | cut -d: -f8)"
		expect_match '^[!*]' "$(getent shadow "$user" | cut -d: -f2)"
	done
}
it_case "purge leaves nothing but the accounts, locked" purged

after_purge() {
	pkg_install
	wait_for 60 warm || fail "no sandbox is warm"
	expect_eq " " "$(getent shadow _hermes-engine | cut -d: -f8) $(getent shadow hermes-ssh | cut -d: -f8)"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "an installation after a purge is a first one" after_purge

from_removed() {
	pkg_remove
	pkg_purge
	systemctl reset-failed
	everything | sort >"$PKG_TMP/after"
	diff "$PKG_TMP/before" "$PKG_TMP/after" || fail "the system is not as it was before"
}
it_case "a purge after a remove leaves nothing either" from_removed
