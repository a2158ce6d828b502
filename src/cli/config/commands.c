/*
 * `check` and `show`. Without FILE they read what the daemons read and ask for the same trust in it; a
 * FILE by name is judged by its content alone, so that anyone can check a draft of his own.
 */
#include "cli/config/commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "config/config.h"
#include "config/load.h"

#define PROGRAM "hermes-sandbox config"

static const char help[] =
        "usage: hermes-sandbox config check [--config-dir DIR] [FILE]\n"
        "       hermes-sandbox config show [--config-dir DIR] [FILE]\n"
        "\n"
        "  check   says OK and what is accepted but not enforced, or what is wrong and where (exit 78)\n"
        "  show    prints what is in force, every default filled in, as YAML\n"
        "\n"
        "Without FILE they read /etc/hermes-sandbox/sandbox.yaml and sandbox.d/*.yaml merged over it,\n"
        "which must belong to root (or to you) and be writable by nobody else; with FILE, that file "
        "alone.\n"
        "\n"
        "  --config-dir DIR   read DIR/sandbox.yaml and DIR/sandbox.d instead\n"
        "  --help             this text\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox config check\n"
        "  hermes-sandbox config check ./sandbox.yaml && sudo install -m 644 ./sandbox.yaml "
        "/etc/hermes-sandbox/\n"
        "  hermes-sandbox config show | grep memory_limit\n";

struct sources {
        const char *file; /* NULL: the folder's files */
        const char *dir;  /* NULL: the system's */
};

static int usage(FILE *err, const char *problem, const char *what) {
        fprintf(err, PROGRAM ": %s%s: try " PROGRAM " --help\n", problem, what);
        return EXIT_USAGE;
}

/* Loads into *ret; *ret_name is what was read, free()d by the caller. */
static int load(const struct sources *s, struct config **ret, char **ret_name, struct errmsg *e) {
        _cleanup_free_ char *path = NULL, *dropins = NULL;
        int r;

        if (s->file) {
                path = strdup(s->file);
        } else if (s->dir) {
                if (asprintf(&path, "%s/sandbox.yaml", s->dir) < 0)
                        path = NULL;
                if (asprintf(&dropins, "%s/sandbox.d", s->dir) < 0)
                        dropins = NULL;
        } else {
                path = strdup(CONFIG_PATH);
                dropins = strdup(CONFIG_DROPIN_DIR);
        }
        if (!path || (!s->file && !dropins))
                return errmsg_set(e, -ENOMEM, "out of memory");
        r = config_load_files(path, dropins, !s->file, ret, e);
        if (r < 0)
                return r;
        *ret_name = path;
        path = NULL;
        return 0;
}

static void say_line(void *userdata, const char *line) {
        fprintf(userdata, "%s\n", line);
}

static int check(const struct config *c, const char *name, FILE *out) {
        fprintf(out, "OK %s: %zu profile%s (", name, c->n_profiles, c->n_profiles == 1 ? "" : "s");
        for (size_t i = 0; i < c->n_profiles; i++)
                fprintf(out, "%s%s", i ? ", " : "", c->profiles[i].name);
        fputs(")\n", out);
        config_unenforced(c, say_line, out);
        return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

static int show(const struct config *c, const char *name, FILE *out) {
        (void)name;
        return config_show(c, out);
}

static const struct {
        const char *name;
        int (*run)(const struct config *c, const char *name, FILE *out);
} commands[] = {
        { "check", check },
        { "show", show },
};

static int run(const char *command, const struct sources *s, FILE *out, FILE *err) {
        _cleanup_free_ char *name = NULL;
        struct config *c;
        struct errmsg e;
        size_t i = 0;
        int r;

        while (i < sizeof(commands) / sizeof(commands[0]) && strcmp(commands[i].name, command) != 0)
                i++;
        if (i == sizeof(commands) / sizeof(commands[0]))
                return usage(err, "no such command: ", command);
        if (load(s, &c, &name, &e) < 0) {
                fprintf(err, "%s\n", e.text);
                return EXIT_CONFIG;
        }
        r = commands[i].run(c, name, out);
        config_free(c);
        if (r < 0) {
                fprintf(err, PROGRAM ": cannot write: %s\n", strerror(-r));
                return 1;
        }
        return 0;
}

int config_command(int argc, char **argv, FILE *out, FILE *err) {
        static const struct option options[] = {
                { "config-dir", required_argument, NULL, 'd' },
                { "help", no_argument, NULL, 'h' },
                { NULL, 0, NULL, 0 },
        };
        struct sources s = { 0 };
        int c;

        optind = 0; /* glibc: start anew, so that a test can call this twice */
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
                switch (c) {
                case 'd':
                        s.dir = optarg;
                        break;
                case 'h':
                        fputs(help, out);
                        return fflush(out) != 0 || ferror(out) ? 1 : 0;
                case ':':
                        return usage(err, "a value is missing behind ", argv[optind - 1]);
                default:
                        return usage(err, "unknown option: ", argv[optind - 1]);
                }
        }
        if (argc - optind < 1)
                return usage(err, "check or show is missing", "");
        if (argc - optind > 2)
                return usage(err, "too many arguments: ", argv[optind + 2]);
        s.file = argc - optind == 2 ? argv[optind + 1] : NULL;
        if (s.file && s.dir)
                return usage(err, "--config-dir and FILE exclude each other", "");
        return run(argv[optind], &s, out, err);
}
