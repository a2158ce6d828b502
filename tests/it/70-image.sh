#!/bin/bash
# The images of the profiles, as members have them: list, pull and verify, digests and ids that the config pins, tags
# that are moved, and a registry that refuses, lies and talks to the terminal.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

REGISTRY=$HST_DIR/registry
mkdir "$REGISTRY"

# --- what the registry has ---------------------------------------------------------------------------

# A program that says one word, and needs nothing of an image.
word_program() {
	printf '#include <stdio.h>\nint main(void) { return puts("%s") < 0; }\n' "$2" >"$HST_DIR/word.c"
	musl-gcc -static -o "$1" "$HST_DIR/word.c"
}

# layers FOLDER WORD: three of them, the last one large enough to be seen on its way.
layers() {
	local root=$HST_DIR/root
	rm -rf "$root" "$1"
	mkdir -p "$1" "$root"/1/{tmp,home,etc} "$root"/2/bin "$root"/3/srv
	word_program "$root/2/bin/word" "$2"
	head -c 3000000 /dev/urandom >"$root/3/srv/data"
	for i in 1 2 3; do
		tar -C "$root/$i" --sort=name --owner=0 --group=0 -cf "$1/$i.tar" .
	done
}
layers "$REGISTRY/hst-tag:1" by-tag
layers "$REGISTRY/hst-digest:1" by-digest
layers "$REGISTRY/hst-broken:1" broken
touch "$REGISTRY/hst-broken:1/broken"
mkdir "$REGISTRY/hst-evil:1"
printf 'no\033]0;evil\a\033[31m\r\xc2\x9b2J\xe2\x80\xae\nsecond line' >"$REGISTRY/hst-evil:1/refuse"

python3 "$TOP/tests/lib/registry.py" "$REGISTRY" >"$HST_DIR/registry.out" 2>&1 &
REGISTRY_PID=$!
own_end() {
	local rc=$?
	set +e
	end_process $REGISTRY_PID 10 || true
	docker_ image ls --format '{{.Repository}}:{{.Tag}} {{.Repository}}@{{.Digest}}' |
		grep -oE '^[^ ]*hst-[^ ]*|[^ ]*hst-[^ ]*sha256[^ ]*' | sed 's/:<none>$//' |
		xargs -r docker -H "unix://$HST_ENGINE" rmi -f >/dev/null 2>&1 || true
	(exit $rc)
	it_exit
}
trap own_end EXIT
wait_for 20 test -s "$HST_DIR/registry.out"
HOST=127.0.0.1:$(head -n 1 "$HST_DIR/registry.out")

# digest_of NAME TAG: as the registry says it.
digest_of() {
	python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1]).headers["Docker-Content-Digest"])' "http://$HOST/v2/$1/manifests/$2"
}
DIGEST=$(digest_of hst-digest 1)
requests() { grep -c "$1" "$HST_DIR/registry.out" || true; }

# --- what the engine has -----------------------------------------------------------------------------

# variant NUMBER NAME: another image with the same contents gets that name. Prints its id.
variant() {
	local container
	container=$(docker_ create "$HST_IMAGE" true)
	docker_ commit --change "LABEL variant=$1" "$container" "$2" >/dev/null
	docker_ rm "$container" >/dev/null
	docker_ image inspect --format '{{.Id}}' "$2"
}
FIRST=$(variant 1 hst-moving:1)
NOBODYS=sha256:$(printf '0%.0s' {1..64})

it_config <<END
pool:
  size: 1
profiles:
  tag: { size: 0, cold_after: 0ms, image: "$HOST/hst-tag:1" }
  digest: { size: 0, cold_after: 0ms, image: "$HOST/hst-digest:1@$DIGEST" }
  moving: { size: 1, image: "hst-moving:1" }
  pinned: { size: 1, image: "$FIRST" }
  absent: { size: 0, image: "$NOBODYS" }
  gone: { size: 0, image: "$HOST/hst-gone:1" }
  broken: { size: 0, image: "$HOST/hst-broken:1" }
  evil: { size: 0, image: "$HOST/hst-evil:1" }
  private: { size: 0, image: "$HOST/hst-tag:1", allow_users: [root] }
END
it_start
for profile in moving pinned; do
	wait_for 30 it_warm 1 $profile || fail "no sandbox of profile $profile"
done

# refused CODE REGEX ARGUMENT…: with that status, one line on stderr that matches.
refused() {
	expect_rc "$1" hs "${@:3}" >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "1 (${*:3})" "$(wc -l <"$HST_DIR/err") (${*:3})"
	expect_match "$2" "$(cat "$HST_DIR/err")"
}

