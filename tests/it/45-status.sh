#!/bin/bash
# status for people and programs, and the config commands as the CLI runs them.
. "${0%/*}/../lib/it.sh"
it_config <<END
pool:
  size: 2
profiles:
  other:
    size: 0
    read_only: false
END
it_start
wait_for 30 it_warm 2

text() {
	local text
	text=$(hs status)
	expect_match '^hermes-sandboxd [0-9.]+, up [0-9]+ s: [0-9]+ commands \([0-9]+ warm\), [0-9]+ rejected, 1 callers connected' "$text"
	expect_match $'\nengine: up, version [^\n]+, API 1\.[0-9]+\n' "$text"
	expect_match $'\npool default: 2 of 2 warm, 0 starting, 0 busy, 0 leased, 0 waiting\n  image         debian:bookworm-slim\n  reuse         scrub\n' "$text"
	expect_match $'\npool other: 0 of 0 warm, ' "$text"
	expect_match $'\n  waf_mode: unenforced \\(no MCP server in this version\\)' "$text"
	! grep -qP '[^\x20-\x7e]' <<<"$text" || fail "an odd character in: $text"
}
it_case "status says what runs, and what is accepted but not enforced" text

json() {
	local json
	hs status --json | python3 -m json.tool >"$HST_DIR/status.json"
	json=$(cat "$HST_DIR/status.json")
	expect_eq up "$(jq -r .engine.state <<<"$json")"
	expect_eq null "$(jq -r .engine.why <<<"$json")"
	expect_eq acknowledged "$(jq -r .audit.kernel <<<"$json")"
	expect_eq 0 "$(jq -r .audit.failures <<<"$json")"
	expect_eq "default other" "$(jq -r '[.pools[].profile] | sort | join(" ")' <<<"$json")"
	expect_eq "2 2 0 0 0" "$(jq -r '.pools[] | select(.profile == "default") |
		"\(.size) \(.warm) \(.starting) \(.busy) \(.waiting)"' <<<"$json")"
	expect_eq true "$(jq '[.unenforced[] | startswith("waf_mode: unenforced")] | any' <<<"$json")"
}
it_case "status --json is JSON and says the same" json

layers() {
	local json layer
	json=$(hs status --json | jq '.pools[] | select(.profile == "default") | .layers')
	for layer in namespaces seccomp apparmor capabilities rootfs network limits audit; do
		expect_match '^(active|degraded|disabled|unsupported)$' "$(jq -r ".$layer.state" <<<"$json")"
		[ -n "$(jq -r ".$layer.why" <<<"$json")" ] || fail "layer $layer does not say why"
		expect_match $'\n  '"$layer +$(jq -r ".$layer.state" <<<"$json") " "$(hs status)"
	done
	# These must hold on every machine that the tests run on.
	for layer in seccomp capabilities rootfs network audit; do
		expect_eq "$layer active" "$layer $(jq -r ".$layer.state" <<<"$json")"
	done
}
it_case "each layer has a state and a reason" layers

counts() {
	local wanted
	counted() { hs status --json | jq '.commands, .commands_warm, .rejected, .audit.trail_lines' | paste -sd' '; }
	wanted=$(counted | awk '{ print $1 + 1, $2 + 1, $3 + 1, $4 + 3 }')
	hs exec true
	hs exec --profile nowhere true 2>/dev/null || true
	# The line of the command, that of its scrub, which comes a moment later, and that of the refusal.
	# shellcheck disable=SC2317 # called by wait_for
	as_wanted() { [ "$(counted)" = "$wanted" ]; }
	wait_for 10 as_wanted || fail "found $(counted), expected $wanted"
}
it_case "it counts commands, refusals and audit lines" counts

engine_gone() {
	local why
	kill -STOP "$(it_pid engined)"
	expect_eq up "$(hs status --json | jq -r .engine.state)"
	kill -CONT "$(it_pid engined)"
	it_end engined
	# shellcheck disable=SC2317 # called by wait_for
	down() { [ "$(hs status --json | jq -r .engine.state)" = down ]; }
	wait_for 10 down || fail "the broker's end is not seen"
	why=$(hs status --json | jq -r .engine.why)
	expect_match 'broker' "$why"
	expect_match "engine: down: .*broker" "$(hs status)"
	it_engined
	wait_for 30 it_warm 2
}
it_case "status says that the broker is gone, and answers while it hangs" engine_gone

