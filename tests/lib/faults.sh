# shellcheck shell=bash
# shellcheck disable=SC2034 # the scripts read what is set here
# What the scripts with one fault each share: what must hold after every fault. Sourced behind it.sh and caller.sh.

# From here on the kernel's trail is this script's.
FAULTS_BEGIN=@$EPOCHREALTIME
TRAIL=$HST_DIR/log/sandbox-audit.log

# killed NAME…: SIGKILL, and until that is known.
killed() {
	local name
	for name in "$@"; do
		kill -KILL "$(it_pid "$name")"
		wait_for 5 test -s "$HST_DIR/$name.rc" || fail "$name survives SIGKILL"
		expect_eq 137 "$(cat "$HST_DIR/$name.rc")"
	done
}

# The containers of this installation that the engine has, as ids; and the folders of the broker's for them.
ours() {
	docker_ ps -aq --no-trunc --filter "label=hermes-sandbox.installation=$(installation)" | sort
}
installation() { cut -c1-32 "$HST_DIR/engine-state/installation-id"; }
folders() { find "$HST_DIR/engine" -mindepth 1 -maxdepth 1 -type d | wc -l; }

# settled WARM [OTHERS]: so many sandboxes are warm, OTHERS are in use, and the engine and the broker have exactly these.
settled() {
	it_warm "$1" && [ "$(ours | wc -l)" -eq $(($1 + ${2:-0})) ] && [ "$(folders)" -eq $(($1 + ${2:-0})) ]
}
expect_settled() {
	wait_for 60 settled "$@" || fail "not settled: $(ours | wc -l) containers, $(folders) folders, $(hs status)"
}

# The host's pid of the agent in that container.
agent_pid() { docker_ inspect -f '{{.State.Pid}}' "$1"; }

# --- the trails --------------------------------------------------------------------------------------

review() {
	"$HST_RUN/bin/hermes-sandbox-audit" --manager "$HST_RUN/bin/hermes-sandboxd" --log "$HST_AUDIT" \
		--since "$FAULTS_BEGIN" "$@"
}

# record_ids OP: the execs with such a record of this script in the kernel's trail, one a line.
record_ids() {
	audit_records --raw -m USER_CMD -x "$HST_RUN/bin/hermes-sandboxd" |
		awk -v begin="${FAULTS_BEGIN#@}" -F'[(:]' '$2 + 0.001 >= begin' |
		grep -a "op=$1 " | grep -aoE ' exec="[0-9a-f]{16}"' | sort
}

# all_recorded RUNNING: each exec has exactly one start and, but for RUNNING of them, at least one end; nothing ends
# that did not start; and the readable trail is whole.
all_recorded() {
	record_ids exec-start >"$HST_DIR/starts"
	record_ids exec-end | uniq >"$HST_DIR/ends"
	[ -z "$(uniq -d "$HST_DIR/starts")" ] && [ -z "$(comm -13 "$HST_DIR/starts" "$HST_DIR/ends")" ] &&
		[ "$(comm -23 "$HST_DIR/starts" "$HST_DIR/ends" | wc -l)" -eq "$1" ]
}
expect_recorded() {
	local verdict
	wait_for 15 all_recorded "$@" ||
		fail "$(wc -l <"$HST_DIR/starts") starts, without an end: $(comm -23 "$HST_DIR/starts" "$HST_DIR/ends")"
	verdict=$(review --verify --trail "$TRAIL") || fail "the trails do not agree: $verdict"
}

# --- a session at work -------------------------------------------------------------------------------

# It appends a number each tenth of a second to /tmp/NAME: a gap or a second 1 would show that it was stopped or begun
# anew. Who it is, with the time of its start, stands in /tmp/NAME.who.
# shellcheck disable=SC2016 # the sandbox's shell expands it
COUNT='n=0; echo $$ $(cut -d" " -f22 /proc/$$/stat) >/tmp/$0.who; while n=$((n + 1)); do echo $n | tee -a /tmp/$0; sleep 0.1; done'

