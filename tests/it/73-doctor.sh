#!/bin/bash
# hermes-sandbox doctor on a real engine, manager and auditd: healthy, and with one thing broken at a time. It looks at a
# tree, --root, in which the places of this script stand where a package has them.
. "${0%/*}/../lib/it.sh"
ROOT=$HST_DIR/root
DOCTOR=$HST_RUN/bin/hermes-sandbox-doctor
CONFIG=$ROOT/etc/hermes-sandbox/sandbox.yaml
CONF=$ROOT/etc/audit/auditd.conf
HELPER=$ROOT/usr/sbin/hermes-docker-enable

# A socket has another name by a hard link: its path would be too long below the tree.
tree() {
	mkdir -p "$ROOT"/{etc/hermes-sandbox/sandbox.d,etc/audit,run,usr/sbin,var/lib/dpkg,var/log}
	mkdir -p "$ROOT$HST_RUN/engine/data"
	cp /etc/passwd /etc/group "$ROOT/etc/"
	ln -s /proc "$ROOT/proc"
	ln -s "$HST_DIR/run" "$ROOT/run/hermes-sandbox"
	ln -s "$HST_DIR/engine" "$ROOT/run/hermes-sandbox-engine"
	ln "$HST_ENGINE" "$ROOT/run/docker.sock"
	ln -s "$HST_DIR/log" "$ROOT/var/log/hermes-sandbox"
	ln -s "${HST_AUDIT%/*}" "$ROOT/var/log/audit"
	ln -s /var/lib/dpkg/status "$ROOT/var/lib/dpkg/status"
	echo "root hermes-sandbox 4750 ${HELPER#"$ROOT"}" >"$ROOT/var/lib/dpkg/statoverride"
	install -m 4750 -g hermes-sandbox /dev/null "$HELPER"
	printf 'log_file = /var/log/audit/%s\nmax_log_file_action = keep_logs\n' "${HST_AUDIT##*/}" >"$CONF"
	printf 'profiles:\n  dev:\n    image: "hst-doctor:1"\n    user: "10073:10073"\n' >"$CONFIG"
	chmod 0640 "$CONF"
}

# doctor USER [OPTION]…: its exit status in RC, its lines in LINES.
doctor() {
	local user=$1
	shift
	RC=0
	if [ "$user" = root ]; then
		LINES=$("$DOCTOR" --root "$ROOT" --json "$@") || RC=$?
	else
		LINES=$(as "$user" "$DOCTOR" --root "$ROOT" --json "$@") || RC=$?
	fi
}

# says CHECK RESULT REGEX: a line of that check and result (a regex as well) matches.
says() {
	jq -e --arg c "$1" --arg r "$2" --arg x "$3" \
		'any(.[]; .check == $c and (.result | test($r)) and (.text | test($x)))' >/dev/null <<<"$LINES" ||
		fail "no $2 of $1 that matches $3 in: $(jq -c '.[]' <<<"$LINES")"
}

# finds CHECK RESULT REGEX: root's doctor says so, with a command that mends it, and exits with 1 for a failure.
finds() {
	doctor root
	says "$@"
	jq -e --arg c "$1" --arg r "$2" 'any(.[]; .check == $c and .result == $r and (.mend | length > 0))' \
		>/dev/null <<<"$LINES" || fail "nothing mends it: $LINES"
	[ "$2" != failure ] || expect_eq 1 "$RC"
	[ "$2" != warning ] || expect_eq 0 "$RC"
}

it_start
docker_ tag "$HST_IMAGE" hst-doctor:1
tree