usage() {
	expect_rc 64 hs status --nonsense 2>/dev/null
	expect_rc 64 hs status operand 2>/dev/null
	expect_match '^usage: hermes-sandbox status' "$(hs status --help)"
}
it_case "bad usage is 64" usage

# installed COMMAND…: the CLI's libexec folder and /etc/hermes-sandbox are compiled in. In a mount
# namespace of its own both can be had without installing anything.
installed() {
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare --mount --propagation private sh -euc '
		mkdir -p /usr/libexec
		mount -t tmpfs -o mode=755 none /usr/libexec
		mkdir /usr/libexec/hermes-sandbox
		cp "$1"/bin/hermes-sandbox-config /usr/libexec/hermes-sandbox/
		mount -t tmpfs -o mode=755 none /mnt
		mkdir /mnt/upper /mnt/work
		mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work none /etc
		rm -rf /etc/hermes-sandbox
		cp -r "$2/etc" /etc/hermes-sandbox
		cli=$1/bin/hermes-sandbox
		shift 2
		exec "$cli" "$@"' sh "$HST_RUN" "$HST_DIR" "$@"
}

config_check() {
	local out
	out=$(installed config check)
	expect_match '^OK /etc/hermes-sandbox/sandbox.yaml: 2 profiles \((default, other|other, default)\)' "$out"
	expect_match 'waf_mode: unenforced' "$out"
	expect_match '^OK .*: 1 profile \(default\)' "$(installed config check "$TOP/etc/sandbox.yaml")"
}
it_case "config check says OK and what is not enforced" config_check

bad_file() {
	printf 'pool:\n  size: 3\n  memory_limt: "128m"\n' >"$HST_DIR/bad.yaml"
	expect_rc 78 installed config check "$HST_DIR/bad.yaml" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match "^$HST_DIR/bad.yaml:3:3: .*memory_limt" "$(cat "$HST_DIR/err")"
	expect_eq "1 0" "$(wc -l <"$HST_DIR/err") $(wc -c <"$HST_DIR/out")"
	printf 'pool:\n  size: 3\n  memory_limit: 12x\n' >"$HST_DIR/bad.yaml"
	expect_rc 78 installed config check "$HST_DIR/bad.yaml" 2>"$HST_DIR/err"
	expect_match ':3:[0-9]+: pool.memory_limit: found "12x", expected ' "$(cat "$HST_DIR/err")"
	expect_rc 78 installed config check "$HST_DIR/missing.yaml" 2>"$HST_DIR/err"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_rc 64 installed config nonsense 2>/dev/null
}
it_case "config check names file, line, column and key of a fault, status 78" bad_file

config_show() {
	local shown
	shown=$(installed config show)
	expect_match 'size: 2' "$shown"
	expect_match 'pids_limit: 256' "$shown"
	# What it prints is a config that means the same.
	installed config show >"$HST_DIR/shown.yaml"
	expect_eq "$shown" "$(installed config show "$HST_DIR/shown.yaml")"
}
it_case "config show prints what is in force, as a config" config_show

bad_start() {
	it_stop
	it_config <<<$'pool:\n  memory_limit: 12x'
	for name in engined sandboxd; do
		(it_$name) >/dev/null 2>&1 && fail "$name starts"
		wait_for 5 test -s "$HST_DIR/$name.rc"
		expect_eq "78 ($name)" "$(cat "$HST_DIR/$name.rc") ($name)"
		expect_match '50-test.yaml:2:[0-9]+: pool.memory_limit: found "12x"' "$(tail -n 1 "$HST_DIR/$name.log")"
		rm "$HST_DIR/$name.pid"
	done
}
it_case "neither daemon starts with a bad config: status 78, one line" bad_start
