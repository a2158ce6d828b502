#!/bin/bash
# The docker shim against the real engine: every subcommand, every kind of decision about a flag, and the exact words
# in which docker's callers look for what has happened.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox, or a template
# shellcheck disable=SC2317 # the cases are called by it_case
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
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
    memory_limit: 256m
    pids_limit: 128
    user: "0:0"
    users: ["1000:1000"]
    capabilities: [CHOWN, DAC_OVERRIDE, FOWNER]
    reuse: replace
    home: /root
    workdir: /workspace
    tmpfs: { "/tmp": 32m, "/workspace": 32m, "/root": 16m, "/.hermes-files": 4m, "/home/sandbox": 0 }
    shm_size: 16m
    session_ttl_max: 30d
    limits: { command_bytes: 2m, timeout: 0, timeout_max: 0 }
allowed_file_paths:
  - $FILES
END
it_start

# dk_begin ARGUMENT…: in the background, its pid in DK_PID.
dk_begin() {
	setpriv --reuid "$CALLER" --regid "$CALLER" --init-groups --inh-caps=-all --bounding-set=-all --no-new-privs -- \
		env -i --default-signal=INT,QUIT PATH=/usr/bin:/bin HERMES_SANDBOX_SOCKET="$HST_DIR/run/pool.sock" \
		"$HST_RUN/bin/docker" "$@" >/dev/null 2>&1 </dev/null &
	DK_PID=$!
}

# says ERR CODE ARGUMENT…: exactly that on stderr, and nothing on stdout.
says() {
	local err=$1
	shift
	ends "$@"
	expect_eq "$err ()" "$ERR ($OUT)"
}

opens() {
	ends 0 run "$@"
	expect_match '^[0-9a-f]{64}$' "$OUT"
	expect_eq 65 "$(wc -c <"$HST_DIR/out")"
}

whole_life() {
	local id
	opens -d --init --name hermes-11111111 --label hermes-agent=1 -l hermes-task-id=default \
		--label=hermes-profile=p -w /workspace --cap-drop ALL --cap-add DAC_OVERRIDE --cap-add chown \
		--cap-add CAP_FOWNER --security-opt no-new-privileges --tmpfs /tmp:rw,nosuid,size=32m \
		--tmpfs /workspace:rw,exec,size=32m --cpus 1.0 --memory 256m --pids-limit 128 --network=none \
		"$HST_IMAGE" sleep infinity
	id=$OUT
	expect_eq "" "$ERR"
	ends 0 ps -a --filter label=hermes-agent=1 -f label=hermes-task-id=default --filter label=hermes-profile=p \
		--format '{{.ID}}\t{{.State}}\t{{.Label "hermes-egress"}}'
	expect_eq "${id:0:12}"$'\trunning\t' "$OUT"
	ends 0 ps --format "{{.Names}}"$'\t'"{{.Image}}"
	expect_eq "hermes-11111111"$'\t'"$HST_IMAGE" "$OUT"
	ends 0 ps -aq --no-trunc
	expect_eq "$id" "$OUT"
	ends 0 ps
	expect_match '^CONTAINER ID   IMAGE                  COMMAND            CREATED +STATUS +PORTS     NAMES$' "$(sed -n 1p <<<"$OUT")"
	expect_match "^${id:0:12}   $HST_IMAGE   \"sleep infinity\"   [^\"]* ago +Up .* {13}hermes-11111111\$" "$(sed -n 2p <<<"$OUT")"
	ends 0 inspect --format '{{.State.FinishedAt}} {{.State.Status}} {{.State.Running}} {{.HostConfig.NetworkMode}} {{.Name}} {{.Id}} {{index .Config.Labels "hermes-agent"}}' "${id:0:12}"
	expect_eq "0001-01-01T00:00:00Z running true none /hermes-11111111 $id 1" "$OUT"
	ends 0 exec "$id" bash -c 'id -u; pwd; echo $HOME; echo kept >/tmp/file; exit 0'
	expect_eq "0 /workspace /root" "$(xargs <<<"$OUT")"
	ends 0 stop -t 1 "$id"
	expect_eq "$id" "$OUT"
	says "Error response from daemon: Container $id is not running" 1 exec "$id" true
	ends 0 ps --filter label=hermes-agent=1 --format '{{.ID}}'
	expect_eq "" "$OUT"
	ends 0 ps --filter status=exited --format '{{.ID}} {{.State}} {{.Status}}'
	expect_match "^${id:0:12} exited Exited \(0\) .* ago\$" "$OUT"
	ends 0 inspect --format '{{.State.FinishedAt}}' "$id"
	[ "$(date -d "$OUT" +%s)" -gt $(($(date +%s) - 60)) ] || fail "finished at $OUT"
	ends 0 start hermes-11111111
	expect_eq hermes-11111111 "$OUT"
	ends 0 exec "${id:0:8}" cat /tmp/file
	expect_eq kept "$OUT"
	says "Error response from daemon: You cannot remove a running container $id. Stop the container before attempting removal or force remove" \
		1 rm "$id"
	ends 0 rm -f "$id"
	expect_eq "$id" "$OUT"
	says "Error response from daemon: No such container: $id" 1 exec "$id" true
	says "Error response from daemon: No such container: $id" 0 rm -f "$id"
}
it_case "a session from run -d to rm, in docker's words" whole_life

