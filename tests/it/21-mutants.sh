#!/bin/bash
# Is every step of the scrub and every check of the proof needed, and would anybody notice if one were gone?
# Each is switched off in turn: its row is deleted from its table in a copy of the source, an agent is built from
# that, and at least one canary must fail.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"
# shellcheck source=tests/lib/canary.sh
. "${0%/*}/../lib/canary.sh"

it_config <<END
pool:
  size: 1
  max_sandboxes: 1
  on_empty: wait
  queue_timeout: 60s
END
canary_build
PRISTINE=$HST_DIR/pristine TREE=$HST_DIR/tree
mkdir -p "$PRISTINE/debian"
cp -a "$TOP/src" "$TOP/Makefile" "$PRISTINE/"
cp -a "$TOP/debian/changelog" "$PRISTINE/debian/"
cp -a "$PRISTINE" "$TREE"
export HST_AGENT=$HST_DIR/agent

STEPS=(src/agent/scrub.c steps)
CHECKS=(src/agent/proof.c checks)

# What must hold with the whole scrub: NAME of a step, and the canary that misses it first.
step_canaries=(
	"processes strangers"
	"files removed file-tmp"
	"files removed closed-dirs-home"
	"queues removed queue"
	"sysv_ipc removed sysv-shm"
	"sysv_ipc removed sysv-msg"
	"sysv_ipc removed sysv-sem"
	"attributes removed home-sticky"
	"attributes removed home-times"
)
# What must hold without any step: NAME of a check, and the residue that it alone names.
check_canaries=(
	"processes spoiled processes process 10000:10000 7311"
	"files replaced files file-tmp"
	"attributes replaced attributes home-sticky"
	"blocks spoiled blocks root_held"
	"sysv_ipc replaced sysv_ipc sysv-shm"
	"sysv_ipc replaced sysv_ipc sysv-msg"
	"sysv_ipc replaced sysv_ipc sysv-sem"
	"queues spoiled queues root_queue"
	"sockets replaced sockets time-wait"
	"mounts spoiled mounts root_mount"
)

# rows FILE TABLE: the names in the table, which has one row a line.
rows() {
	awk -v begin="} $2[] = {" '$0 == begin { inside = 1; next } inside && $0 == "};" { exit }
		inside && match($0, /"[a-z_0-9]+"/) { print substr($0, RSTART + 1, RLENGTH - 2) }' "$PRISTINE/$1"
}

# without FILE TABLE NAME…: the tree's file with these rows deleted, each of which must be one line.
without() {
	local file=$1 table=$2 name before
	shift 2
	cp "$PRISTINE/$file" "$TREE/$file"
	for name in "$@"; do
		before=$(wc -l <"$TREE/$file")
		sed -i "/^} ${table}\[\] = {\$/,/^};\$/{/^ *{.*\"$name\".*},\$/d}" "$TREE/$file"
		expect_eq $((before - 1)) "$(wc -l <"$TREE/$file")"
	done
}

# Both daemons with an agent of the tree. That a function is not used any more is no error here.
started() {
	env -u MAKEFLAGS -u MFLAGS -u SANITIZE make -C "$TREE" WERROR= BUILD="$HST_DIR/build" \
		"$HST_DIR/build/agent" >"$HST_DIR/build.out" 2>&1 || {
		cat "$HST_DIR/build.out"
		fail "it does not build"
	}
	install -m 0755 "$HST_DIR/build/agent" "$HST_AGENT"
	it_restart
}

# holds CANARY: its first word is for the order alone.
holds() {
	local words rc
	read -ra words <<<"$1"
	set +e
	(
		set -e
		"${words[@]:1}"
	) >"$HST_DIR/canary.out" 2>&1
	rc=$?
	set -e
	return $rc
}

# all_hold CANARY…
all_hold() {
	local canary
	for canary in "$@"; do
		holds "$canary" || {
			cat "$HST_DIR/canary.out"
			fail "$canary"
		}
	done
}

# one_fails NAME CANARY…: those of that name are asked first.
one_fails() {
	local canary why name=$1
	shift
	for canary in "$@"; do
		[[ $canary != "$name "* ]] || holds "$canary" || break
		canary=
	done
	[ -n "$canary" ] || for canary in "$@"; do
		[[ $canary == "$name "* ]] || holds "$canary" || break
		canary=
	done
	[ -n "$canary" ] || fail "nobody misses it"
	why=$(grep -m 1 '^failed: ' "$HST_DIR/canary.out") || fail "$canary breaks: $(cat "$HST_DIR/canary.out")"
	echo "$canary: $why"
	# Not for a reason of its own.
	expect_match '^failed: (found |the sandbox is used again|a command sees)' "$why"
}

mapfile -t steps < <(rows "${STEPS[@]}")
mapfile -t checks < <(rows "${CHECKS[@]}")
[ $((${#steps[@]} > 4 && ${#checks[@]} > 7)) -eq 1 ] || fail "the tables are not what this script expects"

whole() {
	started
	all_hold "${step_canaries[@]}"
}
it_case "with all steps and all checks every canary holds" whole

step_off() {
	without "${STEPS[@]}" "$1"
	started
	one_fails "$1" "${step_canaries[@]}"
}
for step in "${steps[@]}"; do
	it_case "without the step $step a canary fails" step_off "$step"
done

# From here on nothing is removed, and only the proof stands between two commands.
without "${STEPS[@]}" "${steps[@]}"
no_steps() {
	started
	all_hold "${check_canaries[@]}"
}
it_case "without any step each residue is found by its check, and the sandbox is replaced" no_steps

check_off() {
	without "${CHECKS[@]}" "$1"
	started
	one_fails "$1" "${check_canaries[@]}"
}
for check in "${checks[@]}"; do
	it_case "nor any step, and without the check $check a canary fails" check_off "$check"
done
