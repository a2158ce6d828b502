#!/bin/bash
# Who may use the installed package, and who may not.
. "${0%/*}/../lib/pkg.sh"

pkg_ready

member() {
	# shellcheck disable=SC2016 # the shell in the sandbox expands it
	expect_eq "10000 /home/sandbox" "$(hs exec 'echo "$(id -u) $PWD"')"
	expect_rc 3 hs exec 'exit 3'
	expect_eq "exited 0 true" "$(hs exec --json true | jq -r '"\(.cause) \(.exit_code) \(.pool_hit)"')"
}
it_case "an unprivileged member of the group runs commands" member

stranger() {
	local rc=0
	as "$STRANGER" hermes-sandbox exec true >"$PKG_TMP/out" 2>&1 || rc=$?
	expect_eq 77 $rc
	expect_eq 1 "$(wc -l <"$PKG_TMP/out")"
	expect_match '^hermes-sandbox: .*hermes-sandbox' "$(cat "$PKG_TMP/out")"
}
it_case "anybody else is refused with 77 and one line" stranger

# The broker's unit hides /home from it, and lets it see what is mounted in a process of somebody else.
host_folder() {
	install -d -m 0755 /home/hermes
	install -d -m 0700 -o "$CALLER" /home/hermes/files
	echo outside >/home/hermes/files/word
	chmod 0644 /home/hermes/files/word
	hs session open files --mount /home/hermes/files:/work >/dev/null
	expect_eq outside "$(hs exec --session files 'cat /work/word; echo inside >/work/new')"
	expect_eq "$CALLER inside" "$(stat -c %U /home/hermes/files/new) $(cat /home/hermes/files/new)"
	hs session close files
	rm -r /home/hermes/files
}
it_case "a folder below allowed_file_paths in a session's sandbox" host_folder

no_engine() {
	local user
	for user in "$CALLER" "$STRANGER" _hermes-sandbox; do
		! as "$user" test -w "$ENGINE_SOCKET" || fail "$user may write to the engine's socket"
		! as "$user" test -w /run/hermes-sandbox-engine/engine.sock || [ "$user" = _hermes-sandbox ] ||
			fail "$user may write to the broker's socket"
	done
	as _hermes-engine test -w "$ENGINE_SOCKET" || fail "the broker may not write to the engine's socket"
}
it_case "neither callers nor the manager reach the engine" no_engine

helper_stranger() {
	local rc=0
	as "$STRANGER" "$HELPER" >"$PKG_TMP/out" 2>&1 || rc=$?
	expect_eq 126 $rc
	! runuser -u "$STRANGER" -- sudo -n "$HELPER" >"$PKG_TMP/out" 2>&1 || fail "sudo runs it for a stranger"
	! runuser -u "$CALLER" -- sudo -n "$HELPER" word >"$PKG_TMP/out" 2>&1 || fail "sudo runs it with an argument"
	! runuser -u "$CALLER" -- sudo -n /usr/bin/id >"$PKG_TMP/out" 2>&1 || fail "sudo runs anything else"
}
it_case "the helper is for members, without arguments, and sudo's rule for nothing else" helper_stranger

trail() {
	local mark=$RANDOM$RANDOM
	hs exec "echo $mark" >/dev/null
	# shellcheck disable=SC2317 # called by wait_for
	written() { grep -qF "cmd=\"echo $mark\"" /var/log/hermes-sandbox/sandbox-audit.log; }
	wait_for 5 written || fail "the command is not in the readable trail"
	! audited || ausearch -m USER_CMD -ua "$(id -u "$CALLER")" --raw </dev/null | grep . >/dev/null ||
		fail "ausearch -ua finds nothing of the caller"
}
it_case "the command is in the trail" trail
