#!/bin/bash
# How long a sandbox lives and whom it serves: max_uses, max_age, a changed recipe, more of them than wanted,
# and several users.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

cc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -o "$HST_DIR/crowd" "$TOP/tests/it/crowd.c"

AGE=$((3 * ${HST_SLOW:-1}))

# config PIDS: PIDS is a part of the recipe of profile recipe, and can be seen inside.
config() {
	it_config <<-END
		pool:
		  size: 1
		profiles:
		  thrown:
		    reuse: replace
		    size: 2
		  three:
		    max_uses: 3
		  aged:
		    max_age: ${AGE}s
		  recipe:
		    size: 3
		    max_sandboxes: 6
		    pids_limit: $1
		    queue_timeout: 2m
		  surplus:
		    size: 1
		    max_sandboxes: 6
		    cold_after: 0ms
		  shared:
		    size: 2
		    max_sandboxes: 2
		    queue_timeout: 2m
	END
}
config 64
it_start

pool() { hs status --json | jq --arg p "$1" ".pools[] | select(.profile == \$p) | $2"; }
pool_is() { [ "$(pool "$1" ".$2")" = "$3" ]; }
containers() { docker_ ps -q --no-trunc --filter "label=hermes-sandbox.profile=$1" | sort; }
for profile in thrown:2 three:1 aged:1 recipe:3 surplus:1 shared:2; do
	wait_for 60 it_warm "${profile#*:}" "${profile%:*}" || fail "no sandboxes of profile ${profile%:*}"
done

root_hs() { "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" "$@"; }
# used PROFILE: the sandbox that the next command got.
used() { hs exec --json --profile "$1" true | jq -r .sandbox; }

reused() {
	expect_eq '"scrub"' "$(pool default .reuse)"
	expect_eq '"replace"' "$(pool thrown .reuse)"
	wait_for 30 it_warm 1
	for _ in 1 2 3 4 5 6; do used default; done >"$HST_DIR/ids"
	expect_eq 1 "$(sort -u "$HST_DIR/ids" | wc -l)"
	[ "$(pool default .scrubs)" -ge 6 ] || fail "fewer scrubs than commands: $(pool default .scrubs)"
	expect_eq 0 "$(pool default .scrubs_failed)"
	for _ in 1 2 3 4; do used thrown; done >"$HST_DIR/ids"
	expect_eq 4 "$(sort -u "$HST_DIR/ids" | wc -l)"
	expect_eq 0 "$(pool thrown .scrubs)"
}
it_case "scrub: one sandbox serves command after command; replace: each has its own" reused

max_uses() {
	for _ in 1 2 3 4 5 6 7; do used three; done >"$HST_DIR/ids"
	expect_eq "3 3 1" "$(uniq -c "$HST_DIR/ids" | awk '{ print $1 }' | xargs)"
	# Those that are used up are gone.
	# shellcheck disable=SC2317 # called by wait_for
	one_left() { [ "$(containers three)" = "$(tail -n 1 "$HST_DIR/ids")" ]; }
	wait_for 20 one_left || fail "$(containers three | wc -l) containers"
}
it_case "after max_uses commands the sandbox is replaced" max_uses

max_age() {
	local first second
	first=$(containers aged)
	# Idle, too.
	# shellcheck disable=SC2317 # called by wait_for
	other() { [ "$(containers aged | wc -l)" -eq 1 ] && ! containers aged | grep -qx "$1"; }
	wait_for 40 other "$first" || fail "the sandbox stays"
	wait_for 30 it_warm 1 aged || fail "no sandbox in its place"
	# One that was busy beyond its age does not come back.
	second=$(hs exec --json --profile aged "sleep $((AGE + 1))" | jq -r .sandbox)
	[ "$(used aged)" != "$second" ] || fail "a sandbox older than max_age was handed out"
}
it_case "a sandbox older than max_age is replaced, idle or after its command" max_age

# Also while callers come without a pause: none of them gets the old recipe after the reload.
recipe() {
	local before callers events line created
	before=$(containers recipe)
	expect_eq 3 "$(wc -l <<<"$before")"
	install -d -o "$CALLER" -g "$CALLER" "$HST_DIR/seen"
	docker -H "unix://$HST_ENGINE" events --filter event=create --filter label=hermes-sandbox.profile=recipe \
		--format '{{.Actor.ID}}' >"$HST_DIR/created" &
	events=$!
	# shellcheck disable=SC2064 # the pid as it is now
	trap "end_process $events 5 || true" EXIT
	as "$CALLER" "$HST_DIR/crowd" -w 2 -o "$HST_DIR/seen" 400 "$HST_RUN/bin/hermes-sandbox" \
		--socket "$HST_DIR/run/pool.sock" exec --json --profile recipe \
		'sleep 0.02; cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max' >"$HST_DIR/seen.ends" &
	callers=$!
	# shellcheck disable=SC2317 # called by wait_for
	some() { [ "$(wc -l <"$HST_DIR/seen.ends")" -ge "$1" ]; }
	wait_for 30 some 20 || fail "the callers are not served"
	config 63
	for name in engined sandboxd; do
		line=$(wc -l <"$HST_DIR/$name.log")
		kill -HUP "$(it_pid $name)"
		# shellcheck disable=SC2317 # called by wait_for
		answered() { tail -n "+$(($2 + 1))" "$HST_DIR/$1.log" | grep -qE 'reloaded|read again'; }
		wait_for 10 answered $name "$line" || fail "$name does not react to HUP"
	done
	# Those that wait for one now started after the reload, but for the two that ran then.
	line=$(wc -l <"$HST_DIR/seen.ends")
	expect_eq 63 "$(hs exec --profile recipe 'cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max')"
	expect_rc 0 wait $callers
	expect_eq "400 0" "$(cut -d' ' -f2 "$HST_DIR/seen.ends" | sort | uniq -c | xargs)"
	expect_eq 63 "$(tail -n "+$((line + 5))" "$HST_DIR/seen.ends" | while read -r n _; do
		jq -j .stdout "$HST_DIR/seen/$n.out"
	done | sort -u)"
	# shellcheck disable=SC2317 # called by wait_for
	replaced() { [ "$(pool recipe .warm)" -eq 3 ] && [ -z "$(comm -12 <(echo "$1") <(containers recipe))" ]; }
	wait_for 60 replaced "$before" || fail "sandboxes of the old recipe are left"
	created=$(wc -l <"$HST_DIR/created")
	[ "$created" -le 6 ] || fail "$created sandboxes for a pool of 3"
}
it_case "a changed recipe is never handed out again, and callers are served all the while" recipe

