#!/bin/bash
# The shipped audit rules (etc/audit) with a real auditd: the file itself, with other places and keys, so that rules
# of the machine are left alone. Who connects to the engine, executes the helper or changes the configuration is
# found by key, and what ausearch -ua finds for a caller.
. "${0%/*}/../lib/it.sh"

ROOT=$HST_DIR/root
RULES=$HST_DIR/audit.rules
KEYS=(helper docker-sock config other)

unload() {
	local key
	for key in "${KEYS[@]}"; do
		auditctl -D -k "hst-$key" >/dev/null
	done
}
# shellcheck disable=SC2317 # the trap calls it
rules_exit() {
	local rc=$?
	set +e
	unload
	(exit $rc)
	it_exit
}
trap rules_exit EXIT

[ "$(auditctl -s | awk '$1 == "enabled" { print $2 }')" -ne 2 ] || skip "the machine's audit rules are immutable until it boots"

sed -e '/^#/d' -e "s#/run/docker.sock#$HST_ENGINE#" -e "s#^-w /#-w $ROOT/#" \
	-e 's/\(key=\|-k \)hermes-/\1hst-/' "$TOP/etc/audit/50-hermes-sandbox.rules" >"$RULES"
! grep . "$RULES" | grep -vF -e "$ROOT/" -e "path=$HST_ENGINE " || fail "a rule is still about the machine's own files"

# watched: the files and folders of the key hermes-config.
watched() { sed -n '/hst-config/s/^-w \([^ ]*\).*/\1/p' "$RULES"; }

# events KEY: its events since mark, one a line with all its records.
events() {
	{ audit_records --raw -k "hst-$1" || true; } | awk -v mark="${MARK:-0}" '
		function flush() { if (event && event !~ /type=CONFIG_CHANGE/ && ++n > mark) print event; event = "" }
		match($0, /msg=audit\([^)]*\)/) {
			id = substr($0, RSTART, RLENGTH)
			if (id != last) flush()
			last = id
			event = event $0 " "
		}
		END { flush() }'
}
mark() {
	MARK=0
	MARK=$(events "$1" | wc -l)
}
# wait_found KEY REGEX: an event of that key since mark matches it.
wait_found() {
	# shellcheck disable=SC2317 # called by wait_for
	found() { events "$1" | grep -E "$2" >/dev/null; }
	wait_for 10 found "$@" || fail "no event of $1 matches $2: $(events "$1" | tail -n 3)"
}

# --- loading ---------------------------------------------------------------------------------------------

# What is left after the package is removed and before it is purged: the folders of others.
loads() {
	local path
	while read -r path; do
		install -d "${path%/*}"
		[ ! -e "$path" ] || fail "$path is there already"
	done < <(watched)
	auditctl -R "$RULES" >"$HST_DIR/load.out" 2>&1 || fail "$(cat "$HST_DIR/load.out")"
	expect_eq "$(wc -w < <(grep -o 'hst-[a-z-]*' "$RULES"))" "$(auditctl -l | grep -c 'hst-')"
	unload
	expect_eq 0 "$(auditctl -l | grep -c 'hst-' || true)"
}
it_case "the rules load where nothing of ours is left but the account" loads

