#!/bin/bash
# Callers that want more of the helper than it gives: what they can hand down, send, trace and take away.
. "${0%/*}/../lib/priv.sh"

ATTACK=$HST_DIR/attack
cc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -o "$ATTACK" "$TOP/tests/priv/attack.c"

# Root may raise a hard limit with CAP_SYS_RESOURCE alone, which many containers' root has not got. There only soft
# limits can be shaken off.
SOFT=
[ $((0x$(awk '/^CapBnd/ { print $2 }' /proc/self/status) >> 24 & 1)) -eq 1 ] || SOFT=:

# A tool that hangs takes the helper's whole 30 seconds: beside the other cases, in a world of its own.
mkdir "$HST_DIR/hang"
cp -a /etc /usr/sbin "$HST_DIR/hang/"
rm "$HST_DIR/hang/sbin/usermod"
printf '#!/bin/sh\nprintf "%%s\\0" $$ >/etc/group.lock\nsleep 1000\n' >"$HST_DIR/hang/sbin/usermod"
chmod 0755 "$HST_DIR/hang/sbin/usermod"
unshare --mount --propagation private sh -c "mount --bind $HST_DIR/hang/etc /etc
	mount --bind $HST_DIR/hang/sbin /usr/sbin
	setpriv ${caller_ids:?} -- env $HELPER
	echo \$?" >"$HST_DIR/hang/out" 2>&1 &
hang=$!