# One by one: while the idle ones are replaced, there is never none.
one_by_one() {
	local before least=99 now
	wait_for 30 it_warm 3 recipe
	before=$(containers recipe)
	config 62
	for name in engined sandboxd; do kill -HUP "$(it_pid $name)"; done
	# shellcheck disable=SC2317 # called by wait_for
	replaced() {
		now=$(containers recipe | wc -l)
		[ "$now" -ge "$least" ] || least=$now
		[ "$(pool recipe .warm)" -eq 3 ] && [ -z "$(comm -12 <(echo "$1") <(containers recipe))" ]
	}
	wait_for 60 replaced "$before" || fail "sandboxes of the old recipe are left"
	[ "$least" -ge 3 ] || fail "only $least sandboxes were left on the way"
	expect_eq "62 62 62" "$(containers recipe | xargs docker -H "unix://$HST_ENGINE" inspect -f '{{.HostConfig.PidsLimit}}' | xargs)"
}
it_case "idle sandboxes of an old recipe go one by one, each once its successor is there" one_by_one

surplus() {
	local callers=() i
	wait_for 30 it_warm 1 surplus
	for i in 1 2 3 4 5; do
		hs_begin "surplus.$i" exec --profile surplus "sleep 760$i; :"
		callers+=("$HS_PID")
	done
	wait_for 60 sleeps 7601 7602 7603 7604 7605 || fail "not all of them run"
	for i in "${callers[@]}"; do
		kill -TERM "$i"
		hs_end "$i"
		expect_eq 143 "$HS_RC"
	done
	# shellcheck disable=SC2317 # called by wait_for
	trimmed() { pool_is surplus warm 1 && [ "$(containers surplus | wc -l)" -eq 1 ]; }
	wait_for 60 trimmed || fail "$(containers surplus | wc -l) containers stay, $(pool surplus .warm) warm"
}
it_case "what a rush has left beyond size is removed after a while" surplus

# owned: who had which sandbox, for all commands of the case.
record() { jq -r --arg u "$1" '"\($u) \(.sandbox)"' >>"$HST_DIR/owned"; }

users() {
	local a b
	: >"$HST_DIR/owned"
	wait_for 30 it_warm 2 shared
	# The caller has used all there are, and all are idle.
	hs_begin a exec --json --profile shared 'sleep 7611; :' && a=$HS_PID
	hs_begin b exec --json --profile shared 'sleep 7612; :' && b=$HS_PID
	wait_for 20 sleeps 7611 7612 || fail "the two do not run"
	kill -TERM "$a" "$b"
	hs_end "$a"
	hs_end "$b"
	record caller <"$HST_DIR/a.out"
	record caller <"$HST_DIR/b.out"
	wait_for 30 pool_is shared warm 2 || fail "the two do not come back"
	expect_eq 2 "$(comm -12 <(cut -d' ' -f2 "$HST_DIR/owned" | sort) <(containers shared) | wc -l)"
	root_hs exec --json --profile shared true | record root
	for _ in 1 2 3 4 5 6 7 8; do
		hs exec --json --profile shared true | record caller
		root_hs exec --json --profile shared true | record root
	done
	expect_eq 2 "$(cut -d' ' -f1 "$HST_DIR/owned" | sort -u | wc -l)"
	expect_eq 19 "$(wc -l <"$HST_DIR/owned")"
	# No sandbox in both lists.
	expect_eq "" "$(sort -u "$HST_DIR/owned" | cut -d' ' -f2 | sort | uniq -d)"
}
it_case "a sandbox that served one user never serves another, who gets an unused one all the same" users

users_at_once() {
	local a b
	install -d -o "$CALLER" -g "$CALLER" "$HST_DIR/many"
	install -d "$HST_DIR/roots"
	as "$CALLER" "$HST_DIR/crowd" -w 4 -o "$HST_DIR/many" 60 "$HST_RUN/bin/hermes-sandbox" \
		--socket "$HST_DIR/run/pool.sock" exec --json --profile shared 'sleep 0.05' >"$HST_DIR/many.ends" &
	a=$!
	"$HST_DIR/crowd" -w 2 -o "$HST_DIR/roots" 10 "$HST_RUN/bin/hermes-sandbox" \
		--socket "$HST_DIR/run/pool.sock" exec --json --profile shared 'sleep 0.05' >"$HST_DIR/roots.ends" &
	b=$!
	expect_rc 0 wait $a
	expect_rc 0 wait $b
	expect_eq "70 0" "$(cut -d' ' -f2 "$HST_DIR/many.ends" "$HST_DIR/roots.ends" | sort | uniq -c | xargs)"
	expect_eq "" "$(comm -12 <(jq -r .sandbox "$HST_DIR"/many/*.out | sort -u) \
		<(jq -r .sandbox "$HST_DIR"/roots/*.out | sort -u))"
}
it_case "nor when both come at once and there are two sandboxes in all" users_at_once
