#!/bin/bash
# `hermes-sandbox image build` and `image remove` on a real engine: the same packages give the same image, no tag is
# moved, and what fails or is interrupted leaves nothing.
# shellcheck source=tests/lib/it.sh
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "$TOP/tests/lib/caller.sh"

IMAGE=$HST_RUN/bin/hermes-sandbox-image
NAME=hst/base:71
TMP=$HST_DIR/tmp
SIZE=1g
mkdir "$TMP"

# in_memory COMMAND…: with a TMP that is in memory and its own alone. What is left there is listed in HST_DIR/left.
in_memory() {
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare -m --propagation private sh -c 'mount -t tmpfs -o "size=$1,mode=755" tmp "$2" || exit 99
		tmp=$2 left=$3; shift 3; rc=0; "$@" || rc=$?
		{ ls -A "$tmp"; grep -F "$tmp/" /proc/self/mountinfo; } >"$left"; exit $rc' - "$SIZE" "$TMP" "$HST_DIR/left" "$@"
}

# image VERB ARGUMENT…: RC, OUT and ERR.
image() {
	local verb=$1 run=()
	shift
	if [ "$verb" = build ]; then
		run=(in_memory)
		set -- --tmp "$TMP" --cache "$IMAGE_CACHE/packages" "$@"
	fi
	RC=0
	"${run[@]}" "$IMAGE" "$verb" --engine-socket "$HST_ENGINE" "$@" >"$HST_DIR/out" 2>"$HST_DIR/err" </dev/null || RC=$?
	OUT=$(cat "$HST_DIR/out")
	ERR=$(cat "$HST_DIR/err")
}

# refused STATUS REGEX: it was, in one line.
refused() {
	expect_eq "$1" "$RC"
	expect_eq "" "$OUT"
	expect_eq 1 "$(wc -l <"$HST_DIR/err")"
	expect_match "$2" "$ERR"
}

id_of() { docker_ image inspect -f '{{.Id}}' "$1"; }
all_images() { docker_ image ls -aq --no-trunc | sort; }

# nothing_left: no folder, no file, no mount and no process of it.
nothing_left() {
	expect_eq "" "$(cat "$HST_DIR/left")"
	! pgrep -f "^[^ ]*perl [^ ]*mmdebstrap .*$IMAGE_CACHE/packages" || fail "mmdebstrap still runs"
}

# The first build: its image has another's name, so that it goes again.
tag_stays() {
	local before id
	before=$(all_images)
	id=$(id_of "$HST_IMAGE")
	image build --name "$HST_IMAGE"
	refused 125 "^hermes-sandbox image: $HST_IMAGE is another image \(${id:0:19}\) and stays it; what was built is (sha256:[0-9a-f]{12}): first run hermes-sandbox image remove $HST_IMAGE\$"
	echo "${BASH_REMATCH[1]}" >"$HST_DIR/first"
	expect_eq "$id" "$(id_of "$HST_IMAGE")"
	expect_eq "$before" "$(all_images)"
	nothing_left
}

same_id() {
	local id
	# Another time of day, and all packages there already.
	image build --name "$NAME"
	expect_eq "0 " "$RC $ERR"
	expect_match "^name +$NAME"$'\n'"id +(sha256:[0-9a-f]{64})"$'\n'"size +[0-9]+\.[0-9] MB"$'\n'"packages +[0-9]+\$" "$OUT"
	id=${BASH_REMATCH[1]}
	expect_eq "$id" "$(id_of "$NAME")"
	expect_eq "$(cat "$HST_DIR/first")" "${id:0:19}"
	nothing_left
}

# What the label says is what dpkg says inside.
labels() {
	local said
	expect_eq base "$(docker_ image inspect -f '{{index .Config.Labels "hermes-sandbox.image.flavour"}}' "$NAME")"
	expect_eq bookworm "$(docker_ image inspect -f '{{index .Config.Labels "hermes-sandbox.image.suite"}}' "$NAME")"
	# shellcheck disable=SC2016 # dpkg-query expands it
	said=$(docker_ run --rm --network none "$NAME" sh -c \
		'dpkg-query -W -f "\${Package} \${Version} \${Architecture}\n" | LC_ALL=C sort | sha256sum')
	expect_eq "${said%% *}" "$(docker_ image inspect -f '{{index .Config.Labels "hermes-sandbox.image.packages"}}' "$NAME")"
}

