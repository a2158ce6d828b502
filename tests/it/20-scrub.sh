#!/bin/bash
# Case 22: what a command leaves is gone for the next one, in the same sandbox, or the sandbox is. And whose
# commands may follow each other in one.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/canary.sh
. "${0%/*}/../lib/canary.sh"

# One sandbox, and everybody waits for it: the next command is sure to meet what the last one left.
it_config <<END
pool:
  size: 1
  max_sandboxes: 1
  on_empty: wait
  queue_timeout: 60s
limits:
  grace: 300ms
profiles:
  pair:
    size: 2
    max_sandboxes: 4
  crowd:
    size: 3
    max_sandboxes: 3
    queue_limit: 1000
  worn:
    max_uses: 5
  writable:
    read_only: false
  volume:
    image: hst-volume:1
END
canary_build
template=$(docker_ create "$HST_IMAGE" true)
docker_ commit --change 'VOLUME /data' "$template" hst-volume:1 >/dev/null
docker_ rm "$template" >/dev/null
it_start
TRAIL=$HST_DIR/log/sandbox-audit.log

# --- what the scrub removes ------------------------------------------------------------------------------

mapfile -t residues < <("$CANARY" list)
[ ${#residues[@]} -gt 40 ]
for residue in "${residues[@]}"; do
	case $residue in time-wait* | in-flight) ;; *) it_case "case 22: $residue is gone, the sandbox stays" removed "$residue" ;; esac
done

together() {
	local cid
	look
	cid=$CID
	leave file-tmp file-home file-shm odd-names closed-dirs-tmp closed-dirs-shm links-home nodes deep sysv-shm \
		sysv-msg sysv-sem queue queue-odd posix-sem process process-stopped process-holding self \
		home-times home-sticky home-000
	expect_eq "$cid" "$CID"
	unchanged "$cid"
}
it_case "case 22: many of them at once" together

it_case "processes that are no command's are killed, the sandbox stays" strangers

# --- however it ends -------------------------------------------------------------------------------------

timed_out() {
	local cid
	look
	cid=$CID
	CANARY_OPTIONS=(--timeout 2s)
	canary leave file-tmp sysv-shm queue process home-000 stay
	CANARY_OPTIONS=()
	expect_fields "$JSON" exit_code 124 cause timeout stdout left
	expect_eq "$cid" "$CID"
	unchanged "$cid"
}
it_case "after a time-out, too" timed_out

cancelled() {
	local cid
	look
	cid=$CID
	hs_begin cancelled exec -i -- perl -e "$CANARY_LOADER" "$CANARY_MEMFD" \
		leave file-tmp sysv-shm queue process home-000 stay <"$CANARY"
	wait_for 20 grep -qx left "$HST_DIR/cancelled.out" || fail "the command does not start"
	kill -KILL "$HS_PID"
	unchanged "$cid"
}
it_case "after its caller was killed, too" cancelled

# Memory that the end of a process does not free: what a file system holds, and System V segments.
out_of_memory() {
	local cid
	look
	cid=$CID
	canary leave "$@"
	expect_fields "$JSON" exit_code 137 cause oom
	expect_eq "$cid" "$CID"
	unchanged "$cid"
}
it_case "after an OOM kill with every place full, too" out_of_memory full-tmp full-home full-shm gorge
it_case "after one with nothing but System V segments, too" out_of_memory gorge-shm

# Some hundred thousand files: to remove them may take longer than a scrub may. And as no kill frees what they
# hold, the memory may not be enough for the agent itself.
too_many() {
	local cid
	look
	cid=$CID
	canary leave gorge-files
	expect_eq "$cid" "$CID"
	if [ "$(jq -r .cause <<<"$JSON")" = sandbox_lost ]; then
		expect_fields "$JSON" exit_code 125
		return
	fi
	expect_fields "$JSON" exit_code 137 cause oom
	proof_of "$cid" "$EXEC"
	if [ "$CHECK" = clean ]; then
		unchanged "$cid"
	else
		thrown_away "$cid" files
	fi
}
it_case "as many files as the memory holds: they are gone, or the sandbox is" too_many

