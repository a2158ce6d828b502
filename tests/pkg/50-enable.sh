#!/bin/bash
# The membership in group docker: taken away, and given back by a member of the group with one command.
. "${0%/*}/../lib/pkg.sh"

pkg_ready

no_warm() { ! warm; }
not_enabled() { hermes-sandbox status 2>&1 | grep -qF 'not enabled: run sudo hermes-docker-enable'; }

taken() {
	gpasswd -d _hermes-engine docker >/dev/null
	systemctl restart hermes-sandbox-engine.service
	wait_for 15 not_enabled || fail "status does not say so: $(hermes-sandbox status 2>&1)"
	journalctl -q -o cat -u hermes-sandbox-engine -n 20 | grep -qF 'run sudo hermes-docker-enable' ||
		fail "the broker's log does not say so"
}
it_case "without it status and the broker's log say what to run" taken

given() {
	local begin=$SECONDS
	# shellcheck disable=SC2046 # one word an id
	docker_ rm -f $(sandboxes) >/dev/null
	wait_for 10 no_warm || fail "the pool is still warm"
	runuser -u "$CALLER" -- sudo -n hermes-docker-enable >"$PKG_TMP/out" 2>&1 || fail "the helper fails"
	in_group _hermes-engine docker || fail "the group has no new member"
	wait_for 10 warm || fail "no sandbox is warm after 10 s: $(hermes-sandbox status 2>&1)"
	echo "# warm after $((SECONDS - begin)) s"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "a member runs it by sudo, and within ten seconds the pool is warm with no other step" given

directly() {
	gpasswd -d _hermes-engine docker >/dev/null
	runuser -u "$CALLER" -- "$HELPER" >"$PKG_TMP/out" 2>&1 || fail "the helper fails"
	in_group _hermes-engine docker || fail "the group has no new member"
	expect_eq "_hermes-engine" "$(getent group docker | cut -d: -f4)"
}
it_case "or directly, as it is setuid" directly

revoked() {
	gpasswd -d _hermes-engine docker >/dev/null
	dpkg-statoverride --remove "$HELPER"
	dpkg-statoverride --update --add root root 0755 "$HELPER"
	! runuser -u "$CALLER" -- "$HELPER" >"$PKG_TMP/out" 2>&1 || fail "it works without the setuid bit"
	! in_group _hermes-engine docker || fail "the group has a new member"
	runuser -u "$CALLER" -- sudo -n "$HELPER" >"$PKG_TMP/out" 2>&1 || fail "sudo does not run it"
	in_group _hermes-engine docker || fail "the group has no new member"
	dpkg-statoverride --remove "$HELPER"
	dpkg-statoverride --update --add root hermes-sandbox 4750 "$HELPER"
}
it_case "an administrator takes the bit away; the sudo road works without it" revoked
