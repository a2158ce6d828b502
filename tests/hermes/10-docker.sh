#!/bin/bash
# The docker backend of a real Hermes Agent with the shim as its docker: one line in its environment, and nothing else.
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/hermes/lib.sh
. "${0%/*}/lib.sh"

IMAGE=$(sed -n 's/^ *image: *"\{0,1\}\([^" ]*\).*/\1/p' "$TOP/etc/sandbox.d/10-hermes.yaml" | head -n 1)
hermes_image "$IMAGE"
hermes_home
install -m 0644 "$TOP/etc/sandbox.d/10-hermes.yaml" "$HST_DIR/etc/sandbox.d/10-hermes.yaml"
it_config <<END
pool:
  size: 1
allowed_file_paths:
  - $HOME_OF/sandboxes
  - $HOME_OF/skills
  - $HOME_OF/cache
END
it_start

PLACE=(TERMINAL_ENV=docker HERMES_DOCKER_BINARY="$HST_RUN/bin/docker" HERMES_SANDBOX_SOCKET="$HST_DIR/run/pool.sock")
# Without a home of its own: no skills, so no mount.
BARE=("${PLACE[@]}" TERMINAL_CWD=/workspace TERMINAL_CONTAINER_PERSISTENT=false)

rm -rf "$HOME_OF/skills"
hermes_scenario all_tools "${BARE[@]}"
hermes_scenario first "${BARE[@]}"
hermes_scenario second "${BARE[@]}"
hermes_scenario reaper "${BARE[@]}"
hermes_scenario network "${BARE[@]}" TERMINAL_DOCKER_NETWORK=false
hermes_scenario host_user "${BARE[@]}" TERMINAL_DOCKER_RUN_AS_HOST_USER=true
hermes_scenario probe "${BARE[@]}"
# As it comes: folders that persist, and skills below them.
hermes_home
hermes_scenario all_tools "${PLACE[@]}" TERMINAL_CWD=/workspace TERMINAL_CONTAINER_PERSISTENT=false
hermes_scenario mounts "${PLACE[@]}" TERMINAL_CWD=/workspace
hermes_scenario mounts "${PLACE[@]}" TERMINAL_CWD=/workspace TERMINAL_DOCKER_RUN_AS_HOST_USER=true
