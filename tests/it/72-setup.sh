#!/bin/bash
# hermes-sandbox-setup on the real thing: the change as a diff, made, made twice, refused, taken back, interrupted,
# asked for on a terminal; and the scripts. systemd's part is tests/pkg/25-setup.sh's.
# shellcheck disable=SC2317 # the cases are called by it_case
. "${0%/*}/../lib/it.sh"
rm -f "$HST_DIR/etc/sandbox.d/50-test.yaml"
SETUP=$HST_RUN/bin/hermes-sandbox-setup
DROPIN=$HST_DIR/etc/sandbox.d/50-setup.yaml
OWNER=hstest-owner
install -d -m 0755 "$HST_RUN/share/hermes-sandbox/scripts"
install -m 0755 "$TOP"/scripts/*.sh "$HST_RUN/share/hermes-sandbox/scripts/"

# What the supervisor is to setup: it holds the lock on a file, and passes HUP on.
supervisor_begin() {
	it_spawn supervisor python3 -c '
import fcntl, os, signal, sys
lock = open(sys.argv[1], "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
def pass_on(*_):
    for name in sys.argv[2:]:
        os.kill(int(open(name).read()), signal.SIGHUP)
signal.signal(signal.SIGHUP, pass_on)
while True:
    signal.pause()' "$HST_DIR/supervisor.lock" "$HST_DIR/engined.pid" "$HST_DIR/sandboxd.pid"
	wait_for 10 test -e "$HST_DIR/supervisor.lock"
}

# shellcheck disable=SC2317 # the trap calls it
cleanup() {
	local rc=$?
	set +e
	[ ! -s "$HST_DIR/supervisor.pid" ] || end_process "$(it_pid supervisor)" 5 || true
	userdel -f "$OWNER" 2>/dev/null || true
	(exit $rc)
	it_exit
}
trap cleanup EXIT

it_start
supervisor_begin

setup() {
	"$SETUP" --config-dir "$HST_DIR/etc" --socket "$HST_DIR/run/pool.sock" --pid-file "$HST_DIR/supervisor.lock" "$@" \
		>"$HST_DIR/out" 2>"$HST_DIR/err" </dev/null
}
said() { cat "$HST_DIR/out"; }
complained() { cat "$HST_DIR/err"; }
ids() { docker_ ps -q --no-trunc --filter "label=hermes-sandbox.profile=${1:-default}" | sort; }
memory() { ids "$1" | xargs -r docker -H "unix://$HST_ENGINE" inspect -f '{{.HostConfig.Memory}}' | sort -u; }

dry_run() {
	setup --dry-run --pool-size 2 --memory 256m || fail "$(complained)"
	expect_match $'(^|\n)--- /dev/null\n\\+\\+\\+ '"$DROPIN"$'\n@@ ' "$(said)"
	expect_match $'\n\\+pool:\n\\+  size: 2\n\\+  memory_limit: 256m$' "$(said)"
	[ ! -e "$DROPIN" ] || fail "it wrote"
	# Nobody needs to be root to look.
	as "$CALLER" "$SETUP" --config-dir "$HST_DIR/etc" --dry-run --cpus 0.5 | grep -qx '+  cpus: 0.5'
}
it_case "--dry-run shows a diff and writes nothing" dry_run

made() {
	setup --yes --pool-size 2 --memory 256m --cpus 0.5 || fail "$(complained)"
	expect_eq "" "$(complained)"
	expect_match 'uid=10000 ' "$(said)"
	expect_match $'\n +hello from a sandbox\nenforced in the profile default:\n  namespaces +(active|degraded) ' "$(said)"
	expect_match $'\n  limits +[a-z]+ ' "$(said)"
	expect_eq "644 root root" "$(stat -c '%a %U %G' "$DROPIN")"
	expect_eq 2 "$(hs status --json | jq '.pools[0].size')"
	# shellcheck disable=SC2317 # called by wait_for
	replaced() { [ "$(memory default)" = 268435456 ] && it_warm 2; }
	wait_for 90 replaced || fail "the warm sandboxes have $(memory default)"
}
it_case "--yes writes, has it read, proves it, and shows what is enforced" made

twice() {
	local before
	before="$(stat -c '%i %Y %Z' "$DROPIN") $(ids)"
	setup --yes --pool-size 2 --memory 256m --cpus 0.5 || fail "$(complained)"
	expect_match '^config:  nothing to change' "$(said)"
	setup --yes || fail "$(complained)"
	expect_match '^config:  nothing to change' "$(said)"
	expect_eq "$before" "$(stat -c '%i %Y %Z' "$DROPIN") $(ids)"
}
it_case "said twice it changes nothing, and says so" twice

profile() {
	setup --yes --profile web-2 --pool-size 0 --memory-reserve 0 --read-only false || fail "$(complained)"
	expect_match 'hermes-sandbox exec --profile web-2 ' "$(said)"
	expect_match $'enforced in the profile web-2:\n.*\n  rootfs +disabled ' "$(said)"
	expect_match '  size: 2' "$(cat "$DROPIN")"
	"$HST_RUN/bin/hermes-sandbox-config" check --config-dir "$HST_DIR/etc" >/dev/null
	expect_eq "2 0" "$(hs status --json | jq '.pools | sort_by(.profile) | .[].size' | paste -sd' ')"
}
it_case "another profile is made, and what was asked for before stays" profile

refused() {
	local before option
	before=$(cat "$DROPIN")
	for option in '--pool-size many' '--memory 12x' '--memory 64m' '--cpus 0' '--network host' '--read-only no' \
		'--image a:b:c' '--profile X --cpus 1' '--profile nowhere'; do
		# shellcheck disable=SC2086 # two words
		expect_rc 78 setup --yes $option
		expect_eq 1 "$(wc -l <"$HST_DIR/err")"
		expect_match '; nothing is changed$' "$(complained)"
		expect_eq "$before" "$(cat "$DROPIN")"
	done
	echo 'pool: { size: many }' >"$HST_DIR/etc/sandbox.d/90-bad.yaml"
	expect_rc 78 setup --yes --cpus 1
	expect_match '90-bad.yaml:1:15: pool.size: found "many"' "$(complained)"
	rm "$HST_DIR/etc/sandbox.d/90-bad.yaml"
	expect_eq "$before" "$(cat "$DROPIN")"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "what is bad, there or elsewhere, is one line and 78, and nothing is changed" refused

no_image() {
	local before
	before=$(cat "$DROPIN")
	expect_rc 125 setup --yes --image 127.0.0.1:1/nowhere:none
	expect_match 'the image 127.0.0.1:1/nowhere:none could not be had: docker pull [^ ]+, then try again; the configuration is as it was$' \
		"$(tail -n 1 "$HST_DIR/err")"
	expect_eq "$before" "$(cat "$DROPIN")"
	wait_for 20 it_warm 2
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "an image that cannot be had: the configuration is as it was" no_image

no_engine() {
	mkdir "$HST_DIR/other"
	cp "$TOP/etc/sandbox.yaml" "$HST_DIR/other/"
	echo "engine: { socket: $HST_DIR/nobody.sock }" >>"$HST_DIR/other/sandbox.yaml"
	expect_rc 125 "$SETUP" --config-dir "$HST_DIR/other" --yes --pool-size 1 2>"$HST_DIR/err"
	expect_match "the engine at $HST_DIR/nobody.sock does not answer" "$(complained)"
	expect_eq "" "$(ls "$HST_DIR/other/sandbox.d")"
}
it_case "an engine that does not answer: nothing is changed" no_engine

may() {
	expect_rc 77 as "$CALLER" "$SETUP" --yes --pool-size 2 2>"$HST_DIR/err"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_match 'sudo hermes-sandbox setup' "$(complained)"
	expect_rc 64 setup --pool-size 2
	expect_match '^hermes-sandbox-setup: say --yes to do it, or --dry-run to see it' "$(complained)"
	expect_rc 64 setup
	expect_rc 64 setup --yes operand
}
it_case "not root: 77; nobody to ask: 64" may

# Killed at any moment: the file is the one or the other, and the next one ends what was begun.
interrupted() {
	local i size
	for i in $(seq 0 39); do
		size=$((3 + i % 2))
		# The shell has a word on each that is killed.
		(timeout -s KILL "0.00$((i / 4))" "$SETUP" --config-dir "$HST_DIR/etc" --yes --no-start --pool-size $size || true) \
			>/dev/null 2>&1
		"$HST_RUN/bin/hermes-sandbox-config" check --config-dir "$HST_DIR/etc" >/dev/null
		grep -qxE '  size: [234]' "$DROPIN" || fail "half of one: $(cat "$DROPIN")"
	done
	setup --yes --pool-size 2 || fail "$(complained)"
	grep -qx '  size: 2' "$DROPIN"
	expect_eq "10-place.yaml 50-setup.yaml" "$(find "$HST_DIR/etc/sandbox.d" -mindepth 1 -printf '%f\n' | sort | paste -sd' ')"
}
it_case "killed anywhere nothing is half-done, and the next one completes it" interrupted

# on_terminal ANSWER…: what it asks, and the answers, on a terminal. Its status is setup's.
on_terminal() {
	python3 - "$SETUP" --config-dir "$HST_DIR/etc" --socket "$HST_DIR/run/pool.sock" --pid-file "$HST_DIR/supervisor.lock" -- "$@" \
		>"$HST_DIR/out" <<-'END'
		import os, pty, select, sys
		at = sys.argv.index("--")
		command, answers = sys.argv[1:at], sys.argv[at + 1:]
		pid, fd = pty.fork()
		if pid == 0:
		    os.execv(command[0], command)
		text = ""
		seen = 0
		while True:
		    assert select.select([fd], [], [], 60)[0], f"it says no more: {text!r}"
		    try:
		        more = os.read(fd, 65536).decode()
		    except OSError:
		        break
		    if not more:
		        break
		    text += more
		    # A question ends the line that it stands in.
		    if answers and text[seen:].endswith(("]: ", "[Y/n] ")):
		        seen = len(text)
		        os.write(fd, answers.pop(0).encode() + b"\n")
		print(text.replace("\r", ""))
		sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	END
}

asked() {
	local before
	before=$(cat "$DROPIN")
	expect_rc 1 on_terminal '' '' '' 0.75 '' '' '' n
	expect_match 'Warm sandboxes \[2\]: ' "$(said)"
	expect_match 'CPUs of one sandbox \[0.5\]: 0.75' "$(said)"
	expect_match $'\n-  cpus: 0.5\n\\+  cpus: 0.75\n' "$(said)"
	expect_eq "$before" "$(cat "$DROPIN")"
	# A bad answer is asked for again; what is in force stays.
	expect_rc 0 on_terminal '' '' '' 0.75 host none '' '' y
	expect_match 'found "host", expected none, bridge' "$(said)"
	expect_match 'hello from a sandbox' "$(said)"
	expect_eq "${before/cpus: 0.5/cpus: 0.75}" "$(cat "$DROPIN")"
	# Nothing new: nothing to confirm.
	expect_rc 0 on_terminal '' '' '' '' '' '' ''
	expect_match 'nothing to change' "$(said)"
}
it_case "on a terminal it asks, with what is in force, shows the diff, and asks before it writes" asked

# --- scripts -----------------------------------------------------------------------------------------

script() {
	local name=$1
	shift
	as "$CALLER" env HERMES_SANDBOX_SOCKET="$HST_DIR/run/pool.sock" PATH="$HST_RUN/bin:/usr/bin:/bin" \
		"$HST_RUN/share/hermes-sandbox/scripts/$name" "$@"
}

scripts() {
	expect_eq "a  b" "$(script sandbox-exec.sh 'echo "a  b"')"
	expect_eq "a b" "$(script sandbox-exec.sh echo a b)"
	expect_rc 7 script sandbox-exec.sh 'exit 7'
	expect_rc 143 script sandbox-daemon.sh exec 'kill -TERM $$'
	expect_eq "--profile" "$(script sandbox-daemon.sh exec "printf '%s\n' --profile")"
	expect_match '^hermes-sandboxd ' "$(script sandbox-daemon.sh status)"
	expect_rc 77 script sandbox-daemon.sh start 2>/dev/null
	expect_rc 77 script sandbox-daemon.sh start 3 2>/dev/null </dev/null
	expect_rc 77 script sandbox-daemon.sh stop 2>/dev/null
	expect_rc 64 script sandbox-daemon.sh 2>/dev/null
	expect_rc 64 script sandbox-daemon.sh exec 2>/dev/null
	expect_rc 64 script sandbox-daemon.sh restart 2>/dev/null
	expect_rc 64 script sandbox-exec.sh 2>/dev/null
}
it_case "sandbox-daemon.sh and sandbox-exec.sh: arguments and exit codes" scripts

install_scripts() {
	local home=$HST_DIR/owner target=$HST_DIR/target script
	useradd --system --user-group --home-dir "$home" "$OWNER"
	install -d -m 0700 -o "$OWNER" -g "$OWNER" "$home"
	mkdir -m 0755 "$target"
	# The trap: root would write through it.
	as "$OWNER" ln -s "$target" "$home/.hermes"
	expect_rc 71 env SUDO_UID="$(id -u "$OWNER")" "$SETUP" --config-dir "$HST_DIR/etc" --yes --no-start --install-scripts \
		>/dev/null 2>"$HST_DIR/err"
	expect_match 'it is a symbolic link, and none is followed there$' "$(complained)"
	as "$OWNER" rm "$home/.hermes"
	as "$OWNER" mkdir -p "$home/.hermes"
	as "$OWNER" ln -s "$target" "$home/.hermes/scripts"
	expect_rc 71 env SUDO_UID="$(id -u "$OWNER")" "$SETUP" --config-dir "$HST_DIR/etc" --yes --no-start --install-scripts \
		>/dev/null 2>&1
	expect_eq "" "$(ls "$target")"
	as "$OWNER" rm "$home/.hermes/scripts"
	SUDO_UID=$(id -u "$OWNER") "$SETUP" --config-dir "$HST_DIR/etc" --yes --no-start --install-scripts >/dev/null
	for script in sandbox-daemon.sh sandbox-exec.sh; do
		expect_eq "755 $OWNER $OWNER" "$(stat -c '%a %U %G' "$home/.hermes/scripts/$script")"
		cmp "$TOP/scripts/$script" "$home/.hermes/scripts/$script"
	done
	# His own, without root.
	as "$OWNER" rm "$home/.hermes/scripts/sandbox-exec.sh"
	as "$OWNER" "$SETUP" --install-scripts --yes >/dev/null
	cmp "$TOP/scripts/sandbox-exec.sh" "$home/.hermes/scripts/sandbox-exec.sh"
}
it_case "--install-scripts: with the caller's own rights, and through no symbolic link" install_scripts

add_user() {
	getent passwd "$OWNER" >/dev/null || useradd --system --user-group --home-dir /nonexistent "$OWNER"
	usermod -aG docker "$OWNER"
	setup --yes --add-user "$OWNER" || fail "$(complained)"
	expect_match "warning: $OWNER is in the group docker, which is root on this machine: gpasswd -d $OWNER docker" "$(complained)"
	id -nG "$OWNER" | tr ' ' '\n' | grep -qx hermes-sandbox
	expect_eq hello "$(hs_as "$OWNER" exec 'echo hello')"
	setup --yes --no-start --add-user "$OWNER" || fail "$(complained)"
	expect_match "$OWNER may use the sandbox already" "$(said)"
	expect_rc 64 setup --yes --no-start --add-user hstest-nobody-there
}
it_case "--add-user: into the group, with a word on docker" add_user
