#!/bin/bash
# What the kernel and its trail know of the installed package: AppArmor's profile, the audit rules, the review. Where the
# machine has neither (a container of systemd-nspawn), each says so and hinders nothing.
. "${0%/*}/../lib/pkg.sh"

pkg_ready

APPARMOR=/sys/kernel/security/apparmor/profiles

confined() {
	if [ ! -r "$APPARMOR" ]; then
		[ -f /etc/apparmor.d/hermes-docker-enable ] || fail "the profile is not installed"
		return 0
	fi
	grep -qx 'hermes-docker-enable (enforce)' "$APPARMOR" || fail "the profile is not in force"
	gpasswd -d _hermes-engine docker >/dev/null
	runuser -u "$CALLER" -- "$HELPER" >"$PKG_TMP/out" 2>&1 || fail "the helper fails under its profile"
	in_group _hermes-engine docker || fail "the group has no new member"
	! journalctl -q -k -o cat --since -1min | grep 'apparmor="DENIED".*hermes-docker-enable' >"$PKG_TMP/out" ||
		fail "AppArmor denied something"
}
it_case "the helper does its work under AppArmor's profile, in enforce mode, and nothing is denied" confined

# by_key KEY WORDS: an event under this key whose records hold these words.
by_key() { ausearch --raw -k "$1" </dev/null 2>/dev/null | grep -F "$2" >"$PKG_TMP/found"; }

rules() {
	if ! audited; then
		[ -f "$RULES" ] || fail "the rules are not installed"
		return 0
	fi
	local key
	for key in hermes-helper hermes-config hermes-docker-sock; do
		auditctl -l | grep "key=$key" >/dev/null || auditctl -l | grep -- "-k $key" >/dev/null || fail "no rule of key $key is loaded"
	done
	runuser -u "$CALLER" -- "$HELPER" >"$PKG_TMP/out" 2>&1
	wait_for 10 by_key hermes-helper "uid=$(id -u "$CALLER")" || fail "the helper's execution is not recorded"
	! as "$STRANGER" docker -H "unix://$ENGINE_SOCKET" version >"$PKG_TMP/out" 2>&1 || fail "a stranger reaches the engine"
	wait_for 10 by_key hermes-docker-sock "uid=$(id -u "$STRANGER")" || fail "a stranger's connect is not recorded"
	touch "$DROPINS/60-test.yaml"
	rm "$DROPINS/60-test.yaml"
	wait_for 10 by_key hermes-config uid=0 || fail "a write to the configuration is not recorded"
}
it_case "audit rules: the helper's execution, a stranger's connect to the engine, a write to the configuration" rules

helper_record() {
	audited || return 0
	ausearch --raw -m GRP_MGMT -ua "$(id -u "$CALLER")" </dev/null | grep 'op=docker-enable .*res=success' >/dev/null ||
		fail "no record of the helper names its caller: $(ausearch --raw -m GRP_MGMT </dev/null | tail -n 3)"
	hermes-sandbox audit --user "$CALLER" >"$PKG_TMP/out"
	grep 'success.*docker-enable _hermes-engine in group docker' "$PKG_TMP/out" >/dev/null || fail "the review does not show it"
}
it_case "each use of the helper is a group-management record of its caller" helper_record

review() {
	local mark=$RANDOM$RANDOM admin=hstest-admin rc=0
	getent passwd $admin >/dev/null || useradd --system --user-group --groups adm --home-dir /nonexistent $admin
	hs exec "echo $mark; exit 3" >/dev/null || true
	as $admin hermes-sandbox audit --user "$CALLER" >"$PKG_TMP/out" 2>"$PKG_TMP/err" || rc=$?
	if audited; then
		expect_eq 0 $rc
		grep -F "echo $mark" "$PKG_TMP/out" >/dev/null || fail "the review does not show the command"
		as $admin hermes-sandbox audit --verify >"$PKG_TMP/out" 2>&1 || fail "--verify has findings"
	else
		expect_eq "69 1" "$rc $(wc -l <"$PKG_TMP/err")"
		as $admin hermes-sandbox audit --verify >"$PKG_TMP/out" 2>&1 || fail "--verify has findings"
		grep 'consistency only' "$PKG_TMP/out" >/dev/null || fail "--verify does not say what it is worth"
	fi
	rc=0
	as "$STRANGER" hermes-sandbox audit >"$PKG_TMP/out" 2>&1 || rc=$?
	if audited; then expect_eq "77 1" "$rc $(wc -l <"$PKG_TMP/out")"; else expect_rc 0 [ $rc -ne 0 ]; fi
}
it_case "a member of adm reviews and verifies the trails, a stranger may not" review
