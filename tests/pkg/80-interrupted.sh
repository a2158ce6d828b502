#!/bin/bash
# The maintainer scripts are killed before each of their commands, one after the other, and then run again as dpkg
# would: in the end all is as if nothing had happened.
. "${0%/*}/../lib/pkg.sh"

SCRIPTS=/var/lib/dpkg/info/hermes-sandbox
# Where it stands what the scripts write.
PLACES=(etc/passwd etc/group etc/shadow etc/gshadow etc/sudoers.d etc/audit etc/apparmor.d etc/hermes-sandbox
	etc/systemd/system var/lib/dpkg/statoverride var/lib/systemd var/lib/hermes-sandbox-package
	var/lib/hermes-sandbox var/lib/hermes-sandbox-engine var/lib/hermes-sandbox-ssh var/log/hermes-sandbox usr/sbin/hermes-docker-enable)

places() {
	local p
	for p in "${PLACES[@]}"; do [ ! -e "/$p" ] || echo "$p"; done
}
save() { places | tar -C / -cpf "$1" -T - 2>/dev/null; }
restore() {
	local p
	for p in "${PLACES[@]}"; do rm -rf "/${p:?}"; done
	tar -C / -xpf "$1"
}
# What systemd writes by itself below /var/lib/systemd is none of ours.
state() {
	local found
	mapfile -t found < <(places | sed 's|^|/|')
	find "${found[@]}" ! -path '/var/lib/systemd/[^d]*' -printf '%p %y %m %u:%g %l\n' | sort
	find "${found[@]}" ! -path '/var/lib/systemd/[^d]*' -type f -exec sha256sum {} + | sort
}

# killed_at N SCRIPT ARGUMENT…: runs it, killed with SIGKILL before its Nth command. 0: it ended before that.
# Functions and subshells count too; a subshell dies by itself, and takes the script along.
killed_at() {
	local n=$1
	shift
	# shellcheck disable=SC2016 # the inner shell expands it
	bash -c 'at=$1 n=0; shift
		before() { n=$((n + 1)); [ "$n" -lt "$at" ] || { kill -KILL $$; kill -KILL "$BASHPID"; }; }
		set -T; trap before DEBUG
		. "$@"' - "$n" "$@" >"$PKG_TMP/killed" 2>&1 </dev/null
}

# survives SCRIPT ARGUMENT…: from the state as it is now. The parts that debhelper generates are its own.
survives() {
	local n=0 reached script=$PKG_TMP/${1##*.}
	sed '/^# Automatically added by/,/^# End automatically added section/d' "$1" >"$script"
	chmod 0755 "$script"
	shift
	set -- "$script" "$@"
	save "$PKG_TMP/from.tar"
	"$@" >"$PKG_TMP/out" 2>&1 || fail "it fails uninterrupted"
	state >"$PKG_TMP/whole"
	for ((n = 1; ; n++)); do
		restore "$PKG_TMP/from.tar"
		reached=0
		killed_at "$n" "$@" && reached=1
		[ $reached -eq 1 ] || "$@" >"$PKG_TMP/out" 2>&1 || fail "it fails after it was killed before command $n"
		state >"$PKG_TMP/twice"
		diff "$PKG_TMP/whole" "$PKG_TMP/twice" || fail "killed before command $n, the state differs"
		[ $reached -eq 0 ] || break
	done
	[ $n -gt 20 ] || fail "only $n commands: nothing was interrupted"
	echo "# interrupted before each of $((n - 1)) commands"
}

pkg_purged
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 0755 /usr/sbin/policy-rc.d
rm -rf "$STATE"
gpasswd -d _hermes-engine docker >/dev/null 2>&1 || true
dpkg --unpack "$HST_DEB" >"$PKG_TMP/out" 2>&1
# dpkg would put them in place before postinst.
for file in $(dpkg-deb --ctrl-tarfile "$HST_DEB" | tar -xO ./conffiles); do
	[ ! -e "$file.dpkg-new" ] || mv "$file.dpkg-new" "$file"
done
export DPKG_MAINTSCRIPT_PACKAGE=hermes-sandbox DPKG_MAINTSCRIPT_NAME=postinst
it_case "postinst of a first installation" survives $SCRIPTS.postinst configure ""
dpkg --configure "$PACKAGE" >"$PKG_TMP/out" 2>&1
echo "# an older one" >"$STATE/hermes-docker.sudoers"
cp "$STATE/hermes-docker.sudoers" "$SUDOERS"
it_case "postinst of an upgrade, with a new rule of sudo's" survives $SCRIPTS.postinst configure 0
export DPKG_MAINTSCRIPT_NAME=postrm
it_case "postrm of a remove" survives $SCRIPTS.postrm remove
$SCRIPTS.postrm remove
it_case "postrm of a purge" survives $SCRIPTS.postrm purge
pkg_purge
rm -f /usr/sbin/policy-rc.d
