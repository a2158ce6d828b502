# shellcheck shell=bash disable=SC2034 # the scripts read OUT and ERR
# The docker program of a script's own manager, as its caller runs it. Sourced behind it.sh.

dk_env() {
	as "$CALLER" env HERMES_SANDBOX_SOCKET="$HST_DIR/run/pool.sock" \
		${HERMES_SANDBOX_PROFILE:+HERMES_SANDBOX_PROFILE="$HERMES_SANDBOX_PROFILE"} "$@"
}
dk() { dk_env "$HST_RUN/bin/docker" "$@"; }

# ends CODE ARGUMENT…: with that status; what it wrote is in OUT and ERR.
ends() {
	local code=$1 rc=0
	shift
	dk "$@" >"$HST_DIR/out" 2>"$HST_DIR/err" </dev/null || rc=$?
	OUT=$(cat "$HST_DIR/out") ERR=$(cat "$HST_DIR/err")
	[ "$rc" -eq "$code" ] || fail "status $rc, expected $code: docker $*: $OUT $ERR"
}
