#!/bin/bash
# Hermes' own tests of its docker backend, with the shim as the docker on its PATH.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/hermes/lib.sh
. "${0%/*}/lib.sh"

hermes_home
SHIM=(PATH="$HST_RUN/bin:/usr/bin:/bin" HERMES_SANDBOX_SOCKET="$HST_DIR/run/pool.sock")
hermes_pytest test_docker_environment.py "${SHIM[@]}"
hermes_pytest test_docker_find.py "${SHIM[@]}"
hermes_pytest test_docker_orphan_reaper_integration.py "${SHIM[@]}"
