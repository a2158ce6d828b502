#!/bin/bash
# What only this machine has: cgroup v2 under systemd, AppArmor, a newer engine. Commands run confined, limits
# hold and are named, and status says so.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"

it_config <<END
pool:
  size: 2
END
it_start
wait_for 60 it_warm 2 || fail "no two warm sandboxes"

machine() {
	expect_eq cgroup2fs "$(stat -fc %T /sys/fs/cgroup)"
	expect_eq Y "$(cat /sys/module/apparmor/parameters/enabled)"
	expect_eq systemd "$(cat /proc/1/comm)"
	expect_match '^(2[6-9]|[3-9][0-9])\.' "$(docker_ version --format '{{.Server.Version}}')"
	expect_eq "systemd 2" "$(docker_ info --format '{{.CgroupDriver}} {{.CgroupVersion}}')"
}
it_case "the machine is what it should be" machine

confined() {
	expect_eq "docker-default (enforce)" "$(hs exec 'cat /proc/self/attr/current')"
	expect_eq "docker-default (enforce)" "$(cat "/proc/$(agent_pid)/attr/current")"
	expect_eq 2 "$(hs exec 'sed -n "s/^Seccomp:[[:space:]]*//p" /proc/self/status')"
}
# Of any sandbox that is there: the one process that the engine started in it.
agent_pid() { docker_ inspect --format '{{.State.Pid}}' "$(docker_ ps -q | head -n 1)"; }
it_case "agent and commands are confined by docker-default" confined

again() {
	local first second
	first=$(hs exec --json 'echo >/tmp/left; echo >/dev/shm/left; ln -s /etc/passwd ~/left')
	wait_for 60 it_warm 2 || fail "the sandbox does not come back"
	second=$(hs exec --json 'find /tmp ~ /dev/shm -mindepth 1')
	expect_eq "$(jq -r .sandbox <<<"$first")" "$(jq -r .sandbox <<<"$second")"
	expect_eq "" "$(jq -r .stdout <<<"$second")"
}
it_case "a sandbox is scrubbed and proved clean under AppArmor, and used again" again

layers() {
	local layer
	hs status
	for layer in seccomp apparmor capabilities rootfs network limits audit; do
		expect_eq "$layer active" "$layer $(hs status --json |
			jq -r ".pools[] | select(.profile == \"default\") | .layers.$layer.state")"
	done
}
it_case "status says that every layer which the shipped config asks for is active" layers
