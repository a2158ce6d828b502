#!/bin/bash
# Limits: who runs into one is told which, the sandbox goes on or is replaced, and the next command finds
# nothing of it (cases 8 to 11). What this machine does not enforce is named by status.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

# A runtime that drops every limit of a container, as an engine on a machine without these controllers does.
RUNTIME=$HST_DIR/unlimited
cat >"$RUNTIME" <<'EOT'
#!/bin/sh
bundle=. before=
for a; do
	[ "$before" != --bundle ] || bundle=$a
	before=$a
done
case " $* " in
*" create "*)
	jq 'del(.linux.resources.memory, .linux.resources.pids, .linux.resources.cpu)' \
		"$bundle/config.json" >"$bundle/config.json.new" &&
		mv "$bundle/config.json.new" "$bundle/config.json"
	;;
esac
exec runc "$@"
EOT
chmod 0755 "$RUNTIME"

# engine_runtimes JSON: what the run's engine has besides its own.
engine_runtimes() {
	echo "{ \"runtimes\": $1 }" >"$HST_RUN/engine/daemon.json"
	kill -HUP "$(cat "$HST_RUN/engine/pid")"
}
# shellcheck disable=SC2317 # called by wait_for
has_unlimited() { docker_ info --format '{{json .Runtimes}}' 2>/dev/null | grep -q hst-unlimited; }
engine_runtimes "{ \"hst-unlimited\": { \"path\": \"$RUNTIME\" } }"
trap 'rc=$?; engine_runtimes "{}"; set +e; (exit $rc); it_exit' EXIT
wait_for 20 has_unlimited || fail "the engine takes no further runtime"

it_config <<END
pool:
  size: 2
  max_sandboxes: 40
  pids_limit: 64
limits:
  grace: 200ms
profiles:
  one:                  # always the same sandbox, or its replacement
    size: 1
    max_sandboxes: 1
    on_empty: wait
  pip:
    size: 1
    memory_limit: 512m
    tmpfs: { "/tmp": 300m, "/home/sandbox": 64m }
  mute:
    size: 1
    limits: { output_bytes: 1000 }
  brief:
    size: 1
    limits: { timeout: 700ms, timeout_max: 2s }
  disk:
    size: 1
    read_only: false
  unlimited:
    size: 1
    runtime: hst-unlimited
END
it_start
for profile in one pip mute brief disk unlimited; do
	wait_for 60 it_warm 1 $profile || fail "no sandbox of profile $profile"
done

# says CODE FIELDS ARGUMENT…: FIELDS are "NAME VALUE NAME VALUE"; the answer is then in JSON.
says() {
	local code=$1 fields=$2 rc=0
	shift 2
	JSON=$(hs exec --json "$@") || rc=$?
	expect_eq "$code" "$rc"
	# shellcheck disable=SC2086 # they are words
	expect_fields "$JSON" exit_code "$code" $fields
}

# What a command sees in a sandbox that nobody has used yet: processes, files, and room in bytes.
inventory='n=0; for p in /proc/[0-9]*; do n=$((n + 1)); done; echo "processes $n"
	for d in /tmp /dev/shm "$HOME"; do echo "$d: $(ls -A $d)"; done
	df -B1 --output=target,size,avail /tmp /dev/shm "$HOME" | tail -n 3'
UNUSED=$(hs exec --profile one "$inventory")
expect_match '^processes [2-4]'$'\n''/tmp: '$'\n' "$UNUSED"

# The next command, whoever had the sandbox before, sees the same.
as_new() { expect_eq "$UNUSED" "$(hs exec --profile one "$inventory")"; }

# --- case 8: memory ----------------------------------------------------------------------------------

MEMORY_TEXT='^exec: the memory limit of 128 MiB was reached \(peak ([0-9]+) KiB\): see memory_limit of profile'

oom_beside_success() {
	local peak
	says 0 "cause oom signal null stdout done" '(sh -c "tail /dev/zero; :"; :) 2>/dev/null; echo done'
	expect_match "$MEMORY_TEXT" "$(field .error "$JSON")"
	peak=${BASH_REMATCH[1]}
	[ "$peak" -gt $((90 << 10)) ] || fail "a peak of $peak KiB"
	[ "$peak" -le $((128 << 10)) ] || fail "a peak of $peak KiB"
}
it_case "case 8: a grandchild dies of the memory limit, the command ends with 0: it is said" oom_beside_success