nothing_there() {
	says 'Error response from daemon: No such container: nosuch' 1 exec nosuch true
	says 'Error response from daemon: No such container: nosuch' 1 stop -t 1 nosuch
	says 'Error response from daemon: No such container: nosuch' 1 rm nosuch
	says $'Error response from daemon: No such container: nosuch\nError: failed to start containers: nosuch' 1 start nosuch
	ends 1 inspect nosuch
	expect_eq '[] Error: No such object: nosuch' "$OUT $ERR"
	ends 1 image inspect nosuch:1 --format '{{json .Config.Entrypoint}}'
	expect_eq 'Error: No such image: nosuch:1' "$ERR"
	says "docker: 'logs' is not a docker command of hermes-sandbox: see docker --help" 1 logs x
}
it_case "what is not there is told as docker tells it" nothing_there

the_host() {
	ends 0 version
	expect_match 'Server: hermes-sandbox' "$OUT"
	ends 0 info --format '{{.Driver}}'
	expect_eq hermes-sandbox "$OUT"
	ends 0 info
	expect_match "Image: $HST_IMAGE" "$OUT"
	ends 0 image inspect "$HST_IMAGE" --format '{{json .Config.Entrypoint}}'
	expect_eq null "$OUT"
	ends 0 inspect --type image "$HST_IMAGE"
	expect_eq "$HST_IMAGE" "$(jq -r '.[0].RepoTags[0]' <<<"$OUT")"
	ends 0 images -q
	expect_match '^[0-9a-f]{12}' "$OUT"
	ends 0 pull "$HST_IMAGE"
	ends 1 create --storage-opt size=1m hello-world
	expect_match '^docker: create: --storage-opt: refused: no disk quota' "$ERR"
	as "$STRANGER" env HERMES_SANDBOX_SOCKET="$HST_DIR/run/pool.sock" "$HST_RUN/bin/docker" version \
		>"$HST_DIR/out" 2>"$HST_DIR/err" && fail "a stranger has a version"
	expect_match 'is not in group hermes-sandbox' "$(cat "$HST_DIR/err")"
	HERMES_SANDBOX_SOCKET=$HST_DIR/nosuch.sock "$HST_RUN/bin/docker" version 2>"$HST_DIR/err" && fail "no manager"
	expect_match '^docker: no manager at .*: start it with' "$(cat "$HST_DIR/err")"
	dk_env HERMES_SANDBOX_PROFILE=nosuch "$HST_RUN/bin/docker" version 2>"$HST_DIR/err" && fail "no profile"
	expect_match 'profile "nosuch" is not in the config' "$(cat "$HST_DIR/err")"
}
it_case "version, info, images and pull; who cannot use it is told why" the_host

# As many as an agent's subagents ask at once.
at_once() {
	local pids=() i pid
	for i in {1..32}; do
		dk_begin version
		pids+=("$DK_PID")
		dk_begin images -q
		pids+=("$DK_PID")
		[ "$i" -gt 4 ] && continue
		dk_begin run -d --name "once$i" "$HST_IMAGE"
		pids+=("$DK_PID")
	done
	for pid in "${pids[@]}"; do
		expect_rc 0 wait "$pid"
	done
	expect_eq 4 "$(dk ps -q | wc -l)"
	ends 0 rm -f once1 once2 once3 once4
}
it_case "32 version and images and some run -d at once: none is refused" at_once

