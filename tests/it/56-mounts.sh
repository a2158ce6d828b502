#!/bin/bash
# Host folders in sandboxes: whose they are, what root there is in one (none), and every way by which somebody might get another folder
# than his own: swapped folders, closed homes, another uid, other mounts, and a manager that lies.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

FILES=$HST_DIR/files
PROXY=$HST_DIR/proxy.sock
it_config <<END
engine:
  socket: $PROXY
pool:
  size: 1
  max_sandboxes: 4
allowed_file_paths:
  - $FILES
END

caller_makes() { install -d -m "$2" -o "$CALLER" -g "$CALLER" "$1"; }
install -d -m 0755 "$FILES" "$FILES-not"
caller_makes "$FILES/mine" 0755
caller_makes "$FILES/two" 0700
caller_makes "$FILES-not/mine" 0755
# The parent belongs to the caller too: he may rename what is in it.
caller_makes "$FILES/swap" 0755
caller_makes "$FILES/swap/folder" 0755
install -d -m 0700 -o "$STRANGER" -g "$STRANGER" "$FILES/closed"
install -d -m 0777 -o "$STRANGER" -g "$STRANGER" "$FILES/closed/inner"
echo mine >"$FILES/mine/what"
echo two >"$FILES/two/what"
echo folder >"$FILES/swap/folder/what"
echo secret >"$FILES/closed/inner/what"
chmod 0644 "$FILES"/*/what "$FILES/swap/folder/what" "$FILES/closed/inner/what"

# shellcheck disable=SC2317 # the trap calls it
proxy_end() {
	umount "$FILES/mine/sub" 2>/dev/null || true
	[ ! -s "$HST_DIR/proxy.pid" ] || end_process "$(cat "$HST_DIR/proxy.pid")" 5 || true
}
trap 'rc=$?; set +e; proxy_end; (exit $rc); it_exit' EXIT
: >"$HST_DIR/calls"
python3 "$TOP/tests/lib/engine-proxy.py" "$PROXY" "$HST_ENGINE" "$HST_DIR/rules" "$HST_DIR/calls" \
	>"$HST_DIR/proxy.out" 2>&1 &
echo $! >"$HST_DIR/proxy.pid"
wait_for 10 test -S "$PROXY" || fail "no proxy: $(cat "$HST_DIR/proxy.out")"
it_start

# in_session COMMAND
in_session() { hs exec --session m "$1"; }
# refused STATUS REGEX ARGUMENT…: of "session open"; one line, and nothing stays.
refused() {
	expect_rc "$1" hs session open m "${@:3}" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match "$2" "$(cat "$HST_DIR/err")"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_eq "" "$(hs session list | grep -w m || true)"
}
volumes() { docker_ volume ls -q | wc -l; }
# shellcheck disable=SC2317 # called by wait_for
no_volumes() { [ "$(volumes)" -eq 0 ]; }

own_folders() {
	local uid gid
	uid=$(id -u "$CALLER")
	gid=$(id -g "$CALLER")
	hs session open m --mount "$FILES/mine:/work" --mount "$FILES/two:/srv/two:ro" >/dev/null
	expect_eq "mine two" "$(in_session 'cat /work/what /srv/two/what' | paste -sd' ')"
	expect_eq "$uid $gid $gid" "$(in_session 'id -u; id -g; id -G' | paste -sd' ')"
	expect_eq "0000000000000000 0000000000000000 1" \
		"$(in_session "sed -n 's/^\\(CapEff\\|CapBnd\\|NoNewPrivs\\):[[:space:]]*//p' /proc/self/status" | paste -sd' ')"
	in_session 'echo new >/work/new && mkdir /work/folder'
	expect_eq "$CALLER:$CALLER" "$(stat -c %U:%G "$FILES/mine/new")"
	expect_eq new "$(cat "$FILES/mine/new")"
	! in_session ': >/srv/two/new' 2>/dev/null || fail "a read-only folder is written"
	[ ! -e "$FILES/two/new" ]
	# Parallel commands and the end of one of them, as in every session.
	expect_eq "a b" "$(in_session 'echo a; echo b' | paste -sd' ')"
	hs session close m
	wait_for 20 no_volumes || fail "volumes stay: $(docker_ volume ls)"
	# What the folder holds outlives its sandbox.
	expect_eq "mine new" "$(cat "$FILES/mine/what" "$FILES/mine/new" | paste -sd' ')"
	rm -r "$FILES/mine/new" "$FILES/mine/folder"
}
it_case "a caller's folders, as the caller and without any capability; the folder stays when the session ends" own_folders

