#!/bin/bash
# image/ssh: built as its README says, started with the flags that stand there, and logged into. The container has no network
# but its own loopback, where the client is brought; otherwise nothing is different from what a user does.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "$TOP/tests/lib/caller.sh"

RECIPE=$TOP/image/ssh
NAME=hermes-sandbox-ssh
BASE=hermes-ssh-test-base BUILDER=hermes-ssh-test-builder
KEEP=$IMAGE_CACHE/ssh-image-$(cat "$RECIPE"/{Dockerfile,sshd_config,hermes-ssh} | sha256sum | cut -c1-12).tar
KNOWN=$HST_DIR/known_hosts
export DOCKER_BUILDKIT=0

for tool in ssh scp sftp rsync npm; do
	command -v $tool >/dev/null || skip "$tool is not here (Debian: openssh-client, rsync, npm)"
done

# --- the image -----------------------------------------------------------------------------------------------

# What this machine's npm is told, for the stage that runs npm. The two names are looked for in the result.
builder() {
	local ca
	ca=$(npm config get cafile)
	[ -s "$ca" ] || ca=/etc/ssl/certs/ca-certificates.crt
	mkdir "$HST_DIR/builder"
	cat "$ca" >"$HST_DIR/builder/hermes-test-authorities"
	cat >"$HST_DIR/builder/Dockerfile" <<-EOF
		FROM $BASE
		COPY hermes-test-authorities /etc/hermes-test-authorities
		ENV NPM_CONFIG_CAFILE=/etc/hermes-test-authorities NODE_EXTRA_CA_CERTS=/etc/hermes-test-authorities
		ENV NPM_CONFIG_REGISTRY=$(npm config get registry)
	EOF
	docker_ build -q -t $BUILDER "$HST_DIR/builder" >/dev/null
}

# docker build as in the README, but for where it finds packages. It takes minutes: the result is kept for as long as
# the recipe stays the same.
image() {
	local archive tmp
	if [ -s "$KEEP" ]; then
		docker_ load -q -i "$KEEP" >/dev/null
		return
	fi
	archive=$(image_archive trixie) && image_import "$HST_ENGINE" $BASE "$archive" && builder &&
		docker_ build --network=host --build-arg BASE=$BASE --build-arg BUILDER=$BUILDER \
			--build-arg http_proxy --build-arg https_proxy --build-arg no_proxy \
			-t $NAME "$RECIPE" >"$HST_DIR/build.log" 2>&1 || return 1
	tmp=$(mktemp "$IMAGE_CACHE/.new.XXXXXX")
	docker_ save -o "$tmp" $NAME && mv "$tmp" "$KEEP"
}

# --- containers ----------------------------------------------------------------------------------------------

# run_as WORDS: the command in README.md that starts the container, with these before the image's name. On this run's
# engine, and its port is not published.
run_as() {
	local text
	text=$(sed -n '/^    docker run /,/[^\\]$/s/^    //p' "$RECIPE/README.md")
	text=${text%"$NAME"}$*
	text=${text/-p 127.0.0.1:2222:2222/--network none}
	[ -z "${WITHOUT:-}" ] || text=${text/--cap-add $WITHOUT /}
	stop
	CT=$(cd "$HST_DIR" && eval "docker_ ${text#docker } $NAME") || fail "docker run fails: $text"
	PID=$(docker_ inspect -f '{{.State.Pid}}' "$CT")
	# Another container has another host key.
	rm -f "$KNOWN"
}

# start ARGUMENT…: a container with the README's flags and these, which is up. CT is its id, PID its first process.
start() {
	run_as "$@"
	wait_for 20 up || fail "sshd is not up: $(docker_ logs "$CT" 2>&1 | tail -n 5)"
}
# No grep -q behind a pipe: it does not wait for the end, and whoever writes is then killed.
up() { docker_ logs "$CT" 2>&1 | grep '^Server listening on 0.0.0.0 port 2222' >/dev/null; }
stop() { docker_ rm -f hermes-ssh >/dev/null 2>&1 || true; }

