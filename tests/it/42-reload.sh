#!/bin/bash
# SIGHUP: a good config is in force without a restart and without a lost command, a bad one changes nothing.
. "${0%/*}/../lib/it.sh"
it_config <<END
pool:
  size: 2
END
it_start
wait_for 30 it_warm 2

# reload: both daemons, broker first, and until each has said something about it.
reload() {
	local name n
	for name in engined sandboxd; do
		n=$(wc -l <"$HST_DIR/$name.log")
		kill -HUP "$(it_pid "$name")"
		# shellcheck disable=SC2317 # called by wait_for
		answered() { SAID=$(tail -n +$(($2 + 1)) "$HST_DIR/$1.log" | grep -E 'reload|read again'); }
		wait_for 10 answered "$name" "$n" || fail "$name does not react to HUP"
	done
}

ids() { docker_ ps -q --no-trunc --filter label=hermes-sandbox.profile=default | sort; }

bad() {
	local before
	before=$(ids)
	it_config <<<$'pool:\n  size: many'
	reload
	expect_match 'reload refused, .*50-test.yaml:2:[0-9]+: pool.size: found "many"' "$SAID"
	expect_eq hello "$(hs exec 'echo hello')"
	wait_for 30 it_warm 2
	# Whoever was there before still is.
	expect_eq "$before" "$(ids)"
	expect_eq 2 "$(hs status --json | jq '.pools[0].size')"
}
it_case "a bad config is refused with file and line, the old one stays" bad

new_profile() {
	expect_rc 64 hs exec --profile extra true 2>/dev/null
	it_config <<-END
		pool:
		  size: 2
		profiles:
		  extra:
		    size: 1
		    env: { FROM_PROFILE: "yes" }
	END
	reload
	wait_for 30 it_warm 1 extra || fail "the new profile's pool does not fill"
	# shellcheck disable=SC2016 # the sandbox's shell expands it
	expect_eq yes "$(hs exec --profile extra 'echo $FROM_PROFILE')"
	it_config <<<$'pool:\n  size: 2'
	reload
	expect_rc 64 hs exec --profile extra true 2>/dev/null
	# shellcheck disable=SC2317 # called by wait_for
	gone_too() { [ -z "$(docker_ ps -q --filter label=hermes-sandbox.profile=extra)" ]; }
	wait_for 20 gone_too || fail "the dropped profile's sandboxes stay"
}
it_case "a new profile appears, and goes again with its sandboxes" new_profile

recipe() {
	local before caller
	wait_for 30 it_warm 2
	hs exec 'echo begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo done' >"$HST_DIR/out" &
	caller=$!
	wait_for 20 grep -qx begun "$HST_DIR/out"
	wait_for 30 it_warm 2
	before=$(ids)
	expect_eq 3 "$(wc -l <<<"$before")"
	it_config <<<$'pool:\n  size: 2\n  pids_limit: 77'
	reload
	# The idle ones are replaced; the one that runs a command is left to it.
	# shellcheck disable=SC2317 # called by wait_for
	replaced() { it_warm 2 && [ "$(comm -12 <(echo "$1") <(ids) | wc -l)" -eq 1 ]; }
	wait_for 40 replaced "$before" || fail "idle sandboxes of the old recipe stay"
	expect_eq "77 77 256" "$(ids | xargs docker -H "unix://$HST_ENGINE" inspect -f '{{.HostConfig.PidsLimit}}' | sort -r | paste -sd' ' | awk '{ print $1, $2, $3 }')"
	kill -0 $caller
	docker_ ps -q --no-trunc --filter "id=$(comm -12 <(echo "$before") <(ids))" |
		xargs -I{} docker -H "unix://$HST_ENGINE" exec -u 10000 {} touch /tmp/go
	expect_rc 0 wait $caller
	expect_eq "begun done" "$(paste -sd' ' "$HST_DIR/out")"
	expect_eq hello "$(hs exec 'echo hello')"
}
it_case "a changed recipe replaces idle sandboxes and lets commands end" recipe

smaller() {
	wait_for 30 it_warm 2
	it_config <<<$'pool:\n  size: 1\n  pids_limit: 77'
	reload
	# shellcheck disable=SC2317 # called by wait_for
	one() { [ "$(ids | wc -l)" -eq 1 ] && it_warm 1; }
	wait_for 20 one || fail "the pool does not shrink"
	it_config <<<$'pool:\n  size: 3\n  pids_limit: 77'
	reload
	wait_for 30 it_warm 3 || fail "the pool does not grow"
}
it_case "a pool shrinks and grows" smaller

# Only one of the two has read the new config: the broker refuses the other recipe, and both agree later.
one_sided() {
	local stale='manager and broker have read different configs'
	it_config <<<$'pool:\n  size: 3\n  pids_limit: 78'
	kill -HUP "$(it_pid sandboxd)"
	# shellcheck disable=SC2317 # called by wait_for
	told() { hs status --json | jq -r '.pools[0].last_failure' | grep -qF "$1"; }
	wait_for 10 told "$stale" || fail "status does not tell: $(hs status --json | jq -r '.pools[0].last_failure')"
	expect_rc 125 hs exec true 2>"$HST_DIR/err"
	expect_match "$stale" "$(cat "$HST_DIR/err")"
	# They ask each other at a bounded rate.
	[ "$(grep -cF "$stale" "$HST_DIR/engined.log")" -lt 30 ] || fail "a storm of requests"
	kill -HUP "$(it_pid engined)"
	expect_eq hello "$(hs exec 'echo hello')"
	wait_for 60 it_warm 3 || fail "the two do not come to agree"
}
it_case "manager and broker with different configs: status tells, and it mends itself" one_sided
