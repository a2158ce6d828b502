#!/bin/bash
# What Hermes Agent calls, as the package has it: the docker program on the profile that is shipped, with an image that
# a drop-in names, and a login by the ssh gateway, whose sshd runs under the unit's confinement.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox, or a template
. "${0%/*}/../lib/pkg.sh"

pkg_ready
MINE=$DROPINS/60-hermes.yaml
UNIT=hermes-sandbox-ssh.service
printf 'profiles:\n  hermes:\n    image: "%s"\n' "$IMAGE" >"$MINE"
hermes-sandbox config check >"$PKG_TMP/out" 2>&1 || fail "the drop-in is refused"
systemctl reload hermes-sandbox-engine.service hermes-sandbox-pool.service

dk() { as "$CALLER" /usr/libexec/hermes-sandbox/docker "$@" 2>"$PKG_TMP/err" </dev/null; }
# ends CODE ARGUMENT…: its output in OUT and ERR.
ends() {
	local code=$1 rc=0
	shift
	OUT=$(dk "$@") || rc=$?
	ERR=$(cat "$PKG_TMP/err")
	[ $rc -eq "$code" ] || fail "status $rc, expected $code: docker $*: $OUT $ERR"
}

shipped() {
	local conffile=/etc/hermes-sandbox/sandbox.d/10-hermes.yaml
	expect_eq "644 root:root" "$(stat -c '%a %U:%G' $conffile)"
	dpkg-query -W -f '${Conffiles}' "$PACKAGE" | grep -q " $conffile " || fail "$conffile is no conffile"
	dpkg -L "$PACKAGE" | grep -qE '/docs?/hermes-sandbox/hermes\.md(\.gz)?$' || fail "the guide is not there"
	for page in man1/hermes-sandbox-docker.1 man1/hermes-sandbox-ssh.1 man8/hermes-sandbox-ssh-gateway.8; do
		dpkg -L "$PACKAGE" | grep -qx "/usr/share/man/$page.gz" || fail "there is no page $page"
	done
	! in_group "$CALLER" docker || fail "the caller reaches the engine anyway"
	ends 0 version
	expect_match 'Server: hermes-sandbox' "$OUT"
	ends 0 info --format '{{.Driver}}'
	expect_eq hermes-sandbox "$OUT"
	ends 125 run -d --privileged "$IMAGE" sleep infinity
	expect_match '^docker: .*--privileged' "$ERR"
}
it_case "profile, pages and programs are where they are looked for, and a member needs no right but the group" shipped

# The flags as Hermes has them by default, but for what the profile's memory cannot hold: that is a warning.
whole_life() {
	local id
	ends 0 run --rm --cpus 0.5 --memory 64m --pids-limit 32 "$IMAGE" sleep 0
	ends 0 run -d --init --name hermes-0a1b2c3d --label hermes-agent=1 --label hermes-task-id=default \
		--label hermes-profile=default -w /root --cap-drop ALL --cap-add DAC_OVERRIDE --cap-add CHOWN --cap-add FOWNER \
		--cap-add SETUID --cap-add SETGID --security-opt no-new-privileges --pids-limit 256 \
		--tmpfs /tmp:rw,nosuid,size=512m --tmpfs /var/tmp:rw,noexec,nosuid,size=256m --tmpfs /run:rw,noexec,nosuid,size=64m \
		--tmpfs /workspace:rw,exec,size=10g --tmpfs /home:rw,exec,size=1g --tmpfs /root:rw,exec,size=1g \
		--cpus 1 --memory 5120m --network=none --shm-size 1g --add-host host.docker.internal:host-gateway \
		-e HERMES_TEST=set "$IMAGE" sleep infinity
	id=$OUT
	expect_match '^[0-9a-f]{64}$' "$id"
	expect_eq "" "$(grep -v '^WARNING: --' <<<"$ERR")"
	ends 0 ps -a --filter label=hermes-agent=1 --filter label=hermes-task-id=default --format '{{.ID}}\t{{.State}}'
	expect_eq "${id:0:12}"$'\trunning' "$OUT"
	ends 0 inspect --format '{{.HostConfig.NetworkMode}}' "$id"
	expect_eq none "$OUT"
	ends 3 exec -e KEY=value "$id" bash -c 'echo $(id -u) $PWD $HOME $KEY $HERMES_TEST >/tmp/kept; cat /tmp/kept; exit 3'
	expect_eq "0 /root /root value set" "$OUT"
	ends 0 exec "$id" bash -c 'chown 12:34 /tmp/kept; stat -c %u:%g /tmp/kept; cat /proc/1/comm; sed -n "s/^CapEff:\t//p" /proc/self/status'
	expect_eq "12:34 agent 000000000000000b" "$(xargs <<<"$OUT")"
	ends 127 exec "$id" no-such-program
	expect_match 'no-such-program' "$OUT$ERR"
	ends 0 stop -t 10 "$id"
	ends 1 exec "$id" true
	expect_eq "Error response from daemon: Container $id is not running" "$ERR"
	ends 0 start "$id"
	ends 0 exec "$id" cat /tmp/kept
	expect_eq "0 /root /root value set" "$OUT"
	ends 0 rm -f "$id"
	ends 1 exec "$id" true
	expect_eq "Error response from daemon: No such container: $id" "$ERR"
}
it_case "the docker program with all of Hermes' flags: run, exec, stop, start, rm" whole_life

