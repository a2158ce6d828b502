# shellcheck shell=bash
# The ssh gateway as `hermes-sandbox ssh enable` and `add-key` set it up, but for its places: Debian's sshd on this machine's
# loopback, in front of the script's manager. Sourced behind it.sh.

GATEWAY_HOME=/var/lib/hermes-sandbox-ssh

# gateway_add_key NAME FILE [OPTION…]: into the list of this script. The program knows one place, and sees this one there.
gateway_add_key() {
	local name=$1 file=$2 etc=$HST_DIR/etc-of-ssh
	shift 2
	mkdir -p "$HST_DIR/ssh" "$etc/hermes-sandbox/ssh"
	cp /etc/passwd "$etc/"
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare --mount sh -e -c 'mount --bind "$1" /etc; mount --bind "$2" /etc/hermes-sandbox/ssh; shift 2; exec "$@"' - \
		"$etc" "$HST_DIR/ssh" "$BUILD/hermes-sandbox-ssh" add-key --name "$name" "$@" - <"$file" >/dev/null
}

# gateway_up PORT. The account's shell is the package's gateway; sshd alone sees the one of this script in its place.
gateway_up() {
	local config=$HST_DIR/ssh/sshd_config passwd=$HST_DIR/ssh/passwd
	mkdir -p /run/sshd "$GATEWAY_HOME" "$HST_DIR/ssh"
	sed -e "s|@LISTEN@|ListenAddress 127.0.0.1:$1|; /^@IF-KNOWN@/d" \
		-e "s|/etc/hermes-sandbox/ssh/|$HST_DIR/ssh/|; s|/run/hermes-sandbox-ssh/|$HST_DIR/ssh/|" \
		-e "s|^ForceCommand .*/|ForceCommand $HST_RUN/bin/|" \
		-e "/^ForceCommand/s|\$| --keys $HST_DIR/ssh/authorized_keys --socket $HST_DIR/run/pool.sock|" \
		"$TOP/etc/ssh/sshd_config" >"$config"
	ssh-keygen -q -t ed25519 -N '' -f "$HST_DIR/ssh/ssh_host_ed25519_key"
	awk -F: -v OFS=: -v shell="$HST_RUN/bin/hermes-sandbox-ssh-gateway" '$1 == "hermes-ssh" { $7 = shell } { print }' \
		/etc/passwd >"$passwd"
	# shellcheck disable=SC2016 # the inner shell expands it
	it_spawn sshd unshare --mount sh -e -c 'mount --bind "$1" /etc/passwd; shift; exec "$@"' - "$passwd" \
		/usr/sbin/sshd -D -e -f "$config"
	wait_for 10 test -s "$HST_DIR/ssh/sshd.pid" || fail "sshd is not up"
}

gateway_down() {
	[ ! -s "$HST_DIR/sshd.pid" ] || end_process "$(it_pid sshd)" 10 || true
	rm -f "$HST_DIR/sshd.pid"
}
