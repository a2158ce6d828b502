# shellcheck shell=bash
# The real Hermes Agent in HERMES_SRC, as a caller who is in the group hermes-sandbox and not in docker. Sourced behind
# it.sh. It runs on Debian's own python3.

[ -n "${HERMES_SRC:-}" ] || skip "HERMES_SRC names no tree of Hermes Agent: make check-hermes HERMES_SRC=FOLDER"
PYTHON=/usr/bin/python3
FILES=$HST_DIR/files
HOME_OF=$FILES/hermes

# hermes_image NAME: an image with what Hermes' tools need, under this name.
hermes_image() {
	image_import "$HST_ENGINE" "$1" "$(image_archive bookworm git procps python3)"
}

# hermes_home: a HERMES_HOME for the caller, empty but for one skill.
hermes_home() {
	install -d -m 0755 "$FILES"
	rm -rf "$HOME_OF"
	install -d -m 0700 -o "$CALLER" -g "$CALLER" "$HOME_OF"
	install -d -m 0755 -o "$CALLER" -g "$CALLER" "$HOME_OF/skills" "$HOME_OF/skills/one"
	install -m 0644 -o "$CALLER" -g "$CALLER" /dev/stdin "$HOME_OF/skills/one/SKILL.md" <<<known
	# ssh looks there, and not at HOME.
	awk -F: -v OFS=: -v who="$CALLER" -v home="$HOME_OF" '$1 == who { $6 = home } { print }' /etc/passwd >"$HST_DIR/passwd"
}

# at_home COMMAND…: as the caller, whose home it is for this command alone.
at_home() {
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare --mount bash -e -c 'mount --bind "$1" /etc/passwd; . "$2"; as "${@:3}"' - \
		"$HST_DIR/passwd" "$TOP/tests/lib/accounts.sh" "$CALLER" HOME="$HOME_OF" "$@"
}

# hermes [NAME=VALUE]… ARGUMENT…: python3 with these variables and the tree as its first place.
hermes() {
	local set=()
	while [[ ${1:-} == [A-Z]*=* ]]; do
		set+=("$1")
		shift
	done
	# What the broker mounts must come from the machine's own namespace.
	local run=(as "$CALLER" HOME="$HOME_OF")
	[ -z "${AT_HOME:-}" ] || run=(at_home)
	(cd "$HERMES_SRC" && "${run[@]}" HERMES_HOME="$HOME_OF" PYTHONPATH="$HERMES_SRC:$TOP/tests/hermes/python" PYTHONDONTWRITEBYTECODE=1 \
		${set[@]+"${set[@]}"} "$PYTHON" "$@")
}

# hermes_scenario NAME [VARIABLE=VALUE]…: tests/hermes/drive.py; its lines count as cases of this script.
hermes_scenario() {
	local name=$1
	shift
	if ! hermes "$@" "$TOP/tests/hermes/drive.py" "$name"; then
		it_failed=$((it_failed + 1))
		it_logs
	fi
}

# hermes_pytest FILE [VARIABLE=VALUE]…: Hermes' own tests, each one a case. THEIRS matches those that fail for reasons of
# their own.
hermes_pytest() {
	local file=$1 rc=0
	shift
	hermes "$@" -m pytest -p no:cacheprovider -q -rA --tb=short "tests/tools/$file" >"$HST_DIR/pytest" 2>&1 || rc=$?
	awk -v theirs="${THEIRS:-^$}" '
		$2 !~ /^tests\// && $1 != "SKIPPED" { next }
		$1 == "PASSED" { print "ok - " $2 }
		($1 == "FAILED" || $1 == "ERROR") && $2 ~ theirs { print "theirs - " $2 }
		($1 == "FAILED" || $1 == "ERROR") && $2 !~ theirs { print "FAIL - " $2; bad = 1 }
		$1 == "SKIPPED" { print "FAIL - skipped: " $0; bad = 1 }
		END { exit bad }' "$HST_DIR/pytest" && [ $rc -le 1 ] && grep -q '^PASSED' "$HST_DIR/pytest" && return
	it_failed=$((it_failed + 1))
	cat "$HST_DIR/pytest"
}
