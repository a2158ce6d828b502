# shellcheck shell=bash
# The package's two accounts and its group, made by the package's own sysusers file, and two callers: one
# in the group and one outside of it. They stay for the next run, as accounts of a package do.

CALLER=hstest-caller
STRANGER=hstest-stranger

# accounts_make SYSUSERS_FILE
accounts_make() {
	local user
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers "$(realpath "$1")"
	else
		getent group hermes-sandbox >/dev/null || groupadd --system hermes-sandbox
		for user in _hermes-engine _hermes-sandbox; do
			getent passwd "$user" >/dev/null ||
				useradd --system --user-group --home-dir /nonexistent --shell /usr/sbin/nologin "$user"
		done
		getent passwd hermes-ssh >/dev/null || useradd --system --user-group --groups hermes-sandbox \
			--home-dir /var/lib/hermes-sandbox-ssh --shell /bin/sh hermes-ssh
	fi
	for user in "$CALLER" "$STRANGER"; do
		getent passwd "$user" >/dev/null || useradd --system --user-group --home-dir /nonexistent "$user"
	done
	accounts_member "$CALLER" hermes-sandbox
	accounts_member _hermes-engine docker
}

accounts_member() {
	id -nG "$1" | tr ' ' '\n' | grep -qxF "$2" || usermod -aG "$2" "$1"
}

# as USER COMMAND…: with that account's ids and groups, without privileges, under a plain environment.
as() {
	local user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --init-groups --inh-caps=-all --bounding-set=-all \
		--no-new-privs -- env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 HOME=/ \
		${ASAN_OPTIONS:+ASAN_OPTIONS="$ASAN_OPTIONS"} "$@"
}
