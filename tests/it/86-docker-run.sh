#!/bin/bash
# What a container of docker run has from its beginning: the folder in which its commands start, and what of its words is
# not done. The shim alone; 80-docker-shim.sh has the rest.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
# shellcheck disable=SC2317 # the cases are called by it_case
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/shim.sh
. "${0%/*}/../lib/shim.sh"

FILES=$HST_DIR/files
install -d -m 0755 "$FILES"
install -d -m 0755 -o "$CALLER" -g "$CALLER" "$FILES/mine"

it_config <<END
pool:
  size: 1
  max_sandboxes: 6
profiles:
  hermes:
    image: $HST_IMAGE
    size: 1
    user: "0:0"
    users: ["1000:1000"]
    capabilities: [CHOWN]
    reuse: replace
    home: /root
    workdir: /usr/local
    tmpfs: { "/tmp": 16m, "/workspace": 16m, "/root": 16m }
    shm_size: 16m
  writable:
    image: $HST_IMAGE
    size: 0
    read_only: false
    user: "1000:1000"
    tmpfs: { "/tmp": 32m }
    home: /tmp
    shm_size: 16m
allowed_file_paths:
  - $FILES
END
it_start

# opens WORD…: run -d, and nothing is said.
opens() {
	ends 0 run -d --name run "$@" "$HST_IMAGE"
	expect_match '^[0-9a-f]{64}$' "$OUT"
	expect_eq "" "$ERR"
}

# starts_in DIR [MODE UID]: each command does.
starts_in() {
	ends 0 exec run sh -c 'pwd; stat -c "%a %u" .'
	expect_eq "$1 ${2:-755} ${3:-0}" "$(xargs <<<"$OUT")"
}

# refused DIR WHY [WORD…]: in one line, and no session is left.
refused() {
	local dir=$1 why=$2
	shift 2
	ends 125 run -d "$@" -w "$dir" "$HST_IMAGE"
	expect_match "^docker: --workdir $dir: cannot be made: $why: .*tmpfs.*read_only: false.*\"${HERMES_SANDBOX_PROFILE:-hermes}\"" "$ERR"
	expect_eq "1 ()" "$(wc -l <"$HST_DIR/err") ($OUT)"
	ends 0 ps -aq
	expect_eq "" "$OUT"
}

made() {
	opens -w /workspace/project/src
	starts_in /workspace/project/src
	ends 0 exec run sh -c 'stat -c %a ..; echo kept >file'
	expect_eq 755 "$OUT"
	ends 0 stop -t 1 run
	ends 0 start run
	starts_in /workspace/project/src
	ends 0 exec run cat file
	expect_eq kept "$OUT"
	ends 0 rm -f run
	opens --user 1000:1000 -w /tmp/mine
	starts_in /tmp/mine 755 1000
	ends 0 rm -f run
	# As Hermes does when its container is gone: the place is the last one that a command was in.
	opens -v "$FILES/mine:/data" -w /data/one/two
	starts_in /data/one/two 755 "$(id -u "$CALLER")"
	ends 0 rm -f run
	expect_eq "$CALLER 755" "$(stat -c '%U %a' "$FILES/mine/one/two")"
}
it_case "the folder of -w is made, as the session's user" made

one_command() {
	ends 0 run --rm -w /workspace/new/one "$HST_IMAGE" pwd
	expect_eq "/workspace/new/one ()" "$OUT ($ERR)"
	ends 125 run --rm -w /opt/new "$HST_IMAGE" echo no
	expect_match '^docker: --workdir /opt/new: cannot be made: .*: Read-only file system' "$ERR"
	expect_eq "" "$OUT"
	ends 0 ps -aq
	expect_eq "" "$OUT"
}
it_case "so it is for run --rm" one_command

there() {
	local dir
	for dir in / /usr/local /workspace /tmp/ /root; do
		opens -w "$dir"
		ends 0 exec run pwd
		expect_eq "$(realpath -s "$dir")" "$OUT"
		ends 0 rm -f run
	done
	# What the image has is found to be there.
	opens -w /usr/bin
	starts_in /usr/bin
	ends 0 rm -f run
}
it_case "a folder that is there stays as it is" there