setuid_file() {
	local id
	hs session open m --mount "$FILES/mine:/work" >/dev/null
	in_session 'cp /bin/sh /usr/bin/id /work && chmod 6755 /work/sh /work/id'
	expect_eq "$CALLER:$CALLER 6755" "$(stat -c '%U:%G %a' "$FILES/mine/sh")"
	! in_session 'chown 0:0 /work/sh' 2>/dev/null || fail "a file was given to root"
	! in_session 'chgrp 0 /work/sh' 2>/dev/null || fail "a file was given to the group root"
	! in_session 'mknod /work/null c 1 3' 2>/dev/null || fail "a device was made"
	! in_session "su -c true" 2>/dev/null || fail "su works"
	# To somebody else it gives what its owner has, which is not root.
	id=$(as "$STRANGER" "$FILES/mine/id" -u)
	expect_match "^($(id -u "$CALLER")|$(id -u "$STRANGER"))\$" "$id"
	hs session close m
	rm "$FILES/mine/sh" "$FILES/mine/id"
}
it_case "a setuid file that is made through the mount is the caller's and gives nobody root" setuid_file

not_allowed() {
	refused 77 "mount of $FILES-not/mine: not below allowed_file_paths" --mount "$FILES-not/mine:/work"
	refused 77 'mount of /etc: not below allowed_file_paths' --mount /etc:/work
	refused 125 'mount at /etc: /etc/hosts is the sandbox.s own' --mount "$FILES/mine:/etc"
	refused 125 'mount at /proc/x: /proc is' --mount "$FILES/mine:/proc/x"
	refused 125 'mount at /a: it overlaps the one at /a' --mount "$FILES/mine:/a" --mount "$FILES/two:/a"
	refused 125 'mount at /var/run/x: it overlaps the one at /run' --mount "$FILES/mine:/run" --mount "$FILES/two:/var/run/x"
	# Somebody else's closed home is closed.
	refused 77 "." --mount "$FILES/closed/inner:/work"
	ln -sfn "$FILES/mine" "$FILES/swap/link"
	refused 64 'symbolic link' --mount "$FILES/swap/link:/work"
	rm "$FILES/swap/link"
	expect_rc 77 "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" session open m \
		--mount "$FILES/mine:/work" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match "root's folders are not mounted" "$(cat "$HST_DIR/err")"
	expect_eq 3 "$(grep -cE ' REJECTED not_allowed cmd="session open" ' "$HST_DIR/log/sandbox-audit.log")"
	expect_eq 0 "$(volumes)"
}
it_case "what is refused: other places, other people's folders, root" not_allowed

# The engine never goes through the outer one: it has a link, of the caller's own.
one_in_another() {
	for _ in 1 2; do
		hs session open m --mount "$FILES/mine:/work" --mount "$FILES/two:/work/.in/two:ro" >/dev/null
		expect_eq "mine two" "$(in_session 'cat /work/what /work/.in/two/what' | paste -sd' ')"
		! in_session ': >/work/.in/two/new' 2>/dev/null || fail "a read-only folder is written"
		hs session close m
	done
	expect_eq "$CALLER /.hermes-folders/work+.in+two" \
		"$(stat -c %U "$FILES/mine/.in/two") $(readlink "$FILES/mine/.in/two")"
	rm "$FILES/mine/.in/two"
	# An empty folder is no obstacle, one with something in it is.
	caller_makes "$FILES/mine/.in/two" 0755
	hs session open m --mount "$FILES/two:/work/.in/two" --mount "$FILES/mine:/work" >/dev/null
	expect_eq two "$(in_session 'cat /work/.in/two/what')"
	hs session close m
	rm "$FILES/mine/.in/two"
	caller_makes "$FILES/mine/.in/two" 0755
	: >"$FILES/mine/.in/two/full"
	refused 64 'no place for it in .*: two: Directory not empty' --mount "$FILES/mine:/work" --mount "$FILES/two:/work/.in/two"
	rm -r "$FILES/mine/.in"
}
it_case "a folder in another one: mounted aside, with a link to it" one_in_another

