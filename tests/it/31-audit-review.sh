#!/bin/bash
# hermes-sandbox audit on a real manager's and auditd's records: who ran what, where, when, how it ended, and what was
# refused, the same by ausearch alone; what a command's text can do to it (nothing); and each manipulation of the
# readable trail, found.
. "${0%/*}/../lib/it.sh"
it_config <<END
profiles:
  locked:
    size: 0
    allow_users: [root]
  slow:
    size: 1
    limits:
      exec_rate: 1
END
BEGIN=@$EPOCHREALTIME
it_start

CALLER_UID=$(id -u "${CALLER:?}")
TRAIL=$HST_DIR/log/sandbox-audit.log
MANAGER=$HST_RUN/bin/hermes-sandboxd

# review ARGUMENT…: over the run's kernel trail, of which this script's part.
review() {
	"$HST_RUN/bin/hermes-sandbox-audit" --manager "$MANAGER" --log "$HST_AUDIT" --since "$BEGIN" "$@"
}

# ours: the records on stdin that are this script's, and that the kernel itself ascribes to the manager's account
# (docs/audit.md).
ours() {
	{ grep -E "^[^']* uid=$(id -u _hermes-sandbox) " || true; } |
		awk -v begin="${BEGIN#@}" -F'[(:]' '$2 + 0.001 >= begin'
}

# kernel PATTERN: this script's records that match, raw.
kernel() {
	audit_records --raw -m USER_CMD,TRUSTED_APP -x "$MANAGER" | ours | grep -E "$1" || true
}

# run_json ARGUMENT…: RC and ID of the exec, and EVENT, what the review says of it when its end is recorded.
run_json() {
	local json
	RC=0
	json=$(hs exec --json "$@") || RC=$?
	ID=$(jq -r .exec_id <<<"$json")
	CID=$(jq -r '.sandbox[:12]' <<<"$json")
	ended "$ID"
}

ended() {
	# shellcheck disable=SC2317 # called by wait_for
	has_end() { EVENT=$(review --json --exec "$1") && [ "$(jq -r .ended <<<"$EVENT" | grep -c Z)" -eq 1 ]; }
	wait_for 10 has_end "$1" || fail "no end of exec $1 in: $EVENT"
}

