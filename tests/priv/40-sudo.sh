#!/bin/bash
# The other road: sudo hermes-docker-enable, by the sudoers file that the package brings.
. "${0%/*}/../lib/priv.sh"

install -m 0440 -o root -g root "$TOP/sudoers.d/hermes-docker" /etc/sudoers.d/hermes-docker
visudo -c >/dev/null || fail "visudo does not like it"
# Without the setuid bit, as an administrator may have it who trusts sudo alone.
by_sudo() {
	fresh
	chmod 0755 $HELPER
}
sudo_as() {
	local user=$1
	shift
	login "$user" sudo -n "$@"
}

member() {
	by_sudo
	helper 0 "$NOW" sudo_as caller hermes-docker-enable
	enabled
	helper 0 "$ALREADY" sudo_as caller $HELPER
}
it_case "a member needs no password, nor the setuid bit" member

not_more() {
	local refused=("hermes-docker-enable x" "hermes-docker-enable ''" "-u _hermes-engine hermes-docker-enable"
		"-g docker hermes-docker-enable" "LD_PRELOAD=/x hermes-docker-enable" "-E hermes-docker-enable" "id"
		"usermod -aG docker $CALLER" "/usr/sbin/../sbin/usermod" "-s")
	local how
	by_sudo
	for how in "${refused[@]}"; do
		expect_rc 1 login caller sh -c "sudo -n $how" >"$HST_DIR/out" 2>&1
		grep -qE 'password is required|not allowed' "$HST_DIR/out" || fail "$how: $(cat "$HST_DIR/out")"
	done
	unchanged
}
it_case "no argument, other account, other group, variable or other command" not_more

stranger() {
	by_sudo
	expect_rc 1 sudo_as stranger hermes-docker-enable >"$HST_DIR/out" 2>&1
	unchanged
}
it_case "nobody else" stranger

# Variables of the caller, which sudo's env_reset drops, and would keep for some.
clean() {
	by_sudo
	tool <<-END
		#!/bin/sh
		tr '\\0' '\\n' </proc/\$\$/environ >$HST_DIR/env
		exec $HST_DIR/usermod "\$@"
	END
	helper 0 "$NOW" login caller env LD_PRELOAD=/x DISPLAY=:1 XAUTHORITY=/x PS1=x TZ=/x LANGUAGE=x \
		sudo -n hermes-docker-enable
	expect_eq "$(printf 'PATH=/usr/sbin:/usr/bin:/sbin:/bin\nLC_ALL=C.UTF-8')" "$(cat "$HST_DIR/env")"
}
it_case "its tool sees no variable of the caller" clean