# A namespace of his own in which every name is what he likes.
other_mounts() {
	local rc=0
	# Those of the sessions before.
	wait_for 20 no_volumes || fail "volumes stay: $(docker_ volume ls)"
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare -m --propagation private sh -c 'mount --bind "$1" "$2"; shift 2; exec "$@"' - "$FILES/closed/inner" "$FILES/two" \
		setpriv --reuid "$CALLER" --regid "$CALLER" --init-groups --inh-caps=-all --bounding-set=-all \
		"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" session open m --mount "$FILES/two:/work" \
		>"$HST_DIR/out" 2>"$HST_DIR/err" || rc=$?
	expect_eq 77 $rc
	expect_match "the caller sees other mounts than this machine's init|not below allowed" "$(cat "$HST_DIR/err")"
	expect_eq 0 "$(volumes)"
}
it_case "a caller with a mount namespace of his own is refused" other_mounts

submounts() {
	mkdir "$FILES/mine/sub"
	mount -t tmpfs none "$FILES/mine/sub"
	echo below >"$FILES/mine/sub/file"
	hs session open m --mount "$FILES/mine:/work" >/dev/null
	expect_eq "" "$(in_session 'ls -A /work/sub')"
	# Nor what comes later.
	umount "$FILES/mine/sub"
	mount -t tmpfs none "$FILES/mine/sub"
	: >"$FILES/mine/sub/later"
	expect_eq "" "$(in_session 'ls -A /work/sub')"
	umount "$FILES/mine/sub"
	rmdir "$FILES/mine/sub"
	hs session close m
}
it_case "mounts below a folder are not carried over, nor those that come later" submounts

# Swapped all the time, while sessions are opened and read.
swapping() {
	local opened=0 what swapper rounds=12
	[ -z "${HST_LONG:-}" ] || rounds=200
	ln -s "$FILES/closed/inner" "$FILES/swap/other"
	chown -h "$CALLER" "$FILES/swap/other"
	as "$CALLER" python3 -c '
import ctypes, os, sys
renameat2 = ctypes.CDLL(None).renameat2
folder, other, enough = (os.fsencode(a) for a in sys.argv[1:])
while not os.path.exists(enough):
    # RENAME_EXCHANGE, there and back.
    for _ in range(2):
        assert renameat2(-100, folder, -100, other, 2) == 0' "$FILES/swap/folder" "$FILES/swap/other" "$HST_DIR/enough" &
	swapper=$!
	for _ in $(seq 1 $rounds); do
		hs session open m --mount "$FILES/swap/folder:/work" >/dev/null 2>"$HST_DIR/err" || continue
		opened=$((opened + 1))
		what=$(in_session 'cat /work/what')
		expect_eq folder "$what"
		hs session close m
	done
	: >"$HST_DIR/enough"
	wait $swapper
	rm "$FILES/swap/other"
	[ $opened -gt 0 ] || fail "none of $rounds could be opened"
	hs session open m --mount "$FILES/swap/folder:/work" >/dev/null
	expect_eq folder "$(in_session 'cat /work/what')"
	hs session close m
}
it_case "a folder that is swapped for a link without pause: never is another one mounted" swapping

# --- a manager that was taken over -------------------------------------------------------------------

