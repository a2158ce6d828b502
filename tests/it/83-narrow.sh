#!/bin/bash
# Sessions with less than their profile gives, and profiles with root inside: what the engine has of the container, what
# the kernel has of the processes in it, and that nothing that is asked for makes it more.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"

FILES=$HST_DIR/files
install -d -m 0755 "$FILES"
install -d -m 0700 -o "$CALLER" -g "$CALLER" "$FILES/home"
ME=$(id -u "$CALLER"):$(id -g "$CALLER")

# The profile hermes as it is shipped, but for an image that is there.
install -m 0644 "$TOP/etc/sandbox.d/10-hermes.yaml" "$HST_DIR/etc/sandbox.d/20-hermes.yaml"
it_config <<END
pool:
  size: 1
profiles:
  hermes:
    size: 1
    image: "$HST_IMAGE"
    users: ["1000:1000", "0:7"]
allowed_file_paths: ["$FILES"]
END
it_start
wait_for 30 it_warm 1 hermes || fail "no sandbox of profile hermes"

# body SESSION: what the engine has of its container.
body() { docker_ inspect "$(hs session inspect --json "$1" | jq -r .sandbox)" | jq '.[0]'; }

# has SESSION JQ JSON: that is so.
has() { expect_eq "$2 is $3" "$2 is $(body "$1" | jq -c "$2")"; }

# in_memory SESSION: bytes of all tmpfs and of shm together.
in_memory() {
	body "$1" | jq '.HostConfig | .ShmSize + ([.Tmpfs[] | capture("size=(?<n>[0-9]+)").n | tonumber] | add)'
}

# With root inside, its commands have the profile's three capabilities, and PID 1 those beside its own.
root_inside() {
	local warm
	warm=$(docker_ ps -q --no-trunc --filter label=hermes-sandbox.profile=hermes)
	hs session open --profile hermes plain >/dev/null
	expect_eq "$warm" "$(body plain | jq -r .Id)"
	has plain '.HostConfig.CapAdd | sort' '["CHOWN","DAC_OVERRIDE","FOWNER","KILL","SETGID","SETUID"]'
	has plain '.Config.Entrypoint[6:]' '["000000000000000b","0:7","1000:1000"]'
	has plain '.HostConfig.Tmpfs["/root"]' '"rw,nosuid,nodev,exec,size=1073741824,mode=0755,uid=0,gid=0"'
	expect_eq "0:0 /root /workspace" "$(hs exec --session plain 'echo "$(id -u):$(id -g) $HOME $PWD"')"
	expect_eq "000000000000000b 000000000000000b 1" "$(hs exec --session plain \
		'sed -nE "s/^(CapPrm|CapEff|NoNewPrivs):\t//p" /proc/self/status' | paste -sd' ')"
	hs exec --session plain 'echo mine >/tmp/f && chown 1000:1000 /tmp/f && chmod 600 /tmp/f && cat /tmp/f' >/dev/null
	expect_eq "1000:1000 0000000000000000 mine" "$(hs exec --session plain --user 1000 \
		'echo "$(id -u):$(id -g) $(sed -n "s/^CapEff:.//p" /proc/self/status) $(cat /tmp/f)"')"
}
it_case "the profile hermes: root with three capabilities, and its users with none" root_inside

# What is asked for is what the container has, also in the kernel's words; the rest is the profile's.
narrowed() {
	hs session open --profile hermes --memory 64m --cpus 0.5 --pids-limit 32 --user "$ME" probe >/dev/null
	has probe '.HostConfig | [.Memory, .MemorySwap, .NanoCpus, .PidsLimit]' '[67108864,67108864,500000000,32]'
	has probe .HostConfig.CapAdd '["SETUID","SETGID","KILL"]'
	has probe '.Config.Entrypoint[1:3] + .Config.Entrypoint[6:]' "[\"${ME%:*}\",\"${ME#*:}\",\"0000000000000000\"]"
	has probe '[.HostConfig.ReadonlyRootfs, .HostConfig.NetworkMode]' '[true,"none"]'
	has probe '.HostConfig.Tmpfs | keys' "$(body plain | jq -c '.HostConfig.Tmpfs | keys')"
	# 48 MiB but for the pages that do not divide.
	[ "$(in_memory probe)" -le 50331648 ] || fail "in memory: $(in_memory probe)"
	[ "$(in_memory probe)" -gt 50270208 ] || fail "in memory: $(in_memory probe)"
	expect_eq "$ME ok" "$(hs exec --session probe 'echo "$(id -u):$(id -g) $(touch ~/f /tmp/f /workspace/f && echo ok)"')"
	expect_eq "$(body probe | jq -r '.HostConfig.Tmpfs["/tmp"] | capture("size=(?<n>[0-9]+)").n | tonumber / 1024')" \
		"$(hs exec --session probe 'df -kP /tmp' | awk 'NR == 2 { print $2 }')"
	expect_rc 77 hs exec --session probe --user 1000 true 2>/dev/null
	hs session close probe >/dev/null
}
it_case "less memory, CPU and processes for another user: so has it the engine, and 16 MiB stay free" narrowed

