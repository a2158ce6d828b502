#!/bin/bash
# Hermes' own tests of its docker backend, with the shim as the docker that it finds.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/hermes/lib.sh
. "${0%/*}/lib.sh"

hermes_home
SHIM=(HERMES_DOCKER_BINARY="$HST_RUN/bin/docker" HERMES_SANDBOX_SOCKET="$HST_DIR/run/pool.sock")
hermes_pytest test_docker_environment.py "${SHIM[@]}"
hermes_pytest test_docker_find.py "${SHIM[@]}"
hermes_pytest test_docker_orphan_reaper_integration.py "${SHIM[@]}"
