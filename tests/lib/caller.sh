# shellcheck shell=bash
# shellcheck disable=SC2034 # HS_PID and HS_RC are for the scripts
# Callers in the background, and the processes of their commands as the host sees them. Sourced behind
# it.sh.
#
# A command marks its processes with numbers that nothing else has, such as "sleep 7201".

# hs_begin NAME ARGUMENT…: hs in the background, its pid in HS_PID, its output in NAME.out and NAME.err
# (which may be a FIFO that is open). A shell starts what runs in the background with SIGINT and SIGQUIT
# ignored; a caller has them as they come.
hs_begin() {
	local name=$1
	shift
	setpriv --reuid "$CALLER" --regid "$CALLER" --init-groups --inh-caps=-all --bounding-set=-all \
		--no-new-privs -- env -i --default-signal=INT,QUIT PATH=/usr/local/bin:/usr/bin:/bin HOME=/ \
		${ASAN_OPTIONS:+ASAN_OPTIONS="$ASAN_OPTIONS"} \
		"$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@" \
		<&0 >"$HST_DIR/$name.out" 2>"$HST_DIR/$name.err" &
	HS_PID=$!
}

# hs_end PID: waits for its end, 30 s at most; its status is then in HS_RC.
hs_end() {
	local rc=0
	wait_for 30 gone "$1" || fail "the caller $1 does not end"
	wait "$1" || rc=$?
	HS_RC=$rc
}

# pid_of WORD…: the pid of a process, in whatever sandbox, that has exactly this command line.
pid_of() {
	local file words IFS=$'\n'
	for file in /proc/[0-9]*/cmdline; do
		{ mapfile -d '' -t words <"$file"; } 2>/dev/null || continue
		if [ "${words[*]}" = "$*" ]; then
			file=${file%/cmdline}
			echo "${file##*/}"
			return 0
		fi
	done
	return 1
}

# aged PID: it is at least half a second old. Clock ticks are hundredths of a second (proc(5), starttime).
aged() {
	local stat uptime
	stat=$(cat "/proc/$1/stat") || return 1
	uptime=$(cut -d' ' -f1 /proc/uptime)
	[ $((${uptime/./} - $(cut -d' ' -f20 <<<"${stat##*) }"))) -ge 50 ]
}

running() { pid_of "$@" >/dev/null; }

# sleeps NUMBER…: every one of these marks is running.
sleeps() {
	local mark
	for mark in "$@"; do
		running sleep "$mark" || return 1
	done
}

# expect_gone NUMBER…: none of them is, at this moment.
expect_gone() {
	local mark
	for mark in "$@"; do
		! running sleep "$mark" || fail "sleep $mark is still there"
	done
}

none_left() { (expect_gone "$@") >/dev/null; }

# field JQ-EXPRESSION JSON
field() { jq -r "$1" <<<"$2"; }

# expect_fields JSON NAME VALUE [NAME VALUE]…
expect_fields() {
	local json=$1
	shift
	while [ $# -gt 0 ]; do
		[ "$(field ".$1" "$json")" = "$2" ] ||
			fail "$1 is $(field ".$1" "$json"), expected $2, in $json"
		shift 2
	done
}

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
