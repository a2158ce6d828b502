/* The places, accounts and privileges of the two daemons, all of them, in one table. */
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/exitcode.h"
#include "supervisor/supervisor.h"

#define SETPRIV "/usr/bin/setpriv"
/* Should we be killed, they must not go on without us, not even to let commands end: a new start would run beside
 * them. */
#define COMMON "--no-new-privs", "--pdeathsig", "INT"

#define MANAGER "--reuid=_hermes-sandbox", "--regid=_hermes-sandbox", "--clear-groups", COMMON

static const struct sup_folder folders[] = {
        { "/run/hermes-sandbox", "_hermes-sandbox", "hermes-sandbox", 02755 },
        { "/run/hermes-sandbox-engine", "_hermes-engine", "_hermes-sandbox", 02750 },
        { "/var/lib/hermes-sandbox", "_hermes-sandbox", "_hermes-sandbox", 0700 },
        { "/var/lib/hermes-sandbox-engine", "_hermes-engine", "_hermes-engine", 0700 },
        { "/var/log/hermes-sandbox", "_hermes-sandbox", "adm", 02750 },
        { "/var/log/hermes-sandbox-daemons", "root", "adm", 02750 },
        { 0 },
};

/* The broker needs the supplementary group docker, and no capability. */
static const char *const engine[] = { SETPRIV,
                                      "--reuid=_hermes-engine",
                                      "--regid=_hermes-engine",
                                      "--init-groups",
                                      "--inh-caps=-all",
                                      "--ambient-caps=-all",
                                      "--bounding-set=-all",
                                      COMMON,
                                      LIBEXEC "/hermes-engined",
                                      NULL };

/* The manager may write to the kernel's audit trail, and belongs to no group but its own. */
static const char *const manager[] = { SETPRIV,
                                       MANAGER,
                                       "--inh-caps=-all,+audit_write",
                                       "--ambient-caps=-all,+audit_write",
                                       "--bounding-set=-all,+audit_write",
                                       LIBEXEC "/hermes-sandboxd",
                                       NULL };

/* Where even root has no CAP_AUDIT_WRITE to give (many containers), it runs without, and says so. */
static const char *const manager_unaudited[] = { SETPRIV,
                                                 MANAGER,
                                                 "--inh-caps=-all",
                                                 "--ambient-caps=-all",
                                                 "--bounding-set=-all",
                                                 LIBEXEC "/hermes-sandboxd",
                                                 NULL };

int main(int argc, char **argv) {
        struct sup_config c = {
                .pid_file = "/run/hermes-sandbox.pid",
                .log_dir = "/var/log/hermes-sandbox-daemons",
                .folders = folders,
                .daemons = { { "hermes-engined", "engine.log", engine },
                             { "hermes-sandboxd", "pool.log", manager } },
                .backoff_first_ms = 100,
                .backoff_max_ms = 10000,
                .settled_ms = 30000,
                /* The manager lets commands end for 30 s and removes sandboxes for 20 s at most. */
                .deadline_ms = 60000,
        };
        bool stop = argc == 2 && strcmp(argv[1], "--stop") == 0;

        if (argc != 1 && !stop) {
                fputs("usage: supervisor [--stop]\n", stderr);
                return EXIT_USAGE;
        }
        if (geteuid() != 0) {
                fputs("supervisor: root runs it, by sudo hermes-sandbox start\n", stderr);
                return EXIT_NOT_ALLOWED;
        }
        /* Such as a pipe that somebody reads to its end: it would not end with us. */
        close_range(3, ~0U, 0);
        umask(077);
        if (chdir("/") < 0)
                return 1;
        if (prctl(PR_CAPBSET_READ, CAP_AUDIT_WRITE) != 1)
                c.daemons[1].argv = manager_unaudited;
        return stop ? supervisor_stop(&c) : supervisor_start(&c);
}
