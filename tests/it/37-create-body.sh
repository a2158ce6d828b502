#!/bin/bash
# What the broker really sends to the engine, as the engine then has it; and an image whose metadata would
# change the identity, start something or open something changes none of it.
. "${0%/*}/../lib/it.sh"

# An image with everything that metadata can say.
hostile_image() {
	local id
	id=$(docker_ create "$HST_IMAGE" true)
	docker_ commit --change 'ENTRYPOINT ["/bin/false"]' --change 'CMD ["evil"]' --change 'USER nobody' \
		--change 'ENV CANARY=1 HOME=/evil LD_PRELOAD=/evil.so' --change 'WORKDIR /root' \
		--change 'HEALTHCHECK --interval=1s CMD touch /dev/shm/healthcheck' --change 'VOLUME /volume' \
		--change 'EXPOSE 80' \
		--change 'LABEL hermes-sandbox.profile=default hermes-sandbox.installation=0 other=1' \
		"$id" hst-hostile:latest >/dev/null
	docker_ rm "$id" >/dev/null
}
hostile_image

it_config <<END
pool:
  size: 1
profiles:
  own:
    memory_limit: 256m
    memory_reserve: 0
    cpus: "0.5"
    pids_limit: 99
    shm_size: 8m
    tmpfs:
      "/tmp": 20m
      "/home/sandbox": 0
      "/srv/work": 10m
    home: /srv/work
    user: "12345:12346"
    read_only: false
    ulimits: { nofile: "1024:4096", core: 1048576 }
  hostile:
    image: hst-hostile:latest
END
it_start
for profile in own hostile; do
	wait_for 30 it_warm 1 "$profile" || fail "no sandbox of profile $profile"
done

# body PROFILE: what the engine has of its sandbox.
body() {
	docker_ inspect "$(docker_ ps -q --filter "label=hermes-sandbox.profile=$1" \
		--filter status=running | head -n 1)" | jq '.[0]'
}