# row JQ: of the image of profile $2.
row() { hs image list --json | jq -c --arg p "$2" ".[] | select(.profiles | index(\$p)) | $1"; }

listed() {
	local text
	text=$(hs image list && echo .)
	expect_match '^IMAGE +PROFILES +STATE +ID +SIZE +CREATED +PINNED' "$text"
	expect_match $'\n'"hst-moving:1 +moving +present +${FIRST:7:12} +[0-9]+MB +20[0-9-]{8} +no"$'\n' "$text"
	expect_match $'\n'"${FIRST:7:12} +pinned +present +${FIRST:7:12} +[0-9]+MB +20[0-9-]{8} +id"$'\n' "$text"
	expect_match $'\n'"$HOST/hst-tag:1 +private,tag +missing +- +- +- +no"$'\n' "$text"
	expect_match $'\n'"$HOST/hst-digest:1@sha256:${DIGEST:7:12} +digest +missing +- +- +- +digest"$'\n' "$text"
	expect_eq '["hst-moving:1",null,true,"'"$FIRST"'",null,["moving"]]' \
		"$(row '[.image, .pinned, .present, .id, .digest, .profiles]' moving)"
	expect_eq "true true" "$(row '"\(.size_bytes > 1000000) \(.created | startswith("20"))"' moving | tr -d '"')"
	expect_eq '["digest",false,null,null,null,null]' \
		"$(row '[.pinned, .present, .id, .digest, .size_bytes, .created]' digest)"
}
it_case "list has a row for each image of the config, as text and as JSON" listed

not_allowed() {
	local what
	for what in list pull verify; do
		expect_rc 77 hs_as "$STRANGER" image $what 2>"$HST_DIR/err" >/dev/null
		expect_eq 1 "$(wc -l <"$HST_DIR/err")"
		expect_match 'not in group hermes-sandbox' "$(cat "$HST_DIR/err")"
	done
	refused 77 'may not use profile "private"' image pull private
	expect_match 'reason=not_allowed' "$(tail -n 1 "$HST_DIR/log/sandbox-audit.log")"
	refused 64 'no profile "nobody" in the config: give a profile.s name, not an image.s' image pull nobody
	refused 64 'no profile "debian:12"' image pull debian:12
	refused 64 'no profile "nobody"' image verify nobody
	refused 64 'image: no such subcommand' image push
	refused 64 "image list: unexpected argument 'tag'" image list tag
	refused 64 'image pull: unknown option --json' image pull --json
}
it_case "it is for members, and a pull for who may use the profile; no name but a profile's is taken" not_allowed

