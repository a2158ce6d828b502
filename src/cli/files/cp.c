/* cp: which way it goes, and what may not be. */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cli_opts.h"
#include "cli/cli_words.h"
#include "cli/files/files.h"
#include "common/exitcode.h"
#include "common/pack.h"

static const char cp_help[] =
        "usage: hermes-sandbox cp [OPTION]... SOURCE... SESSION:PATH\n"
        "       hermes-sandbox cp [OPTION]... SESSION:SOURCE... PATH\n"
        "       hermes-sandbox cp [OPTION]... - SESSION:FILE\n"
        "\n"
        "Copies files and whole folders into a session's sandbox, or out of it. A PATH that is a folder\n"
        "is copied into, any other one is the new name. In the sandbox a path is relative to where its\n"
        "commands start. A ':' behind a '/' belongs to a name: ./a:b is a file here. - is stdin.\n"
        "\n"
        "Bytes, holes, modes and times are kept. A file is there when it is whole, or not at all. Links\n"
        "stay links on the way in; on the way out they are left out, as are set-user-id bits, and devices,\n"
        "pipes and sockets both ways.\n"
        "\n"
        "options:\n"
        "  -r                  nothing: folders are always copied whole\n"
        "  --max-size SIZE     take at most so much out, 4 KiB for each file included: 500M, 2G or bytes\n"
        "                      (default: half of what is free where it goes)\n"
        "  --timeout D         end it after D: 500ms, 2s, 5m, 1h or plain seconds (default: never)\n"
        "\n"
        "exit status: 0; 1 something was left out; else as exec's: 64, 69, 77, 124, 125.\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox cp -r src Makefile build1:\n"
        "  hermes-sandbox cp build1:dist/app.tar.gz .\n"
        "  git archive HEAD | hermes-sandbox cp - build1:/tmp/head.tar\n";

enum { OPT_HELP, OPT_NOTHING, OPT_MAX_SIZE, OPT_TIMEOUT };

static const struct cli_opt cp_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "recursive", 'r', false, OPT_NOTHING },
        { "max-size", 0, true, OPT_MAX_SIZE },
        { "timeout", 0, true, OPT_TIMEOUT },
        { .name = "" },
};

/* "500M", "2G", plain bytes. */
static int parse_size(const char *s, uint64_t *ret, struct errmsg *e) {
        static const struct {
                const char *unit;
                unsigned shift;
        } units[] = { { "", 0 },   { "k", 10 }, { "K", 10 }, { "m", 20 }, { "M", 20 },
                      { "g", 30 }, { "G", 30 }, { "t", 40 }, { "T", 40 } };
        size_t digits = strspn(s, "0123456789");
        uint64_t v = 0;

        for (size_t i = 0; i < digits && digits <= 15; i++)
                v = v * 10 + (uint64_t)(s[i] - '0');
        for (size_t i = 0; v > 0 && i < sizeof(units) / sizeof(units[0]); i++)
                if (strcmp(s + digits, units[i].unit) == 0 && v <= UINT64_MAX >> units[i].shift) {
                        *ret = v << units[i].shift;
                        return 0;
                }
        return errmsg_set(e, -EINVAL,
                          "cp: --max-size '%.80s': expected bytes, or a number with K, M, G or T", s);
}

/* Of two sources with one name, one would be lost. */
static int check_names(struct files_copy *copy, struct errmsg *e) {
        static const char *names[PROTO_ARGS_MAX];
        static char store[PROTO_ARGS_MAX][ARCHIVE_NAME_MAX + 1];

        for (int i = 0; i < copy->n_sources; i++) {
                const char *source = copy->sources[i];

                names[i] = pack_name(files_is_place(source) ? strchr(source, ':') + 1 : source,
                                     store[i]);
                for (int k = 0; names[i] && names[i][0] && k < i; k++)
                        if (names[k] && strcmp(names[k], names[i]) == 0)
                                return errmsg_set(e, -EINVAL,
                                                  "cp: '%.80s' and '%.80s' have the same name",
                                                  copy->sources[k], copy->sources[i]);
        }
        return 0;
}

static int words_in(struct files_copy *copy, struct errmsg *e) {
        bool stream = false;

        for (int i = 0; i < copy->n_sources; i++) {
                if (files_is_place(copy->sources[i]))
                        return errmsg_set(
                                e, -EINVAL,
                                "cp: from a sandbox into a sandbox: expected one of them here");
                if (strcmp(copy->sources[i], "-") == 0)
                        stream = true;
        }
        if (stream && copy->n_sources > 1)
                return errmsg_set(e, -EINVAL, "cp: - and other sources: expected one of them");
        if (files_add(&copy->words, "cp", "put", e) < 0)
                return -EINVAL;
        if (stream || copy->n_sources > 1)
                files_add(&copy->words, "cp", stream ? "-s" : "-m", e);
        return files_add_place(&copy->words, "cp", copy->target, e);
}

static int words_out(struct files_copy *copy, struct errmsg *e) {
        if (strcmp(copy->target, "-") == 0)
                return errmsg_set(e, -EINVAL, "cp: to -: use hermes-sandbox cat");
        files_add(&copy->words, "cp", "get", e);
        for (int i = 0; i < copy->n_sources; i++) {
                if (!files_is_place(copy->sources[i]))
                        return errmsg_set(
                                e, -EINVAL,
                                "cp: neither '%.80s' nor '%.80s' is SESSION:PATH: one of them has to be",
                                copy->sources[i], copy->target);
                if (files_add_place(&copy->words, "cp", copy->sources[i], e) < 0)
                        return -EINVAL;
        }
        return 0;
}

static int operands(struct files_copy *copy, char **argv, int n, struct errmsg *e) {
        if (n < 2)
                return errmsg_set(e, -EINVAL,
                                  "cp: expected a source and a target: see hermes-sandbox cp --help");
        if (n > PROTO_ARGS_MAX)
                return errmsg_set(e, -EINVAL, "cp: too many operands");
        copy->sources = argv;
        copy->n_sources = n - 1;
        copy->target = argv[n - 1];
        if (files_is_place(copy->target) ? words_in(copy, e) < 0 : words_out(copy, e) < 0)
                return -EINVAL;
        return check_names(copy, e);
}

static int run_cp(const struct cli *c, int argc, char **argv) {
        static struct files_copy copy;
        const char *value;
        struct cli_opts o;
        struct errmsg e, why;
        int id;

        copy.run.verb = "cp";
        copy.run.words = &copy.words;
        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, cp_opts, &value, &why)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(cp_help);
                if (id == OPT_MAX_SIZE && parse_size(value, &copy.max_bytes, &e) < 0)
                        return files_bad_usage(&e);
                if (id == OPT_TIMEOUT &&
                    cli_parse_time("cp", "--timeout", value, &copy.run.timeout_ms, &e) < 0)
                        return files_bad_usage(&e);
        }
        if (id != CLI_OPTS_END) {
                errmsg_set(&e, 0, "cp: %s: see hermes-sandbox cp --help", why.text);
                return files_bad_usage(&e);
        }
        if (operands(&copy, argv + 1, o.n_operands, &e) < 0)
                return files_bad_usage(&e);
        return files_is_place(copy.target) ? files_put(&copy, c) : files_get(&copy, c);
}

const struct cli_command cli_cp_command = {
        .name = "cp",
        .group = CLI_FILES,
        .summary = "copy files into a session's sandbox, or out of it",
        .help = cp_help,
        .run = run_cp,
};
