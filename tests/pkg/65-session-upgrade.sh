#!/bin/bash
# A session that is at work when the package is upgraded is there afterwards, with the same processes, and one that is
# there when the package is removed is not.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/pkg.sh"

# The version before, of which the agent is another one as well. Prints its name.
before_with_agent() {
	local file=$PKG_TMP/agent.deb tree=$PKG_TMP/agent
	dpkg-deb -R "$(pkg_before)" "$tree"
	echo >>"$tree/usr/libexec/hermes-sandbox/agent"
	dpkg-deb --root-owner-group -b "$tree" "$file" >/dev/null
	rm -r "$tree"
	echo "$file"
}

# It appends a number each tenth of a second: a gap or a second 1 would show that it was stopped or begun anew.
COUNT='n=0; echo $$ $(cut -d" " -f22 /proc/$$/stat) >/tmp/$0.who; while n=$((n + 1)); do echo $n >>/tmp/$0; sleep 0.1; done'

# counters: of both jobs the pid, the time of its start, and the last number, if there is no gap before it.
counters() {
	hs exec --session work 'for f in job command; do
		[ "$(tail -n 1 /tmp/$f)" -eq "$(wc -l </tmp/$f)" ] || echo gap in $f >&2
		set -- $(cat /tmp/$f.who)
		[ "$(cut -d" " -f22 /proc/$1/stat)" = "$2" ] || echo $f is another process >&2
		echo $f $* $(tail -n 1 /tmp/$f)
	done' 2>&1
}
number_of() { awk -v f="$1" '$1 == f { print $4 }' <<<"$2"; }
container() { hs session list --json | jq -r '.[] | select(.session == "work") | .sandbox'; }

set_up() {
	pkg_purged
	image_there
	HST_DEB=$(before_with_agent) pkg_install
	callers
	wait_for 60 warm || fail "no sandbox is warm"
	expect_eq work "$(hs session open work)"
	hs exec --session work "setsid sh -c '$COUNT' job >/dev/null 2>&1 & echo begun" >"$PKG_TMP/out"
	ID=$(hs exec --session work --detach sh -c "$COUNT" command)
	# shellcheck disable=SC2317 # called by wait_for
	both_count() { [ "$(counters | awk '$4 >= 5' | wc -l)" -eq 2 ]; }
	wait_for 20 both_count || fail "the jobs do not count: $(counters)"
	echo "$ID" >"$PKG_TMP/id"
	counters >"$PKG_TMP/before"
	container >"$PKG_TMP/container"
	expect_match '^[0-9a-f]{64}$' "$(container)"
}
it_case "a session of the version before, with a background job and a detached command" set_up

survives() {
	local manager before after
	manager=$(unit_property hermes-sandbox-pool.service MainPID)
	pkg_install
	expect_eq "$(dpkg-deb -f "$HST_DEB" Version)" "$(dpkg-query -W -f '${Version}' "$PACKAGE")"
	[ "$(unit_property hermes-sandbox-pool.service MainPID)" != "$manager" ] || fail "the manager is the old one"
	before=$(cat "$PKG_TMP/before") after=$(counters)
	expect_eq "$(cut -d' ' -f1-3 <<<"$before")" "$(cut -d' ' -f1-3 <<<"$after")"
	for job in job command; do
		[ "$(number_of $job "$after")" -gt "$(number_of $job "$before")" ] || fail "$job stands still: $after"
	done
	expect_eq "$(cat "$PKG_TMP/container")" "$(container)"
	expect_eq "$(cat "$PKG_TMP/id")" "$(hs ps --json | jq -r '.[] | select(.state == "running") | .exec')"
	echo "$after"
}
it_case "an upgrade leaves it, its files and both processes as they were" survives

goes_on() {
	local id rc=0
	id=$(cat "$PKG_TMP/id")
	expect_eq hello "$(hs exec --session work 'echo hello')"
	hs kill "$id"
	hs wait "$id" >"$PKG_TMP/out" 2>&1 || rc=$?
	expect_match '^(137|143)$' "$rc"
	wait_for 60 warm || fail "no sandbox of the new version is warm"
	expect_eq hello "$(hs exec 'echo hello')"
	hs session close work
	expect_eq "[]" "$(hs session list --json | jq -c .)"
	# The engine takes its time after the answer.
	# shellcheck disable=SC2317 # called by wait_for
	removed() { ! docker_ ps -aq --no-trunc | grep -xF "$(cat "$PKG_TMP/container")" >/dev/null; }
	wait_for 20 removed || fail "its container is left"
}
it_case "the new programs serve it: exec, kill, wait and close" goes_on

removed() {
	expect_eq last "$(hs session open last)"
	hs exec --session last --detach sleep 1000000 >"$PKG_TMP/out"
	pkg_remove
	wait_for 20 no_sandboxes || fail "these containers are left: $(docker_ ps -a)"
	! pgrep -u _hermes-engine,_hermes-sandbox >"$PKG_TMP/out" || fail "a process is left"
	expect_eq "" "$(find /var/lib/hermes-sandbox/sessions -type f)"
	grep -q 'SESSION-CLOSE .*last' /var/log/hermes-sandbox/sandbox-audit.log || fail "its end is not recorded"
}
it_case "a removal closes a session, records it, and leaves neither container nor process" removed

came_back() {
	pkg_install
	wait_for 60 warm || fail "no sandbox is warm"
	expect_eq "[]" "$(hs session list --json | jq -c .)"
}
it_case "an installation after it knows nothing of it" came_back