# Nothing in it tells of this machine or of today.
nothing_told() {
	local out
	out=$(docker_ run --rm --network none "$NAME" sh -c \
		'find / -xdev -newermt 2023-06-11 ! -path "/proc/*" ! -path "/sys/*" ! -path "/dev/*" ! -name .dockerenv -type f
		ls -A /var/log /tmp /run /etc/apt/sources.list.d; test ! -e /etc/apt/sources.list; cat /etc/machine-id 2>/dev/null || true')
	expect_eq "" "$(grep -vE '^(/etc/(hosts|hostname|resolv.conf)|/(run|tmp|var/log).*:|/etc/apt/sources.list.d:|apt|lock|)$' <<<"$out" || true)"
}

in_use() {
	local id
	id=$(docker_ create --name hst71 "$NAME" true)
	image remove "$NAME"
	refused 125 "^hermes-sandbox image: $NAME is in use: 1 container of it, such as hst71: remove it first"
	docker_ rm "$id" >/dev/null
	id=$(id_of "$NAME")
	image remove "$NAME"
	expect_eq "0 " "$RC $ERR"
	expect_match "^untagged: $NAME"$'\n'"deleted: $id" "$OUT"
	image remove "$NAME"
	refused 125 "^hermes-sandbox image: there is no image $NAME: see docker image ls\$"
}

interrupted() {
	local before pid
	before=$(all_images)
	in_memory env --default-signal=INT "$IMAGE" build --tmp "$TMP" --cache "$IMAGE_CACHE/packages" --name hst/never:71 \
		--engine-socket "$HST_ENGINE" >"$HST_DIR/out" 2>"$HST_DIR/err" </dev/null &
	pid=$!
	# Its mounts are made, and dpkg runs.
	wait_for 60 pgrep -f "^dpkg .*--status-fd" >/dev/null || fail "no dpkg"
	kill -INT "$(pgrep -o -f "^$IMAGE build .*hst/never:71")"
	RC=0
	wait "$pid" || RC=$?
	OUT=$(cat "$HST_DIR/out")
	ERR=$(cat "$HST_DIR/err")
	refused 130 '^hermes-sandbox image: interrupted: nothing is left of it$'
	nothing_left
	expect_eq "$before" "$(all_images)"
}

# As many builds at a time as one.
second() {
	exec {lock}<"$IMAGE_CACHE/packages"
	flock -x "$lock"
	image build --name hst/never:71
	exec {lock}<&-
	refused 125 '^hermes-sandbox image: another image build runs '
	nothing_left
}

disk_full() {
	SIZE=30m image build --name hst/never:71
	refused 125 "^hermes-sandbox image: no space left (for mmdebstrap )?in $TMP"
	nothing_left
}

no_mmdebstrap() {
	RC=0
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare -m sh -c 'mount --bind /dev/null /usr/bin/mmdebstrap && exec "$@"' - \
		"$IMAGE" build --engine-socket "$HST_ENGINE" >"$HST_DIR/out" 2>"$HST_DIR/err" </dev/null || RC=$?
	OUT=$(cat "$HST_DIR/out")
	ERR=$(cat "$HST_DIR/err")
	refused 125 '^hermes-sandbox image: /usr/bin/mmdebstrap is missing: run apt install mmdebstrap$'
}

no_package() {
	image build --name hst/never:71 --package no-such-package-71
	refused 125 '^hermes-sandbox image: mmdebstrap failed \(status [0-9]+\): .*no-such-package-71'
	nothing_left
}

not_root() {
	local verb
	for verb in build 'remove x'; do
		# shellcheck disable=SC2086 # words
		RC=0 && as "$CALLER" "$IMAGE" $verb --engine-socket "$HST_ENGINE" >"$HST_DIR/out" 2>"$HST_DIR/err" || RC=$?
		OUT=$(cat "$HST_DIR/out")
		ERR=$(cat "$HST_DIR/err")
		refused 77 '^hermes-sandbox image: .* run it with sudo$'
	done
}

no_engine() {
	HST_ENGINE=$HST_DIR/none image remove x
	refused 69 "^hermes-sandbox image: no engine answers at $HST_DIR/none: "
	HST_ENGINE=$HST_DIR/none image build
	refused 69 "^hermes-sandbox image: no engine answers at $HST_DIR/none: "
}

it_case "without root it does nothing" not_root
it_case "without an engine it says so" no_engine
it_case "without mmdebstrap it says what brings it" no_mmdebstrap
it_case "a name that another image has stays that image's" tag_stays
it_case "a second build of the same packages has the same id" same_id
it_case "its labels say what it is made of" labels
it_case "it tells nothing of when and where it was built" nothing_told
it_case "an image is not removed while a container uses it, and then is" in_use
it_case "an interrupted build leaves nothing" interrupted
it_case "one build at a time" second
it_case "a package that does not exist is named" no_package
it_case "a full disk is one line" disk_full