# The first that is listed may just be going.
recipe() {
	RECIPE=$(docker_ inspect -f '{{index .Config.Labels "hermes-sandbox.recipe"}}' "$(docker_ ps -q | head -n 1)" 2>/dev/null)
}
wait_for 20 recipe || fail "no container is there: $(docker_ ps -a)"
it_end sandboxd

# driver FOLDER SCENARIO [ARGUMENT…]
driver() {
	python3 "$TOP/tests/it/mounts-driver.py" "$HST_DIR/engine/engine.sock" "$RECIPE" "$CALLER" "$1" /work "${@:2}"
}
nothing_left() { [ -z "$(docker_ ps -aq)" ] && [ "$(volumes)" -eq 0 ]; }

liar() {
	expect_match "^created: .*/mine\$" "$(driver "$FILES/mine" honest)"
	expect_match '^failed: mount: this account may mount nothing' "$(driver "$FILES/mine" own)"
	expect_match "^failed: mount: root's folders are not mounted" "$(driver "$FILES/closed/inner" root)"
	for scenario in listener stream file; do
		expect_match '^failed: mount: what came with the request is no end of a pair' "$(driver "$FILES/mine" $scenario)"
	done
	wait_for 20 nothing_left || fail "left: $(docker_ ps -a) $(docker_ volume ls)"
}
it_case "a manager that lies about the uid: its own pair, root's, a connection to the caller's socket" liar

swapped() {
	expect_match "^created: .*/swap/folder.held\$" "$(driver "$FILES/swap/folder" swapped "$FILES/closed/inner")"
	expect_match "^created: .*/swap/folder.held\$" "$(driver "$FILES/swap/folder" swapped /etc)"
	echo 'POST/containers/[0-9a-f]+/start delay 0.5' >"$HST_DIR/rules"
	for target in "$FILES/closed/inner" /etc /run; do
		: >"$HST_DIR/calls"
		expect_match "^created: .*/swap/folder.held\$" "$(driver "$FILES/swap/folder" late "$target" "$HST_DIR/calls")"
	done
	rm "$HST_DIR/rules"
	wait_for 20 nothing_left || fail "left: $(docker_ ps -a) $(docker_ volume ls)"
	expect_eq folder "$(cat "$FILES/swap/folder/what")"
}
it_case "swapped between the opening, the creation and the start: what was opened is mounted" swapped

# As a unit's ProtectHome= has it: another tree lies over the folders, and mounts of the host come in but none goes out.
blind_broker() {
	it_end engined
	# shellcheck disable=SC2016 # the inner shell expands it
	it_spawn engined unshare -m --propagation slave sh -c 'mount -t tmpfs none "$1"; shift; exec "$@"' - "$FILES" \
		setpriv --reuid=_hermes-engine --regid=_hermes-engine --init-groups --inh-caps=-all --ambient-caps=-all \
		--bounding-set=-all --no-new-privs \
		"$HST_RUN/bin/hermes-engined" --config "$HST_DIR/etc/sandbox.yaml" --config-dir "$HST_DIR/etc/sandbox.d" \
		--runtime-dir "$HST_DIR/engine" --state-dir "$HST_DIR/engine-state" --agent "${HST_AGENT:-$HST_RUN/bin/agent}"
	it_up engined "$HST_DIR/engine/engine.sock"
	# shellcheck disable=SC2317 # called by wait_for
	engine_is_up() { driver "$FILES/mine" honest >"$HST_DIR/out"; ! grep -q 'has only just started' "$HST_DIR/out"; }
	wait_for 20 engine_is_up || fail "$(cat "$HST_DIR/out")"
	expect_match "^created: .*/mine\$" "$(cat "$HST_DIR/out")"
	expect_match 'not below allowed_file_paths' "$(driver "$FILES-not/mine" honest)"
	expect_match "^created: .*/swap/folder.held\$" "$(driver "$FILES/swap/folder" swapped /etc)"
}
it_case "a broker that sees another tree than the caller and the engine, as its unit does" blind_broker
