#!/bin/bash
# The ssh backend of a real Hermes Agent, unchanged, through the gateway: its tools, its own tests and its doctor. It has a
# key of the profile that is made for it.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/hermes/lib.sh
. "${0%/*}/lib.sh"
# Its home in passwd, where ssh looks.
export AT_HOME=1
# shellcheck source=tests/lib/ssh.sh
. "$TOP/tests/lib/ssh.sh"

PORT=2286
KEY=$HOME_OF/.ssh/id_ed25519
# Hermes' sockets of connections: the name of one is short.
SHORT=$(mktemp -d)

ssh_end() {
	local socket
	for socket in "$SHORT"/hermes-ssh/*.sock; do
		[ ! -S "$socket" ] || ssh -F none -S "$socket" -O exit x 2>/dev/null || true
	done
	gateway_down
	rm -rf "$SHORT"
}
trap 'rc=$?; set +e; ssh_end; (exit $rc); it_exit' EXIT

hermes_image "$(sed -n 's/^ *image: *"\{0,1\}\([^" ]*\).*/\1/p' "$TOP/etc/sandbox.d/10-hermes.yaml" | head -n 1)"
hermes_home
chown "$CALLER" "$SHORT"
install -d -m 0700 -o "$CALLER" -g "$CALLER" "${KEY%/*}"
as "$CALLER" ssh-keygen -q -t ed25519 -N '' -f "$KEY"
install -m 0644 "$TOP/etc/sandbox.d/10-hermes.yaml" "$HST_DIR/etc/sandbox.d/10-hermes.yaml"
it_config <<END
pool:
  size: 1
END
it_start
gateway_add_key hermes "$KEY.pub" --profile hermes
gateway_up $PORT

PLACE=(TERMINAL_ENV=ssh TERMINAL_SSH_HOST=127.0.0.1 TERMINAL_SSH_USER=hermes-ssh TERMINAL_SSH_PORT="$PORT"
	TERMINAL_SSH_KEY="$KEY" EXPECT_CWD=/root TMPDIR="$SHORT")

# It tries no backend where it takes the machine for a container, as which tests often run. By then ssh knows the host.
doctor() {
	hermes "${PLACE[@]}" - >"$HST_DIR/doctor" 2>&1 <<-'END' || true
		import types
		import hermes_constants
		hermes_constants.is_container = lambda: False
		from hermes_cli.doctor import run_doctor
		run_doctor(types.SimpleNamespace(fix=False))
	END
	grep '✓ SSH connection to 127.0.0.1' "$HST_DIR/doctor" >/dev/null || fail "$(cat "$HST_DIR/doctor")"
}

hermes_scenario synced "${PLACE[@]}"
hermes_scenario all_tools "${PLACE[@]}"
hermes_scenario probe "${PLACE[@]}"
it_case "hermes doctor: the connection" doctor
# It wants variables to be gone with the next command where Hermes keeps them for any: it fails by any sshd.
THEIRS='TestOneShotSSH::test_state_does_not_persist$' hermes_pytest test_ssh_environment.py "${PLACE[@]}"
