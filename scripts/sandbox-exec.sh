#!/bin/sh
# sandbox-exec.sh CMD: runs it in a sandbox. Its exit code is the command's.
[ $# -gt 0 ] || { echo "usage: sandbox-exec.sh CMD" >&2 && exit 64; }
exec hermes-sandbox exec -- sh -c "$*"