# Since Linux 5.18 the kernel itself gives such a program one empty argument, so that both succeed. What an
# older one lets through is refused before anything else.
no_argv() {
	local how rc=0
	[ "$(printf '5.18\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 5.18 ] || rc=64
	for how in argv-empty argv-null; do
		fresh
		expect_rc $rc login caller "$ATTACK" $how $HELPER >"$HST_DIR/out" 2>&1
		if [ $rc -eq 0 ]; then enabled; else unchanged; fi
	done
}
it_case "argc 0, by both calls that give it" no_argv

closed() {
	local how
	for how in '0<&-' '1>&-' '2>&-' '0<&- 1>&-' '0<&- 2>&-' '1>&- 2>&-' '0<&- 1>&- 2>&-'; do
		fresh
		expect_rc 0 login caller sh -c "$HELPER $how" >"$HST_DIR/out" 2>&1
		enabled
		! grep -rl 'hermes-docker-enable:' /etc/passwd /etc/shadow /etc/group /etc/gshadow ||
			fail "its line went into an account file"
	done
}
it_case "descriptors 0 to 2 closed, each and all" closed

# A library and a tool that leave a mark when they are used.
canaries() {
	cat >"$HST_DIR/canary.c" <<-END
		#include <fcntl.h>
		__attribute__((constructor)) static void f(void) { (void)!open("$HST_DIR/canaries/library", O_CREAT, 0666); }
	END
	cc -shared -fPIC -o "$HST_DIR/canary.so" "$HST_DIR/canary.c"
	mkdir "$HST_DIR/path"
	mkdir -m 1777 "$HST_DIR/canaries"
	printf '#!/bin/sh\ntouch %s/canaries/tool\n' "$HST_DIR" >"$HST_DIR/path/usermod"
	cp "$HST_DIR/canary.so" "$HST_DIR/path/libaudit.so.1"
	cp "$HST_DIR/canary.so" "$HST_DIR/path/libcap-ng.so.0"
	chmod -R a+rx "$HST_DIR/path"
}

environment() {
	canaries
	fresh
	tool <<-END
		#!/bin/sh
		cat /proc/\$\$/environ | tr '\\0' '\\n' >$HST_DIR/env
		exec $HST_DIR/usermod "\$@"
	END
	helper 0 "$NOW" login caller env LD_PRELOAD="$HST_DIR/canary.so" LD_LIBRARY_PATH="$HST_DIR/path" \
		LD_AUDIT="$HST_DIR/canary.so" LD_DEBUG=all LD_DEBUG_OUTPUT="$HST_DIR/canaries/debug" \
		LD_BIND_NOW=1 \
		GLIBC_TUNABLES=glibc.malloc.mxfast=glibc.malloc.mxfast=A:glibc.mem.tagging=255 \
		MALLOC_CHECK_=3 MALLOC_PERTURB_=165 PATH="$HST_DIR/path" IFS=/ LANG=../../../tmp LC_ALL=/tmp LOCPATH=/tmp \
		TMPDIR="$HST_DIR/path" TZ=/etc/shadow NLSPATH=/tmp HOME="$HST_DIR" CAPNG_X=1 BASH_ENV="$HST_DIR/path/usermod" \
		ENV="$HST_DIR/path/usermod" SHADOW=1 "$(printf 'X\nY=1')" $HELPER
	enabled
	expect_eq "" "$(ls "$HST_DIR/canaries")"
	expect_eq "$(printf 'PATH=/usr/sbin:/usr/bin:/sbin:/bin\nLC_ALL=C.UTF-8')" "$(cat "$HST_DIR/env")"
}
it_case "a hostile environment reaches neither it nor its tool" environment

# The tool's state, out of /proc, when a hostile caller and when root starts it.
look_inside() {
	tool <<-END
		#!/bin/sh
		cat /proc/self/status /proc/self/limits /proc/self/oom_score_adj >$HST_DIR/seen
		cut -d' ' -f6,19,41 /proc/\$\$/stat >$HST_DIR/stat
		(ls -l /proc/\$\$/fd >$HST_DIR/fds)
		readlink /proc/\$\$/cwd >$HST_DIR/cwd
		tr '\\0' ' ' </proc/\$\$/cmdline >$HST_DIR/cmdline
		cat /proc/self/timerslack_ns >$HST_DIR/slack
		echo \$\$ >$HST_DIR/pid
		exec $HST_DIR/usermod "\$@"
	END
}

state() { awk -v key="$1:" '$1 == key { sub(/^[^:]*:[ \t]*/, ""); gsub(/[ \t]+/, " "); print; exit }' "$HST_DIR/seen"; }

expect_tool_state() {
	expect_eq "0 0 0 0" "$(state Uid)"
	expect_eq "0 0 0 0" "$(state Gid)"
	expect_eq "" "$(state Groups | tr -d ' ')"
	expect_eq 0000000000000001 "$(state CapPrm)"
	expect_eq 0000000000000001 "$(state CapEff)"
	expect_eq 0000000000000001 "$(state CapBnd)"
	expect_eq 0000000000000000 "$(state CapInh)"
	expect_eq 0000000000000000 "$(state CapAmb)"
	expect_eq 1 "$(state NoNewPrivs)"
	expect_eq 0077 "$(state Umask)"
	expect_eq 0000000000000000 "$(state SigBlk)"
	expect_eq 0000000000000000 "$(state SigPnd)"
	# The C library of the shell that looks may ignore some itself; dash ignores none.
	expect_eq 0000000000000000 "$(state SigIgn)"
	expect_eq 0 "$(tail -n 1 "$HST_DIR/seen")"
	# Its own session, nice 0, SCHED_OTHER.
	expect_eq "$(cat "$HST_DIR/pid") 0 0" "$(cat "$HST_DIR/stat")"
	expect_eq / "$(cat "$HST_DIR/cwd")"
	expect_eq 50000 "$(cat "$HST_DIR/slack")"
	expect_eq "/bin/sh /usr/sbin/usermod -aG docker _hermes-engine " "$(cat "$HST_DIR/cmdline")"
	# 10 is the script that the shell itself has open.
	expect_eq "0 /dev/null,1 /dev/null,2 /dev/null" \
		"$(awk '$9 ~ /^[0-9]$/ { print $9, $11 }' "$HST_DIR/fds" | paste -sd,)"
	grep -qE '^Max open files +1024 ' "$HST_DIR/seen"
	grep -qE '^Max core file size +0 +0 ' "$HST_DIR/seen"
}

limits() {
	local limits="--fsize=0$SOFT --nofile=4$SOFT --nproc=1$SOFT --cpu=1$SOFT --rss=0$SOFT --memlock=0$SOFT"
	limits+=" --sigpending=0$SOFT --msgqueue=0$SOFT --locks=0$SOFT"
	fresh
	look_inside
	helper 0 "$NOW" $HELPER
	expect_tool_state
	enabled
	grep ^Max "$HST_DIR/seen" >"$HST_DIR/limits"
	[ -n "$SOFT" ] || expect_eq 0 "$(grep -E 'file size|cpu time|processes|address|signals' "$HST_DIR/limits" | grep -c -v -e ' unlimited *unlimited ' -e core)"
	fresh
	look_inside
	# shellcheck disable=SC2086 # several options
	helper 0 "$NOW" login caller sh -c "exec 5</etc/passwd 9</dev/null; umask 0; cd /tmp
		exec choom -n 1000 -- chrt --idle 0 nice -n 19 ionice -c 3 prlimit $limits $ATTACK inherit $HELPER"
	expect_tool_state
	grep ^Max "$HST_DIR/seen" | cmp - "$HST_DIR/limits"
	enabled
}
it_case "the tool runs in one and the same state, whatever limits, signals, timers, priorities its caller hands down" limits

one_limit_each() {
	local limit
	for limit in --fsize=0 --nofile=4 --nproc=0 --cpu=1 --data=1000000 --stack=65536 --as=100000000; do
		fresh
		helper 0 "$NOW" login caller prlimit $limit$SOFT $HELPER
		enabled
	done
	# So few that not even its libraries can be opened.
	fresh
	helper 127 '*error while loading shared libraries*' login caller prlimit --nofile=3 $HELPER
	unchanged
	[ -n "$SOFT" ] || return 0
	fresh
	helper 71 'hermes-docker-enable: signal 25 killed /usr/sbin/usermod: try again' login caller prlimit --fsize=0 $HELPER
	unchanged
}
it_case "each limit on its own; where one cannot be raised, nothing is half-done" one_limit_each

# In every phase, so at growing times. Until it has become root it can be hit, and has done nothing; later it cannot.
hit() {
	local signal
	for signal in KILL ALRM TERM HUP INT STOP; do
		fresh
		if [ $signal = STOP ]; then
			login caller "$ATTACK" stop 60 $HELPER
		else
			login caller "$ATTACK" signals 60 "$(kill -l $signal)" $HELPER
		fi >"$HST_DIR/out" 2>&1
		grpck -r >/dev/null || fail "grpck complains"
		no_litter
		grep -q 'runs ended with 0' "$HST_DIR/out" || fail "none of the runs ended well: $(cat "$HST_DIR/out")"
		# An alarm or a request to end does nothing once it runs.
		! grep -vE 'in group docker|ended with (0|75|129|130|137|142|143)$' "$HST_DIR/out" ||
			fail "a run ended otherwise after $signal"
		helper 0 "$ALREADY"
		enabled
	done
}
it_case "signals in every phase: the files stay whole, and the next run succeeds" hit

out_of_reach() {
	fresh
	tool <<-END
		#!/bin/sh
		sleep 1
		exec $HST_DIR/usermod "\$@"
	END
	expect_rc 0 login caller "$ATTACK" seize $HELPER >"$HST_DIR/out" 2>/dev/null
	expect_eq 5 "$(grep -c 'Operation not permitted' "$HST_DIR/out")"
	enabled
}
it_case "once it works, its caller can neither trace nor signal it" out_of_reach

traced() {
	fresh
	helper 77 '*it does not run as root here*' login caller "$ATTACK" traced $HELPER
	unchanged
}
it_case "traced from the start it gets no rights" traced

# A tool that dies at any moment. The pid stays the same over the exec, so the locks are the helper's to remove.
tool_killed() {
	local i rc killed=0
	for i in {1..40}; do
		fresh
		tool <<-END
			#!/bin/sh
			(sleep 0.0$(printf %02d "$i"); kill -KILL \$\$) >/dev/null 2>&1 &
			exec $HST_DIR/usermod "\$@"
		END
		rc=0
		login caller $HELPER >"$HST_DIR/out" 2>&1 || rc=$?
		case $rc in
		0) ;;
		71) killed=$((killed + 1)) && grep -q 'signal 9 killed /usr/sbin/usermod: try again' "$HST_DIR/out" ;;
		*) fail "status $rc: $(cat "$HST_DIR/out")" ;;
		esac
		no_litter
		cmp /etc/passwd "$HST_DIR/pristine/passwd"
		sed '/^docker:/s/_hermes-engine$//' /etc/group | cmp - "$HST_DIR/pristine/group"
		sed '/^docker:/s/_hermes-engine$//' /etc/gshadow | cmp - "$HST_DIR/pristine/gshadow"
		cp -a --remove-destination "$HST_DIR/usermod" /usr/sbin/usermod
		helper 0 "hermes-docker-enable: _hermes-engine is in group docker *"
		expect_eq _hermes-engine "$(members /etc/gshadow)"
	done
	[ $killed -gt 0 ] || fail "the tool was never killed in time"
	echo "killed $killed of 40 times"
}
it_case "a tool killed at any moment: 71, no lock stays, the next run completes it" tool_killed

