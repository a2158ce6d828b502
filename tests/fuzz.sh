#!/bin/bash
# fuzz.sh NAME: new inputs for one fuzz target with libFuzzer, for FUZZ_SECONDS (30), beginning at its corpus.
# `make fuzz` builds the targets and runs all of them. What it finds on the way stays in $BUILD/fuzzing, for the
# next run; an input that breaks something is named, to be put into tests/fuzz/corpus.
set -eu
cd "$(dirname "$0")/.."
name=$1
kind=${name#fuzz_}
dir=${BUILD:-build}/fuzzing
options=(-max_total_time="${FUZZ_SECONDS:-30}" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -detect_leaks=1
	-print_final_stats=1 -artifact_prefix="$dir/$name-")
[ ! -e "tests/fuzz/$kind.dict" ] || options+=(-dict="tests/fuzz/$kind.dict")

mkdir -p "$dir/$name.corpus"
rc=0
"$dir/fuzzer/$name" "${options[@]}" "$dir/$name.corpus" "tests/fuzz/corpus/$kind" >"$dir/$name.log" 2>&1 || rc=$?
if [ $rc -eq 0 ]; then
	grep -E '^stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)' "$dir/$name.log"
else
	echo "status $rc, input: $(grep -o "$dir/$name-[a-z]*-[0-9a-f]*" "$dir/$name.log" | tail -n 1)"
	grep -vE '^#[0-9]+	(NEW|REDUCE|pulse|RELOAD)' "$dir/$name.log" | tail -n 60
fi
# libFuzzer's own 77 would be taken for a skip.
[ $rc -eq 0 ] || exit 1