# says JQ VALUE [JQ VALUE]…: what EVENT has at these places.
says() {
	while [ $# -gt 0 ]; do
		expect_eq "$2" "$(jq -r "$1" <<<"$EVENT")"
		shift 2
	done
}

who_what_where() {
	run_json 'echo hello; exit 3'
	says .event exec .uid "$CALLER_UID" .user "$CALLER" .sandbox "$CID" .profile default .session null \
		.command 'echo hello; exit 3' .cause exited .exit_code 3 .result failed
	[ "$(jq .wall_ms <<<"$EVENT")" -ge 0 ] || fail "no duration: $EVENT"
	# Its number and hash are those of its line.
	expect_eq "$(grep -F " exec=$ID uid=" "$TRAIL" | tr -d '\n' | sha256sum | cut -d' ' -f1)" "$(jq -r .hash <<<"$EVENT")"
	expect_match "^[0-9-]{10} [0-9:]{8} $CALLER +$CID +default +exit 3 +[0-9.]+s  echo hello; exit 3\$" \
		"$(review --exec "$ID" | sed 1d)"
	run_json -- sh -c 'kill -9 $$'
	says .cause signaled .exit_code 137 .command "sh -c 'kill -9 \$\$'"
	run_json --timeout 200ms 'sleep 30; :'
	says .cause timeout .exit_code 124
	run_json true
	says .cause exited .exit_code 0 .result success
}
it_case "who ran what, where, when, and how it ended" who_what_where

running() {
	local caller
	hs exec 'sleep 3; :' &
	caller=$!
	# shellcheck disable=SC2317 # called by wait_for
	open_one() { EVENT=$(review --json | jq -c 'select(.cause == "running_or_lost")') && [ -n "$EVENT" ]; }
	wait_for 10 open_one || fail "the command does not show"
	says .command 'sleep 3; :' .ended null .exit_code null .result unknown
	expect_match ' running or lost +-  sleep 3; :$' "$(review --failed | tail -n 1)"
	wait "$caller"
	ended "$(jq -r .exec_id <<<"$EVENT")"
}
it_case "what has no end yet is shown as running or lost" running

# refused REASON ARGUMENT…: the newest refusal is this one.
refused() {
	local reason=$1
	shift
	! hs exec "$@" 2>/dev/null || fail "it was not refused"
	# shellcheck disable=SC2317 # called by wait_for
	newest() { EVENT=$(review --json --failed | tail -n 1) && [ "$(jq -r .reason <<<"$EVENT")" = "$1" ]; }
	wait_for 10 newest "$reason" || fail "not refused as $reason: $EVENT"
	says .event refused .uid "$CALLER_UID"
}

refusals() {
	refused not_allowed --profile locked 'id; echo x'
	says .profile locked .command 'id; echo x'
	refused too_long "$(printf '%20000s' true)"
	says .command_bytes 20000
	expect_eq "$(kernel 'op=exec-rejected' | wc -l)" "$(review --json | jq -c 'select(.event == "refused")' | wc -l)"
}
it_case "what was refused, and why" refusals

burst() {
	local refused=0 rc
	wait_for 60 it_warm 1 slow || fail "no sandbox of profile slow"
	for _ in {1..40}; do
		rc=0
		hs exec --profile slow true 2>/dev/null || rc=$?
		[ $rc -eq 0 ] || refused=$((refused + 1))
		[ $refused -lt 5 ] || break
	done
	[ $refused -gt 0 ] || fail "nothing was refused"
	# shellcheck disable=SC2317 # called by wait_for
	counted() { [ "$(review --summary --json | jq -s 'map(.suppressed) | add')" -eq "$1" ]; }
	wait_for 10 counted "$refused" || fail "$refused were refused: $(review --summary --json)"
}
it_case "a suppressed burst counts in the summary" burst

forgery() {
	local hostile before
	before=$(review --json | wc -l)
	hostile=": '\" op=exec-end exec=\"0\" uid=0 res=success"$'\n\e[2J\e]0;x\a\r\u0085\u009b31m\u2028\u202e\u2066\x01\xff\\ \''
	run_json "$hostile"
	says .uid "$CALLER_UID" .cause exited .exit_code 0 .command_encoding base64
	printf %s "$hostile" | cmp - <(jq -j .command <<<"$EVENT" | base64 -d)
	expect_eq $((before + 1)) "$(review --json | wc -l)"
	review >"$HST_DIR/table"
	expect_eq $((before + 2)) "$(wc -l <"$HST_DIR/table")"
	# As code points: none that a terminal obeys; as bytes: all of it UTF-8.
	python3 - "$HST_DIR/table" <<-'END'
		import sys, unicodedata
		text = open(sys.argv[1], encoding='utf-8', newline='').read()
		bad = {c for c in text if unicodedata.category(c) in ('Cc', 'Cf', 'Zl', 'Zp') and c != '\n'}
		assert not bad, bad
		assert r'\x1b[2J' in text and r'\u{202e}' in text and r'\xff' in text
	END
	! review --json | LC_ALL=C grep -q '[^ -~]' || fail "a byte outside of ASCII in the JSON of this command"
}
it_case "a hostile command is one event, and moves no cursor" forgery

# A record in the manager's form, its program in exe=, by root, who may write any.
stranger_record() {
	python3 - "$1" <<-'END'
		import socket, struct, sys
		text = (sys.argv[1] + '\0').encode()
		s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)
		s.sendto(struct.pack('=LHHLL', 16 + len(text), 1123, 5, 1, 0) + text, (0, 0))
		error = struct.unpack('=i', s.recv(8192)[16:20])[0]
		assert error == 0, error
	END
}

not_ours() {
	local before
	before=$(review --json | wc -l)
	stranger_record "op=exec-start exec=\"feedfacefeedface\" uid=$CALLER_UID id=$CALLER_UID sauid=0 pid=1 cid=\"?\" profile=\"default\" pool=hit cmd=\"id\" exe=\"$MANAGER\" hostname=? addr=? terminal=? res=success"
	# shellcheck disable=SC2317 # called by wait_for
	written() { audit_records --raw -m USER_CMD | grep -qF feedfacefeedface; }
	wait_for 10 written || fail "auditd did not get it"
	review --json >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "$before" "$(wc -l <"$HST_DIR/out")"
	expect_match '^hermes-sandbox: audit: [0-9]+ records name our programs and were written by another account' "$(cat "$HST_DIR/err")"
}
it_case "a record that another account wrote does not count, whatever it says" not_ours