healthy() {
	doctor root
	expect_eq '[]' "$(jq -c 'map(select(.result == "failure"))' <<<"$LINES")"
	expect_eq 0 "$RC"
	says manager ok '^hermes-sandboxd .* answers$'
	says manager ok 'the broker reaches the engine'
	says engine ok "^version $(docker_ version -f '{{.Server.Version}}' | sed 's/[+.]/\\&/g'), API "
	says accounts ok .
	says docker-group ok '_hermes-engine is in group docker'
	says sockets ok '^/run/hermes-sandbox/pool.sock _hermes-sandbox:hermes-sandbox 0660'
	says sockets ok '^/run/hermes-sandbox-engine/engine.sock _hermes-engine:_hermes-sandbox 0660'
	says sockets ok '^/run/docker.sock root:docker 0660'
	says helper ok 'root:hermes-sandbox 4750'
	says config ok '2 profiles'
	says image ok 'profile dev: hst-doctor:1 is there'
	says auditd ok 'pid [1-9]'
	says audit-log ok keep_logs
	says audit-record ok '^a record was written, and found in /var/log/audit/'
	says uid ok 10073
	says disk ok "^$HST_RUN/engine/data"
	expect_eq "apparmor capabilities limits network rootfs seccomp userns" \
		"$(jq -r '[.[] | select(.text | startswith("profile default: ")) | .check] - ["image", "audit"] | sort | unique | join(" ")' <<<"$LINES")"
}
it_case "a healthy machine has no failure, and a record goes to auditd and is found again" healthy

in_time() {
	local begin=${EPOCHREALTIME/./} took
	"$DOCTOR" --root "$ROOT" >"$HST_DIR/text"
	took=$(((${EPOCHREALTIME/./} - begin) / 1000))
	[ "$took" -lt $((2000 * ${HST_SLOW:-1})) ] || fail "it took $took ms"
	expect_match '[0-9]+ ok, [0-9]+ warnings?, 0 failures$' "$(cat "$HST_DIR/text")"
	! grep -q $'\033' "$HST_DIR/text" || fail "colour, and no terminal"
	expect_match $'\033\\[32mok' "$(TERM=xterm script -qec "'$DOCTOR' --root '$ROOT'" /dev/null)"
}
it_case "it is done within two seconds, in colour on a terminal only" in_time

as_member() {
	doctor "$CALLER"
	expect_eq '[]' "$(jq -c 'map(select(.result == "failure"))' <<<"$LINES")"
	expect_eq 0 "$RC"
	says engine ok 'answers the broker$'
	says limits 'ok|warning' 'profile default: cgroup v'
	says image ok 'profile default: sandboxes of .* are warm'
	says sockets ok '^/run/hermes-sandbox/pool.sock'
	says sockets warning 'engine.sock: not looked at: needs root'
	for check in auditd audit-rules audit-log audit-record; do
		says "$check" warning 'needs root'
	done
	doctor "$STRANGER"
	expect_eq 1 "$RC"
	says manager failure 'Permission denied'
}
it_case "a member is told what only root can see, and fails nothing; a stranger may not ask the manager" as_member

no_manager() {
	it_end sandboxd
	finds manager failure 'no manager at'
	says layers warning 'the manager answers'
	it_sandboxd
	wait_for 60 it_warm 1
}
it_case "the manager is stopped" no_manager

no_engine() {
	mv "$ROOT/run/docker.sock" "$ROOT/run/away"
	doctor root
	mv "$ROOT/run/away" "$ROOT/run/docker.sock"
	expect_eq 1 "$RC"
	says engine failure 'does not answer at'
	says sockets failure '^/run/docker.sock: No such file'
	# What the manager knows of it is still said.
	says escapes . '^the engine [0-9]'
}
it_case "the engine does not answer" no_engine

broker_gone() {
	it_end engined
	# shellcheck disable=SC2317 # called by wait_for
	broker_is_missed() { doctor root && (says manager failure 'does not reach the engine') >/dev/null; }
	wait_for 10 broker_is_missed || fail "$LINES"
	it_engined
	# shellcheck disable=SC2317 # called by wait_for
	broker_is_back() { doctor root && [ "$RC" -eq 0 ]; }
	wait_for 60 broker_is_back || fail "$LINES"
}
it_case "the broker is stopped" broker_gone