# holds PROFILE <<EOF: lines "FILTER JSON", each of which must be so. One jq for all of them.
holds() {
	local filter want filters='' names='' wants='' wrong
	while read -r filter want; do
		filters+=${filters:+,}"($filter)"
		wants+=${wants:+,}$want
		names+=$filter$'\n'
	done
	wrong=$(body "$1" | jq -r --arg names "$names" --argjson want "[$wants]" "[$filters] as \$found |
		(\$names | split(\"\n\")) as \$name | range(\$want | length) | select(\$found[.] != \$want[.]) |
		\"\(\$name[.]) is \(\$found[.] | tojson), expected \(\$want[.] | tojson)\"")
	[ -z "$wrong" ] || fail "$1: $wrong"
}

# The part that no profile and no image changes.
confined() {
	holds "$1" <<-END
		.Config.User "0:$(id -g _hermes-sandbox)"
		.Config.Cmd []
		.Config.WorkingDir "/"
		.Config.Healthcheck.Test ["NONE"]
		.Config.StopSignal "SIGKILL"
		.Config.Hostname "sandbox"
		.Config.Tty false
		.Config.OpenStdin false
		.Config.AttachStdout false
		.Path "/.hermes-sandbox/agent"
		.HostConfig.CapDrop ["ALL"]
		.HostConfig.CapAdd|sort ["KILL","SETGID","SETUID"]
		.HostConfig.SecurityOpt ["no-new-privileges:true"]
		.HostConfig.Privileged false
		.HostConfig.NetworkMode "none"
		.Config.NetworkDisabled true
		.HostConfig.PublishAllPorts false
		.HostConfig.PortBindings|length 0
		.NetworkSettings.Ports|length 0
		.HostConfig.Devices []
		.HostConfig.DeviceRequests null
		.HostConfig.DeviceCgroupRules null
		.HostConfig.IpcMode "private"
		.HostConfig.PidMode ""
		.HostConfig.UTSMode ""
		.HostConfig.UsernsMode ""
		.HostConfig.GroupAdd null
		.HostConfig.Binds null
		.HostConfig.VolumesFrom null
		.HostConfig.AutoRemove true
		.HostConfig.RestartPolicy.Name ""
		.HostConfig.LogConfig.Type "none"
		.HostConfig.Init false
		.HostConfig.OomKillDisable false
		.HostConfig.MaskedPaths|index("/proc/kcore")|type "number"
		.HostConfig.ReadonlyPaths|index("/proc/sys")|type "number"
		[.HostConfig.Mounts[]|[.Type,.Target,.ReadOnly,.BindOptions.Propagation]] [["bind","/.hermes-sandbox/agent",true,"rprivate"],["bind","/.hermes-sandbox/stream",true,"rprivate"]]
		.Config.Labels["hermes-sandbox.profile"] "$1"
		.Config.Labels["hermes-sandbox.installation"]|test("^[0-9a-f]{32}$") true
		.Config.Labels["hermes-sandbox.recipe"]|test("^[0-9a-f]{64}$") true
	END
}

default_body() {
	confined default
	holds default <<-END
		.Config.Image "$(docker_ image inspect --format '{{.Id}}' "$HST_IMAGE")"
		.Config.Entrypoint|.[:3] ["/.hermes-sandbox/agent","10000","10000"]
		.Config.Volumes null
		.HostConfig.ReadonlyRootfs true
		.HostConfig.Memory 134217728
		.HostConfig.MemorySwap 134217728
		.HostConfig.MemoryReservation 16777216
		.HostConfig.NanoCpus 1000000000
		.HostConfig.PidsLimit 256
		.HostConfig.ShmSize 16777216
		.HostConfig.Tmpfs|keys ["/home/sandbox","/tmp"]
		.HostConfig.Tmpfs["/tmp"] "rw,nosuid,nodev,exec,size=50331648,mode=1777"
		.HostConfig.Tmpfs["/home/sandbox"] "rw,nosuid,nodev,exec,size=33554432,mode=0700,uid=10000,gid=10000"
		.HostConfig.Ulimits [{"Name":"core","Soft":0,"Hard":0}]
	END
}
it_case "the default profile's container is what the shipped config says" default_body

own_body() {
	confined own
	holds own <<-END
		.Config.Entrypoint|.[:3] ["/.hermes-sandbox/agent","12345","12346"]
		.HostConfig.ReadonlyRootfs false
		.HostConfig.Memory 268435456
		.HostConfig.MemorySwap 268435456
		.HostConfig.MemoryReservation 0
		.HostConfig.NanoCpus 500000000
		.HostConfig.PidsLimit 99
		.HostConfig.ShmSize 8388608
		.HostConfig.Tmpfs|keys ["/srv/work","/tmp"]
		.HostConfig.Tmpfs["/srv/work"]|test("size=10485760,mode=0700,uid=12345,gid=12346") true
		.HostConfig.Ulimits|map(select(.Name=="nofile")) [{"Name":"nofile","Soft":1024,"Hard":4096}]
		.HostConfig.Ulimits|map(select(.Name=="core"))|length 1
	END
	# shellcheck disable=SC2016 # the sandbox's shell expands it
	expect_eq "12345 12346 /srv/work 1024" \
		"$(hs exec --profile own 'echo "$(id -u) $(id -g) $HOME $(ulimit -n)"')"
}
it_case "a profile's own numbers arrive in the container" own_body

hostile_body() {
	confined hostile
	holds hostile <<-END
		.Config.Entrypoint|.[:3] ["/.hermes-sandbox/agent","10000","10000"]
		.HostConfig.ReadonlyRootfs true
		.State.Health null
	END
}
it_case "an image's metadata changes nothing in the container's confinement" hostile_body

hostile_runs() {
	local out
	# shellcheck disable=SC2016 # the sandbox's shell expands it
	out=$(hs exec --profile hostile 'echo "$(id -u):$(id -g) $HOME $PWD"; ls /dev/shm' 2>/dev/null)
	expect_eq "10000:10000 /home/sandbox /home/sandbox" "$out"
}
it_case "nor in what a command sees of its identity, and its health check does not run" hostile_runs

# As the kernel has it: of PID 1 the three capabilities, of a command none. The bounding set stays, as
# emptying it would take a fourth capability; with NoNewPrivs nothing can be had out of it.
privileges() {
	local out
	out=$(hs exec 'grep -h -E "^(CapEff|CapPrm|CapBnd|CapAmb|NoNewPrivs|Seccomp):" /proc/1/status /proc/self/status')
	expect_eq "CapPrm: 00000000000000e0
CapEff: 00000000000000e0
CapBnd: 00000000000000e0
CapAmb: 0000000000000000
NoNewPrivs: 1
Seccomp: 2
CapPrm: 0000000000000000
CapEff: 0000000000000000
CapBnd: 00000000000000e0
CapAmb: 0000000000000000
NoNewPrivs: 1
Seccomp: 2" "$(tr '\t' ' ' <<<"$out")"
}
it_case "PID 1 has three capabilities, a command has none" privileges

nothing_left() {
	it_stop
	# The engine's list may show for a moment what it says is gone.
	# shellcheck disable=SC2317 # called by wait_for
	none() { [ -z "$(docker_ ps -aq)$(docker_ volume ls -q)" ]; }
	wait_for 5 none || fail "left: $(docker_ ps -aq) $(docker_ volume ls -q)"
}
it_case "a stop leaves no container, and no volume that an image asked for" nothing_left
docker_ rmi hst-hostile:latest >/dev/null