enabled() {
	gateway_up --profile hermes --name first
	expect_eq "enabled active" "$(systemctl is-enabled $UNIT) $(systemctl is-active $UNIT)"
	expect_eq "755 root:root" "$(stat -c '%a %U:%G' "$SSH")"
	expect_eq /usr/libexec/hermes-sandbox/hermes-sandbox-ssh-gateway "$(getent passwd hermes-ssh | cut -d: -f7)"
	! su hermes-ssh -c id >"$PKG_TMP/out" 2>&1 || fail "the account runs a command of the host"
	expect_match 'this account runs commands in sandboxes alone' "$(cat "$PKG_TMP/out")"
	expect_eq "600 root:root" "$(stat -c '%a %U:%G' "$SSH"/ssh_host_ed25519_key)"
	expect_eq "644 root:root 644 root:root" "$(stat -c '%a %U:%G' "$SSH"/authorized_keys "$SSH"/sshd_config | xargs)"
	hermes-sandbox ssh status >"$PKG_TMP/out" || fail "it does not answer"
	as "$CALLER" hermes-sandbox ssh status >"$PKG_TMP/out" || fail "a member is not told"
	grep -qx 'keys:      1' "$PKG_TMP/out" || fail "another number of keys"
	expect_eq "first hermes" "$(hermes-sandbox ssh list-keys --json | jq -r '.[] | "\(.name) \(.profile)"')"
	! as "$CALLER" hermes-sandbox ssh disable >"$PKG_TMP/out" 2>&1 || fail "a member turns it off"
}
it_case "ssh enable and add-key: the unit is active" enabled

login() {
	expect_eq "agent 0 /root" "$(gateway 'echo $(cat /proc/1/comm) $(id -u) $PWD' </dev/null)"
	expect_rc 7 gateway 'exit 7' </dev/null
	expect_rc 127 gateway 'no-such-program' 2>/dev/null </dev/null
	expect_match 'terminal .*got typed' "$(echo typed | gateway -tt '[ -t 0 ] && [ -t 1 ] && echo terminal; read -r x; echo "got $x"' |
		tr '\r\n' '  ')"
	# Hermes' way to send its files, over one connection.
	gateway -M -f -N </dev/null >/dev/null 2>&1
	tar -c -C / etc/debian_version | gateway 'mkdir -p /root/.hermes && tar xf - --no-overwrite-dir -C /root/.hermes'
	gateway 'tar cf - -C /root .hermes' </dev/null | tar -x -O .hermes/etc/debian_version | cmp - /etc/debian_version
	expect_eq "" "$(gateway -O exit 2>&1 | grep -v '^Exit request sent' || true)"
	expect_match "^publickey" "$(ssh -F none -p "$GATEWAY_PORT" -o BatchMode=yes -o IdentityFile=none -o StrictHostKeyChecking=no \
		-o UserKnownHostsFile=/dev/null -v root@127.0.0.1 true 2>&1 </dev/null | sed -n 's/.*Permission denied (\(.*\))\..*/\1/p')"
}
it_case "a login: exit code, terminal, tar; nobody else's" login

# What a new version needs is executed anew for each command: sshd and who is logged in stay.
upgraded() {
	local before
	before=$(unit_property $UNIT MainPID)
	gateway 'echo kept >/tmp/kept' </dev/null
	gateway -M -f -N </dev/null >/dev/null 2>&1
	pkg_install
	expect_eq "$before active" "$(unit_property $UNIT MainPID) $(systemctl is-active $UNIT)"
	gateway -O check 2>"$PKG_TMP/out" || fail "the connection is gone"
	expect_eq kept "$(gateway 'cat /tmp/kept' </dev/null)"
}
it_case "an upgrade leaves sshd, the connection and the key's session" upgraded

# sshd keeps for each connection whose it is, in its own /tmp.
restarted() {
	systemctl restart $UNIT || fail "status $?"
	gateway -O check 2>"$PKG_TMP/out" || fail "the connection is gone"
	expect_eq kept "$(gateway 'cat /tmp/kept' </dev/null)"
}
it_case "a restart of the unit takes no connection away" restarted

disabled() {
	local key rc=0
	key=$(ssh-keygen -lf "$SSH"/ssh_host_ed25519_key.pub)
	gateway -O check 2>"$PKG_TMP/out" || fail "there is no connection to end"
	# Another has not yet said whose key is his.
	exec 5<>"/dev/tcp/127.0.0.1/$GATEWAY_PORT"
	read -r -u 5 _
	hermes-sandbox ssh disable >"$PKG_TMP/out" 2>&1 || fail "status $?"
	timeout 5 cat <&5 >/dev/null || rc=$?
	exec 5>&-
	expect_eq 0 $rc
	expect_eq "disabled inactive" "$(systemctl is-enabled $UNIT) $(systemctl is-active $UNIT)"
	# shellcheck disable=SC2317 # called by wait_for
	ended() { ! pgrep -u hermes-ssh >/dev/null && [ ! -S "$PKG_TMP/master" ]; }
	wait_for 10 ended || fail "connections are left: $(pgrep -u hermes-ssh -a)"
	expect_rc 255 gateway true 2>/dev/null </dev/null
	hermes-sandbox ssh status >"$PKG_TMP/out"
	grep -qx 'ssh:       disabled' "$PKG_TMP/out"
	gateway_up
	expect_eq "$key" "$(ssh-keygen -lf "$SSH"/ssh_host_ed25519_key.pub)"
	expect_eq kept "$(gateway 'cat /tmp/kept' </dev/null)"
	hermes-sandbox ssh remove-key first >/dev/null
	expect_rc 255 gateway true 2>/dev/null </dev/null
	hermes-sandbox ssh disable >"$PKG_TMP/out" 2>&1
}
it_case "ssh disable ends sshd and its connections; enabled again, host key and session are the same" disabled

rm "$MINE"
systemctl reload hermes-sandbox-engine.service hermes-sandbox-pool.service
