/* cat and rm: words for the tool, and what it says. */
#include "cli/cli.h"
#include "cli/cli_opts.h"
#include "cli/cli_words.h"
#include "cli/files/files.h"
#include "common/exitcode.h"

static const char cat_help[] =
        "usage: hermes-sandbox cat [--timeout D] SESSION:PATH...\n"
        "\n"
        "Writes files of a session's sandbox to stdout, byte for byte.\n"
        "\n"
        "options:\n"
        "  --timeout D         end it after D: 500ms, 2s, 5m, 1h or plain seconds (default: never)\n"
        "\n"
        "exit status: 0; 1 something could not be read; else as exec's: 64, 69, 77, 124, 125.\n"
        "\n"
        "example:\n"
        "  hermes-sandbox cat build1:log/test.log | tail\n";

static const char rm_help[] =
        "usage: hermes-sandbox rm [-r] [-f] SESSION:PATH...\n"
        "\n"
        "Removes files of a session's sandbox. Links are removed and never followed.\n"
        "\n"
        "options:\n"
        "  -r                  folders, too, and all that is in them\n"
        "  -f                  what is not there is no failure\n"
        "\n"
        "exit status: 0; 1 something could not be removed; else as exec's: 64, 69, 77, 125.\n"
        "\n"
        "example:\n"
        "  hermes-sandbox rm -rf build1:dist build1:/tmp/head.tar\n";

enum { OPT_HELP, OPT_TIMEOUT, OPT_RECURSIVE, OPT_FORCE };

static const struct cli_opt cat_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "timeout", 0, true, OPT_TIMEOUT },
        { .name = "" },
};

static const struct cli_opt rm_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "recursive", 'r', false, OPT_RECURSIVE },
        { "force", 'f', false, OPT_FORCE },
        { .name = "" },
};

static struct files_words words;

/* Options were read; @id is what ended them. The places are added, and the tool runs. */
static int finish(struct files_run *r, const struct cli *c, const struct cli_opts *o, int id,
                  const struct errmsg *why) {
        struct errmsg e;
        int status;

        if (id != CLI_OPTS_END || o->n_operands == 0) {
                errmsg_set(&e, 0, "%s: %s: see hermes-sandbox %s --help", r->verb,
                           id != CLI_OPTS_END ? why->text : "expected SESSION:PATH", r->verb);
                return files_bad_usage(&e);
        }
        for (int i = 1; i <= o->n_operands; i++)
                if (files_add_place(&words, r->verb, o->argv[i], &e) < 0)
                        return files_bad_usage(&e);
        status = files_connect(r, c);
        return status != 0 ? status : files_go(r);
}

static int run_cat(const struct cli *c, int argc, char **argv) {
        static struct files_run r;
        const char *value;
        struct cli_opts o;
        struct errmsg e;
        int id;

        r.verb = "cat";
        r.words = &words;
        files_add(&words, "cat", "cat", &e);
        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, cat_opts, &value, &e)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(cat_help);
                if (cli_parse_time("cat", "--timeout", value, &r.timeout_ms, &e) < 0)
                        return files_bad_usage(&e);
        }
        return finish(&r, c, &o, id, &e);
}

static int run_rm(const struct cli *c, int argc, char **argv) {
        static struct files_run r;
        bool recursive = false, force = false;
        const char *value;
        struct cli_opts o;
        struct errmsg e, full;
        int id;

        r.verb = "rm";
        r.words = &words;
        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, rm_opts, &value, &e)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(rm_help);
                recursive |= id == OPT_RECURSIVE;
                force |= id == OPT_FORCE;
        }
        files_add(&words, "rm", "rm", &full);
        if (recursive)
                files_add(&words, "rm", "-r", &full);
        if (force)
                files_add(&words, "rm", "-f", &full);
        files_add(&words, "rm", "--", &full);
        return finish(&r, c, &o, id, &e);
}

const struct cli_command cli_cat_command = {
        .name = "cat",
        .group = CLI_FILES,
        .summary = "print files of a session's sandbox",
        .help = cat_help,
        .run = run_cat,
};

const struct cli_command cli_rm_command = {
        .name = "rm",
        .group = CLI_FILES,
        .summary = "remove files of a session's sandbox",
        .help = rm_help,
        .run = run_rm,
};