commands() {
	opens -d --name work -e SET=1 "$HST_IMAGE"
	ends 7 exec work sh -c 'exit 7'
	ends 0 exec -e A=1 -eB=2 -e=C=3 -e NOT_SET -w /tmp work sh -c 'echo "$SET $A $B $C ${NOT_SET-unset} $PWD"'
	expect_eq '1 1 2 3 unset /tmp' "$OUT"
	expect_eq 'bin' "$(printf 'bin' | dk exec -i work cat)"
	expect_eq $'a\nb' "$(printf 'a\nb' | dk exec -i=true --tty=false work cat)"
	ends 0 exec -u 1000:1000 work id -u
	expect_eq 1000 "$OUT"
	ends 0 exec --user root work id -u
	expect_eq 0 "$OUT"
	ends 1 exec -u 4242 work id
	expect_match 'users' "$ERR"
	says 'OCI runtime exec failed: exec failed: unable to start container process: exec: "nosuchprog": executable file not found in $PATH: unknown' \
		127 exec work nosuchprog
	says 'OCI runtime exec failed: exec failed: unable to start container process: exec: "/etc/passwd": permission denied: unknown' \
		126 exec work /etc/passwd
	ends 126 exec -w /nosuch work true || ends 127 exec -w /nosuch work true
	expect_match 'chdir to cwd \("/nosuch"\)' "$ERR"
	ends 137 exec work sh -c 'kill -9 $$'
	ends 125 exec --privileged work true
	expect_match '^docker: exec: --privileged: refused' "$ERR"
	# It ends with its shell, whatever holds stdout.
	local begin
	begin=$(now_ms)
	expect_eq x "$(dk exec work sh -c 'sleep 7801 & echo x')"
	[ $(($(now_ms) - begin)) -lt 3000 ] || fail "it waited for what was left behind"
	ends 0 exec -d work sh -c 'echo later >/tmp/later; exec sleep 7802'
	expect_eq "" "$OUT$ERR"
	wait_for 10 running sleep 7802 || fail "exec -d did not start it"
	ends 0 rm -f work
	wait_for 10 none_left 7801 7802 || fail "rm -f left processes"
}
it_case "exec: streams, environment, users, ends" commands

killed() {
	opens -d --name work "$HST_IMAGE" tail -f /dev/null
	dk_begin exec work sh -c 'sleep 7803 & sleep 7804'
	wait_for 10 sleeps 7803 7804 || fail "it does not run"
	kill -KILL "$DK_PID"
	wait_for 10 none_left 7803 7804 || fail "its tree lives on"
	ends 0 rm -f work
}
it_case "a killed exec takes its tree along" killed

# What the shim adds on stderr is for Hermes a part of the command's answer.
unharmed() {
	opens -d --name work --memory 128m "$HST_IMAGE"
	dk exec work sh -c 'sleep 7806 & until [ -e /tmp/go ]; do sleep 0.05; done; kill $!; echo well' \
		>"$HST_DIR/beside" 2>&1 </dev/null &
	wait_for 10 sleeps 7806 || fail "it does not run"
	ends 137 exec work tail /dev/zero
	expect_match '^docker: exec: the memory limit of ' "$ERR"
	ends 0 exec work touch /tmp/go
	expect_rc 0 wait $!
	expect_eq well "$(cat "$HST_DIR/beside")"
	ends 0 rm -f work
}
it_case "a command beside one that runs out of memory: nothing is added to what it says" unharmed

one_command() {
	ends 5 run --rm "$HST_IMAGE" sh -c 'echo out; echo err >&2; exit 5'
	expect_eq 'out err' "$OUT $ERR"
	ends 0 run --rm --cpus 0.5 --memory 64m --pids-limit 32 "$HST_IMAGE" sleep 0
	expect_eq '' "$OUT$ERR"
	expect_eq 'in' "$(printf in | dk run --rm -i --memory 128m -e K=V "$HST_IMAGE" cat)"
	ends 0 ps -aq
	expect_eq "" "$OUT"
	# A signal goes to the command, and the session is closed all the same.
	dk_begin run --rm --name one "$HST_IMAGE" sleep 7805
	wait_for 20 running sleep 7805 || fail "it does not run"
	kill -TERM "$DK_PID"
	expect_rc 143 wait "$DK_PID"
	ends 0 ps -aq
	expect_eq "" "$OUT"
	ends 125 run "$HST_IMAGE" true
	expect_match '^docker: run without -d and without --rm' "$ERR"
	ends 125 run -d "$HST_IMAGE" make
	expect_match '^docker: run -d opens a session' "$ERR"
	ends 125 run --rm other:1 true
	expect_match "^docker: image other:1 is not that of profile \"hermes\", which has \"$HST_IMAGE\"" "$ERR"
}
it_case "run --rm: one command, warm or narrowed, and nothing is left of it" one_command