# Once in both trails: nobody tried again behind the caller's back.
oom_once() {
	local id
	says 137 "cause oom signal 9" 'exec tail /dev/zero of-once'
	id=$(field .exec_id "$JSON")
	expect_eq 1 "$(grep -c 'cmd="exec tail /dev/zero of-once"' "$HST_DIR/log/sandbox-audit.log")"
	expect_match ' cause=oom' "$(grep " exec=$id " "$HST_DIR/log/sandbox-audit.log" | grep cmd=)"
	# shellcheck disable=SC2317 # called by wait_for
	recorded() {
		[ "$(audit_records --raw -m USER_CMD | grep -F "exec=\"$1\"" | grep -oE 'op=exec-[a-z]+|cause=[a-z]+' |
			paste -sd' ')" = "op=exec-start op=exec-end cause=oom" ]
	}
	wait_for 10 recorded "$id" || fail "the kernel trail has no pair of records of it"
}
it_case "case 8: it ran once, and both trails have the cause" oom_once

# What a tmpfs holds stays when the kernel kills: the next command has the memory all the same.
oom_full() {
	says 137 "cause oom signal 9" --profile one 'dd if=/dev/zero of=/tmp/a bs=1M count=40 2>&-
		dd if=/dev/zero of=$HOME/b bs=1M count=30 2>&-; dd if=/dev/zero of=/dev/shm/c bs=1M count=14 2>&-
		exec tail /dev/zero'
	says 3 "cause exited signal null" --profile one 'exit 3'
	as_new
	says 0 "cause exited error null" --profile one 'head -c 45000000 /dev/zero >/tmp/again'
}
it_case "case 8: with all tmpfs full beside it; the next command has its memory, and is not blamed" oom_full

# In a session the limit is one for all that run there: who was killed is told, the others are not.
oom_of_another() {
	local calm said id
	hs session open both >/dev/null
	hs_begin calm exec --json --session both 'sleep 7421 & until [ -e /tmp/go ]; do sleep 0.05; done; kill $!; echo calm'
	calm=$HS_PID
	hs_begin said exec --session both 'sleep 7422 & until [ -e /tmp/go ]; do sleep 0.05; done; kill $!; exit 6'
	said=$HS_PID
	wait_for 20 sleeps 7421 7422 || fail "they do not run"
	says 137 "cause oom signal 9" --session both 'exec tail /dev/zero'
	says 137 "cause oom signal null" --session both 'sh -c "tail /dev/zero; exit \$?" 2>/dev/null; exit $?'
	hs exec --session both 'touch /tmp/go'
	hs_end "$calm"
	expect_eq 0 "$HS_RC"
	JSON=$(cat "$HST_DIR/calm.out")
	expect_fields "$JSON" exit_code 0 cause exited signal null stdout calm stderr_bytes 0 error null
	id=$(field .exec_id "$JSON")
	expect_match ' cause=exited ' "$(grep " exec=$id " "$HST_DIR/log/sandbox-audit.log" | grep cmd=)"
	hs_end "$said"
	expect_eq "6 ()" "$HS_RC ($(cat "$HST_DIR/said.out" "$HST_DIR/said.err"))"
	# Alone in its session: a failure is blamed on the limit, a success is not spoilt.
	says 5 "cause oom signal null" --session both '(sh -c "tail /dev/zero; :"; :) 2>/dev/null; exit 5'
	says 0 "cause exited error null stdout done" --session both '(sh -c "tail /dev/zero; :"; :) 2>/dev/null; echo done'
	hs session close both
}
it_case "case 8: in a session only the command that was killed is told, not one that ran beside it" oom_of_another

peaks() {
	local before i
	for i in 1 2 3; do
		says 0 "cause exited" --profile one true
		[ "$i" = 1 ] || if [ "$(field .sandbox "$JSON")" = "$before" ]; then
			expect_fields "$JSON" sandbox_peak_bytes null
		else
			[ "$(field .sandbox_peak_bytes "$JSON")" -gt 0 ] || fail "$JSON"
		fi
		before=$(field .sandbox "$JSON")
	done
}
it_case "the peak of a sandbox that served others is not passed off as this command's" peaks