# inside COMMAND…: a client's, in the container's network.
inside() { nsenter -t "$PID" -n -- "$@"; }

OPTIONS=(-F none -o Port=2222 -o BatchMode=yes -o IdentitiesOnly=yes -o IdentityAgent=none
	-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile="$KNOWN" -o ConnectTimeout=10 -o LogLevel=ERROR)
KEY=(-i "$HST_DIR/key")
ssh_() { inside ssh "${OPTIONS[@]}" "${KEY[@]}" "$@"; }
on() { ssh_ hermes@127.0.0.1 "$@" </dev/null; }

# refused PATTERN ARGUMENT…: ssh ends with 255, and says so.
refused() {
	local out rc=0
	out=$(inside ssh "${OPTIONS[@]}" "${@:2}" </dev/null 2>&1) || rc=$?
	expect_eq 255 $rc
	expect_match "$1" "$out"
}

# --- cases ---------------------------------------------------------------------------------------------------

versions() {
	local out
	# shellcheck disable=SC2016 # the shell there expands it
	out=$(on 'python3 --version; python --version; node --version; npm --version; bash --version | head -n1; git --version
		rg --version | head -n1; ffmpeg -version | head -n1; xz --version | head -n1; rsync --version | head -n1
		tar --version | head -n1; id; echo $HOME; locale charmap; umask')
	echo "$out"
	expect_match '^Python 3\.13\.[0-9]+
Python 3\.13\.[0-9]+
v22\.[0-9.]+
10\.[0-9.]+
GNU bash.*
git version 2.*
ripgrep 1.*
ffmpeg version .*
xz \(XZ Utils\) 5.*
rsync +version 3.*
tar \(GNU tar\) 1.*
uid=10000\(hermes\) gid=10000\(hermes\) groups=10000\(hermes\)
/home/hermes
UTF-8
0022$' "$out"
}

tools_work() {
	local out
	# shellcheck disable=SC2016 # the shell there expands it
	out=$(on 'set -e; cd /tmp
		ffmpeg -loglevel error -f lavfi -i sine=duration=0.1 -y a.wav; python -c "import wave; print(wave.open(\"a.wav\").getnframes())"
		node -p "[1,2].map(x => x * 2)"; python -m venv v; v/bin/python -c "print(6 * 7)"
		git init -q r; cd r; echo one >f; git add f; git -c user.name=n -c user.email=e commit -qm m; git log --format=%s
		rg -c one .; tar -cJf ../r.tar.xz .; tar -tJf ../r.tar.xz ./f; rm -rf /tmp/*')
	expect_eq "4410
[ 2, 4 ]
42
m
./f:1
./f" "$out"
}

nobody_else() {
	local user
	for user in root daemon sshd nobody; do
		refused 'Permission denied \(publickey\)' "${KEY[@]}" $user@127.0.0.1 id
	done
	refused 'Permission denied \(publickey\)' -i "$HST_DIR/other" hermes@127.0.0.1 id
	# What is in parentheses is all that the server offers.
	refused 'Permission denied \(publickey\)' "${KEY[@]}" -o PubkeyAuthentication=no hermes@127.0.0.1 id
	refused 'Permission denied \(publickey\)' "${KEY[@]}" -o PreferredAuthentications=password,keyboard-interactive hermes@127.0.0.1 id
	# And many refusals keep nobody out.
	expect_eq in "$(on 'echo in')"
}

key_taken_out() {
	cat "$HST_DIR/other.pub" >"$HST_DIR/keys/authorized_keys"
	refused 'Permission denied' "${KEY[@]}" hermes@127.0.0.1 id
	cat "$HST_DIR/key.pub" >"$HST_DIR/keys/authorized_keys"
	expect_eq in "$(on 'echo in')"
}

channels() {
	local i pids=() rc=0
	ssh_ -M -S "$HST_DIR/master" -f -N hermes@127.0.0.1 </dev/null >/dev/null 2>&1
	# Each ends when it sees the other 29 run.
	for i in {1..30}; do
		timeout 60 ssh -F none -S "$HST_DIR/master" hermes@127.0.0.1 "mkdir -p /tmp/c && touch /tmp/c/$i
			until [ \"\$(ls /tmp/c | wc -l)\" -eq 30 ]; do sleep 0.05; done
			head -c 300000 | sha256sum; echo 'on stderr' >&2; exit $i" \
			<"$HST_DIR/data" >"$HST_DIR/c$i.out" 2>"$HST_DIR/c$i.err" &
		pids+=($!)
	done
	for i in {1..30}; do
		rc=0
		wait "${pids[i - 1]}" || rc=$?
		expect_eq "$i" $rc
		expect_eq "$(head -c 300000 "$HST_DIR/data" | sha256sum)" "$(cat "$HST_DIR/c$i.out")"
		expect_eq "on stderr" "$(cat "$HST_DIR/c$i.err")"
	done
	expect_eq 1 "$(docker_ logs "$CT" 2>&1 | tail -n +"$((before + 1))" | grep -c 'Accepted publickey for hermes')"
	ssh -F none -S "$HST_DIR/master" -O exit hermes@127.0.0.1 2>/dev/null
	on 'rm -r /tmp/c'
}

files() {
	mkdir "$HST_DIR/tree" "$HST_DIR/back"
	cp "$HST_DIR/data" "$HST_DIR/tree/a b"
	inside scp -q -r "${OPTIONS[@]}" "${KEY[@]}" "$HST_DIR/tree" hermes@127.0.0.1:/home/hermes/
	inside scp -q "${OPTIONS[@]}" "${KEY[@]}" "hermes@127.0.0.1:tree/a b" "$HST_DIR/back/scp"
	cmp "$HST_DIR/data" "$HST_DIR/back/scp"
	inside rsync -a -e "ssh ${OPTIONS[*]} ${KEY[*]}" "$HST_DIR/tree/" hermes@127.0.0.1:rsynced/
	inside rsync -a -e "ssh ${OPTIONS[*]} ${KEY[*]}" "hermes@127.0.0.1:rsynced/a b" "$HST_DIR/back/rsync"
	cmp "$HST_DIR/data" "$HST_DIR/back/rsync"
	# As Hermes Agent does it.
	tar -c -C "$HST_DIR/tree" . | ssh_ hermes@127.0.0.1 'mkdir -p .hermes && tar xf - --no-overwrite-dir -C /home/hermes/.hermes'
	ssh_ hermes@127.0.0.1 'tar cf - -C / home/hermes/.hermes' </dev/null | tar -x -C "$HST_DIR/back"
	cmp "$HST_DIR/data" "$HST_DIR/back/home/hermes/.hermes/a b"
	expect_eq "755 hermes hermes" "$(on 'stat -c "%a %U %G" ~')"
}

read_only() {
	local out
	# shellcheck disable=SC2016 # the shell there expands it
	out=$(on 'for d in / /etc /usr/bin /usr/local/bin /var/tmp /etc/hermes-ssh /etc/hermes-ssh/keys /run /run/sshd /run/hermes-ssh /dev; do
			! touch "$d/new" 2>/dev/null || echo "$d is writable"
		done
		for d in "$HOME" /tmp /dev/shm; do touch "$d/new" && rm "$d/new" || echo "$d is not"; done
		cat /run/hermes-ssh/* 2>/dev/null; cp /usr/bin/true ~ && ~/true && rm ~/true; cp /usr/bin/true /tmp && /tmp/true && rm /tmp/true')
	expect_eq "" "$out"
	# Neither can root, who has no capability for it.
	expect_rc 1 docker_ exec "$CT" sh -c 'touch /etc/new /usr/new /etc/hermes-ssh/keys/new 2>/dev/null'
}

# The masks of capabilities(7): bits 0, 6, 7, 18 and 29.
FIVE=00000000200400c1 NONE=0000000000000000
five_capabilities() {
	expect_eq "$FIVE $FIVE $FIVE" "$(awk '/^Cap(Prm|Eff|Bnd)/ { print $2 }' "/proc/$PID/status" | paste -sd' ')"
	# shellcheck disable=SC2016 # awk expands it
	expect_eq "$NONE $NONE $NONE $NONE 1" \
		"$(on 'awk "/^Cap[IPEA]|^NoNewPrivs/ { print \$2 }" /proc/self/status' | paste -sd' ')"
}

# A command on a terminal.
works() { ssh_ -tt hermes@127.0.0.1 'tty >/dev/null && echo worked' </dev/null 2>/dev/null | grep worked >/dev/null; }
each_is_needed() {
	local WITHOUT
	for WITHOUT in AUDIT_WRITE CHOWN SETGID SETUID SYS_CHROOT; do
		run_as
		wait_for 20 up_or_ended || fail "without $WITHOUT it neither starts nor ends"
		! works || fail "it works without $WITHOUT"
	done
	WITHOUT=
	start
	works || fail "nor does it with all five"
}
up_or_ended() { up || [ "$(docker_ inspect -f '{{.State.Running}}' "$CT")" = false ]; }

forwards_nothing() {
	refused 'stdio forwarding failed' "${KEY[@]}" -W 127.0.0.1:2222 hermes@127.0.0.1
	# shellcheck disable=SC2016 # the shell there expands it
	expect_eq "none none C.UTF-8 none" "$(LANG=de_DE.UTF-8 BASH_ENV=/tmp/x DISPLAY=:7 inside ssh-agent ssh \
		"${OPTIONS[@]/IdentityAgent=none/IdentityAgent=SSH_AUTH_SOCK}" "${KEY[@]}" -A -X -o SendEnv=LANG -o SendEnv=BASH_ENV \
		hermes@127.0.0.1 'echo ${SSH_AUTH_SOCK-none} ${DISPLAY-none} $LANG ${BASH_ENV-none}' </dev/null 2>/dev/null)"
}

effective() {
	local out line
	out=$(docker_ exec "$CT" sh -c '/usr/sbin/sshd -T -f /etc/hermes-ssh/sshd_config -h /run/hermes-ssh/ssh_host_ed25519_key')
	for line in 'port 2222' 'allowusers hermes' 'permitrootlogin no' 'passwordauthentication no' \
		'kbdinteractiveauthentication no' 'hostbasedauthentication no' 'authenticationmethods publickey' \
		'allowagentforwarding no' 'x11forwarding no' 'disableforwarding yes' 'clientaliveinterval 30' 'clientalivecountmax 3' \
		'permituserenvironment no' 'permituserrc no' 'maxsessions 128' 'usepam no'; do
		grep -qixF "$line" <<<"$out" || fail "sshd does not have '$line' but: $(grep -i "^${line%% *} " <<<"$out")"
	done
}

# One on a terminal, and one that reads its input, each on a connection of its own.
hang_up() {
	local first second
	mkfifo "$HST_DIR/never"
	exec 7<>"$HST_DIR/never"
	nsenter -t "$PID" -n -- ssh "${OPTIONS[@]}" "${KEY[@]}" -tt hermes@127.0.0.1 'sleep 7741' <&7 >/dev/null 2>&1 &
	first=$!
	nsenter -t "$PID" -n -- ssh "${OPTIONS[@]}" "${KEY[@]}" hermes@127.0.0.1 'cat - /7742' <&7 >/dev/null 2>&1 &
	second=$!
	wait_for 15 both_run || fail "they do not start"
	kill -KILL $first $second
	wait_for 15 none_runs || fail "they go on without their callers: $(docker_ top "$CT")"
}
both_run() { running sleep 7741 && running cat - /7742; }
none_runs() { ! running sleep 7741 && ! running cat - /7742; }

no_zombies() {
	on 'for i in 1 2 3 4 5; do setsid sh -c "sleep 0.1 & exit" >/dev/null 2>&1 </dev/null & done; wait'
	wait_for 10 none_defunct || fail "zombies: $(docker_ top "$CT" -eo pid,stat,args)"
}
none_defunct() { ! docker_ top "$CT" -eo pid,stat,args | grep -E ' Z|sleep 0.1' >/dev/null; }

host_key() { inside ssh-keyscan -p 2222 127.0.0.1 2>/dev/null | cut -d' ' -f2- | sort; }
host_keys() {
	local first second
	start
	first=$(host_key)
	expect_match '^ssh-ed25519 [^ ]+$' "$first"
	docker_ logs "$CT" 2>&1 | grep -F "$(ssh-keygen -lf - <<<"$first" | cut -d' ' -f2)" >/dev/null || fail "the log does not tell the key"
	# The same container has the same key; another one has not.
	start
	second=$(host_key)
	[ "$first" != "$second" ] || fail "two containers have one key"
	start -v "$HST_DIR/host_keys:/etc/hermes-ssh/host_keys:ro"
	expect_eq "$(cut -d' ' -f1,2 "$HST_DIR/host_keys/ssh_host_ed25519_key.pub")" "$(host_key)"
	start -v "$HST_DIR/host_keys:/etc/hermes-ssh/host_keys:ro"
	expect_eq "$(cut -d' ' -f1,2 "$HST_DIR/host_keys/ssh_host_ed25519_key.pub")" "$(host_key)"
	expect_eq in "$(on 'echo in')"
}

# does_not_start TEXT ARGUMENT…: docker run with these ends with 78 and one line that begins so.
does_not_start() {
	local out rc=0
	out=$(timeout 60 docker -H "unix://$HST_ENGINE" run --rm --network none --cap-drop ALL --cap-add AUDIT_WRITE --cap-add CHOWN \
		--cap-add SETGID --cap-add SETUID --cap-add SYS_CHROOT "${@:2}" $NAME 2>&1) || rc=$?
	expect_eq "78, hermes-ssh: $1" "$rc, ${out:0:$((${#1} + 12))}"
	expect_eq 1 "$(wc -l <<<"$out")"
}
refuses_to_start() {
	local at=/etc/hermes-ssh good
	good=(-v "$HST_DIR/keys:$at/keys:ro")
	mkdir -p "$HST_DIR"/{empty,secret,open}
	printf '# none yet\nssh-ed25519 AAAA broken\n' >"$HST_DIR/empty/authorized_keys"
	install -m 0600 -o "$CALLER" "$HST_DIR/key.pub" "$HST_DIR/secret/authorized_keys"
	install -m 0644 "$HST_DIR/host_keys/ssh_host_ed25519_key" "$HST_DIR/open/"
	does_not_start "$at/keys/authorized_keys is not there"
	does_not_start "$at/keys/authorized_keys holds no public key" -v "$HST_DIR/empty:$at/keys:ro"
	does_not_start "root in the container may not read $at/keys/authorized_keys" -v "$HST_DIR/secret:$at/keys:ro"
	does_not_start "it runs as uid 10000" --user 10000:10000 "${good[@]}"
	does_not_start "/run is not writable" --read-only "${good[@]}"
	does_not_start "the host key $at/host_keys/ssh_host_ed25519_key cannot be used" -v "$HST_DIR/open:$at/host_keys:ro" "${good[@]}"
}

# With a root file system that is writable and no tmpfs, as a plain docker run has it, and a Secret's ways: a folder that all may write to, and
# the file a link.
plain() {
	install -d -m 1777 "$HST_DIR/mounted" "$HST_DIR/mounted/..data"
	cp "$HST_DIR/key.pub" "$HST_DIR/mounted/..data/authorized_keys"
	chmod 0400 "$HST_DIR/mounted/..data/authorized_keys"
	ln -s ..data/authorized_keys "$HST_DIR/mounted/authorized_keys"
	stop
	CT=$(docker_ run -d --name hermes-ssh --network none --cap-drop ALL --cap-add AUDIT_WRITE --cap-add CHOWN --cap-add SETGID \
		--cap-add SETUID --cap-add SYS_CHROOT -v "$HST_DIR/mounted:/etc/hermes-ssh/keys:ro" $NAME)
	PID=$(docker_ inspect -f '{{.State.Pid}}' "$CT")
	wait_for 20 up || fail "sshd is not up: $(docker_ logs "$CT" 2>&1)"
	rm -f "$KNOWN"
	expect_eq in "$(on 'echo in')"
	local key
	key=$(host_key)
	docker_ restart -t 5 "$CT" >/dev/null
	PID=$(docker_ inspect -f '{{.State.Pid}}' "$CT")
	wait_for 20 answers || fail "it is not up again"
	expect_eq "$key" "$(host_key)"
}
answers() { [ -n "$(host_key)" ]; }

nothing_of_the_builder() {
	expect_eq "[PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin]" \
		"$(docker_ image inspect -f '{{.Config.Env}}' $NAME)"
	! docker_ history --no-trunc --format '{{.CreatedBy}}' $NAME | grep -iE 'proxy=|registry|hermes-test' || fail "history has it"
	local out
	out=$(docker_ run --rm --network none --entrypoint sh $NAME -c \
		'find / -xdev \( -name "*hermes-test*" -o -name .npmrc -o -name npmrc -o -name "ssh_host_*_key" \) -print
		grep -rlE "hermes-test|_proxy=" /etc /root /home /usr/local/bin /usr/local/etc 2>/dev/null; true')
	expect_eq "" "$(grep -vF /usr/local/lib/node_modules/npm/ <<<"$out" || true)"
}

ends_at_once() {
	local begin
	begin=$(date +%s)
	docker_ stop -t 30 "$CT" >/dev/null
	[ $(($(date +%s) - begin)) -lt 15 ] || fail "it ignores SIGTERM"
}

image || {
	tail -n 30 "$HST_DIR/build.log" || true
	skip "docker build does not get what it needs"
}
mkdir "$HST_DIR/keys" && (umask 077 && mkdir "$HST_DIR/host_keys")
for key in key other host_keys/ssh_host_ed25519_key; do ssh-keygen -q -t ed25519 -N '' -C '' -f "$HST_DIR/$key"; done
cp "$HST_DIR/key.pub" "$HST_DIR/keys/authorized_keys"
head -c 5000000 /dev/urandom >"$HST_DIR/data"

it_case "nothing of the machine that built the image is in it" nothing_of_the_builder
start
it_case "a key logs in, and each tool has its version" versions
it_case "the tools work" tools_work
it_case "no password, no root, no other user, no other key" nobody_else
it_case "a key that is taken out of the file no longer logs in" key_taken_out
before=$(docker_ logs "$CT" 2>&1 | wc -l)
it_case "30 commands run at once on one connection" channels
it_case "scp, rsync and tar carry files both ways" files
it_case "the root file system is read-only, and what is not is the user's alone" read_only
it_case "five capabilities are there, and none for a command" five_capabilities
it_case "agent, X11 and ports are not forwarded, and variables not taken" forwards_nothing
it_case "sshd runs with what its configuration says" effective
it_case "a caller that goes away takes along what has a terminal or reads" hang_up
it_case "what is left by its parent is reaped" no_zombies
it_case "SIGTERM ends it" ends_at_once
it_case "the host key is new, or the one that is mounted" host_keys
it_case "without any one of the five capabilities it does not work" each_is_needed
it_case "it says in one line why it does not start" refuses_to_start
it_case "it starts without the restrictions too, with keys from a Secret" plain
stop
