#include "cli/cli.h"

int main(int argc, char **argv) {
        struct cli c = {
                .libexec = LIBEXEC,
                .system_socket = "/run/hermes-sandbox/pool.sock",
                .systemd_dir = "/run/systemd/system",
                .group_file = "/etc/group",
                .log_dir = "/var/log/hermes-sandbox-daemons",
        };

        return cli_main(&c, argc, argv);
}
