# shellcheck shell=bash
# shellcheck disable=SC2034 # CHECK, EXEC and HELD are for the scripts
# The canary program (tests/it/canary.c) in a script's sandboxes. Sourced behind it.sh
# and caller.sh.

CANARY=$HST_DIR/canary

canary_build() {
	local cc=${MUSL_CC:-musl-gcc}
	command -v "$cc" >/dev/null || cc=cc
	"$cc" -std=gnu17 -D_GNU_SOURCE -O2 -static -s -o "$CANARY" "$TOP"/tests/it/canary{,_files,_look}.c
}

# Perl runs what comes on its standard input from memory, so that the program itself leaves no file.
case $(uname -m) in
aarch64) CANARY_MEMFD=279 ;;
*) CANARY_MEMFD=319 ;;
esac
# shellcheck disable=SC2016 # perl expands it
CANARY_LOADER='$n = "canary"; $fd = syscall(shift, $n, 1);
	open($out, ">&=", $fd) or die "memfd: $!";
	while (sysread(STDIN, $b, 65536)) { syswrite($out, $b) or die "write: $!" }
	exec { "/proc/self/fd/$fd" } "canary", @ARGV or die "exec: $!"'

# run_json USER ARGUMENT…: an exec with --json. RC, JSON, CID, EXEC and OUT, what it printed.
run_json() {
	local user=$1
	shift
	RC=0
	JSON=$(hs_as "$user" exec --json "$@") || RC=$?
	OUT=$(jq -r '"\(.sandbox) \(.exec_id)", .stdout' <<<"$JSON")
	read -r CID EXEC <<<"$OUT"
	OUT=${OUT#*$'\n'}
	[[ $CID =~ ^[0-9a-f]{64}$ ]] || fail "no sandbox ran it: $JSON"
}

# canary ARGUMENT…: the program with these arguments, of CALLER. CANARY_OPTIONS are for the exec.
canary() {
	run_json "$CALLER" "${CANARY_OPTIONS[@]}" -i -- \
		perl -e "$CANARY_LOADER" "$CANARY_MEMFD" "$@" <"$CANARY"
}
CANARY_OPTIONS=()

# look: how a sandbox looks now, in OUT. The first look at one is kept, for unchanged.
look() {
	canary look
	expect_eq 0 "$RC"
	[ -s "$HST_DIR/look.$CID" ] || printf '%s\n' "$OUT" >"$HST_DIR/look.$CID"
}

# differences CID: what another look at that sandbox, in OUT, shows that the first one did not. 1: something.
differences() { diff "$HST_DIR/look.$1" - <<<"$OUT"; }

# leave NAME…: in the sandbox that is next. 1: this kernel has no such thing, which the program found out by
# trying.
leave() {
	canary leave "$@"
	if [ "$RC" -eq 77 ]; then
		echo "not on this kernel: $(jq -r .stderr <<<"$JSON")"
		return 1
	fi
	[ "$RC" -eq 0 ] || fail "it was not left: $(jq -c 'del(.stdout)' <<<"$JSON")"
}

# proof_of CID EXEC: what the proof after that exec said, as the trail has it: "clean", "files", … in CHECK,
# the whole line in SCRUB.
proof_of() {
	# shellcheck disable=SC2317 # called by wait_for
	proved() { SCRUB=$(grep -F " cid=${1:0:12} exec=$2 check=" "$HST_DIR/log/sandbox-audit.log"); }
	wait_for 20 proved "$1" "$2" || fail "the trail has no proof of ${1:0:12} after exec $2"
	[[ $SCRUB =~ Z\ SCRUB\ ok=(true|false)\ .*\ check=([a-z_0-9]+)\  ]] || fail "it says: $SCRUB"
	CHECK=${BASH_REMATCH[2]}
	[ "$CHECK" = clean ] || expect_eq false "${BASH_REMATCH[1]}"
}

# record_of CID CHECK: the kernel's record that this sandbox was not proved clean.
record_of() {
	# shellcheck disable=SC2317 # called by wait_for
	recorded() {
		audit_records --raw -m TRUSTED_APP -x "$HST_RUN/bin/hermes-sandboxd" |
			grep -F "op=scrub-failed " | grep -F "cid=\"${1:0:12}\"" | grep -qF " check=$2 "
	}
	wait_for 10 recorded "$@" || fail "the kernel's trail has no scrub-failed of ${1:0:12} with check=$2"
}

# --- cases -----------------------------------------------------------------------------------------------

# unchanged CID: the sandbox is still that one, and looks as it did when nobody had been in it.
unchanged() {
	look
	expect_eq "$1" "$CID"
	if ! differences "$1"; then
		docker_ kill "$1" >/dev/null # the next case shall not find it
		fail "a command sees the one before it"
	fi
}

# removed NAME…: what a command leaves is removed, and the sandbox is used again.
removed() {
	local cid
	look
	cid=$CID
	leave "$@" || {
		unchanged "$cid"
		return 0
	}
	expect_eq "$cid" "$CID"
	proof_of "$cid" "$EXEC"
	expect_eq clean "$CHECK"
	unchanged "$cid"
}

# A command's tree is killed before the scrub: these processes are in no command's tree.
strangers() {
	local cid
	look
	cid=$CID
	process 0:0 7301 "$cid"
	process 10000:10000 7302 "$cid"
	canary look
	expect_eq "$cid" "$CID"
	proof_of "$cid" "$EXEC"
	expect_gone 7301 7302
	unchanged "$cid"
}

# thrown_away CID CHECK: the last exec ran in that sandbox, the proof failed with that check, and the next exec
# is in another sandbox and sees nothing.
thrown_away() {
	expect_eq "$1" "$CID"
	proof_of "$1" "$EXEC"
	expect_eq "$2" "$CHECK"
	look
	[ "$CID" != "$1" ] || fail "the sandbox is used again"
	! grep -F canary <<<"$OUT" || fail "a command sees the one before it"
	record_of "$1" "$2"
}

# replaced CHECK NAME…: what a command leaves makes the proof fail.
replaced() {
	local cid
	look
	cid=$CID
	leave "${@:2}" || return 0
	thrown_away "$cid" "$1"
}

# spoiled CHECK COMMAND…: so does what the command does to the sandbox, given its id, before an exec.
spoiled() {
	local check=$1 cid
	shift
	look
	cid=$CID
	"$@" "$cid"
	run_json "$CALLER" 'exit 0'
	thrown_away "$cid" "$check"
	[ -z "${HELD:-}" ] || exec {HELD}>&-
}

# --- residues that root leaves from outside, with the host's own rights ----------------------------------
# Each is a function of the sandbox's id. What is in it is named canary.

init_of() { docker_ inspect -f '{{.State.Pid}}' "$1"; }
# root_of CID: its files as the host's root sees them.
root_of() { echo "/proc/$(init_of "$1")/root"; }
# inside CID NAMESPACES COMMAND…: a host program in namespaces of the sandbox; with the mount namespace, one of
# the image's.
inside() {
	local pid
	pid=$(init_of "$1")
	nsenter -t "$pid" "${@:2}"
}

root_file_tmp() { echo canary >"$(root_of "$1")/tmp/canary"; }
root_file_shm() { echo canary >"$(root_of "$1")/dev/shm/canary"; }
root_file_dev() { echo canary >"$(root_of "$1")/dev/canary"; }
root_folder_home() {
	mkdir -m 0700 "$(root_of "$1")/home/sandbox/canary"
	: >"$(root_of "$1")/home/sandbox/canary/canary"
}
root_mode_tmp() { chmod 0777 "$(root_of "$1")/tmp"; }
root_owner_tmp() { chown 10000:10000 "$(root_of "$1")/tmp"; }
root_closed_tmp() { chmod 000 "$(root_of "$1")/tmp"; }
root_owner_home() { chown 0:0 "$(root_of "$1")/home/sandbox"; }
root_shm() { inside "$1" -i ipcmk -M 4096 -p 0600 >/dev/null; }
root_messages() { inside "$1" -i ipcmk -Q -p 0600 >/dev/null; }
root_semaphores() { inside "$1" -i ipcmk -S 1 -p 0600 >/dev/null; }
# Nothing but the queue: the folder's times are what they were.
root_queue() {
	local top
	top=$(root_of "$1")/dev/mqueue
	touch -r "$top" "$HST_DIR/times"
	inside "$1" -i "$CANARY" leave queue
	touch -r "$HST_DIR/times" "$top"
}
root_mount() { inside "$1" -m mount -t tmpfs canary /mnt; }
root_mount_tmp() { inside "$1" -m mount -t tmpfs canary /tmp; }
root_remount_home() { inside "$1" -m -p mount -o remount,noexec /home/sandbox; }
root_umount_home() { inside "$1" -m -p umount -l /home/sandbox; }
# A file without a name, which a process outside of the sandbox keeps open: HELD. Nothing but its blocks is left.
root_held() {
	local top
	top=$(root_of "$1")/tmp
	touch -r "$top" "$HST_DIR/times"
	exec {HELD}<>"$top/canary"
	rm "$top/canary"
	head -c 1048576 /dev/zero >&"$HELD"
	touch -r "$HST_DIR/times" "$top"
}
# process USER NUMBER CID: "sleep NUMBER", and it is no command's.
process() {
	docker_ exec -d -u "$1" "$3" sleep "$2"
	wait_for 10 running sleep "$2" || fail "it does not run"
}
# The same, and a kill does not end it: FROZEN is its control group. Only where the kernel has the first
# version's freezer.
frozen() {
	local pid
	process 10000:10000 7303 "$1"
	pid=$(pid_of sleep 7303)
	FROZEN=/sys/fs/cgroup/freezer$(sed -n 's/^[0-9]*:freezer://p' "/proc/$pid/cgroup")/canary
	mkdir "$FROZEN"
	echo "$pid" >"$FROZEN/cgroup.procs"
	echo FROZEN >"$FROZEN/freezer.state"
	wait_for 5 grep -qx FROZEN "$FROZEN/freezer.state"
}