names() {
	local id
	opens -d --name same "$HST_IMAGE"
	id=$OUT
	ends 125 run -d --name same "$HST_IMAGE"
	expect_eq "docker: Error response from daemon: Conflict. The container name \"/same\" is already in use by container \"$id\". You have to remove (or rename) that container to be able to reuse that name.
See 'docker run --help'." "$ERR"
	ends 125 run -d --name 'a b' "$HST_IMAGE"
	expect_match 'Invalid container name \(a b\), only \[a-zA-Z0-9\]\[a-zA-Z0-9_\.-\] are allowed\.' "$ERR"
	ends 0 rm -f same
}
it_case "names are one container's" names

# refused PATTERN FLAGS…
refused() {
	local pattern=$1
	shift
	ends 125 run -d "$@" "$HST_IMAGE"
	expect_match "^docker: $pattern" "$ERR"
	expect_eq "1 ()" "$(wc -l <"$HST_DIR/err") ($OUT)"
}

refusals() {
	refused '--privileged: refused: nothing allows it' --privileged
	refused '--pid host: refused' --pid host
	refused '--ipc host: refused' --ipc=host
	refused '--uts host: refused' --uts host
	refused '--userns host: refused' --userns host
	refused '--cgroupns host: refused' --cgroupns host
	refused '--network host: refused' --network host
	refused '--network bridge: refused: .*network' --net bridge
	refused '--device /dev/kvm: refused' --device /dev/kvm
	refused '--gpus all: refused' --gpus=all
	refused '--cap-add SYS_ADMIN: refused: .*capabilities' --cap-add SYS_ADMIN
	refused '--cap-add FSETID: refused: profile "hermes" does not have it: add it to capabilities' --cap-add FSETID
	refused '--security-opt seccomp=unconfined: refused' --security-opt seccomp=unconfined
	refused '--volume /var/run/docker.sock:/s: refused' -v /var/run/docker.sock:/s
	refused '--volume data:/data: refused: there are no volumes' -v data:/data
	refused '--volume: ?/nosuch.*No such file|--volume /nosuch' -v /nosuch:/x
	refused '--tmpfs /opt: refused: .*tmpfs' --tmpfs /opt:size=1m
	refused '--publish 80:80: refused' -p 80:80
	refused '--runtime runsc: refused: .*runtime' --runtime runsc
	refused '--entrypoint sh: refused' --entrypoint sh
	says $'unknown flag: --nosuch\nSee \'docker run --help\'.' 125 run --nosuch "$HST_IMAGE"
	says $'unknown shorthand flag: \'x\' in -x\nSee \'docker run --help\'.' 125 run -dx "$HST_IMAGE"
	says $'flag needs an argument: --name\nSee \'docker run --help\'.' 125 run --name
	ends 0 ps -aq
	expect_eq "" "$OUT"
}
it_case "refused flags: one line with the flag, and which key would allow it" refusals

recorded() {
	local flag
	for flag in privileged pid ipc uts userns cgroupns network device gpus cap-add security-opt volume; do
		audit_records --raw -m TRUSTED_APP -x "$HST_RUN/bin/hermes-sandboxd" >"$HST_DIR/records"
		grep -q "docker --$flag" "$HST_DIR/log/sandbox-audit.log" || fail "the trail has no docker --$flag"
	done
	grep -q 'op=.*rejected\|rejected' "$HST_DIR/records" || fail "the kernel's trail has none of them"
}
it_case "those that ask for more than any sandbox gets are in the trails" recorded