in_docker_group() {
	sed -i "s/^docker:.*/&,$CALLER/" "$ROOT/etc/group"
	finds docker-group warning "^$CALLER uses the sandbox and is in group docker: whoever reaches .* is root"
	sed -i "s/^docker:.*/docker:x:$(getent group docker | cut -d: -f3):_hermes-sandbox/" "$ROOT/etc/group"
	finds docker-group failure '_hermes-engine is not in group docker'
	says docker-group failure '_hermes-sandbox is in group docker'
	cp /etc/group "$ROOT/etc/"
}
it_case "a member of hermes-sandbox is in group docker; the broker is not, and the manager is" in_docker_group

modes() {
	chmod 0666 "$HST_DIR/run/pool.sock"
	finds sockets failure '^/run/hermes-sandbox/pool.sock has mode 0666: everybody'
	chmod 0660 "$HST_DIR/run/pool.sock"
	chmod 0666 "$HST_ENGINE"
	finds sockets failure '^/run/docker.sock has mode 0666: everybody'
	chmod 0660 "$HST_ENGINE"
	chmod 4755 "$HELPER"
	finds helper failure 'everybody may run it as root'
	chmod 0750 "$HELPER"
	finds helper warning "dpkg's override says root:hermes-sandbox 4750"
	chmod 4750 "$HELPER"
}
it_case "a socket's mode and the helper's were changed" modes

no_image() {
	docker_ rmi hst-doctor:1 >/dev/null
	finds image failure 'profile dev: the engine has no image hst-doctor:1$'
	docker_ tag "$HST_IMAGE" hst-doctor:1
}
it_case "an image was removed" no_image

bad_config() {
	cp "$CONFIG" "$HST_DIR/good.yaml"
	echo 'pool: {memory_limit: much}' >"$CONFIG"
	finds config failure 'sandbox.yaml:1:'
	cp "$HST_DIR/good.yaml" "$CONFIG"
	chmod 0666 "$CONFIG"
	finds config failure 'mode 0666'
	chmod 0644 "$CONFIG"
}
it_case "the configuration is broken, or others may write it" bad_config

bad_audit() {
	sed -i 's/keep_logs/ROTATE/' "$CONF"
	finds audit-log warning 'max_log_file_action is ROTATE: a flood'
	sed -i "s/ROTATE/keep_logs/; s/audit.log\$/other.log/" "$CONF"
	finds audit-record warning 'no audit log: /var/log/audit/other.log'
	: >"${HST_AUDIT%/*}/other.log"
	finds audit-record warning 'is not in /var/log/audit/other.log'
	rm "${HST_AUDIT%/*}/other.log"
	sed -i "s/other.log\$/${HST_AUDIT##*/}/" "$CONF"
}
it_case "auditd rotates its logs, or writes them elsewhere" bad_audit

# process_of UID NUMBER: the pid of that user's sleep, of whatever sandbox, in PID.
process_of() { PID=$(pgrep -u "$1" -f "^sleep $2\$"); }

same_uid() {
	local job
	setpriv --reuid 10073 --regid 10073 --clear-groups sleep 90.073 &
	job=$!
	wait_for 5 process_of 10073 90.073
	finds uid warning "^process $PID \\(sleep\\) of this machine has uid 10073"
	kill "$PID"
	wait "$job" || true
	# A sandbox's own command is none of this machine's.
	hs exec 'sleep 90.074; :' &
	job=$!
	wait_for 10 process_of 10000 90.074
	doctor root
	! jq -e --arg p "process $PID " 'any(.[]; .text | startswith($p))' <<<"$LINES" >/dev/null || fail "a sandbox's command counts"
	kill "$PID"
	wait "$job" || true
	echo 'eve:x:10073:10073::/:/bin/sh' >>"$ROOT/etc/passwd"
	finds uid warning '^account eve of this machine has uid 10073'
	cp /etc/passwd "$ROOT/etc/"
}
it_case "somebody on the host has the uid of the commands" same_uid

mended() {
	doctor root
	expect_eq 0 "$RC"
}
it_case "with all of it mended, it is healthy again" mended
docker_ rmi hst-doctor:1 >/dev/null
