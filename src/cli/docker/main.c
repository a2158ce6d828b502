#include <stdlib.h>

#include "cli/docker/docker.h"

int main(int argc, char **argv) {
        const char *profile = getenv("HERMES_SANDBOX_PROFILE");
        struct docker d = {
                .cli = {
                        .libexec = LIBEXEC,
                        .system_socket = "/run/hermes-sandbox/pool.sock",
                        .systemd_dir = "/run/systemd/system",
                        .group_file = "/etc/group",
                        .log_dir = "/var/log/hermes-sandbox-daemons",
                },
                .profile = profile && profile[0] ? profile : "hermes",
        };

        return docker_main(&d, argc, argv);
}