stale_lock() {
	local file dead
	fresh
	sh -c 'echo $$' >"$HST_DIR/dead"
	dead=$(cat "$HST_DIR/dead")
	for file in passwd shadow group gshadow; do
		printf '%s\0' "$dead" >/etc/$file.lock
	done
	helper 0 "$NOW"
	enabled
}
it_case "locks of a dead process hold nobody up" stale_lock

held_lock() {
	local pid
	fresh
	sleep 1000 &
	pid=$!
	printf '%s\0' $pid >/etc/group.lock
	(sleep 2 && rm /etc/group.lock) &
	helper 0 "$NOW"
	kill $pid
	enabled
}
it_case "a lock that another program holds for a while is waited for" held_lock

liar() {
	fresh
	printf '#!/bin/sh\nexit 0\n' | tool
	helper 71 '*left with status 0 and without a new member in group docker'
	printf '#!/bin/sh\nexit 6\n' | tool
	helper 71 '*left with status 6*'
	unchanged
}
it_case "the tool's word is not believed" liar

# Nobody reads its stderr: a pipe without a reader, and a full one.
deaf() {
	local rc=0
	fresh
	login caller sh -c "{ $HELPER; echo \$? >&3; } 2>&1 | true" 3>"$HST_DIR/rc"
	expect_eq 0 "$(cat "$HST_DIR/rc")"
	mkfifo "$HST_DIR/full"
	exec 7<>"$HST_DIR/full"
	timeout 2 cat /dev/zero >&7 || true
	(sleep 10 && cat "$HST_DIR/full" >/dev/null) &
	SECONDS=0
	login caller $HELPER 2>&7 || rc=$?
	[ $SECONDS -lt 9 ] || fail "it waited for its reader"
	kill $!
	exec 7>&-
	expect_eq 0 $rc
	enabled
}
it_case "a stderr that nobody reads does not stop it" deaf

unheard() {
	fresh
	helper 71 'hermes-docker-enable: nothing was done (the kernel refused the audit record)' "$ATTACK" unheard $HELPER
	unchanged
}
it_case "where the kernel audits and takes no record, nothing is done" unheard

hanging() {
	# shellcheck disable=SC2317 # wait_for calls it
	ended() { [ "$(wc -l <"$HST_DIR/hang/out")" -eq 2 ]; }
	wait_for 40 ended || fail "it hangs with its tool"
	expect_eq "hermes-docker-enable: /usr/sbin/usermod did not end in time: try again 75" "$(paste -sd' ' "$HST_DIR/hang/out")"
	[ ! -e "$HST_DIR/hang/etc/group.lock" ] || fail "the lock of the tool that was killed is still there"
	cmp "$HST_DIR/pristine/group" "$HST_DIR/hang/etc/group"
}
it_case "a tool that hangs: 75 after 30 seconds, and its lock is gone" hanging
wait $hang || true
