#!/bin/bash
# What README.md shows is what happens: its transcript is run again and compared. TRANSCRIPT=write writes it anew.
. "${0%/*}/../lib/it.sh"
it_start
wait_for 60 it_warm 3

# The reader's own words, without the options that this world needs.
mkdir "$HST_DIR/bin"
printf '#!/bin/sh\nexec %q --socket %q "$@"\n' "$HST_RUN/bin/hermes-sandbox" "$HST_DIR/run/pool.sock" \
	>"$HST_DIR/bin/hermes-sandbox"
chmod -R a+rx "$HST_DIR/bin"

document=$(realpath "${0%/*}/../../README.md")
play() {
	setpriv --reuid "$CALLER" --regid "$CALLER" --init-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
		-- env -i PATH="$HST_DIR/bin:/usr/bin:/bin" HOME=/ LANG=C.UTF-8 python3 - "$@" <"${0%/*}/../lib/transcript.py"
}

if [ "${TRANSCRIPT:-}" = write ]; then
	cp "$document" "$HST_DIR/README.md"
	chown "$CALLER" "$HST_DIR/README.md"
	play write "$HST_DIR/README.md"
	cat "$HST_DIR/README.md" >"$document"
fi

shown() {
	cp "$document" "$HST_DIR/README.md"
	chmod a+r "$HST_DIR/README.md"
	play check "$HST_DIR/README.md" || fail "README.md: TRANSCRIPT=write ONLY=it/76* tests/run it"
}
it_case "the first minute in README.md prints what stands there" shown

stale() {
	sed 's/^    hello from a sandbox$/    hello from elsewhere/' "$document" >"$HST_DIR/README.md"
	! cmp -s "$document" "$HST_DIR/README.md" || fail "README.md greets otherwise"
	expect_rc 1 play check "$HST_DIR/README.md" >/dev/null
}
it_case "a line there that is not what is printed is found" stale