warnings() {
	opens -d --name warned --memory 8g --cpus=64 --pids-limit 64 --pids-limit=-1 --shm-size 1g \
		--tmpfs /workspace:rw,exec,size=10g --storage-opt size=1g --add-host host.docker.internal:host-gateway \
		--cap-add SETUID --ulimit nofile=1 --restart no --init "$HST_IMAGE"
	for flag in memory cpus pids-limit shm-size 'tmpfs /workspace' 'storage-opt size=1g' \
		'add-host host.docker.internal:host-gateway' 'cap-add SETUID' 'ulimit nofile=1'; do
		expect_match "WARNING: --$flag" "$ERR"
	done
	expect_eq 9 "$(grep -c '^WARNING: ' "$HST_DIR/err")"
	expect_eq 9 "$(wc -l <"$HST_DIR/err")"
	ends 0 exec warned true
	expect_eq "" "$ERR"
	ends 0 inspect -f '{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}' warned
	expect_eq "$((256 << 20)) 128" "$OUT"
	ends 0 rm -f warned
}
it_case "more than the profile: it holds, and a warning of run says so" warnings

less() {
	opens -d --name small --memory 128m --pids-limit 20 --cpus 0.5 --tmpfs /tmp:size=1m --user 1000:1000 "$HST_IMAGE"
	expect_eq "" "$ERR"
	ends 0 inspect -f '{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} {{.HostConfig.NanoCpus}} {{.Config.User}}' small
	expect_eq "$((128 << 20)) 20 500000000 1000:1000" "$OUT"
	ends 0 exec small sh -c 'id -u; df -k /tmp | tail -n 1'
	expect_match $'^1000\ntmpfs +1024 ' "$OUT"
	ends 0 rm -f small
}
it_case "less than the profile is what the sandbox has" less

mounts() {
	opens -d --name mounted -v "$FILES/mine:/data:z" --mount "type=bind,src=$FILES/mine,dst=/read,readonly" "$HST_IMAGE"
	ends 0 exec mounted sh -c 'id -u; echo hello >/data/file'
	expect_eq "$(id -u "$CALLER")" "$OUT"
	expect_eq hello "$(cat "$FILES/mine/file")"
	ends 2 exec mounted sh -c 'echo no >/read/file'
	ends 0 rm -f mounted
	# As Hermes has it for a host user: capabilities are not for him, and a warning says so.
	opens -d --name mounted --cap-drop ALL --cap-add CHOWN --user "$(id -u "$CALLER"):$(id -g "$CALLER")" \
		-v "$FILES/mine:/workspace" "$HST_IMAGE" sleep infinity
	expect_match '^WARNING: --cap-add: not given: beside folders of this machine' "$ERR"
	ends 0 exec mounted sh -c 'id -u; pwd; echo mine >made'
	expect_eq "$(id -u "$CALLER") /workspace" "$(xargs <<<"$OUT")"
	expect_eq "$(id -u "$CALLER")" "$(stat -c %u "$FILES/mine/made")"
	ends 0 rm -f mounted
	refused 'session open|.*allowed_file_paths|.*not' -v "/etc:/host-etc"
}
it_case "host folders, as far as the administrator allows" mounts

# Copied: a file of root's that the caller may not read, one that is too large and one for the read-only root are not.
copied() {
	local place=$FILES/mine at
	echo secret >"$place/key" && echo "known to all" >"$place/known" && echo closed >"$place/closed"
	chown "$CALLER:$CALLER" "$place"/k*
	chmod 0600 "$place"/key "$place/closed"
	opens -d --name copied -v "$place/key:/root/.hermes/credentials/key:ro" \
		--mount "type=bind,src=$place/known,dst=/tmp/known,readonly" "$HST_IMAGE"
	expect_eq "WARNING: --volume $place/key: a file is copied as it is now, not mounted
WARNING: --mount $place/known: a file is copied as it is now, not mounted" "$ERR"
	rm "$place/key"
	ends 0 exec copied sh -c 'cd /root/.hermes/credentials; stat -c "%a %u" key . /tmp/known; cat key /tmp/known'
	expect_eq "400 0 755 0 444 0 secret known to all" "$(xargs <<<"$OUT")"
	ends 0 rm -f copied
	opens -d --name copied --user 1000:1000 -v "$place/known:/tmp/new/known:ro" "$HST_IMAGE"
	ends 0 exec copied stat -c "%a %u" /tmp/new/known
	expect_eq "444 1000" "$OUT"
	ends 0 rm -f copied
	expect_eq "known to all in" "$(printf in | dk run --rm -i -v "$place/known:/tmp/known:ro" "$HST_IMAGE" cat /tmp/known - 2>"$HST_DIR/err" | xargs)"
	refused "--volume $place/known:/tmp/x: refused: it is a file, and only folders can be written through: with :ro" \
		-v "$place/known:/tmp/x"
	refused "--volume $place/closed: cannot be read: Permission denied" -v "$place/closed:/tmp/x:ro"
	refused "--volume $place/known: refused: a file is copied, and at /.hermes-files/x it would be written into the folder $place: give profile" \
		-v "$place/known:/.hermes-files/x:ro" -v "$place:/.hermes-files"
	for at in /opt/ca/one.pem /etc/passwd; do
		ends 125 run -d --name copied -v "$place/known:$at:ro" "$HST_IMAGE"
		expect_eq "2 ()" "$(wc -l <"$HST_DIR/err") ($OUT)"
		expect_match "^docker: --volume $place/known: cannot be copied to $at: cannot write .*: Read-only file system: .*tmpfs.*read_only" \
			"$(tail -n 1 "$HST_DIR/err")"
	done
	ends 125 run --rm -v "$place/known:/opt/x:ro" "$HST_IMAGE" true
	ends 0 ps -aq
	expect_eq "" "$OUT"
	rm "$place/known" "$place/closed"
}
it_case "single files are copied, or refused by name" copied

