/*
 * logs: the daemons' own messages. They are kept by systemd's journal, or where the supervisor runs the daemons in
 * files; in both cases there is a program that shows and follows them, and it is run.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_conn.h"
#include "cli/cli_opts.h"
#include "common/exitcode.h"

#define JOURNALCTL "/usr/bin/journalctl"
#define TAIL "/usr/bin/tail"

static const char logs_help[] =
        "usage: hermes-sandbox logs [-f] [-n N]\n"
        "\n"
        "Shows what the manager and the engine broker say, from systemd's journal where systemd runs\n"
        "them, else from /var/log/hermes-sandbox-daemons. For root and members of the group adm.\n"
        "\n"
        "options:\n"
        "  -f, --follow   go on as more comes\n"
        "  -n, --lines N  the last N lines alone\n"
        "\n"
        "examples:\n"
        "  sudo hermes-sandbox logs -n 20\n"
        "  sudo hermes-sandbox logs -f\n";

enum { OPT_HELP, OPT_FOLLOW, OPT_LINES };

static const struct cli_opt logs_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "follow", 'f', false, OPT_FOLLOW },
        { "lines", 'n', true, OPT_LINES },
        { .name = "" },
};

struct wanted {
        bool follow;
        const char *lines; /* NULL: all */
};

/* Does not come back. */
static int become(const char *program, const char *const *argv) {
        /* execv() changes nothing of it. */
        execv(program, (char *const *)(uintptr_t)argv);
        cli_error("cannot run %s: %s", program, strerror(errno));
        return EXIT_SANDBOX;
}

static int from_journal(const struct wanted *w, bool users) {
        const char *argv[12] = { "journalctl", users ? "--user" : "--system" };
        const char *unit = users ? "--user-unit" : "--unit";
        int n = 2;

        argv[n++] = unit;
        argv[n++] = "hermes-sandbox-pool.service";
        argv[n++] = unit;
        argv[n++] = "hermes-sandbox-engine.service";
        if (w->follow)
                argv[n++] = "--follow";
        if (w->lines || w->follow) {
                argv[n++] = "--lines";
                argv[n++] = w->lines ? w->lines : "10";
        }
        return become(JOURNALCTL, argv);
}

/* They must be there and be readable: what tail would say instead names no remedy. */
static int check(const char *path) {
        if (access(path, R_OK) == 0)
                return 0;
        if (errno == EACCES) {
                cli_error("logs: %s: permission denied: sudo hermes-sandbox logs, or join the group adm",
                          path);
                return EXIT_NOT_ALLOWED;
        }
        cli_error("logs: %s: %s: has sudo hermes-sandbox start been run?", path, strerror(errno));
        return EXIT_NO_MANAGER;
}

static int from_files(const struct cli *c, const struct wanted *w) {
        char pool[4096], engine[4096];
        const char *argv[8] = { "tail", "-n", w->lines ? w->lines : w->follow ? "10" : "+1" };
        int n = 3, r;

        if ((size_t)snprintf(pool, sizeof(pool), "%s/pool.log", c->log_dir) >= sizeof(pool) ||
            (size_t)snprintf(engine, sizeof(engine), "%s/engine.log", c->log_dir) >= sizeof(engine)) {
                cli_error("logs: %s: %s", c->log_dir, strerror(ENAMETOOLONG));
                return EXIT_SANDBOX;
        }
        r = check(pool);
        if (r == 0)
                r = check(engine);
        if (r != 0)
                return r;
        /* By name, as the files may be moved away and begun anew. */
        if (w->follow)
                argv[n++] = "-F";
        argv[n++] = pool;
        argv[n++] = engine;
        return become(TAIL, argv);
}

static int run_logs(const struct cli *c, int argc, char **argv) {
        struct wanted w = { 0 };
        struct cli_opts o;
        struct errmsg e;
        struct stat st;
        const char *value;
        int id;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, logs_opts, &value, &e)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(logs_help);
                if (id == OPT_FOLLOW)
                        w.follow = true;
                else
                        w.lines = value;
        }
        if (id == CLI_OPTS_END && o.next < argc)
                id = errmsg_set(&e, -EINVAL, "unexpected argument '%.80s'", argv[o.next]);
        if (id == CLI_OPTS_END && w.lines &&
            (w.lines[0] == '\0' || strspn(w.lines, "0123456789") != strlen(w.lines) ||
             strlen(w.lines) > 9))
                id = errmsg_set(&e, -EINVAL, "-n '%.80s': expected a number of lines", w.lines);
        if (id != CLI_OPTS_END) {
                cli_error("logs: %s: see hermes-sandbox logs --help", e.text);
                return EXIT_USAGE;
        }
        if (lstat(c->systemd_dir, &st) == 0 && S_ISDIR(st.st_mode))
                return from_journal(&w, cli_conn_is_users(c));
        return from_files(c, &w);
}

const struct cli_command cli_logs_command = {
        .name = "logs",
        .group = CLI_LOOK,
        .summary = "what the manager and the engine broker say",
        .help = logs_help,
        .run = run_logs,
};