# --- case 9: processes -------------------------------------------------------------------------------

bomb='$| = 1; for (1 .. 200) { my $p = fork; exec "sleep", "7401" if defined $p && !$p } print "full\n"; '

pids_beside_success() {
	says 0 "cause exited error null stdout full" --profile one -- perl -e "$bomb exit 0"
	[ "$(field .background_left "$JSON")" -gt 40 ] || fail "$JSON"
	expect_gone 7401
	as_new
	says 7 "cause pids_limit signal null" --profile one -- perl -e "$bomb exit 7"
	expect_match '^exec: the limit of 64 processes was reached: see pids_limit of profile one$' \
		"$(field .error "$JSON")"
	expect_gone 7401
	as_new
	says 7 "cause exited error null" --profile one 'exit 7'
}
it_case "case 9: the pids limit is blamed where the command failed, and for that command alone" pids_beside_success

# The limit is held: the agent has no process to spare, and still does all that it must.
pids_held() {
	local until=$SECONDS
	# Longer than the manager waits for an answer to its pings.
	[ -z "${HST_LONG:-}" ] || until=$((SECONDS + 25))
	hs_begin held exec --profile one -- perl -e "$bomb sleep 1000"
	wait_for 20 grep -qx full "$HST_DIR/held.out" || fail "the command does not start"
	expect_eq up "$(hs status --json | jq -r .engine.state)"
	expect_eq hello "$(hs exec 'echo hello')"
	# shellcheck disable=SC2317 # called by wait_for
	passed() { [ "$SECONDS" -ge "$until" ]; }
	wait_for 60 passed
	! gone "$HS_PID" || fail "the command was lost"
	kill -TERM "$HS_PID"
	hs_end "$HS_PID"
	expect_eq 143 "$HS_RC"
	expect_gone 7401
	as_new
}
it_case "case 9: at the limit the agent passes a signal on and reports the end" pids_held

fork_bombs() {
	for _ in 1 2 3; do
		says 124 "cause timeout" --profile one --timeout 500ms -- perl -e '$0 = "bomb 7402"; fork while 1'
		! running 'bomb 7402' || fail "a bomb is left"
		as_new
	done
}
it_case "case 9: after a fork bomb the sandbox is as new" fork_bombs

# --- tmpfs -------------------------------------------------------------------------------------------

full() {
	says 1 "cause exited stdout_bytes 0" --profile one "exec dd if=/dev/zero of=$1/full bs=64k"
	expect_match 'No space left on device' "$(field .stderr "$JSON")"
	as_new
}
it_case "a full /tmp is ENOSPC, and the next command has an empty one" full /tmp
it_case "a full HOME too" full '$HOME'
it_case "a full /dev/shm too" full /dev/shm

# --- case 11 -----------------------------------------------------------------------------------------

installs() {
	for _ in 1 2; do
		says 0 "cause exited stderr_bytes 0" --profile pip 'set -e
			work=$(mktemp -d)
			head -c 290000000 /dev/zero >"$work/wheel"
			printf "#!/bin/sh\necho ran from \$0\n" >"$work/setup" && chmod +x "$work/setup" && "$work/setup"
			cp /bin/echo "$TMPDIR/built" && "$TMPDIR/built" compiled
			mkdir -p ~/.local/bin ~/.cache/pip && cp "$work/setup" ~/.local/bin/tool
			PATH=$HOME/.local/bin:$PATH tool
			head -c 40000000 /dev/zero >~/.cache/pip/wheel
			[ "$(stat -c %s "$work/wheel")" = 290000000 ]'
		expect_match '^ran from /tmp/[^ ]+/setup compiled ran from /home/sandbox/.local/bin/tool$' \
			"$(field '.stdout | rtrimstr("\n")' "$JSON" | paste -sd' ')"
	done
	says 1 "cause exited" --profile pip 'exec head -c 320000000 /dev/zero >/tmp/big'
	expect_match 'No space left on device' "$(field .stderr "$JSON")"
	says 0 "cause exited" --profile pip 'head -c 290000000 /dev/zero >/tmp/wheel'
}
it_case "case 11: 290 MB in /tmp, run from there and from HOME, command after command" installs

