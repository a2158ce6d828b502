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

# all_recorded [RUNNING]: each exec has exactly one start and, but for RUNNING of them, at least one end; nothing ends
# that did not start; and the readable trail is whole.
all_recorded() {
	record_ids exec-start >"$HST_DIR/starts"
	record_ids exec-end | uniq >"$HST_DIR/ends"
	[ -z "$(uniq -d "$HST_DIR/starts")" ] && [ -z "$(comm -13 "$HST_DIR/starts" "$HST_DIR/ends")" ] &&
		[ "$(comm -23 "$HST_DIR/starts" "$HST_DIR/ends" | wc -l)" -eq "${1:-0}" ]
}
expect_recorded() {
	local verdict
	wait_for 15 all_recorded "$@" ||
		fail "$(wc -l <"$HST_DIR/starts") starts, without an end: $(comm -23 "$HST_DIR/starts" "$HST_DIR/ends")"
	verdict=$(review --verify --trail "$TRAIL") || fail "the trails do not agree: $verdict"
}