# at_work SESSION: opens it and makes it work: a background job, a detached command that counts, and one that has ended
# with 7.
at_work() {
	expect_eq "$1" "$(hs session open "$1")"
	hs exec --session "$1" "setsid sh -c '$COUNT' job >/dev/null 2>&1 & echo begun" >/dev/null
	hs exec --session "$1" --detach sh -c "$COUNT" command >"$HST_DIR/$1.counts"
	hs exec --session "$1" --detach 'echo out; echo err >&2; exit 7' >"$HST_DIR/$1.ended"
	expect_rc 7 hs wait "$(ended_in "$1")" >/dev/null
	# shellcheck disable=SC2317 # called by wait_for
	both_count() { [ "$(counters "$1" | awk '$4 >= 3' | wc -l)" -eq 2 ]; }
	wait_for 20 both_count "$1" || fail "the jobs do not count: $(counters "$1")"
	counters "$1" >"$HST_DIR/$1.counters"
	sandbox_of "$1" >"$HST_DIR/$1.sandbox"
}
# The ids of the two commands.
counts_in() { cat "$HST_DIR/$1.counts"; }
ended_in() { cat "$HST_DIR/$1.ended"; }
sandbox_of() { hs session list --json | jq -r --arg s "$1" '.[] | select(.session == $s) | .sandbox'; }

# counters SESSION: of both jobs name, pid, time of its start and last number; a line more where there is a gap.
counters() {
	# shellcheck disable=SC2016 # the sandbox's shell expands it
	hs exec --session "$1" 'for f in job command; do
		set -- $(cat /tmp/$f.who) $(tail -n 1 /tmp/$f)
		[ "$(sed -n $3p /tmp/$f)" = $3 ] || echo gap in $f
		[ "$(cut -d" " -f22 /proc/$1/stat)" = "$2" ] || echo $f is another process
		echo $f $*
	done' 2>&1
}

# unharmed SESSION: its sandbox, both processes and what the other one left are as at_work() made them, and it goes on.
unharmed() {
	local before after job n=0
	before=$(cat "$HST_DIR/$1.counters") after=$(counters "$1")
	expect_eq "$(cut -d' ' -f1-3 <<<"$before")" "$(cut -d' ' -f1-3 <<<"$after")"
	for job in job command; do
		n=$(awk -v f=$job '$1 == f { print $4 }' <<<"$after")
		[ "$n" -gt "$(awk -v f=$job '$1 == f { print $4 }' <<<"$before")" ] || fail "$job stands still: $after"
	done
	expect_eq "$(cat "$HST_DIR/$1.sandbox")" "$(sandbox_of "$1")"
	expect_eq "running" "$(state_of "$(counts_in "$1")")"
	# What it wrote from its start on can be read, and the end of the other one.
	expect_eq "1 2 3" "$( (hs attach "$(counts_in "$1")" || true) | head -n 3 | paste -sd' ')"
	expect_rc 7 hs wait "$(ended_in "$1")" >/dev/null
	expect_eq "out" "$(hs attach "$(ended_in "$1")" 2>/dev/null || true)"
	expect_eq hello "$(hs exec --session "$1" 'echo hello')"
	echo "$after" >"$HST_DIR/$1.counters"
}
# state_of ID: running or ended, as ps says.
state_of() { hs ps --json | jq -r --arg id "$1" '.[] | select(.exec == $id) | .state'; }

# close_session SESSION: all of it is gone, and both its records are there once.
close_session() {
	hs session close "$1"
	expect_eq "" "$(sandbox_of "$1")"
	expect_eq "1 1" "$(grep -cE " SESSION-OPEN .*\"?$1\"?( |$)" "$TRAIL") $(grep -cE " SESSION-CLOSE .*\"?$1\"?( |$)" "$TRAIL")"
	[ ! -e "$HST_DIR/state/sessions/$1" ] || fail "its state file is left"
}
