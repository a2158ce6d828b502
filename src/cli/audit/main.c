#include "cli/audit/review.h"

#include <time.h>

int main(int argc, char **argv) {
        static const struct review_paths paths = {
                .auditd_conf = "/etc/audit/auditd.conf",
                .audit_log = "/var/log/audit/audit.log",
                .trail = "/var/log/hermes-sandbox/sandbox-audit.log",
                .manager = LIBEXEC "/hermes-sandboxd",
                .helper = "/usr/sbin/hermes-docker-enable",
                .account = "_hermes-sandbox",
        };

        tzset();
        return review_command(&paths, argc, argv, stdout, stderr);
}