# --- output and time ---------------------------------------------------------------------------------

output() {
	says 4 "cause exited truncated true stdout_bytes 700 stderr_bytes 701 stdout_lines 0 stderr_lines 1" \
		--profile mute 'printf %0700d 0; sleep 0.1; printf "%0700d\n" 0 >&2; exit 4'
	expect_eq "700 300" "$(jq -r '"\(.stdout | length) \(.stderr | length)"' <<<"$JSON")"
	expect_match 'output beyond 1000 bytes was dropped' "$(field .error "$JSON")"
	says 0 "truncated false error null stdout_bytes 1000" --profile mute 'printf %01000d 0'
	# It is drained, or the command would wait for a reader for ever.
	says 0 "truncated true stdout_bytes 20000000" --profile mute 'head -c 20000000 /dev/zero'
	says 0 "truncated false stdout fine" --profile mute 'echo fine'
}
it_case "output_bytes counts both streams together, and each command anew" output

own_timeout() {
	says 124 "cause timeout" --profile brief 'sleep 7411; :'
	expect_match 'timed out after 700 ms' "$(field .error "$JSON")"
	expect_gone 7411
	says 124 "cause timeout" --profile brief --timeout 1500ms 'sleep 7411; :'
	expect_match 'timed out after 1500 ms' "$(field .error "$JSON")"
	expect_rc 64 hs exec --profile brief --timeout 3s true 2>/dev/null
	says 0 "cause exited" --profile brief true
}
it_case "a profile's own time-out: 124, and a caller may not ask for more than timeout_max" own_timeout

# --- what is not enforced ----------------------------------------------------------------------------

# layer PROFILE NAME: "STATE WHY".
layer() {
	hs status --json |
		jq -r --arg p "$1" --arg l "$2" '.pools[] | select(.profile == $p) | .layers[$l] | "\(.state) \(.why)"'
}

# init_of PROFILE: the pid of a sandbox' init process.
init_of() {
	docker_ inspect -f '{{.State.Pid}}' \
		"$(docker_ ps -q --filter "label=hermes-sandbox.profile=$1" --filter status=running | head -n 1)"
}

# cgroup_value PID CONTROLLER V1_FILE V2_FILE: what the kernel has for that process; nothing where it has no
# such file.
cgroup_value() {
	local path
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		path=/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$1/cgroup")/$4
	else
		path=/sys/fs/cgroup/$2$(awk -F: -v c="$2" '$2 ~ "(^|,)" c "(,|$)" { print $3 }' "/proc/$1/cgroup")/$3
	fi
	cat "$path" 2>/dev/null || true
}

# kernel_lacks PID: the names of the default profile's limits that the kernel does not have for that process.
kernel_lacks() {
	local swap=134217728 cpu
	[ ! -e /sys/fs/cgroup/cgroup.controllers ] || swap=0
	[ "$(cgroup_value "$1" memory memory.limit_in_bytes memory.max)" = 134217728 ] || echo memory_limit
	[ "$(cgroup_value "$1" memory memory.soft_limit_in_bytes memory.low)" = 16777216 ] || echo memory_reserve
	[ "$(cgroup_value "$1" memory memory.memsw.limit_in_bytes memory.swap.max)" = "$swap" ] || echo swap
	[ "$(cgroup_value "$1" pids pids.max pids.max)" = 64 ] || echo pids_limit
	cpu=$(cgroup_value "$1" cpu cpu.cfs_quota_us cpu.max)
	[ "${cpu%% *}" = 100000 ] || echo cpus
}

limits_told() {
	local lacks name said
	lacks=$(kernel_lacks "$(init_of "$1")")
	said=$(layer "$1" limits)
	if [ -z "$lacks" ]; then
		expect_match '^active cgroup v[12]: memory 128 MiB, 64 processes, 1.00 CPUs$' "$said"
		return
	fi
	for name in memory_limit memory_reserve swap pids_limit cpus; do
		if grep -qx $name <<<"$lacks"; then
			expect_match "^degraded .*unenforced.* $name( |\$)" "$said"
		elif grep -qw $name <<<"$said"; then
			fail "$name is enforced, but: $said"
		fi
	done
}
it_case "status tells of each limit what the kernel has" limits_told default