each_place() {
	hs session open --profile hermes --tmpfs /tmp=1m --shm-size 2m places >/dev/null
	has places '.HostConfig.Tmpfs["/tmp"]' '"rw,nosuid,nodev,exec,size=1048576,mode=1777"'
	has places '.HostConfig | [.ShmSize, .Memory, .NanoCpus, .PidsLimit]' '[2097152,5368709120,1000000000,256]'
	has places '.HostConfig.CapAdd | length' 6
	hs session close places >/dev/null
}
it_case "a tmpfs and shm smaller, and all else as the profile has it" each_place

# A warm sandbox is taken, as it is just what is asked for.
more() {
	local warm
	wait_for 30 it_warm 1 hermes || fail "no sandbox of profile hermes"
	warm=$(docker_ ps -q --no-trunc --filter label=hermes-sandbox.profile=hermes)
	hs session open --profile hermes --memory 900g --cpus 64 --pids-limit 4000000 --shm-size 100g \
		--tmpfs /tmp=100g --no-network --user 0:0 more >/dev/null
	grep -qx "$(body more | jq -r .Id)" <<<"$warm" || fail "it is none of $warm"
	expect_eq "$(body plain | jq -cS '.HostConfig | del(.Mounts)')" "$(body more | jq -cS '.HostConfig | del(.Mounts)')"
	hs session close more >/dev/null
}
it_case "asking for more changes nothing" more

# refused CODE REGEX OPTION…: one line, and no new container.
refused() {
	local rc=0
	docker_ ps -aq | sort >"$HST_DIR/before"
	hs session open "${@:3}" none >/dev/null 2>"$HST_DIR/err" || rc=$?
	expect_match "^$1 .*$2" "$rc $(cat "$HST_DIR/err")"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_eq '' "$(docker_ ps -aq | sort | comm -13 "$HST_DIR/before" -)"
}
refusals() {
	wait_for 30 it_warm 1 hermes || fail "no sandbox of profile hermes"
	refused 125 '--tmpfs /etc: profile "hermes" has none there' --profile hermes --tmpfs /etc=1m
	refused 125 '--memory 8m: the smallest memory_limit is 16m' --profile hermes --memory 8m
	refused 125 '--memory 16m: less than 16m and 64k for each of the 8 places' --profile hermes --memory 16m
	refused 77 'profile "default" may not run as 0:0' --user 0:0
	refused 77 'profile "hermes" may not run as 0:8' --profile hermes --user 0:8
}
it_case "what cannot be is refused in one line, and nothing is created" refusals

# HOME can be a host folder. Who mounts it is who runs there, and root is not.
mounted() {
	hs session open --profile hermes --memory 64m --mount "$FILES/home:/root" folder >/dev/null
	has folder .HostConfig.CapAdd '[]'
	has folder .Config.User "\"$ME\""
	has folder .HostConfig.Memory 67108864
	has folder '.HostConfig.Tmpfs | has("/root")' false
	[ "$(in_memory folder)" -le 50331648 ] || fail "in memory: $(in_memory folder)"
	expect_eq "$ME /root" "$(hs exec --session folder 'echo "$(id -u):$(id -g) $HOME"; echo x >~/f')"
	expect_eq "$ME" "$(stat -c '%u:%g' "$FILES/home/f")"
	expect_rc 77 hs exec --session folder --user 0:0 true 2>/dev/null
	hs session close folder >/dev/null
	# Whatever is asked for.
	hs session open --profile hermes --user 0:0 --mount "$FILES/home:/root" folder >/dev/null
	has folder '[.Config.User, .HostConfig.CapAdd]' "[\"$ME\",[]]"
	expect_eq "$ME" "$(hs exec --session folder 'echo "$(id -u):$(id -g)"')"
	hs session close folder >/dev/null
}
it_case "with a host folder for HOME it is the caller's, with less memory and no capability" mounted
