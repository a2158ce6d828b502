# shellcheck shell=bash
# Cases of a test script, and what they expect. Each case is a function in a subshell of its own, under set -e: its
# first failure ends it, and the next one runs. Who sources this has a function it_logs, which prints what helps to
# understand a failure, and ends with status 1 if it_failed is above 0.

it_failed=0

pass() { echo "ok - $*"; }

# Ends the case, or the script outside of one.
fail() {
	echo "failed: $*"
	exit 1
}

# The whole script cannot run here.
skip() {
	echo "$*"
	exit 77
}

# it_case TEXT FUNCTION [ARGUMENT…]
it_case() {
	local text=$1 rc
	shift
	set +e
	(
		set -e
		"$@"
	)
	rc=$?
	set -e
	if [ $rc -eq 0 ]; then
		pass "$text"
	else
		echo "FAIL - $text (status $rc)"
		it_failed=$((it_failed + 1))
		it_logs
	fi
}

# expect_rc N COMMAND…: its output is left alone.
expect_rc() {
	local want=$1 rc=0
	shift
	"$@" || rc=$?
	[ "$rc" -eq "$want" ] || fail "status $rc, expected $want: $*"
}

expect_eq() {
	[ "$1" = "$2" ] || fail "found $(printf %q "$2"), expected $(printf %q "$1")"
}

# expect_match REGEX TEXT (bash's extended regular expressions)
expect_match() {
	[[ $2 =~ $1 ]] || fail "$(printf %q "$2") does not match $1"
}
