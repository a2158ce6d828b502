#!/bin/bash
# A newcomer's walk through the commands of sessions: open, exec, detach, ps, attach, wait, kill, look, close.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
# shellcheck disable=SC2317 # the cases are called by it_case
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 2
  max_sandboxes: 20
limits:
  timeout: 30s
profiles:
  other: {}
END
it_start

# refused CODE REGEX ARGUMENT…: with that status, one line on stderr and nothing on stdout.
refused() {
	local code=$1 regex=$2
	shift 2
	expect_rc "$code" "$@" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "0 1 ($*)" "$(wc -c <"$HST_DIR/out") $(wc -l <"$HST_DIR/err") ($*)"
	expect_match "^hermes-sandbox: $regex" "$(cat "$HST_DIR/err")"
}

# of NAME FILTER: what session list --json says of it.
of() { hs session list --json | jq -r --arg n "$1" ".[] | select(.session == \$n) | $2"; }
command_of() { hs ps --json | jq -r --arg i "$1" ".[] | select(.exec == \$i) | $2"; }

open_and_use() {
	expect_eq work "$(hs session open work --ttl 2h --label task=42 --label 'note=two words')"
	expect_eq "default open 7200000 false 42 two words" \
		"$(of work '"\(.profile) \(.state) \(.ttl_ms) \(.mounts) \(.labels.task) \(.labels.note)"')"
	hs exec --session work 'echo kept >/tmp/file; sleep 7401 >/dev/null 2>&1 &'
	expect_eq kept "$(hs exec --session work cat /tmp/file)"
	sleeps 7401 || fail "the background job has ended with its command"
	expect_match '^SESSION .*work .*task=42' "$(hs session list | tr '\n' ' ')"
	# Another command sees nothing of it.
	expect_rc 1 hs exec 'test -e /tmp/file'
}
it_case "session open, and commands share files and background jobs" open_and_use

names() {
	local name
	name=$(hs session open)
	expect_match '^s-[0-9a-f]{8}$' "$name"
	hs session close "$name"
	expect_eq "json-1 null" "$(hs session open json-1 --json | jq -r '"\(.session) \(.labels.x)"')"
	expect_eq '{}' "$(hs session close json-1 --json)"
	refused 64 'session open: .*work.* is taken' hs session open work
	refused 64 "session open: session '-x'" hs session open -- -x
	refused 64 'session open: no profile "nowhere"' hs session open --profile nowhere
	refused 125 'session close: no session "nowhere"' hs session close nowhere
	refused 125 'exec: no session "nowhere"' hs exec --session nowhere true
	refused 64 '.*profile' hs exec --session work --profile other true
	refused 64 'exec: --open is for a session' hs exec --open true
}
it_case "names: given, made up, taken, wrong" names

opened_by_exec() {
	expect_eq "first second" "$(hs exec --session lazy --open --profile other 'echo first >/tmp/a; cat /tmp/a' |
		tr '\n' ' ')$(hs exec --session lazy --open 'echo second')"
	expect_eq other "$(of lazy .profile)"
	expect_eq "lazy 3 exited" "$(hs exec --session lazy --json 'exit 3' | jq -r '"\(.session) \(.exit_code) \(.cause)"')"
	hs session close lazy
}
it_case "exec --open opens a session; --json names it" opened_by_exec

detached() {
	local id json
	id=$(hs exec --session work --detach 'echo out; echo err >&2; while ! [ -e /tmp/go ]; do sleep 0.05; done; echo more; exit 3')
	expect_match '^[0-9a-f]{16}$' "$id"
	expect_eq "work running true" "$(command_of "$id" '"\(.session) \(.state) \(.detached)"')"
	expect_match "$id +work .* running .*echo out" "$(hs ps work | grep "$id")"
	hs_begin reader attach "$id"
	wait_for 10 test -s "$HST_DIR/reader.err"
	expect_eq "out err" "$(cat "$HST_DIR/reader.out" "$HST_DIR/reader.err" | xargs)"
	hs exec --session work touch /tmp/go
	hs_end "$HS_PID"
	expect_eq "3 out more err" "$HS_RC $(cat "$HST_DIR/reader.out" "$HST_DIR/reader.err" | xargs)"
	# It has ended, and can be asked for all the same.
	expect_eq "ended 3 exited" "$(command_of "$id" '"\(.state) \(.exit_code) \(.cause)"')"
	expect_rc 3 hs wait "$id"
	expect_rc 3 hs attach "$id" --offset 4 >"$HST_DIR/out" 2>/dev/null
	expect_eq more "$(cat "$HST_DIR/out")"
	json=$(hs attach "$id" --json --stdout-offset 4) || expect_eq 3 $?
	expect_fields "$json" exit_code 3 cause exited session work stdout more stderr err stdout_offset 4 stderr_offset 0 \
		exec_id "$id" stdout_bytes 9
	json=$(hs wait --json "$id") || expect_eq 3 $?
	expect_fields "$json" exit_code 3 stdout null stdout_bytes 9 session work
	json=$(hs exec --session work --detach --json 'exit 4')
	expect_fields "$json" exit_code 0 cause null session work
	expect_rc 4 hs wait "$(field .exec_id "$json")"
	refused 125 '.*0000000000000000' hs attach 0000000000000000
	refused 125 '.*0000000000000000' hs wait 0000000000000000
	refused 64 'exec: --detach is for a session' hs exec --detach true
}
it_case "exec --detach, ps, attach, wait" detached

