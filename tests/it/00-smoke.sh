#!/bin/bash
# The shortest road through all parts: a command in a warm sandbox, and nobody else's.
. "${0%/*}/../lib/it.sh"
it_start

output() { expect_eq hello "$(hs exec 'echo hello')"; }
it_case "a command's output arrives" output

status() { expect_rc 7 hs exec 'exit 7'; }
it_case "a command's exit code passes through" status

identity() {
	expect_eq 10000 "$(hs exec 'id -u')"
	expect_eq "" "$(hs exec 'ls /sys/class/net | grep -v "^lo$"' || true)"
}
it_case "it runs as uid 10000 and without a network" identity

stranger() { expect_rc 77 hs_as "$STRANGER" exec true; }
it_case "who is not in the group is refused" stranger

no_sandbox_left() {
	wait_for 20 it_warm 1
	it_stop
	expect_eq "" "$(docker_ ps -aq)"
}
it_case "a stop leaves no container" no_sandbox_left
