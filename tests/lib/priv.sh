# shellcheck shell=bash
# What the scripts of tests/priv share: the helper, setuid and in its place, in a mount namespace whose /etc and
# /usr/sbin are copies. The machine's own are never touched. Otherwise it is tests/lib/it.sh without daemons.
[ -n "${PRIV_NAMESPACE:-}" ] || PRIV_NAMESPACE=1 exec unshare --mount --propagation private "$0"

it_world=world_bare
# shellcheck source=tests/lib/it.sh
. "${BASH_SOURCE[0]%/*}/it.sh"

HELPER=/usr/sbin/hermes-docker-enable
# The messages, as its callers read them.
# shellcheck disable=SC2034 # the scripts do
NOW='hermes-docker-enable: _hermes-engine is in group docker now'
# shellcheck disable=SC2034
ALREADY='hermes-docker-enable: _hermes-engine is in group docker already'

# priv_world: the copies, mounted in the place of the machine's own, with a docker group that has no member.
priv_world() {
	mkdir "$HST_DIR/world"
	cp -a /etc /usr/sbin "$HST_DIR/world/"
	install -m 4750 -o root -g hermes-sandbox "$HST_RUN/bin/hermes-docker-enable" "$HST_DIR/world/sbin/"
	mount --bind "$HST_DIR/world/etc" /etc
	mount --bind "$HST_DIR/world/sbin" /usr/sbin
	rm -f /etc/{passwd,shadow,group,gshadow}.lock
	getent group docker >/dev/null || groupadd --system docker
	gpasswd -M "" docker
	mkdir "$HST_DIR/pristine"
	cp -a /etc/{passwd,shadow,group,gshadow} "$HST_DIR/pristine/"
	cp -a /usr/sbin/usermod "$HST_DIR/usermod"
}

# fresh: the account files, the tool and the helper's mode as priv_world left them.
fresh() {
	rm -rf /etc/{passwd,shadow,group,gshadow}{,-,+,.*}
	cp -a "$HST_DIR"/pristine/* /etc/
	cp -a --remove-destination "$HST_DIR/usermod" /usr/sbin/usermod
	chown root:hermes-sandbox $HELPER
	chmod 4750 $HELPER
}

# tool <<'END': a shell script in the tool's place.
tool() {
	rm /usr/sbin/usermod
	cat >/usr/sbin/usermod
	chmod 0755 /usr/sbin/usermod
}

ids_of() { echo "--reuid $(id -u "$1") --regid $(id -g "$1") --groups $(id -G "$1" | tr ' ' ,)"; }

# login caller|stranger COMMAND…: as after a login of that account, before a case did something to the account files. The env
# between the two matters: setpriv itself still has root's capabilities when it executes.
login() {
	local ids=$1_ids
	shift
	# shellcheck disable=SC2086 # several options
	setpriv ${!ids} -- env -i PATH=/usr/bin:/bin LANG=C.UTF-8 "$@"
}

# helper RC LINE [COMMAND…]: as the member, or what COMMAND says. LINE is a pattern for its one line.
helper() {
	local rc=$1 line=$2 out found=0
	shift 2
	[ $# -gt 0 ] || set -- login caller $HELPER
	out=$("$@" 2>&1 </dev/null) || found=$?
	[ $found -eq "$rc" ] || fail "status $found, expected $rc: $* said $out"
	[ "$(wc -l <<<"$out")" -eq 1 ] || fail "it said more than one line: $out"
	# shellcheck disable=SC2053 # it is a pattern
	[[ $out == $line ]] || fail "it said $(printf %q "$out"), expected $line"
}

# The members of docker in a file of the format of group or gshadow.
members() { awk -F: '$1 == "docker" { print $4 }' "$1"; }

# unchanged: nobody is in docker, no file is locked, no other line is touched, and nothing is left over.
unchanged() {
	local file
	for file in passwd shadow group gshadow; do
		cmp "$HST_DIR/pristine/$file" "/etc/$file"
	done
	no_litter
}

# enabled: exactly the one membership is new, in both files.
enabled() {
	local file
	for file in passwd shadow; do
		cmp "$HST_DIR/pristine/$file" "/etc/$file"
	done
	for file in group gshadow; do
		expect_eq _hermes-engine "$(members "/etc/$file")"
		sed -E '/^docker:/s/(,?)_hermes-engine$//' "/etc/$file" | cmp - "$HST_DIR/pristine/$file"
	done
	expect_eq "644 0 0" "$(stat -c '%a %u %g' /etc/group)"
	expect_eq "$(stat -c '%a %u %g' "$HST_DIR/pristine/gshadow")" "$(stat -c '%a %u %g' /etc/gshadow)"
	no_litter
}

no_litter() {
	local left
	left=$(find /etc -maxdepth 1 -regextype posix-extended -regex '.*/(passwd|shadow|group|gshadow)(\+|\..*)')
	expect_eq "" "$left"
}

case ",$(findmnt -n -o OPTIONS -T "$HST_RUN")," in
*,nosuid,*) skip "$HST_RUN is mounted nosuid" ;;
esac
# shellcheck disable=SC2034 # login reads them
caller_ids=$(ids_of "$CALLER")
# shellcheck disable=SC2034
stranger_ids=$(ids_of "$STRANGER")
priv_world