# Sockets that hold only each other go when the kernel's collector comes round, and what else is on its way in
# the machine may keep it from them: then the sandbox goes.
in_flight() {
	local cid
	look
	cid=$CID
	canary leave in-flight
	expect_eq "$cid" "$CID"
	proof_of "$cid" "$EXEC"
	case $CHECK in
	clean) unchanged "$cid" ;;
	blocks | sockets) thrown_away "$cid" "$CHECK" ;;
	*) fail "the proof of in-flight says $CHECK" ;;
	esac
}
it_case "a file in flight between sockets that are: it is gone, or the sandbox is" in_flight

not_started() {
	local cid
	look
	cid=$CID
	run_json "$CALLER" -- /no/such/program
	expect_eq "$cid 127" "$CID $RC"
	unchanged "$cid"
}
it_case "after a command that could not be started, too" not_started

# --- what it cannot remove -------------------------------------------------------------------------------

it_case "root's file in /tmp: another sandbox" spoiled files root_file_tmp
it_case "root's file in /dev/shm: another sandbox" spoiled files root_file_shm
it_case "root's folder in HOME, with a file: another sandbox" spoiled files root_folder_home
it_case "root's file in /dev: another sandbox" spoiled blocks root_file_dev
it_case "a file without a name, held from outside: another sandbox" spoiled blocks root_held
it_case "/tmp belongs to another: another sandbox" spoiled attributes root_owner_tmp
it_case "HOME belongs to another: another sandbox" spoiled attributes root_owner_home
it_case "root's shared memory: another sandbox" spoiled sysv_ipc root_shm
it_case "root's message queue: another sandbox" spoiled sysv_ipc root_messages
it_case "root's semaphores: another sandbox" spoiled sysv_ipc root_semaphores
it_case "root's POSIX queue: another sandbox" spoiled queues root_queue
it_case "a new mount: another sandbox" spoiled mounts root_mount
it_case "a mount over /tmp: another sandbox" spoiled mounts root_mount_tmp
it_case "HOME mounted otherwise: another sandbox" spoiled mounts root_remount_home
it_case "HOME without its mount: another sandbox" spoiled mounts root_umount_home

# A frozen process would hold up the removal of its sandbox.
frozen_process() {
	local cid
	look
	cid=$CID
	frozen "$cid"
	run_json "$CALLER" 'exit 0'
	expect_eq "$cid" "$CID"
	proof_of "$cid" "$EXEC"
	echo THAWED >"$FROZEN/freezer.state"
	thrown_away "$cid" processes
}
[ ! -d /sys/fs/cgroup/freezer ] || it_case "a process that cannot be killed: another sandbox" frozen_process
it_case "a connection in TIME_WAIT: another sandbox" replaced sockets time-wait
it_case "one of IPv6: another sandbox" replaced sockets time-wait-6

# restored COMMAND…: what root changed, and the agent as its owner can put right.
restored() {
	local cid
	look
	cid=$CID
	"$@" "$cid"
	run_json "$CALLER" 'exit 0'
	expect_eq "$cid" "$CID"
	unchanged "$cid"
}
# A mount that is gone again has changed nothing.
mounted_for_a_while() {
	root_mount "$1"
	inside "$1" -m -p umount /mnt
}
it_case "a mount that came and went changes nothing" restored mounted_for_a_while
it_case "/tmp without its sticky bit is put right" restored root_mode_tmp
it_case "/tmp with mode 000 is put right" restored root_closed_tmp

# --- whose sandbox ---------------------------------------------------------------------------------------

# Another member of the group, who needs no account for that.
SECOND=4711
# second ARGUMENT…: the command line as that user.
second() {
	setpriv --reuid $SECOND --regid $SECOND --groups "$(getent group hermes-sandbox | cut -d: -f3)" \
		--inh-caps=-all --bounding-set=-all --no-new-privs -- env -i PATH=/usr/bin:/bin HOME=/ \
		${ASAN_OPTIONS:+ASAN_OPTIONS="$ASAN_OPTIONS"} \
		"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"
}
as_root() { "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"; }

# sandbox_of COMMAND PROFILE
sandbox_of() { "$1" exec --profile "$2" --json true | jq -r .sandbox; }

