#!/bin/bash
# What a command is and what it cannot do (case 20, and the design's list of a sandbox's walls).
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 4
  max_sandboxes: 40
END
it_start

# perl is in every Debian, and the numbers of system calls are this machine's.
case $(uname -m) in
x86_64) SYS=(ptrace 101 keyctl 250 add_key 248 request_key 249 unshare 272 clone3 435 process_vm_readv 310 mount 165) ;;
aarch64) SYS=(ptrace 117 keyctl 219 add_key 217 request_key 218 unshare 97 clone3 435 process_vm_readv 270 mount 40) ;;
*) skip "the numbers of system calls are not known for $(uname -m)" ;;
esac

init_is_closed() {
	local out
	# Everything in one command: what can be read of PID 1, and what comes of attacking it.
	out=$(hs exec 'cat /proc/1/environ 2>&1 | head -c 4000 | tr "\0" " "; echo
		tr "\0" " " </proc/1/cmdline; echo
		for f in mem maps fd/0 root/etc/passwd cwd exe auxv syscall stack; do
			head -c 1 /proc/1/$f >/dev/null 2>&1 && echo "read $f"
		done
		readlink /proc/1/exe /proc/1/cwd /proc/1/fd/3
		kill -9 1; echo "kill $?"
		kill -STOP 1; kill -TERM -1; echo "still here"' 2>&1) || true
	expect_match '^cat: /proc/1/environ: Permission denied' "$out"
	expect_match '/\.hermes-sandbox/agent 10000 10000 [0-9]+ [0-9]+ [0-9]+' "$out"
	expect_match 'kill [1-9]' "$out"
	[[ $out != *read\ * ]] || fail "$out"
}
it_case "case 20: PID 1 shows no environment, memory or descriptor, and does not die" init_is_closed

attacks() {
	local out
	out=$(hs exec -- perl -e '
		my %n = @ARGV;
		sub try { my ($what, @a) = @_; my $r = syscall($n{$what}, @a); printf "%s %d\n", $what, $r < 0 ? $! + 0 : 0; }
		my $buf = "\0" x 64;
		try("ptrace", 16, 1, 0, 0);
		try("ptrace", 0x4206, 1, 0, 0);
		my $iov = pack("QQ", unpack("Q", pack("P", $buf)), 8);
		try("process_vm_readv", 1, $iov, 1, $iov, 1, 0);
		try("keyctl", 0, -3, 1);
		try("add_key", "user", "a", "b", 1, -3);
		try("request_key", "user", "a", 0, -3);
		try("unshare", 0x10000000);
		try("clone3", $buf, 64);
		try("mount", "none", "/tmp", "tmpfs", 0, 0);
		ioctl(STDIN, 0x5412, $buf); printf "TIOCSTI %d\n", $!;
		ioctl(STDIN, 0x541C, $buf); printf "TIOCLINUX %d\n", $!;
		use Socket;
		socket(my $s, AF_UNIX, SOCK_STREAM, 0);
		connect($s, sockaddr_un("/.hermes-sandbox/stream/agent.sock")); printf "agent.sock %d\n", $!;
		socket($s, AF_INET, SOCK_STREAM, 0);
		connect($s, sockaddr_in(53, inet_aton("192.0.2.1"))); printf "network %d\n", $!;' \
		"${SYS[@]}")
	# 1 EPERM, 13 EACCES, 38 ENOSYS, 101 ENETUNREACH
	expect_eq "ptrace 1
ptrace 1
keyctl 1
add_key 1
request_key 1
unshare 1
clone3 38
mount 1
TIOCSTI 1
TIOCLINUX 1
agent.sock 13
network 101" "$(grep -v process_vm <<<"$out")"
	expect_match 'process_vm_readv (1|38)' "$out"
}
it_case "ptrace, keys, user namespaces, TIOCSTI, the agent's socket and the network are refused" attacks

identity() {
	local out
	out=$(hs exec 'id -u; id -g; id -G | wc -w; grep -E "^(Cap|NoNewPrivs|Seccomp)" /proc/self/status | tr -d "\t"
		cat /proc/self/oom_score_adj; ls /proc/self/fd | tr "\n" " "; echo
		cut -d" " -f5,6 /proc/self/stat; echo $$ $$')
	out=$(paste -sd' ' <<<"$out")
	expect_match '^10000 10000 2 CapInh:0+ CapPrm:0+ CapEff:0+ CapBnd:0+e0 CapAmb:0+ NoNewPrivs:1 Seccomp:2 ' "$out"
	# Docker's filter, and the agent's.
	expect_match 'Seccomp_filters:([2-9]) 1000 0 1 2 3 ' "$out"
	expect_match ' ([0-9]+) ([0-9]+) \1 \2$' "$out" || fail "no session of its own: $out"
	expect_eq "" "$(hs exec -- su -c id 2>/dev/null || true)"
}
it_case "uid 10000, no capability, no new privileges, two filters, three descriptors, a session of its own" identity

read_only() {
	local out
	out=$(hs exec 'for d in / /usr /etc /var /var/tmp /run /root /sys /proc/sys/kernel /.hermes-sandbox /dev; do
			(: >$d/probe) 2>/dev/null && echo "wrote $d"
		done
		echo 1 2>/dev/null >/proc/sys/kernel/domainname && echo "wrote sysctl"
		for d in /tmp "$HOME" /dev/shm; do (: >$d/probe) || echo "cannot write $d"; done
		grep -E " (/tmp|/home/sandbox|/dev/shm) " /proc/mounts | grep -vE "nosuid" || true
		ls /sys/class/net; ls /dev | grep -E "^(sd|vd|kmsg|mem|kvm|loop)" || true
		[ -e /run/docker.sock ] || [ -e /var/run/docker.sock ] && echo "a docker.sock" || true')
	expect_eq lo "$out"
}
it_case "nothing but the tmpfs is writable, there is no network and no device" read_only

sizes() {
	expect_eq "0 0" "$(hs exec 'head -c 40m /dev/zero >/tmp/f; a=$?; head -c 20m /dev/zero >$HOME/f; echo $a $?' 2>&1)"
	expect_match 'No space left' "$(hs exec 'head -c 60m /dev/zero >/tmp/f' 2>&1 || true)"
}
it_case "the writable places have the sizes of the profile" sizes
