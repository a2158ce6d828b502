#!/bin/bash
# Which test shows which of the 24 inputs that broke other sandboxes: a case of tests/it whose text begins with
# "case N: ". Prints them, and fails with the numbers that no test names, or that are none.
set -u
cd "$(dirname "$0")/.." || exit 1
CASES=24

named=$(grep -oE '^[^#]*it_case "cases? [0-9]+: [^"]*' tests/it/*.sh |
	sed -E 's|tests/it/([^:]*)\.sh:.*it_case "cases? ([0-9]+): (.*)|\2 \1: \3|' | sort -n)
missing=$(comm -23 <(seq $CASES | sort) <(cut -d' ' -f1 <<<"$named" | sort -u) | sort -n | paste -sd' ')
unknown=$(comm -13 <(seq $CASES | sort) <(cut -d' ' -f1 <<<"$named" | sort -u) | paste -sd' ')
echo "$named"
[ -z "$missing" ] || echo "no test shows the cases: $missing"
[ -z "$unknown" ] || echo "there are no cases: $unknown"
[ -z "$missing$unknown" ]