long_output() {
	local id json
	id=$(hs exec --session work --detach 'seq 100000')
	hs wait "$id"
	hs attach "$id" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq 262144 "$(wc -c <"$HST_DIR/out")"
	cmp "$HST_DIR/out" <(seq 100000 | tail -c 262144)
	expect_match '^hermes-sandbox: attach: 326751 bytes of stdout are no longer kept: it begins at 326751$' "$(cat "$HST_DIR/err")"
	json=$(hs attach "$id" --json)
	expect_fields "$json" stdout_offset 326751 stdout_bytes 588895
	expect_eq '' "$(hs attach "$id" --offset end 2>&1)"
}
it_case "of a long output the end is kept, and attach says what is missing" long_output

leaving() {
	local id
	id=$(hs exec --session work --detach 'echo up; sleep 7402; echo down')
	wait_for 10 running sleep 7402
	hs_begin reader attach "$id"
	wait_for 10 test -s "$HST_DIR/reader.out"
	kill -INT "$HS_PID"
	hs_end "$HS_PID"
	expect_eq 130 "$HS_RC"
	sleeps 7402 || fail "the command ended with its reader"
	hs kill "$id"
	expect_rc 137 hs wait "$id" 2>/dev/null
	expect_gone 7402
}
it_case "^C ends attach and not the command" leaving

kills() {
	local id
	id=$(hs exec --session work --detach 'setsid sleep 7403 & (sleep 7404 &) ; sleep 7405')
	wait_for 10 sleeps 7403 7404 7405
	hs kill "$id"
	wait_for 10 none_left 7403 7404 7405
	id=$(hs exec --session work --detach 'trap "echo caught; exit 7" USR1; touch /tmp/up; while :; do sleep 0.05; done')
	wait_for 10 hs exec --session work test -e /tmp/up
	hs kill -s USR1 "$id"
	expect_rc 7 hs wait "$id"
	expect_match caught "$(hs attach "$id" || true)"
	refused 125 "kill: no command \"$id\" runs" hs kill "$id"
	refused 64 'kill: signal' hs kill -s NONE "$id"
	sleeps 7401 || fail "a kill took what was not its own"
}
it_case "kill ends a command's whole tree, or sends one signal" kills

others() {
	local what
	accounts_member "$STRANGER" hermes-sandbox
	refused 77 '.*' hs_as "$STRANGER" exec --session work true
	refused 77 '.*' hs_as "$STRANGER" session close work
	refused 77 '.*' hs_as "$STRANGER" ps work
	refused 77 '.*' hs_as "$STRANGER" session list --all
	refused 77 '.*' hs_as root exec --session work true
	expect_eq '[]' "$(hs_as "$STRANGER" session list --json)"
	expect_eq '[]' "$(hs_as "$STRANGER" ps --json)"
	expect_match work "$("$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" session list --all)"
	gpasswd -d "$STRANGER" hermes-sandbox >/dev/null
	# Each refusal stands in the trail, and says of what.
	for what in 'session close' ps; do
		grep -qE " REJECTED not_allowed cmd=\"$what\" .*uid=$(id -u "$STRANGER") .*session=\"?work" \
			"$HST_DIR/log/sandbox-audit.log" || fail "no line of the refused $what"
	done
	grep -qE " REJECTED not_allowed cmd=\"session list\" " "$HST_DIR/log/sandbox-audit.log" || fail "no line of session list"
}
it_case "a session is its user's alone" others

looks() {
	expect_match 'work' "$(hs top --once)"
	expect_eq work "$(hs top --json | jq -r '.[] | select(.session == "work") | .session')"
	expect_eq object "$(hs stats --json | jq -r type)"
	expect_match '^# ' "$(hs metrics | head -n 1)"
	expect_eq '# EOF' "$(hs metrics | tail -n 1)"
}
it_case "top, stats, metrics" looks

logs() {
	local bin=$HST_RUN/bin/hermes-sandbox
	if [ -d /run/systemd/system ]; then
		"$bin" logs -n 1 >/dev/null
		return
	fi
	# Without systemd: the supervisor's files, where there are some.
	if [ ! -e /var/log/hermes-sandbox-daemons/pool.log ]; then
		refused 69 'logs: .*pool.log: No such file' "$bin" logs
		return
	fi
	"$bin" logs -n 1 >"$HST_DIR/out"
	expect_match 'pool.log' "$(cat "$HST_DIR/out")"
	refused 77 'logs: .*permission denied: sudo hermes-sandbox logs' as "$STRANGER" "$bin" logs
}
it_case "logs" logs

closing() {
	hs session open second >/dev/null
	hs session close work second
	expect_eq '[]' "$(hs session list --json)"
	wait_for 10 none_left 7401
	refused 125 'exec: no session "work"' hs exec --session work true
	expect_rc 125 hs session close work second 2>"$HST_DIR/err"
	expect_eq 2 "$(wc -l <"$HST_DIR/err")"
}
it_case "session close ends all that is in it" closing

idle() {
	hs session open brief --ttl 500ms >/dev/null
	gone_by_itself() { [ "$(hs session list --json)" = '[]' ]; }
	# Not while something runs in it.
	hs exec --session brief 'sleep 1.5; echo done'
	hs exec --session brief 'echo and again'
	wait_for 10 gone_by_itself || fail "an idle session stays"
}
it_case "an idle session is closed" idle
