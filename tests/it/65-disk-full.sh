#!/bin/bash
# The disk for the trails, the manager's state or the broker's state is full. No command runs whose record could not
# be written, what runs ends as it would, and room is all that it takes to go on.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"

# small FOLDER: a file system of 256 KiB and 64 files in its place, with its owner and mode.
SMALL=()
small() {
	local dir=$HST_DIR/$1 owner mode
	owner=$(stat -c '%u:%g' "$dir") mode=$(stat -c '%a' "$dir")
	mount -t tmpfs -o size=256k,nr_inodes=64 tmpfs "$dir"
	SMALL+=("$dir")
	chown "$owner" "$dir"
	chmod "$mode" "$dir"
}
# shellcheck disable=SC2317 # the trap calls it
small_end() {
	local dir
	for dir in "${SMALL[@]}"; do umount -l "$dir" || true; done
}
trap 'rc=$?; set +e; (exit $rc); (it_exit); rc=$?; small_end; exit $rc' EXIT
small log
small state
small engine-state
# full FOLDER: neither a byte nor a file fits any more.
full() {
	local i
	mkdir "$HST_DIR/$1/ballast"
	dd if=/dev/zero of="$HST_DIR/$1/ballast/bytes" bs=4k 2>/dev/null || true
	for i in $(seq 64); do
		: >"$HST_DIR/$1/ballast/$i" || break
	done 2>/dev/null
	[ "$i" -lt 64 ] || fail "$1 is not full"
}
room() { rm -r "$HST_DIR/$1/ballast"; }

it_config <<END
pool:
  size: 2
  max_sandboxes: 4
END
it_start

refused() {
	expect_rc 125 hs exec "echo it ran >/dev/stderr" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match '^hermes-sandbox: rejected: ' "$(cat "$HST_DIR/err")"
	expect_eq "1 0" "$(wc -l <"$HST_DIR/err") $(wc -c <"$HST_DIR/out")"
}

# The line of a command stands behind its end. So the first one may run, as the kernel's trail has both its records,
# and no other until the gap has been written down.
trail_full() {
	local n=0 rc=0
	expect_settled 2
	hs_begin long exec 'echo begun; sleep 7921; echo done'
	wait_for 20 running sleep 7921
	full log
	# A line may still fit into the file's last page.
	while [ $rc -eq 0 ] && [ $n -lt 40 ]; do
		n=$((n + 1)) rc=0
		hs exec true 2>/dev/null || rc=$?
	done
	expect_eq 125 $rc
	record_ids exec-start >"$HST_DIR/before"
	refused
	refused
	record_ids exec-start | cmp - "$HST_DIR/before" || fail "a command was started that the trail has no room for"
	expect_match 'No space left on device: make room for audit.file' "$(cat "$HST_DIR/err")"
	# What runs is not touched.
	running sleep 7921 || fail "the command that ran was ended"
	kill -TERM "$(pid_of sleep 7921)"
	hs_end "$HS_PID"
	expect_eq 0 "$HS_RC"
	expect_eq "begun done" "$(paste -sd' ' "$HST_DIR/long.out")"
	room log
	expect_eq hello "$(hs exec 'echo hello')"
	expect_match ' LOST lines=[1-9]' "$(grep -F ' LOST ' "$TRAIL")"
	wait_for 15 all_recorded 0 || fail "without an end: $(comm -23 "$HST_DIR/starts" "$HST_DIR/ends")"
}
it_case "the readable trail has no room: no command is started, the gap is written down, and it goes on" trail_full

# The file of open execs grows by 64 at a time: it has room for the first of them, and a further one needs the disk.
state_full() {
	full state
	expect_eq hello "$(hs exec 'echo hello')"
	room state
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "the manager's state has no room: what it has taken before serves on" state_full

# One that starts with an empty state file has no slot, and takes no command.
no_slot() {
	it_end sandboxd
	: >"$HST_DIR/state/execs"
	full state
	it_sandboxd
	wait_for 30 it_warm 2
	record_ids exec-start >"$HST_DIR/before"
	refused
	record_ids exec-start | cmp - "$HST_DIR/before" || fail "a command was started"
	room state
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "nor is a command started whose slot in the state file has no room" no_slot

no_state_file() {
	it_end sandboxd
	rm "$HST_DIR/state/execs"
	full state
	(it_sandboxd) >/dev/null 2>&1 || true
	expect_eq 1 "$(cat "$HST_DIR/sandboxd.rc")"
	expect_match "state file $HST_DIR/state/execs: No space left on device" "$(tail -n 1 "$HST_DIR/sandboxd.log")"
	room state
	it_sandboxd
	wait_for 30 it_warm 2
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "a manager that cannot make its state file does not start, and says so in one line" no_state_file

# The record comes first, so that there is never a container without one.
# A session that is not written down is not opened, and what is open goes on.
session_full() {
	expect_settled 2
	expect_eq first "$(hs session open first)"
	full state
	expect_rc 125 hs session open second >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match 'state.*No space left on device' "$(cat "$HST_DIR/err")"
	expect_eq "1 0" "$(wc -l <"$HST_DIR/err") $(wc -c <"$HST_DIR/out")"
	expect_eq "first" "$(hs session list --json | jq -r '.[].session')"
	expect_eq hello "$(hs exec --session first 'echo hello')"
	close_session first
	room state
	expect_eq second "$(hs session open second)"
	close_session second
	expect_settled 2
}
it_case "a session whose state has no room is not opened, what is open goes on and can be closed" session_full

broker_full() {
	local holders=() i
	expect_settled 2
	full engine-state
	for i in 1 2; do
		hs_begin "holder.$i" exec "sleep $((7922 + i)); :"
		holders+=("$HS_PID")
	done
	wait_for 20 sleeps 7923 7924 || fail "what is warm does not serve"
	refused
	expect_match 'record in .*: No space left on device' "$(cat "$HST_DIR/err")"
	expect_match 'last failure: .*No space left on device' "$(hs status)"
	expect_eq "2 2" "$(ours | wc -l) $(folders)"
	room engine-state
	# Who asks is not kept waiting by the pauses between attempts, which have grown meanwhile.
	expect_eq hello "$(hs exec 'echo hello')"
	wait_for 60 it_warm 2 || fail "the pool does not fill afterwards"
	kill -TERM "${holders[@]}"
	for i in "${holders[@]}"; do
		hs_end "$i"
		expect_eq 143 "$HS_RC"
	done
	expect_eq hello "$(hs exec 'echo hello')"
	expect_recorded 0
}
it_case "the broker's records have no room: no container is made, a line says why, and the pool fills afterwards" broker_full
