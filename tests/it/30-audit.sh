#!/bin/bash
# Both trails of a real manager, with a real auditd: two kernel records for each exec, one readable line, one
# more for each proof, one record for each suppressed burst, and what a command's text can do to them (nothing).
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
it_start

CALLER_UID=$(id -u "${CALLER:?}")
TRAIL=$HST_DIR/log/sandbox-audit.log

# kernel OP [EXEC]: this manager's records of that operation, raw.
kernel() {
	audit_records --raw -m USER_CMD,TRUSTED_APP -x "$HST_RUN/bin/hermes-sandboxd" |
		grep -F "msg='op=$1 ${2:+exec=\"$2\" }" || true
}

# one_record OP EXEC: the one there is, into RECORD.
one_record() {
	# shellcheck disable=SC2317 # called by wait_for
	there() { RECORD=$(kernel "$@") && [ -n "$RECORD" ]; }
	wait_for 10 there "$@" || fail "the kernel trail has no $1 of exec $2"
	expect_eq 1 "$(wc -l <<<"$RECORD")"
}

# field NAME RECORD: its value, without the quotes.
field() {
	local text=" ${2#*msg=\'}"
	[[ $text =~ \ $1=([^\ \']*) ]] || fail "no field $1 in: $2"
	local value=${BASH_REMATCH[1]#\"}
	echo "${value%\"}"
}

# text_field NAME RECORD: the same for untrusted text, which stands between quotes or as hex digits.
text_field() {
	local text=" ${2#*msg=\'}"
	[[ $text =~ \ $1=(\"?)([^\ \'\"]*) ]] || fail "no field $1 in: $2"
	if [ -n "${BASH_REMATCH[1]}" ]; then
		printf %s "${BASH_REMATCH[2]}"
	else
		python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))' "${BASH_REMATCH[2]}"
	fi
}

# The readable lines but those of the proofs, which come when the caller has long had its result.
events() { grep -v 'Z SCRUB ' "$TRAIL"; }

# line_of EXEC: its readable line.
line_of() {
	local line
	line=$(events | grep -F " exec=$1 ")
	expect_eq 1 "$(wc -l <<<"$line")"
	printf %s "$line"
}

sha256() { sha256sum | cut -d' ' -f1; }

# run_json ARGUMENT…: RC, and ID and CID of the exec.
run_json() {
	local json
	RC=0
	json=$(hs exec --json "$@") || RC=$?
	ID=$(jq -r .exec_id <<<"$json")
	CID=$(jq -r '.sandbox[:12]' <<<"$json")
}

# agrees EXEC: the end record names the line by its number and its hash, and says the same as it.
agrees() {
	local line
	one_record exec-end "$1"
	line=$(line_of "$1")
	expect_eq "$(printf %s "$line" | sha256)" "$(field hash "$RECORD")"
	expect_match " seq=$(field seq "$RECORD") prev=[0-9a-f]{64}\$" "$line"
	expect_match " cause=$(field cause "$RECORD") " "$line"
	expect_match " cid=$(field cid "$RECORD") " "$line"
	expect_match " uid=$(field uid "$RECORD") " "$line"
	[ "$(field cause "$RECORD")" = unknown ] || expect_match " rc=$(field rc "$RECORD") " "$line"
}

two_records() {
	run_json 'echo hello; exit 3'
	one_record exec-start "$ID"
	expect_eq 'echo hello; exit 3' "$(text_field cmd "$RECORD")"
	expect_eq "$CALLER_UID" "$(field uid "$RECORD")"
	expect_eq "$CID" "$(field cid "$RECORD")"
	expect_eq default "$(field profile "$RECORD")"
	expect_match 'res=success' "$RECORD"
	agrees "$ID"
	expect_eq 3 "$(field rc "$RECORD")"
	expect_match 'res=failed' "$RECORD"
	expect_match 'rc=3 dur=[0-9]+ms out=1L' "$(line_of "$ID")"
}
it_case "an exec has two kernel records and a line, which agree" two_records

searchable() {
	run_json true
	one_record exec-end "$ID"
	expect_match 'res=success' "$RECORD"
	# By the caller's uid, and readable.
	expect_eq 2 "$(audit_records --raw -ua "$CALLER_UID" -m USER_CMD | grep -cF "exec=\"$ID\"")"
	expect_eq 0 "$(audit_records --raw -ua "$(id -u "$STRANGER")" -m USER_CMD | grep -cF "exec=\"$ID\"")"
	expect_match "id=$CALLER .*cmd=true" "$(audit_records -i -m USER_CMD | grep -F "$ID" | grep exec-start)"
}
it_case "ausearch -ua finds a caller's records, ausearch -i reads them" searchable

caller_pid() {
	local pid
	# shellcheck disable=SC2016 # the inner shell expands it, and becomes the caller
	pid=$(as "$CALLER" sh -c 'echo $$ && exec "$0" --socket "$1" exec true of-this-pid' \
		"$HST_RUN/bin/hermes-sandbox" "$HST_DIR/run/pool.sock" || true)
	wait_for 10 grep -qF 'cmd="true of-this-pid"' "$TRAIL"
	one_record exec-start "$(sed -n 's/.*cmd="true of-this-pid" exec=\([0-9a-f]*\).*/\1/p' "$TRAIL")"
	expect_eq "$pid" "$(field pid "$RECORD")"
}
it_case "the record has the caller's own pid" caller_pid

causes() {
	run_json --timeout 200ms 'sleep 30; :'
	expect_eq 124 "$RC"
	agrees "$ID"
	expect_eq "timeout 124" "$(field cause "$RECORD") $(field rc "$RECORD")"
	# shellcheck disable=SC2016 # the sandbox's shell expands it
	run_json 'kill -9 $$'
	agrees "$ID"
	expect_eq "signaled 137" "$(field cause "$RECORD") $(field rc "$RECORD")"
	run_json -- no-such-program
	agrees "$ID"
	expect_eq "not_found 127" "$(field cause "$RECORD") $(field rc "$RECORD")"
}
it_case "the cause of an end stands in both trails" causes

# rejected REASON CODE ARGUMENT…: the newest refusal is this one, in both trails.
rejected() {
	local reason=$1 code=$2 line
	shift 2
	expect_rc "$code" hs exec "$@" 2>"$HST_DIR/err"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	line=$(events | tail -n 1)
	expect_match "Z REJECTED .* reason=$reason seq=" "$line"
	# shellcheck disable=SC2317 # called by wait_for
	recorded() { RECORD=$(kernel exec-rejected | grep -F "$1") && [ -n "$RECORD" ]; }
	wait_for 10 recorded "$(printf %s "$line" | sha256)" || fail "no record of: $line"
	expect_eq "$reason" "$(field reason "$RECORD")"
	expect_eq "$CALLER_UID" "$(field uid "$RECORD")"
	expect_match 'res=failed' "$RECORD"
}

rejections() {
	local long
	long=$(printf '%20000s' true)
	rejected too_long 64 "$long"
	expect_eq 20000 "$(field bytes "$RECORD")"
	expect_match 'Z REJECTED 20000B cmd=' "$(events | tail -n 1)"
	rejected no_profile 64 --profile nowhere true
	rejected not_allowed 77 --profile locked true
	expect_eq locked "$(text_field profile "$RECORD")"
	rejected timeout_too_long 64 --timeout 1000h true
}
it_case "what is refused is recorded, too" rejections

# scrubbed EXEC: its proof's line, into LINE.
scrubbed() {
	# shellcheck disable=SC2317 # called by wait_for
	proved() { LINE=$(grep -E "Z SCRUB .* exec=$1 " "$TRAIL"); }
	wait_for 10 proved "$1" || fail "no proof of exec $1"
	expect_eq 1 "$(wc -l <<<"$LINE")"
}

proofs() {
	run_json true
	scrubbed "$ID"
	expect_match "Z SCRUB ok=true dur=[0-9]+ms cid=$CID exec=$ID check=clean emptied=false us=[0-9]+ seq=" "$LINE"
	run_json 'echo x >/tmp/x'
	scrubbed "$ID"
	expect_match "Z SCRUB ok=true dur=[0-9]+ms cid=$CID exec=$ID check=clean emptied=true us=[0-9]+ seq=" "$LINE"
	expect_eq "" "$(kernel scrub-failed "$ID")"
}
it_case "a proof that holds is one readable line, and no kernel record" proofs

# A connection that waits in the kernel for a minute after both its ends were closed.
# shellcheck disable=SC2016 # perl expands it
lingering='use Socket;
socket(my $l, PF_INET, SOCK_STREAM, 0); bind($l, sockaddr_in(0, INADDR_LOOPBACK)); listen($l, 1);
socket(my $c, PF_INET, SOCK_STREAM, 0); connect($c, getsockname($l)) or die; accept(my $a, $l);
shutdown($c, 2); sysread($a, my $b, 1); close($a); close($c);'

failed_proof() {
	local line
	run_json -- perl -e "$lingering"
	expect_eq 0 "$RC"
	scrubbed "$ID"
	line=$LINE
	expect_match "Z SCRUB ok=false dur=[0-9]+ms cid=$CID exec=$ID check=sockets emptied=(true|false) us=[0-9]+ " "$line"
	one_record scrub-failed "$ID"
	expect_eq "sockets $CID" "$(field check "$RECORD") $(field cid "$RECORD")"
	expect_eq "$(printf %s "$line" | sha256)" "$(field hash "$RECORD")"
	expect_match 'res=failed' "$RECORD"
}
it_case "a proof that fails is a line and a kernel record" failed_proof

suppressed() {
	local refused=0 before rc
	wait_for 60 it_warm 1 slow || fail "no sandbox of profile slow"
	before=$(events | grep -c 'Z REJECTED ' || true)
	for _ in {1..40}; do
		rc=0
		hs exec --profile slow true 2>"$HST_DIR/err" || rc=$?
		[ $rc -ne 0 ] || continue
		expect_eq 125 "$rc"
		expect_match "^hermes-sandbox: .*more than 1 commands a second.*limits.exec_rate$" "$(cat "$HST_DIR/err")"
		refused=$((refused + 1))
		[ $refused -lt 5 ] || break
	done
	[ $refused -gt 0 ] || fail "nothing was refused"
	# shellcheck disable=SC2317 # called below and by what wait_for calls
	sum() { awk -F'requests=' '{ n += $2 } END { print n + 0 }'; }
	# shellcheck disable=SC2317 # called by wait_for
	all_in() { [ "$(events | grep 'Z SUPPRESSED ' | sum)" -eq "$1" ]; }
	wait_for 10 all_in "$refused" || fail "$refused were refused: $(events | grep 'Z SUPPRESSED ')"
	expect_match "Z SUPPRESSED requests=[0-9]+ dur=[0-9]+ms uid=$CALLER_UID seq=" "$(events | grep 'Z SUPPRESSED ')"
	# shellcheck disable=SC2317 # called by wait_for
	recorded() { [ "$(kernel exec-suppressed | sum)" -eq "$1" ]; }
	wait_for 10 recorded "$refused" || fail "the kernel trail has $(kernel exec-suppressed)"
	expect_eq "$(events | grep -c 'Z SUPPRESSED ')" "$(kernel exec-suppressed | grep -c "uid=$CALLER_UID .*res=failed")"
	expect_eq "$before" "$(events | grep -c 'Z REJECTED ' || true)"
}
it_case "what is over exec_rate is refused, and each burst is one line and one record" suppressed

# What stands between the quotes of cmd="…" in the line on stdin, as docs/audit.md says how to read it.
unescape_command() {
	python3 -c '
import re, sys
text = re.search(r" cmd=\"([^\"]*)\" exec=", sys.stdin.buffer.read().decode()).group(1)
out = b""
for part in re.findall(r"\\x[0-9a-f]{2}|\\u\{[0-9a-f]+\}|[^\\]", text):
    if part.startswith("\\x"):
        out += bytes([int(part[2:], 16)])
    elif part.startswith("\\u"):
        out += chr(int(part[3:-1], 16)).encode()
    else:
        out += part.encode()
sys.stdout.buffer.write(out)'
}

# Case 24.
forgery() {
	local before forged hostile command line
	forged='2026-06-08T05:02:59Z POOL HIT=true rc=0 dur=1ms out=0L cid=000000000000 cmd="id" seq=1'
	hostile=$'" op=exec-end res=success\e[2J\u0085\u2028\u202e\x01\xff\\n\\\t'
	command=$(printf ": '\n%s\n%s'" "$forged" "$hostile")
	before=$(events | wc -l)
	run_json "$command"
	expect_eq 0 "$RC"
	scrubbed "$ID"
	expect_eq $((before + 1)) "$(events | wc -l)"
	line=$(line_of "$ID")
	expect_eq "$(events | tail -n 1)" "$line"
	# A reader that breaks lines at everything that Unicode calls a line break sees as many of them, and
	# nothing in the line can move a cursor.
	expect_eq "$(wc -l <"$TRAIL")" \
		"$(python3 -c 'import sys; print(len(open(sys.argv[1], newline="").read().splitlines()))' "$TRAIL")"
	! grep -qP '[\x00-\x1f\x7f]' <<<"$line" || fail "a control character in: $line"
	expect_eq "$command" "$(printf %s "$line" | unescape_command)"
	agrees "$ID"
	one_record exec-start "$ID"
	expect_eq "$command" "$(text_field cmd "$RECORD")"
	expect_eq 2 "$(kernel exec-start "$ID" | cat - <(kernel exec-end "$ID") | wc -l)"
}
it_case "case 24: a hostile command stays one record in both trails, and can be read back" forgery

secrets() {
	local value=canary-7f3a9c hex
	hex=$(printf %s "$value" | od -An -tx1 | tr -d ' \n')
	# shellcheck disable=SC2016 # the sandbox's shell expands it
	expect_eq "$value" "$(hs exec -e "TOKEN=$value" 'echo "$TOKEN"')"
	run_json true
	one_record exec-end "$ID"
	! grep -qiF -e "$value" -e "$hex" "$TRAIL" "$HST_AUDIT" "$HST_DIR"/*.log ||
		fail "the value of an environment variable stands in a trail or log"
}
it_case "values of environment variables are recorded nowhere" secrets

long_command() {
	local command
	command=": $(printf '%09000d' 0) é"
	run_json "$command"
	one_record exec-start "$ID"
	expect_eq "${command:0:2048}" "$(text_field cmd "$RECORD")"
	expect_eq "$(printf %s "$command" | wc -c)" "$(field cmd_len "$RECORD")"
	expect_eq "$(printf %s "$command" | sha256)" "$(field cmd_sha256 "$RECORD")"
	expect_match '0\\\.\.\." exec=' "$(line_of "$ID")"
	expect_match " cmd_len=$(printf %s "$command" | wc -c) " "$(line_of "$ID")"
}
it_case "of a long command: its start, its length and its SHA-256" long_command

# pool_record OP WORD N: the last line of that word, and the record that carries its hash.
pool_record() {
	local line
	line=$(grep -F "Z $2 containers=" "$TRAIL" | tail -n 1)
	expect_match "Z $2 containers=$3 seq=" "$line"
	# shellcheck disable=SC2317 # called by wait_for
	recorded() { kernel "$1" | grep -F "hash=\"$2\"" | grep -q "containers=$3 "; }
	wait_for 10 recorded "$1" "$(printf %s "$line" | sha256)" "$3" || fail "no record of: $line"
}
pool_start() { pool_record pool-start POOL-START 4; }
it_case "the pool's start is recorded" pool_start

# The manager is killed while a command runs.
killed() {
	local caller rc=0 id
	hs exec 'sleep 300; :' 2>"$HST_DIR/err" &
	caller=$!
	# shellcheck disable=SC2317 # called by wait_for
	begun() { kernel exec-start | tail -n 1 | grep -qF "cmd=$(printf 'sleep 300; :' | od -An -tx1 | tr -d ' \n' | tr a-f A-F)"; }
	wait_for 10 begun || fail "the command does not start"
	id=$(field exec "$(kernel exec-start | tail -n 1)")
	expect_eq "" "$(kernel exec-end "$id")"
	kill -KILL "$(it_pid sandboxd)"
	wait "$caller" || rc=$?
	expect_eq 125 "$rc"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	wait_for 5 test -s "$HST_DIR/sandboxd.rc"
	it_sandboxd
	agrees "$id"
	expect_match 'cause=unknown rc=\? .*res=unknown' "$RECORD"
	expect_match 'Z UNKNOWN cid=[0-9a-f]{12} cmd="sleep 300; :" exec=' "$(line_of "$id")"
	wait_for 30 it_warm 1
	run_json true
	agrees "$id"
}
it_case "after a SIGKILL the next start writes the missing end as unknown" killed

pool_stop() {
	wait_for 30 it_warm 3
	wait_for 30 it_warm 1 slow
	it_stop
	pool_record pool-stop POOL-STOP 4
}
it_case "the pool's stop is recorded" pool_stop

# Every line has the documented form, numbers without a gap, and the hash of the line before it.
chain() {
	python3 - "$TRAIL" <<-'END'
		import hashlib, re, sys
		tail = r' exec=(?:[0-9a-f]{16}|\?) uid=\d+ profile="[^"]*"(?: session="[^"]*")? cause=[a-z_]+(?: cmd_len=\d+)?'
		event = re.compile(
		    r'(?:(?:POOL HIT=true|COLD DONE) rc=\d+ dur=\d+ms out=\d+L cid=[0-9a-f]{12} cmd="[^"]*"'
		    + tail + r'(?: truncated=true)?'
		    r'|REJECTED (?:\d+B|[a-z_]+) cmd="[^"]*"' + tail + r' reason=[a-z_]+'
		    r'|SCRUB ok=(?:true|false) dur=\d+ms cid=[0-9a-f]{12} exec=[0-9a-f]{16} check=[a-z_]+'
		    r' emptied=(?:true|false) us=\d+(?: place="[^"]*")?'
		    r'|SESSION-OPEN cid=[0-9a-f]{12} session="[^"]*" uid=\d+ profile="[^"]*"'
		    r'|SESSION-CLOSE cid=[0-9a-f]{12} session="[^"]*" uid=\d+ profile="[^"]*" reason=[a-z]+ by=(?:\d+|\?)'
		    r'|SUPPRESSED requests=\d+ dur=\d+ms uid=\d+'
		    r'|UNKNOWN cid=(?:[0-9a-f]{12}|\?) cmd="[^"]*"' + tail +
		    r'|POOL-ST(?:ART|OP) containers=\d+)')
		line_form = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (.*) seq=(\d+) prev=([0-9a-f]{64})')
		prev = '0' * 64
		data = open(sys.argv[1], 'rb').read()
		assert data.endswith(b'\n')
		for n, raw in enumerate(data[:-1].split(b'\n'), 1):
		    m = line_form.fullmatch(raw.decode())
		    assert m and event.fullmatch(m[1]), f'line {n}: {raw}'
		    assert int(m[2]) == n and m[3] == prev, f'the chain breaks at line {n}: {raw}'
		    prev = hashlib.sha256(raw).hexdigest()
		assert n > 10
	END
}
it_case "the chain of lines holds over a kill and a restart, each line in its form" chain

tip() {
	local last
	last=$(tail -n 1 "$TRAIL" | tr -d '\n' | sha256)
	it_start
	# shellcheck disable=SC2317 # called by wait_for
	opened() { kernel trail-open | tail -n 1 | grep -qF "hash=\"$1\""; }
	wait_for 10 opened "$last" || fail "trail-open does not name the last line"
	it_stop
}
it_case "a start records where the readable trail ended" tip

# start_without_audit: a manager that may not write kernel records.
start_without_audit() {
	it_spawn sandboxd setpriv --reuid=_hermes-sandbox --regid=_hermes-sandbox --clear-groups \
		--inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs \
		"$HST_RUN/bin/hermes-sandboxd" --config "$HST_DIR/etc/sandbox.yaml" \
		--config-dir "$HST_DIR/etc/sandbox.d" --runtime-dir "$HST_DIR/run" \
		--engine-socket "$HST_DIR/engine/engine.sock" --state-dir "$HST_DIR/state"
}

required() {
	it_config <<<$'audit:\n  required: true'
	start_without_audit
	wait_for 10 test -s "$HST_DIR/sandboxd.rc" || fail "it runs although it cannot audit"
	rm "$HST_DIR/sandboxd.pid"
	[ "$(cat "$HST_DIR/sandboxd.rc")" -ne 0 ] || fail "it ended with 0"
	expect_match 'audit.required is true and the kernel audit trail is disabled' \
		"$(tail -n 1 "$HST_DIR/sandboxd.log")"
}
it_case "with audit.required it does not start where the kernel takes no record" required

not_required() {
	it_config <<<$'audit:\n  required: auto'
	it_engined
	start_without_audit
	it_up sandboxd "$HST_DIR/run/pool.sock"
	wait_for 30 it_warm 1
	expect_eq hello "$(hs exec 'echo hello')"
	expect_eq disabled "$(hs status --json | jq -r .audit.kernel)"
	expect_match 'cmd="echo hello"' "$(events | tail -n 1)"
}
it_case "without the right to audit, status says so and the readable trail goes on" not_required
