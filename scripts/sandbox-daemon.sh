#!/bin/sh
# sandbox-daemon.sh start [SIZE] | stop | status | exec CMD: what it was in the earlier scripts. Exit codes are hermes-sandbox's.
case ${1-}:$# in
start:1 | stop:1 | status:1) exec hermes-sandbox "$1" ;;
start:2) exec hermes-sandbox-setup --yes --pool-size "$2" ;;
exec:1) echo "sandbox-daemon.sh: exec: no command given" >&2 ;;
exec:*) shift && exec hermes-sandbox exec -- sh -c "$*" ;;
*) echo "usage: sandbox-daemon.sh start [SIZE] | stop | status | exec CMD" >&2 ;;
esac
exit 64
