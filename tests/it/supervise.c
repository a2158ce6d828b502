/*
 * The supervisor (src/supervisor) over daemons and folders of a test: the waits are those of its own main(), the
 * accounts and capabilities as well.
 *
 *     supervise [--stop] FOLDER BIN    FOLDER has etc, engine, engine-state, run, state and log
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/supervisor.h"

#define SETPRIV "/usr/bin/setpriv"

static char *path(const char *folder, const char *name) {
        char *s;

        if (asprintf(&s, "%s/%s", folder, name) < 0)
                abort();
        return s;
}

int main(int argc, char **argv) {
        bool stop = argc == 4 && strcmp(argv[1], "--stop") == 0;
        const char *f = argc >= 3 ? argv[argc - 2] : "", *bin = argc >= 3 ? argv[argc - 1] : "";
        const char *yaml = path(f, "etc/sandbox.yaml"), *dropins = path(f, "etc/sandbox.d");
        const char *const engine[] = { SETPRIV,
                                       "--reuid=_hermes-engine",
                                       "--regid=_hermes-engine",
                                       "--init-groups",
                                       "--inh-caps=-all",
                                       "--ambient-caps=-all",
                                       "--bounding-set=-all",
                                       "--no-new-privs",
                                       path(bin, "hermes-engined"),
                                       "--config",
                                       yaml,
                                       "--config-dir",
                                       dropins,
                                       "--runtime-dir",
                                       path(f, "engine"),
                                       "--state-dir",
                                       path(f, "engine-state"),
                                       "--agent",
                                       path(bin, "agent"),
                                       NULL };
        const char *const manager[] = { SETPRIV,
                                        "--reuid=_hermes-sandbox",
                                        "--regid=_hermes-sandbox",
                                        "--clear-groups",
                                        "--inh-caps=-all,+audit_write",
                                        "--ambient-caps=-all,+audit_write",
                                        "--bounding-set=-all,+audit_write",
                                        "--no-new-privs",
                                        path(bin, "hermes-sandboxd"),
                                        "--config",
                                        yaml,
                                        "--config-dir",
                                        dropins,
                                        "--runtime-dir",
                                        path(f, "run"),
                                        "--engine-socket",
                                        path(f, "engine/engine.sock"),
                                        "--state-dir",
                                        path(f, "state"),
                                        NULL };
        const struct sup_folder folders[] = { { path(f, "daemons"), "root", "adm", 02750 }, { 0 } };
        const struct sup_config c = {
                .pid_file = path(f, "supervisor.pid"),
                .log_dir = path(f, "daemons"),
                .folders = folders,
                .daemons = { { "hermes-engined", "engine.log", engine },
                             { "hermes-sandboxd", "pool.log", manager } },
                .backoff_first_ms = 100,
                .backoff_max_ms = 10000,
                .settled_ms = 30000,
                .deadline_ms = 60000,
        };

        if (argc != (stop ? 4 : 3))
                return 64;
        close_range(3, ~0U, 0);
        umask(077);
        return stop ? supervisor_stop(&c) : supervisor_start(&c);
}