pulls() {
	local layer asked
	hs image pull tag >"$HST_DIR/out"
	expect_eq "pulling image $HOST/hst-tag:1" "$(head -n 1 "$HST_DIR/out")"
	expect_match "^pulled $HOST/hst-tag:1 \\([0-9a-f]{12}\\)\$" "$(tail -n 1 "$HST_DIR/out")"
	for layer in "$REGISTRY/hst-tag:1"/*.tar; do
		grep -qx "$(sha256sum "$layer" | cut -c1-12): Pull complete" "$HST_DIR/out" ||
			fail "no end of layer $layer: $(cat "$HST_DIR/out")"
	done
	expect_eq by-tag "$(hs exec --profile tag -- word)"
	expect_eq true "$(row .present tag)"
	expect_eq "\"$HOST/hst-tag@$(digest_of hst-tag 1)\"" "$(row .digest tag)"
	# What the registry has under this name by now is not asked for.
	layers "$REGISTRY/hst-tag:1" moved
	asked=$(requests hst-tag)
	expect_match "^$HOST/hst-tag:1 is there already \\([0-9a-f]{12}\\): nothing is pulled\$" "$(hs image pull tag)"
	expect_eq "$asked" "$(requests hst-tag)"
	expect_eq by-tag "$(hs exec --profile tag -- word)"
}
it_case "pull shows how each layer comes, and leaves an image that is there alone" pulls

digest() {
	expect_rc 1 hs image verify digest >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_eq "missing  digest: $HOST/hst-digest:1@sha256:${DIGEST:7:12} is not there: hermes-sandbox image pull digest" \
		"$(cat "$HST_DIR/out")"
	expect_eq "hermes-sandbox: image verify: 1 of 1 profile is not as it should be" "$(cat "$HST_DIR/err")"
	# The tag means another image by now, here and there; the digest does not.
	layers "$REGISTRY/hst-digest:1" other
	docker_ pull -q "$HOST/hst-digest:1" >/dev/null
	expect_eq false "$(row .present digest)"
	hs image pull digest >"$HST_DIR/out"
	expect_eq by-digest "$(hs exec --profile digest -- word)"
	expect_eq "\"$HOST/hst-digest@$DIGEST\"" "$(row .digest digest)"
	expect_match "^ok       digest: $HOST/hst-digest:1@sha256:${DIGEST:7:12} is [0-9a-f]{12}, and so (is|are) " \
		"$(hs image verify digest)"
	expect_eq '["ok","digest",true]' "$(hs image verify --json digest | jq -c '.[] | [.state, .pinned, .present]')"
}
it_case "a profile that pins a digest has that image, wherever the tag points" digest

# made_from PROFILE: the ids of what its running containers were made from, as the engine says.
made_from() {
	docker_ ps -q --no-trunc --filter "label=hermes-sandbox.profile=$1" | xargs -r docker -H "unix://$HST_ENGINE" inspect \
		--format '{{.Image}}' | sort -u
}

moved() {
	local second
	expect_match "^ok       moving: hst-moving:1 \\(not pinned\\) is ${FIRST:7:12}, and so is 1 sandbox
ok       pinned: ${FIRST:7:12} is ${FIRST:7:12}, and so is 1 sandbox\$" "$(hs image verify moving pinned)"
	hs session open --profile moving hst-old >/dev/null
	wait_for 30 it_warm 1 moving
	second=$(variant 2 hst-moving:1)
	expect_rc 1 hs image verify moving >"$HST_DIR/out" 2>/dev/null
	expect_eq "other    moving: hst-moving:1 is ${second:7:12}, but not in 2 of 2 sandboxes: one is session hst-old: hermes-sandbox session close hst-old" \
		"$(cat "$HST_DIR/out")"
	# What is idle is replaced by itself, what is a session's stays.
	# shellcheck disable=SC2317 # called by wait_for
	replaced() {
		hs image verify --json moving >"$HST_DIR/out" 2>/dev/null || true
		[ "$(jq -c '.[] | [.state, [.others[].session]]' "$HST_DIR/out")" = '["other",["hst-old"]]' ] && it_warm 1 moving
	}
	wait_for 30 replaced || fail "not replaced: $(cat "$HST_DIR/out")"
	expect_eq "$(sort <<<"$FIRST
$second")" "$(made_from moving)"
	hs session close hst-old
	# shellcheck disable=SC2317 # so is this
	mended() { hs image verify moving >/dev/null 2>&1; }
	wait_for 30 mended || fail "not mended: $(hs image verify moving)"
	expect_eq "$FIRST" "$(made_from pinned)"
	expect_match "^ok       pinned" "$(hs image verify pinned)"
}
it_case "a tag that is moved replaces idle sandboxes; verify says so, and what mends it; an id stays" moved

failing() {
	refused 125 "^hermes-sandbox: image pull: image \"$HOST/hst-gone:1\" is not there and cannot be pulled: .*: docker pull $HOST/hst-gone:1, or docker load / docker import it\$" \
		image pull gone
	refused 125 'cannot be pulled: .*(verification failed|digest|checksum)' image pull broken
	refused 125 "^hermes-sandbox: image pull: image \"$NOBODYS\" is not there and cannot be pulled: it is an id, not a name: docker load the image with that id" \
		image pull absent
	refused 125 "^hermes-sandbox: image pull: image \"$HOST/hst-evil:1\" is not there and cannot be pulled: .*no" image pull evil
	expect_eq "" "$(LC_ALL=C tr -d '\n\40-\176' <"$HST_DIR/err" | od -An -tx1)"
	expect_eq "" "$(LC_ALL=C tr -d '\n\40-\176' <"$HST_DIR/sandboxd.log" | od -An -tx1)"
	# One after the other: those that fail keep none from the others.
	docker_ rmi -f "$HOST/hst-tag:1" >/dev/null
	expect_rc 125 hs image pull gone tag evil >"$HST_DIR/out" 2>"$HST_DIR/err"
	expect_match "^hermes-sandbox: image pull: image \"$HOST/hst-gone:1\" is not there" "$(cat "$HST_DIR/err")"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_match "pulled $HOST/hst-tag:1 " "$(cat "$HST_DIR/out")"
	expect_match "image \"$HOST/hst-evil:1\" is not there" "$(cat "$HST_DIR/out")"
	expect_eq "" "$(LC_ALL=C tr -d '\n\40-\176' <"$HST_DIR/out" | od -An -tx1)"
}
it_case "a pull that fails is one line and 125, whatever a registry says" failing
