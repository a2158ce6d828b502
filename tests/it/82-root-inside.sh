#!/bin/bash
# Commands that are root inside, with three capabilities, against everything of ours in the sandbox: they gain nothing, and
# what they break is their own.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/faults.sh
. "${0%/*}/../lib/faults.sh"

it_config <<END
pool:
  size: 1
  max_sandboxes: 8
profiles:
  root:
    size: 1
    max_sandboxes: 4
    user: "0:0"
    users: ["10000:10000", "2000:2001"]
    capabilities: [CHOWN, DAC_OVERRIDE, FOWNER]
    home: /root
    workdir: /tmp
    tmpfs: { "/tmp": 16m, "/root": 8m, "/home/sandbox": 0 }
  several:
    size: 1
    users: ["2000:2001"]
END
it_start
wait_for 60 it_warm 1 root || fail "no sandbox of root's is warm: $(hs status)"
hs session open --profile root r >/dev/null
# in_r [OPTION…] COMMAND
in_r() { hs exec --session r "$@"; }

# in_time ARGUMENT…: hs, for half a minute at most.
in_time() { as "$CALLER" timeout 30 "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"; }

ROOT_CAPS=000000000000000b
identity() {
	expect_eq "0 0 2 /root CapInh:0000000000000000 CapPrm:$ROOT_CAPS CapEff:$ROOT_CAPS CapBnd:00000000000000eb CapAmb:0000000000000000 NoNewPrivs:1" \
		"$(in_r 'echo $(id -u; id -g; id -G | wc -w; echo $HOME; grep -E "^(Cap|NoNewPrivs)" /proc/self/status | tr -d "\t")')"
	expect_eq "2000 2001 CapPrm:0000000000000000 CapEff:0000000000000000" \
		"$(in_r --user 2000:2001 'echo $(id -u; id -g; grep -E "^Cap(Prm|Eff)" /proc/self/status | tr -d "\t")')"
	expect_eq 10000 "$(in_r --user 10000 'id -u')"
	# Whom the profile does not list.
	expect_rc 77 in_r --user 2002:2001 true 2>/dev/null
	expect_rc 77 hs exec --user 0:0 true 2>/dev/null
}
it_case "root inside has exactly the profile's capabilities, and no other user has one" identity

may() {
	in_r --user 2000:2001 'umask 077; echo secret >/tmp/theirs; mkdir /tmp/closed; touch /tmp/closed/f'
	expect_eq "secret 10000:10000 644" "$(in_r 'cat /tmp/theirs; chown 10000:10000 /tmp/theirs; chmod 644 /tmp/theirs
		stat -c "%u:%g %a" /tmp/theirs; rm -r /tmp/closed' | paste -sd' ')"
}
it_case "chown, chmod and others' files: what the three are for works" may

may_not() {
	expect_eq end "$(in_r 'try() { "$@" >/dev/null 2>&1 </dev/null && echo "$*"; }
		for ids in "--reuid=2000" "--regid=2001" "--clear-groups" "--groups=0" "--inh-caps=+setuid --ambient-caps=+setuid" \
			"--inh-caps=+kill --ambient-caps=+kill"; do
			try setpriv $ids true
		done
		try su -s /bin/sh nobody -c true; try newgrp users; try sg users true
		try unshare -U true; try unshare -m true; try unshare -p -f true; try chroot / true; try nsenter -t 1 -m true
		try mount -t tmpfs none /tmp; try mount -o remount,rw /; try umount /tmp; try mknod /tmp/null c 1 3
		try touch /usr/x; try touch /.hermes-sandbox/x; try touch /.hermes-sandbox/stream/x; try rm /.hermes-sandbox/agent
		try rm /.hermes-sandbox/stream/agent.sock; try dmesg; try hostname other; try date -s 2030-01-01
		try sh -c "echo 1 >/proc/sys/kernel/domainname"; try sh -c "echo b >/proc/sysrq-trigger"
		try renice -n -5 -p 1; try setpriv --securebits=+noroot true
		echo end')"
}
it_case "no other user, no other group, no namespace, mount, device or file of ours" may_not

setuid() {
	in_r 'cp /usr/bin/id /tmp/id; cp /bin/sh /tmp/sh; chmod 4755 /tmp/sh; chown 2000 /tmp/id; chmod 6755 /tmp/id'
	expect_eq "6755 0" "$(in_r 'stat -c %a /tmp/id; /tmp/id -u' | paste -sd' ')"
	expect_eq "10000 0000000000000000" \
		"$(in_r --user 10000 '/tmp/sh -p -c "id -u; sed -n \"s/^CapEff:.//p\" /proc/self/status"' | paste -sd' ')"
}
it_case "a setuid file that root made inside gains nothing" setuid

closed() {
	expect_eq "0 end" "$(in_r 'cat /proc/1/environ /proc/1/maps /proc/1/auxv /proc/1/fd/* 2>/dev/null </dev/null | wc -c
		readlink /proc/1/exe /proc/1/cwd /proc/1/root /proc/1/fd/3; head -c 1 /proc/1/mem 2>/dev/null; echo end' | paste -sd' ')"
	expect_match '^ptrace 1$' "$(in_r -- perl -e '
		printf "ptrace %d\n", syscall($ARGV[0], 16, 1, 0, 0) < 0 ? $! + 0 : 0' "$([ "$(uname -m)" = aarch64 ] && echo 117 || echo 101)")"
}
it_case "PID 1 shows root no environment, memory or descriptor" closed

