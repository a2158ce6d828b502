#!/bin/bash
# The road of hermes-docker-enable: _hermes-engine is no member of docker, becomes one, and the pool is warm within
# ten seconds with no other step; and the way back. The daemons are under the real supervisor.
. "${0%/*}/../lib/it.sh"
it_config <<<$'pool:\n  size: 2'

${CC:-cc} -std=gnu17 -D_GNU_SOURCE -I"$TOP/src" -o "$HST_DIR/supervise" "$TOP"/tests/it/supervise.c \
	"$TOP"/src/supervisor/{supervisor,sup_files}.c "$TOP"/src/common/errmsg.c

# The account is the machine's: whatever happens, it is a member again at the end.
# shellcheck disable=SC2317 # the trap calls it
sup_end() {
	"$HST_DIR/supervise" --stop "$HST_DIR" "$HST_RUN/bin" || true
	accounts_member _hermes-engine docker
}
trap 'rc=$?; sup_end; set +e; (exit $rc); it_exit' EXIT

leave() { gpasswd -d _hermes-engine docker >/dev/null; }
# What hermes-docker-enable runs.
join() { usermod -aG docker _hermes-engine; }

state() { hs status --json | jq -r .engine.state; }
# shellcheck disable=SC2317 # called by wait_for
disabled() { [ "$(state)" = "not enabled" ]; }
engine_log() { cat "$HST_DIR/daemons/engine.log"; }

# groups_of NAME: the supplementary groups of the daemon that runs.
groups_of() {
	sed -n 's/^Groups:[[:space:]]*//p' "/proc/$(pgrep -f "^$HST_RUN/bin/$1")/status" | tr ' ' '\n'
}

not_yet() {
	leave
	"$HST_DIR/supervise" "$HST_DIR" "$HST_RUN/bin"
	wait_for 10 disabled || fail "status does not say it"
	expect_match '^engine: not enabled: run sudo hermes-docker-enable$' "$(hs status | grep '^engine: ')"
	expect_match 'not enabled: run sudo hermes-docker-enable' "$(engine_log)"
	expect_rc 125 hs exec true 2>"$HST_DIR/err"
	expect_eq 'hermes-sandbox: rejected: not enabled: run sudo hermes-docker-enable' "$(cat "$HST_DIR/err")"
	# It waits: it is not started again and again.
	! grep -q 'ended' <<<"$(engine_log)" || fail "the broker ends: $(engine_log)"
}
it_case "without the membership: status, the log and callers say what to run" not_yet

enabled() {
	SECONDS=0
	join
	wait_for 10 it_warm 2 || fail "not warm after $SECONDS s: $(hs status)"
	[ $((SECONDS)) -le 10 ] || fail "it took $SECONDS s"
	expect_eq hello "$(hs exec 'echo hello')"
	groups_of hermes-engined | grep -qx "$(getent group docker | cut -d: -f3)"
	expect_match 'joined group docker: ending' "$(engine_log)"
}
it_case "with the membership the pool is warm within ten seconds, and nothing else was done" enabled

# A group file that changes for another reason is no reason to end.
other_change() {
	local pid
	pid=$(pgrep -f "^$HST_RUN/bin/hermes-engined")
	gpasswd -d "$STRANGER" hermes-sandbox >/dev/null 2>&1 || true
	usermod -aG hermes-sandbox "$STRANGER"
	gpasswd -d "$STRANGER" hermes-sandbox >/dev/null
	expect_eq hello "$(hs exec 'echo hello')"
	expect_eq "$pid" "$(pgrep -f "^$HST_RUN/bin/hermes-engined")"
}
it_case "another change of /etc/group leaves the broker alone" other_change

revoked() {
	leave
	wait_for 10 disabled || fail "the broker keeps what was taken away"
	! groups_of hermes-engined | grep -qx "$(getent group docker | cut -d: -f3)" ||
		fail "the broker still has the group"
	expect_match 'taken out of group docker: ending' "$(engine_log)"
	# What is warm still serves.
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "a membership that is taken away is given up at once" revoked

# Several times, as the back-off must not grow.
again() {
	local i
	for i in 1 2 3; do
		SECONDS=0
		join
		# shellcheck disable=SC2317 # called by wait_for
		up() { [ "$(state)" = up ] && it_warm 2; }
		wait_for 10 up || fail "not warm after $SECONDS s, time $i"
		leave
		wait_for 10 disabled || fail "not given up, time $i"
	done
}
it_case "and so each time" again

# The sandboxes go although the broker may not remove them any more: their agents are told to end.
stopped() {
	"$HST_DIR/supervise" --stop "$HST_DIR" "$HST_RUN/bin"
	# shellcheck disable=SC2317 # called by wait_for
	none() { [ -z "$(docker_ ps -q)" ]; }
	wait_for 20 none || fail "left: $(docker_ ps)"
}
it_case "a stop without the membership leaves no sandbox behind" stopped
