#!/bin/bash
# The manifests in k8s/: each is what the Kubernetes API takes, a wrong field in one is refused, and they fit together
# (tests/k8s/check.mjs). The API's types come from the npm registry, at the versions and hashes of tests/k8s/package-lock.json, and
# are kept for the next run. It needs neither root nor an engine.
set -euo pipefail
cd "${0%/*}/../.."
# shellcheck source=tests/lib/cases.sh
. tests/lib/cases.sh
it_logs() { :; }

CACHE=${IMAGE_CACHE:-/var/cache/hermes-sandbox-tests}
[ -w "$CACHE" ] || [ "$(id -u)" -eq 0 ] || CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/hermes-sandbox-tests
DIR=$CACHE/k8s-$(cat tests/k8s/package*.json | sha256sum | cut -c1-12)

command -v npm >/dev/null || skip "npm, which brings the API's types, is not here (Debian: npm)"
if [ ! -d "$DIR" ]; then
	mkdir -p "$CACHE"
	tmp=$(mktemp -d "$CACHE/.new.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	cp tests/k8s/package.json tests/k8s/package-lock.json "$tmp/"
	if ! npm ci --prefix "$tmp" --ignore-scripts --no-audit --no-fund >"$tmp/log" 2>&1; then
		tail -n 5 "$tmp/log"
		skip "npm did not get the API's types, so nothing says whether the manifests are right"
	fi
	chmod 0755 "$tmp"
	mv -T "$tmp" "$DIR" || [ -d "$DIR" ]
fi

# Beside what it imports; in a folder of this run, as the kept one may be another run's too.
work=$(mktemp -d)
trap 'rm -rf "$work" ${tmp:+"$tmp"}' EXIT
cp tests/k8s/check.mjs tests/k8s/agent-sandbox.d.ts tests/k8s/package.json "$work/"
ln -s "$DIR/node_modules" "$work/node_modules"
node "$work/check.mjs" "$PWD/k8s"