two_users() {
	local first other i
	wait_for 30 it_warm 2 pair
	first=$(sandbox_of hs pair)
	other=$(sandbox_of second pair)
	[ "$first" != "$other" ] || fail "a user gets another one's sandbox"
	for i in $(seq 25); do
		expect_eq "$first $i" "$(sandbox_of hs pair) $i"
		expect_eq "$other $i" "$(sandbox_of second pair) $i"
	done
	i=$(sandbox_of as_root pair)
	[[ $first$other != *$i* ]] || fail "root gets a user's sandbox"
}
it_case "two users and root never share a sandbox, each keeps his own" two_users

one_sandbox() {
	local seen='' id user
	for user in hs second as_root hs second as_root; do
		id=$(sandbox_of $user default)
		[[ $seen != *$id* ]] || fail "$user gets a sandbox that was another one's"
		seen+=" $id"
	done
}
it_case "nor with a single sandbox for all: it is replaced from user to user" one_sandbox

# --- where it does not hold ------------------------------------------------------------------------------

# status_of PROFILE: its lines for people.
status_of() { hs status | sed -n "/^pool $1: /,/^[^ ]/p"; }

replaced_always() {
	local ids
	wait_for 30 it_warm 1 "$1" || fail "no sandbox of profile $1"
	ids=$(for _ in 1 2 3 4; do sandbox_of hs "$1"; done)
	expect_eq 4 "$(sort -u <<<"$ids" | wc -l)"
	expect_eq 0 "$(grep -cE "Z SCRUB .*cid=($(cut -c1-12 <<<"$ids" | paste -sd'|')) " "$TRAIL" || true)"
	expect_match 'reuse +replace \(.+\)' "$(status_of "$1")"
	expect_eq replace "$(hs status --json | jq -r --arg p "$1" '.pools[] | select(.profile == $p) | .reuse')"
}
it_case "a writable root file system: each command has a sandbox of its own, and status says why" \
	replaced_always writable
it_case "an image with a volume: likewise" replaced_always volume

scrubs() {
	expect_match 'reuse +scrub($|[^ ])' "$(status_of default)"
	expect_eq scrub "$(hs status --json | jq -r '.pools[] | select(.profile == "default") | .reuse')"
}
it_case "and where it holds, status says so" scrubs

# --- under load ------------------------------------------------------------------------------------------

crowd() {
	local pids=() i begin
	begin=$(wc -l <"$TRAIL")
	wait_for 30 it_warm 3 crowd
	for i in $(seq 200); do
		# shellcheck disable=SC2016 # the sandbox's shell expands it
		hs exec --profile crowd --json '[ -z "$(ls -A /tmp)$(ls -A "$HOME")$(ls -A /dev/shm)" ] && mkdir /tmp/mine &&
			sleep 0.02 && [ "$(ls -A /tmp)" = mine ] && echo alone' >"$HST_DIR/crowd.$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do expect_rc 0 wait "$i"; done
	expect_eq 200 "$(jq -r .stdout "$HST_DIR"/crowd.[0-9]* | grep -cx alone)"
	# shellcheck disable=SC2317 # called by wait_for
	proved() {
		[ "$(tail -n +$((begin + 1)) "$TRAIL" | grep -cE 'Z SCRUB ok=true .* check=clean ')" -ge 200 ]
	}
	wait_for 20 proved || fail "not every exec has its proof"
	expect_eq 3 "$(jq -r .sandbox "$HST_DIR"/crowd.[0-9]* | sort -u | wc -l)"
}
it_case "200 callers at once on three sandboxes: each is alone in one, and each end is proved" crowd

worn() {
	local ids i
	wait_for 30 it_warm 1 worn
	ids=$(for _ in $(seq 12); do sandbox_of hs worn; done)
	for i in $(uniq -c <<<"$ids" | awk '{ print $1 }'); do
		[ "$i" -le 5 ] || fail "a sandbox was used $i times"
	done
	expect_eq 3 "$(sort -u <<<"$ids" | wc -l)"
}
it_case "max_uses: after five commands another sandbox" worn