unlimited_told() {
	local lacks
	lacks=$(kernel_lacks "$(init_of unlimited)" | paste -sd' ')
	expect_eq "memory_limit memory_reserve swap pids_limit cpus" "$lacks"
	limits_told unlimited
	expect_match $'\n  limits +degraded .*unenforced' "$(hs status)"
}
it_case "an engine that drops every limit: each is named as unenforced" unlimited_told

kernel_field() { awk -v f="$2:" '$1 == f { print $2 }' "/proc/$1/status"; }

layers_told() {
	local pid engine ns
	pid=$(init_of default)
	engine=$(cat "$HST_RUN/engine/pid")
	expect_eq "2 1 00000000000000e0" \
		"$(kernel_field "$pid" Seccomp) $(kernel_field "$pid" NoNewPrivs) $(kernel_field "$pid" CapBnd)"
	expect_match '^active ' "$(layer default capabilities)"
	case $(kernel_field "$pid" Seccomp_filters) in
	'' | 0 | 1) expect_match '^degraded ' "$(layer default seccomp)" ;;
	*) expect_match '^active ' "$(layer default seccomp)" ;;
	esac
	for ns in pid mnt net ipc uts; do
		[ "$(readlink "/proc/$pid/ns/$ns")" != "$(readlink "/proc/$engine/ns/$ns")" ] ||
			fail "the host's $ns namespace"
	done
	if [ "$(readlink "/proc/$pid/ns/user")" = "$(readlink "/proc/$engine/ns/user")" ]; then
		expect_match '^degraded .*no user namespace' "$(layer default namespaces)"
	else
		expect_match '^active ' "$(layer default namespaces)"
	fi
	case $(cat "/proc/$pid/attr/apparmor/current" 2>/dev/null || true) in
	'') expect_match '^unsupported ' "$(layer default apparmor)" ;;
	unconfined*) expect_match '^disabled ' "$(layer default apparmor)" ;;
	*'(enforce)') expect_match '^active ' "$(layer default apparmor)" ;;
	*) expect_match '^degraded ' "$(layer default apparmor)" ;;
	esac
	expect_match '^active ' "$(layer default rootfs)"
	expect_match ' / [^ ]+ ro,' "$(grep ' / ' "/proc/$pid/mounts")"
	expect_match '^active ' "$(layer default network)"
	expect_eq lo "$(awk -F: 'NR > 2 { gsub(/ /, "", $1); print $1 }' "/proc/$pid/net/dev")"
}
it_case "and of each other layer what the kernel says of the sandbox' init process" layers_told

# Case 10. No key bounds the writable layer of a container, as few storage drivers could.
disk() {
	expect_match '^disabled .*read_only is false.*unenforced' "$(layer disk rootfs)"
	printf 'pool:\n  disk_limit: 1g\n' >"$HST_DIR/disk.yaml"
	expect_rc 78 "$HST_RUN/bin/hermes-sandbox-config" check "$HST_DIR/disk.yaml" 2>"$HST_DIR/err"
	expect_match 'disk.yaml:2:3: pool.disk_limit: found an unknown key' "$(cat "$HST_DIR/err")"
}
it_case "case 10: a writable root file system has no bound, and status says so; a key that would is refused" disk

warnings() {
	local warning
	docker_ info --format '{{range .Warnings}}{{println .}}{{end}}' 2>/dev/null | grep . >"$HST_DIR/warnings" || true
	hs status >"$HST_DIR/status"
	while read -r warning; do
		grep -qF "engine warning: $warning" "$HST_DIR/status" || fail "status does not tell: $warning"
	done <"$HST_DIR/warnings"
	expect_eq "$(jq -Rnc '[inputs] | sort' "$HST_DIR/warnings")" \
		"$(hs status --json | jq -c '.engine.warnings | sort')"
}
it_case "what the engine itself warns of stands in status" warnings
