#include <stdlib.h>
#include <sys/stat.h>

#include "cli/ssh/ssh.h"
#include "common/exitcode.h"

int main(int argc, char **argv) {
        static const struct ssh_places places = {
                .dir = "/etc/hermes-sandbox/ssh",
                .template = "/usr/share/hermes-sandbox/sshd_config",
                .home = "/var/lib/hermes-sandbox-ssh",
                .run = "/run/hermes-sandbox-ssh",
                .privsep = "/run/sshd",
                .log_dir = "/var/log/hermes-sandbox-daemons",
                .account = "hermes-ssh",
                .systemd_dir = "/run/systemd/system",
                .sshd = "/usr/sbin/sshd",
                .ssh_keygen = "/usr/bin/ssh-keygen",
                .systemctl = "/usr/bin/systemctl",
        };

        /* sshd hands its environment down to PAM's modules. */
        if (clearenv() != 0 || setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1) < 0 ||
            setenv("LANG", "C.UTF-8", 1) < 0)
                return EXIT_OS;
        umask(022);
        return ssh_main(&places, argc, argv);
}
