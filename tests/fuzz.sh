#!/bin/bash
# New inputs for each fuzz target with libFuzzer, FUZZ_SECONDS (60) each, beginning at its corpus. What it
# finds on the way stays in $BUILD; an input that breaks something is named, to be put into the corpus.
set -eu
cd "$(dirname "$0")/.."
out=${BUILD:-build}/libfuzzer
passed=0 failed=0
libs=$(pkg-config --libs libcurl yaml-0.1 jansson libsystemd audit nettle)
flags=(-std=gnu17 -D_GNU_SOURCE -Isrc -Itests -DVERSION='"fuzz"' -DLIBEXEC='"/usr/libexec/hermes-sandbox"'
	-O1 -g "-fsanitize=address,undefined,fuzzer-no-link" -fno-sanitize-recover=all)

mkdir -p "$out/obj"
objects=()
for source in src/{common,config,engine,manager,agent,cli,supervisor}/*.c; do
	case $source in */main.c) continue ;; esac
	object=$out/obj/$(tr / _ <<<"${source%.c}").o
	[ "$object" -nt "$source" ] || clang "${flags[@]}" -c -o "$object" "$source"
	objects+=("$object")
done
rm -f "$out/lib.a"
ar rcs "$out/lib.a" "${objects[@]}"

for source in tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	mkdir -p "$out/$name.corpus" "tests/fuzz/corpus/${name#fuzz_}"
	# shellcheck disable=SC2086 # one word a library
	clang "${flags[@]}" -fsanitize=fuzzer -o "$out/$name" "$source" "$out/lib.a" $libs
	if "$out/$name" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
		-artifact_prefix="$out/$name-" "$out/$name.corpus" "tests/fuzz/corpus/${name#fuzz_}" \
		>"$out/$name.log" 2>&1; then
		echo "ok    $name ($(tail -n 1 "$out/$name.log"))"
		passed=$((passed + 1))
	else
		echo "FAIL  $name (input: $(grep -o "$out/$name-[a-z]*-[0-9a-f]*" "$out/$name.log" | tail -n 1))"
		tail -n 30 "$out/$name.log"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