places() {
	local path
	while read -r path; do
		case $path in */hermes-sandbox) [ "${path%/*}" = "$ROOT/usr/bin" ] || install -d "$path" ;; esac
		[ -d "$path" ] || echo old >"$path"
	done < <(watched)
	install -m 4750 -g hermes-sandbox /bin/true "$ROOT/usr/sbin/hermes-docker-enable"
	rm -r "$ROOT"/etc/systemd/system/*.d
	auditctl -R "$RULES" >"$HST_DIR/load.out" 2>&1 || fail "$(cat "$HST_DIR/load.out")"
}
it_case "and where all is there but the drop-ins of units" places

# --- who connects to the engine's socket -------------------------------------------------------------------

cc -O1 -Wall -Wextra -Werror -o "$HST_DIR/connects" "$TOP/tests/it/connects.c"

# none_of_the_engines: nothing that the engine's account did is recorded, up to an event that comes after it.
none_of_the_engines() {
	mark docker-sock
	"$HST_DIR/connects" connect "$HST_ENGINE"
	wait_found docker-sock 'success=yes .* uid=0 .*comm="connects"'
	expect_eq 0 "$(audit_records --raw -k hst-docker-sock -ue "$(id -u _hermes-engine)" | grep -c type=SYSCALL || true)"
}

stranger() {
	local uid
	uid=$(id -u "${STRANGER:?}")
	mark docker-sock
	expect_rc 1 as "$STRANGER" "$HST_DIR/connects" connect "$HST_ENGINE" 2>/dev/null
	wait_found docker-sock "success=no exit=-13 .* uid=$uid .* euid=$uid .*name=\"$HST_ENGINE\""
	expect_match "success=no" "$(audit_records --raw -k hst-docker-sock -ui "$uid")"
}
it_case "a stranger's connect to the engine is found, though it was refused" stranger

root() {
	mark docker-sock
	docker_ version >/dev/null
	wait_found docker-sock "success=(yes|no) .* auid=[0-9]+ uid=0 .* euid=0 .*comm=\"docker\""
}
it_case "so is root's" root

# way NAME: root's connect in that way is found. It ends with 77 where this machine has none.
way() {
	local rc=0
	mark docker-sock
	"$HST_DIR/connects" "$1" "$HST_ENGINE" || rc=$?
	[ $rc -ne 77 ] || return 0
	expect_eq 0 "$rc"
	wait_found docker-sock "success=yes .* uid=0 .*comm=\"connects\""
	setpriv --reuid=_hermes-engine --regid=_hermes-engine --init-groups "$HST_DIR/connects" "$1" "$HST_ENGINE"
	none_of_the_engines
}
for name in connect uring int80 socketcall; do
	it_case "by $name: anybody's but the engine account's" way $name
done

names() {
	mark docker-sock
	ln -s "$HST_ENGINE" "$HST_DIR/alias"
	ln "$HST_ENGINE" "${HST_ENGINE%/*}/hard"
	"$HST_DIR/connects" connect "$HST_DIR/alias"
	wait_found docker-sock "success=yes .*name=\"$HST_DIR/alias\""
	mark docker-sock
	"$HST_DIR/connects" connect "${HST_ENGINE%/*}/hard"
	rm "${HST_ENGINE%/*}/hard"
	wait_found docker-sock "success=yes .*name=\"${HST_ENGINE%/*}/hard\""
}
it_case "under another name, too" names

again() {
	local other=$HST_DIR/other.sock listener
	sed -n "s|$HST_ENGINE\\(.*\\)hst-docker-sock|$other\\1hst-other|p" "$RULES" >"$HST_DIR/other.rules"
	auditctl -R "$HST_DIR/other.rules" >/dev/null
	for _ in 1 2; do
		rm -f "$other"
		python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
time.sleep(60)' "$other" &
		listener=$!
		wait_for 10 test -S "$other"
		mark other
		wait_for 5 "$HST_DIR/connects" connect "$other" 2>/dev/null
		wait_found other "success=yes .*name=\"$other\""
		kill $listener
		wait $listener || true
	done
}
it_case "a socket that comes after the rules, and comes again, is watched" again

looks() {
	mark docker-sock
	ls -l "$HST_ENGINE" >/dev/null
	stat "$HST_ENGINE" >/dev/null
	"$HST_DIR/connects" connect "$HST_ENGINE"
	wait_found docker-sock 'comm="connects"'
	expect_eq 1 "$(events docker-sock | wc -l)"
}
it_case "who only looks at it is not" looks

broker() {
	it_start
	expect_eq hello "$(hs exec 'echo hello')"
	none_of_the_engines
	it_stop
}
it_case "the broker is not, while it makes sandboxes and runs" broker

# --- the helper --------------------------------------------------------------------------------------------

helper() {
	local path=$ROOT/usr/sbin/hermes-docker-enable
	mark helper
	as "$CALLER" "$path"
	wait_found helper "success=yes .* uid=$(id -u "$CALLER") .*name=\"$path\""
	mark helper
	expect_rc 126 as "$STRANGER" sh -c "$path" 2>/dev/null
	wait_found helper "success=no exit=-13 .* uid=$(id -u "$STRANGER") "
	mark helper
	cat "$path" >/dev/null
	install -m 0755 /bin/true "$path.new"
	mv "$path.new" "$path"
	"$path"
	wait_found helper "success=yes .* uid=0 .*name=\"$path\""
	expect_eq 1 "$(events helper | wc -l)"
}
it_case "who executes the helper is found, also one who may not, and also after it was replaced" helper

# --- the configuration -------------------------------------------------------------------------------------

# changed PATH: one that is written to, replaced, has its mode changed or is removed.
changed() {
	local path=$1 file=$1
	[ ! -d "$path" ] || file=$path/new
	mark config
	echo new >>"$file"
	wait_found config "success=yes .*name=\"$file\""
	mark config
	chmod 0600 "$file"
	wait_found config 'success=yes .*comm="chmod"'
	mark config
	echo newer >"$HST_DIR/newer"
	mv "$HST_DIR/newer" "$file"
	wait_found config 'success=yes .*comm="mv"'
	mark config
	rm "$file"
	wait_found config 'success=yes .*comm="rm"'
}
each() {
	local path
	while read -r path; do
		case $path in *.d) continue ;; esac
		changed "$path"
	done < <(watched)
}
it_case "a change of each file, and in each folder, is found" each

reads() {
	mark config
	cat "$ROOT/etc/hermes-sandbox"/* >/dev/null 2>&1 || true
	ls -lR "$ROOT" >/dev/null
	echo end >"$ROOT/etc/hermes-sandbox/end"
	wait_found config 'name="[^"]*/etc/hermes-sandbox/end"'
	expect_eq 1 "$(events config | wc -l)"
}
it_case "who only reads is not" reads

dropins() {
	local path=$ROOT/etc/systemd/system/hermes-sandbox-pool.service.d
	mark config
	mkdir "$path"
	wait_found config 'success=yes .*comm="mkdir"'
	mark config
	echo '[Service]' >"$path/override.conf"
	wait_found config "name=\"$path/override.conf\""
}
it_case "drop-ins for a unit are found when their folder comes" dropins

# --- ausearch -ua ------------------------------------------------------------------------------------------

callers() {
	local uid manager id records
	uid=$(id -u "$CALLER")
	manager=$(id -u _hermes-sandbox)
	it_start
	id=$(hs exec --json true | jq -r .exec_id)
	# shellcheck disable=SC2317 # called by wait_for
	both() {
		records=$(audit_records --raw -ua "$1" -m USER_CMD | grep -F "exec=\"$id\"") &&
			[ "$(wc -l <<<"$records")" -eq 2 ]
	}
	wait_for 10 both "$uid" || fail "-ua $uid does not find both records of $id"
	# The header's uid, in front of msg, is the manager's, by which they are not found.
	expect_eq 2 "$(grep -cE "^[^']* uid=$manager [^']*msg='op=exec-(start|end) [^']* uid=$uid " <<<"$records")"
	for uid in "$manager" "$(id -u "$STRANGER")"; do
		expect_eq 0 "$(audit_records --raw -ua "$uid" -m USER_CMD | grep -cF "exec=\"$id\"" || true)"
	done
}
it_case "ausearch -ua finds a caller's commands, though each record's header has the manager's uid" callers