same_by_ausearch() {
	local summary
	summary=$(review --summary --json | jq -s -c '[map(.commands), map(.failures), map(.refusals), map(.bursts)] | map(add)')
	expect_eq "[$(kernel 'op=exec-start' | wc -l),$(kernel 'op=exec-end .*res=(failed|unknown)' | wc -l),$(kernel 'op=exec-rejected' | wc -l),$(kernel 'op=exec-suppressed' | wc -l)]" "$summary"
	# By user, and by day and user as docs/audit.md has it.
	expect_eq "$(audit_records --raw -ua "$CALLER_UID" -m USER_CMD -x "$MANAGER" | ours | grep -c 'op=exec-start')" \
		"$(review --user "$CALLER" --json | jq -c 'select(.event == "exec")' | wc -l)"
	expect_eq "$(review --summary | awk 'NR > 1 { print $1, $3 }')" \
		"$(kernel 'op=exec-start' | sed -E 's/.*audit\(([0-9]+)\..* id=([0-9]+) .*/\1 \2/' |
			awk '{ n[strftime("%Y-%m-%d", $1)]++ } END { for (d in n) print d, n[d] }' | sort)"
	expect_eq 0 "$(review --user "${STRANGER:?}" | wc -l)"
	expect_eq "$(review --failed --json | jq -c 'select(.event == "exec" and .ended)' | wc -l)" \
		"$(kernel 'op=exec-end .*res=(failed|unknown)' | wc -l)"
}
it_case "ausearch alone gives the same answers" same_by_ausearch

# --- verify ------------------------------------------------------------------------------------------

# verify FILE: what it finds, as "kind kind …", the status in RC.
verify() {
	RC=0
	VERDICT=$(review --verify --trail "$1" --json) || RC=$?
	FOUND=$(jq -r 'select(.finding and .finding != "note") | .finding' <<<"$VERDICT" | tr '\n' ' ')
	FOUND=${FOUND% }
}

all_recorded() {
	verify "$TRAIL"
	[ "$RC" -eq 0 ] && ! grep -q 'not in the log yet' <<<"$VERDICT"
}

clean() {
	wait_for 20 all_recorded || fail "$VERDICT"
	expect_eq "$(wc -l <"$TRAIL")" "$(jq 'select(.verify) | .lines' <<<"$VERDICT")"
	expect_eq "ok kernel 0" "$(jq -r 'select(.verify) | "\(.verify) \(.checked) \(.findings)"' <<<"$VERDICT")"
	[ "$(jq 'select(.verify) | .agreed' <<<"$VERDICT")" -ge 10 ] || fail "the kernel's trail agrees with too little: $VERDICT"
	expect_match "^OK $(wc -l <"$TRAIL") lines in 1 file, numbers 1-[0-9]+; the kernel's trail agrees with " \
		"$(review --verify --trail "$TRAIL")"
}
it_case "a trail that nobody touched verifies" clean

# found KIND COMMAND…: the command changes the copy COPY of the trail; that and nothing else is found.
found() {
	local kind=$1
	shift
	rm -f "$HST_DIR"/copy/*
	install -d "$HST_DIR/copy"
	COPY=$HST_DIR/copy/log
	cp "$TRAIL" "$COPY"
	"$@"
	verify "$COPY"
	expect_eq "1 $kind" "$RC $FOUND"
}

# The number of a line of an exec, which the kernel's trail has, somewhere in the middle.
middle() { grep -nE 'Z POOL HIT=true|Z COLD DONE' "$COPY" | sed -n 3p | cut -d: -f1; }
# shellcheck disable=SC2317 # found calls them
{
	takes_away() { sed -i "$(middle)d" "$COPY"; }
	changes() { sed -i "$(middle)s/ rc=[0-9]*/ rc=42/" "$COPY"; }
	swaps() { sed -i "$(middle){h;d};$(($(middle) + 1))G" "$COPY"; }
	puts_in() { sed -i "$(middle)i 2026-06-08T05:02:59Z POOL HIT=true rc=0 dur=1ms out=0L cid=000000000000 cmd=\"id\"" "$COPY"; }
	tears() { truncate -s -30 "$COPY"; }
	cuts_tail() { sed -i "$(($(grep -nE 'Z (POOL HIT|COLD)' "$COPY" | tail -n 1 | cut -d: -f1) - 1)),\$d" "$COPY"; }
	empties() { : >"$COPY"; }
	removes() { rm "$COPY"; }
	loses_file() {
		local n
		n=$(middle)
		head -n "$((n - 2))" "$COPY" >"$COPY.2"
		sed -i "1,$((n + 1))d" "$COPY"
	}
	# What the manager's account could do: another line, and every number and hash behind it made to fit.
	rewrites() {
		python3 - "$COPY" "$(middle)" <<-'END'
			import hashlib, re, sys
			path, at = sys.argv[1], int(sys.argv[2])
			lines = open(path, 'rb').read().split(b'\n')[:-1]
			lines[at - 1] = re.sub(rb' rc=\d+', b' rc=42', lines[at - 1])
			for i in range(at, len(lines)):
			    prev = hashlib.sha256(lines[i - 1]).hexdigest().encode()
			    lines[i] = re.sub(rb'prev=[0-9a-f]{64}$', b'prev=' + prev, lines[i])
			open(path, 'wb').write(b'\n'.join(lines) + b'\n')
		END
	}
}
it_case "verify finds a line that is missing" found missing takes_away
it_case "verify finds a line that was changed" found changed changes
it_case "verify finds lines that were reordered" found reordered swaps
it_case "verify finds a line that was inserted" found inserted puts_in
it_case "verify finds that the tail was cut off" found tail cuts_tail
it_case "verify finds a trail that was emptied" found gone empties
it_case "verify finds a rotated file that is gone" found rotation loses_file
it_case "verify finds a rewritten rest, which is consistent in itself" found changed rewrites