# As with container_persistent: true, where /root is a folder of this machine.
linked() {
	local key made place=$FILES/mine home=$FILES/mine/home at=/root/.hermes/credentials/key to=/.hermes-files/root+.hermes+credentials+key
	mkdir -p "$home/.hermes/credentials" && echo first >"$place/key" && : >"$home/.hermes/credentials/key"
	chown -R "$CALLER:$CALLER" "$home" "$place/key"
	opens -d --name linked -v "$home:/root" -v "$place/key:$at:ro" "$HST_IMAGE"
	expect_match "key: a file is copied as it is now, not mounted; a link in the folder leads to it" "$ERR"
	echo second >"$place/key"
	opens -d --name again -v "$home:/root" -v "$place/key:$at:ro" "$HST_IMAGE"
	ends 0 exec linked cat "$at"
	expect_eq first "$OUT"
	ends 0 exec again cat "$at"
	expect_eq second "$OUT"
	expect_eq "$to $CALLER" "$(readlink "$home/.hermes/credentials/key") $(stat -c %U "$home/.hermes/credentials/key")"
	ends 0 rm -f linked again
	# What is there and is somebody's stays.
	key=$home/.hermes/credentials/key
	for made in 'echo mine >' 'ln -s nowhere '; do
		rm "$key" && eval "$made\$key"
		ends 125 run -d -v "$home:/root" -v "$place/key:$at:ro" "$HST_IMAGE"
		expect_eq "docker: --volume $at: no place for it in $home: key: File exists" "$(sed -n 2p "$HST_DIR/err")"
	done
	expect_eq nowhere "$(readlink "$key")"
	rm -r "$home" "$place/key"
}
it_case "a file for a place in a host folder is copied aside, and a link leads to it" linked

templates() {
	opens -d --name tt --label 'k=v w' --label x "$HST_IMAGE"
	ends 0 ps --format '{{json .Labels}} {{.Labels}} {{ .Label "k" }}'
	expect_eq '{"k":"v w","x":""} map[k:v w x:] v w' "$OUT"
	ends 0 inspect tt
	expect_eq 'running /tt v w 2' "$(jq -r '.[0] | "\(.State.Status) \(.Name) \(.Config.Labels.k) \(.Config.Cmd | length)"' <<<"$OUT")"
	ends 0 inspect -f '{{json .State}}' tt
	expect_eq running "$(jq -r .Status <<<"$OUT")"
	ends 0 inspect -f '{{.Image}}' tt
	expect_match '^sha256:' "$OUT"
	ends 1 ps --format '{{.Nosuch}}'
	expect_match '^template parsing error: <\.Nosuch>' "$ERR"
	ends 1 inspect -f '{{range .Mounts}}x{{end}}' tt
	expect_match '^template parsing error' "$ERR"
	ends 1 ps --format 'table {{.ID}}'
	expect_match '"table"' "$ERR"
	ends 1 ps --filter health=x
	expect_match "invalid filter 'health=x'" "$ERR"
	ends 0 rm -f tt
}
it_case "templates: the known ones, and a clear word about others" templates