signals() {
	# Twice each: those that are blocked may wait, and those that are read come to nothing.
	in_r 'for s in $(seq 64); do kill -$s 1; kill -$s 1; done 2>/dev/null; perl -e "kill CHLD => 1 for 1 .. 20000"'
	expect_eq next "$(in_r 'echo next')"
	hs_begin sleeper exec --session r --user 10000 'sleep 8201'
	local sleeper=$HS_PID
	wait_for 20 pid_of sleep 8201 >/dev/null || fail "it does not start"
	for _ in 1 2 3; do
		expect_eq alive "$(in_r 'kill -9 -1; echo alive')"
		expect_eq next "$(in_r 'echo next')"
	done
	# Another user's command is none of root's, who has no KILL.
	pid_of sleep 8201 >/dev/null || fail "a command of another user has died"
	kill -TERM "$sleeper"
	hs_end "$sleeper"
	wait_for 20 none_left 8201 || fail "its caller's end is not its own"
}
it_case "no signal reaches PID 1; kill -9 -1 ends root's own, and the next command runs" signals

# It stops and kills every process of root's, the agent's children before they are commands, too.
storm() {
	local n rc out
	hs_begin storm exec --session r -- perl -e '$| = 1; print "begun\n"; while (1) { kill STOP => -1; kill '"$1"' => -1 }'
	local storm=$HS_PID
	wait_for 20 grep -q begun "$HST_DIR/storm.out" || fail "it does not start"
	for n in 1 2 3 4 5 6 7 8; do
		rc=0
		out=$(in_time exec --session r --user 10000 --timeout 5s "echo $n; exit 9" 2>"$HST_DIR/err") || rc=$?
		# It ran, or it is said that it was not started. What was sent to it while it was root, a moment before, can
		# reach it as the command: that is then stopped until its time is over (124), or killed (137).
		[ "$rc $out" = "9 $n" ] || { [ -z "$out" ] && [ "$rc" -ge 124 ] && { [ "$rc" -eq 137 ] || [ -s "$HST_DIR/err" ]; }; } ||
			fail "status $rc, '$out': $(cat "$HST_DIR/err")"
	done
	kill -TERM "$storm"
	hs_end "$storm"
	expect_eq calm "$(in_r 'echo calm')"
}
stops() { storm STOP; }
kills() { storm KILL; }
it_case "root that stops all it can holds up nobody's start for long" stops
it_case "root that kills all it can makes no wrong ends" kills

many() {
	local pids=() i
	for i in $(seq 96); do
		hs_begin "many$i" exec --session r "$([ $((i % 2)) = 0 ] && echo --user=10000 || echo --user=0:0)" "id -u; exit 3"
		pids+=("$HS_PID")
	done
	for i in $(seq 96); do
		hs_end "${pids[i - 1]}"
		expect_eq "3 $([ $((i % 2)) = 0 ] && echo 10000 || echo 0)" "$HS_RC $(cat "$HST_DIR/many$i.out")"
	done
}
it_case "96 at once, root's and another's" many

# While the manager is away the agent looks for it, and so does an impostor, who may: it has DAC_OVERRIDE.
impostor() {
	hs exec --session r --detach -- perl -e 'use Socket;
		for (1 .. 20000) {
			socket(my $s, AF_UNIX, SOCK_STREAM, 0);
			if (connect($s, sockaddr_un("/.hermes-sandbox/stream/agent.sock"))) {
				open(my $f, ">>", "/tmp/connected"); print $f "yes\n"; close($f);
				syswrite($s, pack("VVCCv", 8, 0, 1, 0, 0) . pack("vCV", 3, 3, 1) . "\0" . pack("VVCCv", 2, 0, 23, 0, 0) . "\0\0");
				sysread($s, my $b, 4096);
			}
			select(undef, undef, undef, 0.002);
		}' >/dev/null
	in_r 'echo before >/tmp/state'
	killed sandboxd
	it_sandboxd
	expect_eq before "$(in_r 'cat /tmp/state')"
	# It was let in to the queue, and to no more.
	wait_for 20 in_r 'grep -q yes /tmp/connected' || fail "the attack did not take place"
	expect_eq "before 0" "$(in_r 'cat /tmp/state; id -u' | paste -sd' ')"
}
it_case "the agent's socket: who connects to it from inside takes over no session" impostor

bomb() {
	hs session open --profile root b >/dev/null
	hs_begin bomb exec --session b 'b() { b | b & b; }; echo begun; b'
	local bomb=$HS_PID
	wait_for 20 grep -q begun "$HST_DIR/bomb.out" || fail "it does not start"
	in_time session close b >/dev/null || fail "it does not close"
	hs_end "$bomb"
	# Or its shell found first that it cannot fork, which is dash's 2.
	[ "$HS_RC" -ge 125 ] || [ "$HS_RC" -eq 2 ] || fail "the bomb's caller ends with $HS_RC"
	expect_eq on "$(in_r 'echo on')"
}
it_case "a fork bomb of root's ends with its session" bomb

# Neither root's files nor several users' are emptied: their sandboxes run one command.
replaced() {
	local first second
	expect_eq "" "$(hs status --json | jq -r '.pools[] | select(.profile == "root" or .profile == "several") | .scrubs // empty | select(. != 0)')"
	for profile in root several; do
		first=$(hs exec --json --profile $profile 'echo x >/tmp/f' | jq -r .sandbox)
		second=$(hs exec --json --profile $profile 'cat /tmp/f 2>/dev/null; true' | jq -r '.sandbox + .stdout')
		[ "$first" != "$second" ] || fail "a sandbox of $profile ran two commands"
		[ ${#second} -eq 64 ] || fail "something was left: $second"
	done
}
it_case "a sandbox with root inside, or of several users, is replaced after one command" replaced