not_made() {
	refused /opt/new/deep "cannot make '/opt/new': Read-only file system"
	refused /etc/passwd "cannot enter '/etc/passwd': Not a directory"
	refused /proc/nosuch "cannot make '/proc/nosuch': No such file or directory"
	HERMES_SANDBOX_PROFILE=writable refused /opt/mine "cannot make '/opt/mine': Permission denied"
	HERMES_SANDBOX_PROFILE=writable opens -w /tmp
	HERMES_SANDBOX_PROFILE=writable ends 0 rm -f run
}
it_case "one that cannot be made ends run, and leaves no session" not_made

# warns LINE WORD…
warns() {
	local line=$1
	shift
	ends 0 run --rm "$@" "$HST_IMAGE" true
	expect_match "^WARNING: $line" "$ERR"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
}

less() {
	warns '--cap-drop: not done: commands as root have CHOWN' --cap-drop ALL
	warns '--tmpfs /tmp: noexec: not done: ' --tmpfs /tmp:rw,noexec,nosuid
	warns '--tmpfs /tmp: readonly: not done: ' --mount type=tmpfs,dst=/tmp,readonly
	warns '--init=false: not done: ' --init=false
	warns '--read-only=false: not done: profile "hermes" has read_only: true' --read-only=false
	HERMES_SANDBOX_PROFILE=writable warns '--read-only: not done: profile "writable" has read_only: false' --read-only
	ends 0 run --rm --init --read-only --cap-drop ALL --cap-add CHOWN --tmpfs /tmp:rw,exec "$HST_IMAGE" true
	expect_eq "" "$ERR"
}
it_case "what asks for less than there is gets a warning" less

# Each of them makes the same link in the same folder.
together() {
	local i pids=() home=$FILES/mine/home skills=$FILES/mine/skills
	install -d -o "$CALLER" -g "$CALLER" "$home" "$skills"
	for i in 1 2 3 4; do
		dk run --rm -v "$home:/root" -v "$skills:/root/.hermes/skills:ro" "$HST_IMAGE" true \
			>"$HST_DIR/out.$i" 2>&1 </dev/null &
		pids+=($!)
	done
	for i in 1 2 3 4; do
		wait "${pids[i - 1]}" || fail "it ended with $?: $(cat "$HST_DIR/out.$i")"
	done
	# As the genuine docker leaves it, which makes a mount's place as root.
	rm "$home/.hermes/skills"
	install -d -o root -g root "$home/.hermes" "$home/.hermes/skills"
	ends 125 run -d -v "$home:/root" -v "$skills:/root/.hermes/skills:ro" "$HST_IMAGE"
	expect_match "no place for it in $home: skills: Permission denied: it is another user's: sudo chown -R [0-9]+:[0-9]+ $home\$" "$ERR"
	eval "${ERR##*sudo }"
	ends 0 run --rm -v "$home:/root" -v "$skills:/root/.hermes/skills:ro" "$HST_IMAGE" true
}
it_case "runs at once share a home folder; one of root's is named with its mend" together

# Who calls may have SIGCHLD ignored, and we inherit it.
ignored() {
	local rc=0
	timeout 60 env --ignore-signal=CHLD setpriv --reuid "$CALLER" --regid "$CALLER" --init-groups -- \
		env HERMES_SANDBOX_SOCKET="$HST_DIR/run/pool.sock" "$HST_RUN/bin/docker" run --rm -w /tmp/new \
		"$HST_IMAGE" sh -c 'pwd; exit 7' >"$HST_DIR/out" 2>"$HST_DIR/err" </dev/null || rc=$?
	expect_eq "7 /tmp/new" "$rc $(cat "$HST_DIR/out" "$HST_DIR/err")"
}
it_case "a caller that ignores SIGCHLD gets its command's end" ignored
