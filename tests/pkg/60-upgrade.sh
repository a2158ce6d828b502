#!/bin/bash
# An upgrade keeps what the administrator changed, gives back nothing that he took, and loses no command.
. "${0%/*}/../lib/pkg.sh"

YAML=/etc/hermes-sandbox/sandbox.yaml

# from_before: the version before, as its installation leaves it, with a warm sandbox.
from_before() {
	pkg_purged
	image_there
	pkg_install_before
	callers
	wait_for 60 warm || fail "no sandbox is warm"
}

commands() {
	local i pids=() pid
	# Longer than apt takes to the hand-over, shorter than that and the 30 s of the drain.
	hs exec 'sleep 15; echo through' >"$PKG_TMP/through" 2>&1 &
	pid=$!
	sleep 0.5
	# One caller after the other, from before the upgrade to after it.
	(
		for ((i = 0; ; i++)); do
			[ ! -e "$PKG_TMP/enough" ] || break
			expect_eq "$i" "$(hs exec "echo $i")"
		done
		echo "$i" >"$PKG_TMP/calls"
	) >"$PKG_TMP/callers" 2>&1 &
	pids+=($!)
	pkg_install
	touch "$PKG_TMP/enough"
	wait "${pids[0]}" || fail "a caller fails during the upgrade: $(cat "$PKG_TMP/callers")"
	wait $pid || fail "a command that ran is lost: $(cat "$PKG_TMP/through")"
	expect_eq through "$(cat "$PKG_TMP/through")"
	echo "# $(cat "$PKG_TMP/calls") calls during the upgrade"
	wait_for 30 warm || fail "no sandbox is warm after it"
}
from_before
it_case "a command that runs goes through, and callers wait instead of failing" commands

untouched() {
	expect_eq "$(dpkg-deb -f "$HST_DEB" Version)" "$(dpkg-query -W -f '${Version}' "$PACKAGE")"
	! grep -q "the version before" $YAML || fail "the old file stays, which nobody had changed"
	expect_eq "active active active active" "$(systemctl is-active "${UNITS[@]}" | paste -sd' ')"
	expect_eq "$(stat -c %i /usr/libexec/hermes-sandbox/hermes-sandboxd)" \
		"$(stat -Lc %i "/proc/$(unit_property hermes-sandbox-pool.service MainPID)/exe")"
	expect_eq "$(stat -c %i /usr/libexec/hermes-sandbox/hermes-engined)" \
		"$(stat -Lc %i "/proc/$(unit_property hermes-sandbox-engine.service MainPID)/exe")"
}
it_case "a file that nobody changed is the new one, and the new programs run" untouched

asked() {
	from_before
	echo "# mine" >>$YAML
	printf 'pool:\n  size: 1\n' >"$DROPINS/60-mine.yaml"
	! apt_ install --no-install-recommends "$HST_DEB" || fail "dpkg does not ask"
	grep -q "onfiguration file '$YAML'" <<<"$OUT" || fail "dpkg does not ask about it"
	dpkg --force-confold --configure "$PACKAGE" >"$PKG_TMP/out" 2>&1
	grep -qx "# mine" $YAML || fail "what the administrator changed is gone"
	expect_eq 1 "$(hermes-sandbox config show | sed -n 's/^  size: //p')"
	[ -e $YAML.dpkg-dist ] || fail "dpkg did not leave the new version beside it"
	rm -f $YAML.dpkg-dist "$DROPINS/60-mine.yaml"
}
it_case "dpkg asks about a file that the administrator changed, and keeps it" asked

# dpkg runs no prerm then.
broken_off() {
	from_before
	gateway_up
	echo "# mine" >>$YAML
	! apt_ install --no-install-recommends "$HST_DEB" || fail "dpkg does not ask"
	expect_eq unpacked "$(pkg_status)"
	pkg_purge
	! pgrep -u _hermes-engine,_hermes-sandbox >"$PKG_TMP/out" || fail "a process is left"
	no_gateway
	wait_for 45 no_sandboxes || fail "these containers are left: $(docker_ ps -a)"
}
it_case "an upgrade that was broken off can be purged, and nothing runs on" broken_off

taken() {
	from_before
	gpasswd -d _hermes-engine docker >/dev/null
	dpkg-statoverride --remove "$HELPER"
	dpkg-statoverride --update --add root root 0755 "$HELPER"
	rm "$SUDOERS"
	gpasswd -d hermes hermes-sandbox >/dev/null 2>&1 || true
	pkg_install
	! in_group _hermes-engine docker || fail "the membership is back"
	! in_group hermes hermes-sandbox || fail "hermes may use it again"
	expect_eq "755 root:root" "$(stat -c '%a %U:%G' "$HELPER")"
	[ ! -e "$SUDOERS" ] || fail "sudo's rule is back"
}
it_case "it gives back neither membership, mode nor sudo's rule" taken

changed() {
	from_before
	echo "# mine" >>"$SUDOERS"
	pkg_install
	grep -qx "# mine" "$SUDOERS" || fail "what the administrator changed is gone"
	expect_eq "$SUDOERS" "$(echo "$SUDOERS"*)"
}
it_case "it keeps a rule of sudo's that the administrator changed" changed

invalid() {
	pkg_purged
	HST_DEB=$(with_bad_rule) pkg_install
	expect_eq installed "$(pkg_status)"
	expect_eq "$SUDOERS*" "$(echo "$SUDOERS"*)"
	expect_eq 1 "$(grep -c 'run: visudo -cf' <<<"$OUT")"
	pkg_install
	cmp "$SUDOERS" /usr/share/hermes-sandbox/hermes-docker.sudoers
}
# The same package with a rule that no sudo takes.
with_bad_rule() {
	dpkg-deb -R "$HST_DEB" "$PKG_TMP/bad"
	echo "%hermes-sandbox ALL=(" >>"$PKG_TMP/bad/usr/share/hermes-sandbox/hermes-docker.sudoers"
	dpkg-deb --root-owner-group -b "$PKG_TMP/bad" "$PKG_TMP/bad.deb" >/dev/null
	echo "$PKG_TMP/bad.deb"
}
it_case "a rule that visudo refuses is never sudo's, and the next version's is" invalid