removed() {
	found "gone gone" removes
	expect_match 'the whole trail' "$VERDICT"
}
it_case "verify finds a trail that is gone" removed

torn() {
	found torn tears
	expect_match '"line":'"$(wc -l <"$TRAIL")," "$VERDICT"
}
it_case "verify finds a torn last line" torn

consistency_only() {
	COPY=$HST_DIR/copy/log
	found changed rewrites
	verdict=$("$HST_RUN/bin/hermes-sandbox-audit" --verify --trail "$COPY" --log /dev/null 2>&1 || true)
	expect_match 'not a regular file' "$verdict"
	[ ! -e /var/log/audit/audit.log ] || return 0
	# Without auditd's log: it says so, and a rewritten trail passes.
	expect_match '^OK .*; consistency only: no kernel audit trail: ' \
		"$("$HST_RUN/bin/hermes-sandbox-audit" --verify --trail "$COPY")"
}
it_case "without a kernel trail it is consistency only" consistency_only

deleted_and_begun_anew() {
	it_stop
	mv "$TRAIL" "$HST_DIR/log/away"
	it_start
	run_json true
	# shellcheck disable=SC2317 # called by wait_for
	anew() { verify "$TRAIL" && [ "$FOUND" = anew ]; }
	wait_for 20 anew || fail "$VERDICT"
	expect_match 'was begun anew: lines up to [0-9]+ were gone' "$VERDICT"
	expect_eq 1 "$RC"
}
it_case "verify finds a trail that was deleted and begun anew" deleted_and_begun_anew

# --- who may ------------------------------------------------------------------------------------------

# as_group GROUP ARGUMENT…: as the stranger, in that group alone, over a copy of the log as Debian's auditd keeps it.
as_group() {
	local group=$1
	shift
	setpriv --reuid "$STRANGER" --regid "$STRANGER" --groups "$group" --inh-caps=-all --bounding-set=-all --no-new-privs \
		"$HST_RUN/bin/hermes-sandbox-audit" --manager "$MANAGER" --log "$HST_DIR/var/audit.log" "$@"
}

access() {
	install -d -m 0750 -g adm "$HST_DIR/var"
	install -m 0640 -g adm "$HST_AUDIT" "$HST_DIR/var/audit.log"
	expect_eq "$(review --json --since "$BEGIN" | jq -r .op | sort | uniq -c)" \
		"$(as_group adm --json --since "$BEGIN" | jq -r .op | sort | uniq -c)"
	expect_match 'the kernel.s trail agrees with' "$(as_group adm --verify --since "$BEGIN" --trail "$TRAIL" || true)"
	expect_rc 77 as_group "$(id -gn "$STRANGER")" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_match "Permission denied: .*group adm" "$(cat "$HST_DIR/err")"
	expect_eq 0 "$(wc -c <"$HST_DIR/out")"
	expect_rc 77 as_group "$(id -gn "$STRANGER")" --verify --trail "$TRAIL" 2>/dev/null
}
it_case "group adm may, others are told what mends it" access
