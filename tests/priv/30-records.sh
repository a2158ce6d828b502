#!/bin/bash
# What the kernel's audit trail says of it.
. "${0%/*}/../lib/priv.sh"

caller=$(id -u "$CALLER") stranger=$(id -u "$STRANGER")

# records OP WORD…: how many records of that op since the last mark hold all of the words.
mark() { wc -c <"$HST_AUDIT" >"$HST_DIR/mark"; }
records() {
	local op=$1 text word
	shift
	text=$(tail -c "+$(($(cat "$HST_DIR/mark") + 1))" "$HST_AUDIT" | grep '^type=GRP_MGMT ' | grep -F "op=$op ")
	for word in "$@"; do text=$(grep -F -e "$word" <<<"$text"); done
	grep -c . <<<"$text"
}
# recorded N OP WORD…: auditd writes them a moment later.
recorded() {
	local n=$1
	shift
	# shellcheck disable=SC2317 # wait_for calls it
	as_many() { [ "$(records "$@")" -eq "$n" ]; }
	wait_for 10 as_many "$@" || fail "no $n records of $*: $(tail -n 5 "$HST_AUDIT")"
}

done_and_attempted() {
	fresh
	mark
	helper 0 "$NOW"
	recorded 1 docker-enable-attempt "uid=$caller ruid=$caller reason=called" res=success 'acct="_hermes-engine" grp="docker"' \
		'exe="/usr/sbin/hermes-docker-enable"'
	recorded 1 docker-enable "uid=$caller ruid=$caller reason=added" res=success
	helper 0 "$ALREADY"
	recorded 2 docker-enable-attempt "uid=$caller" res=success
	recorded 1 docker-enable "uid=$caller ruid=$caller reason=already" res=success
}
it_case "the attempt and the result are group-management records with the caller's uid" done_and_attempted

refused() {
	fresh
	chmod 4755 $HELPER
	mark
	helper 77 '*only root and group*' login stranger $HELPER
	helper 64 '*no argument*' login caller $HELPER x
	recorded 1 docker-enable "uid=$stranger ruid=$stranger reason=not-in-group" res=failed
	recorded 1 docker-enable "uid=$caller ruid=$caller reason=arguments" res=failed
	recorded 0 docker-enable-attempt op
}
it_case "a refusal is one" refused

failures() {
	fresh
	mark
	printf '#!/bin/sh\nexit 3\n' | tool
	helper 71 '*status 3*'
	sed -i /^docker:/d /etc/group
	helper 69 '*no group*'
	recorded 1 docker-enable reason=tool-failed res=failed
	recorded 1 docker-enable reason=no-group res=failed
}
it_case "a failure is one" failures

normal() { sed -E 's/audit\([^)]*\)/audit(T)/; s/pid=[0-9]+/pid=P/; s/auid=[^ ]*/auid=A/; s/ses=[^ ]*/ses=S/; s/ruid=[0-9]+/ruid=R/; s/ *$//'; }
# The record in the manual page, where its lines are broken.
golden() {
	sed -n '/^type=GRP_MGMT/,/^\.Ed/p' "$TOP/man/hermes-docker-enable.8" | grep -v '^\.' | tr -s ' \n' ' ' |
		normal
	echo
}

searched() {
	fresh
	mark
	# The login uid is the kernel's: whoever logged in, however he became who he is.
	(echo 4321 >/proc/self/loginuid && helper 0 "$NOW") || fail "no login uid can be set"
	recorded 1 docker-enable "auid=4321" "uid=$caller"
	audit_records -m GRP_MGMT -ua "$caller" --raw | grep 'op=docker-enable .*auid=\|auid=4321.*op=docker-enable ' >/dev/null
	audit_records -m GRP_MGMT -ul 4321 --raw | grep 'op=docker-enable-attempt ' >/dev/null
	audit_records -m GRP_MGMT -x /usr/sbin/hermes-docker-enable -sv yes --raw | grep reason=added >/dev/null
	# As the manual page shows it, but for names and numbers of this machine.
	expect_eq "$(golden)" "$(audit_records -i -m GRP_MGMT -ul 4321 | grep op=docker-enable\  | tail -n 1 | normal)"
}
it_case "ausearch finds them by the caller, by the login, by the program" searched

# A container's root that may not write records: a container, not a caller, can take that away.
unable() {
	fresh
	mark
	helper 0 "$NOW" setpriv --bounding-set=-audit_write --inh-caps=-all $HELPER
	enabled
	recorded 0 docker-enable op
}
it_case "without CAP_AUDIT_WRITE it works, and no record can be kept" unable

# No CAP_CHOWN, no CAP_SETPCAP: it does not try with what it has.
too_little() {
	local cap
	for cap in chown setpcap; do
		fresh
		mark
		helper 71 '*cannot be root with CAP_CHOWN alone*' setpriv --bounding-set=-$cap --inh-caps=-all $HELPER
		recorded 1 docker-enable reason=privileges res=failed
		unchanged
	done
}
it_case "where privileges can neither be had nor given up, nothing is done" too_little
