/* stats: counters, which the manager words. */
#include <errno.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cli/cli_opts.h"
#include "common/exitcode.h"

enum { OPT_HELP, OPT_JSON };

static const struct cli_opt stats_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

static int run_stats(const struct cli *c, int argc, char **argv) {
        struct ask a = { .op = ASK_STATS };
        struct cli_opts o;
        struct errmsg e;
        const char *value;
        int id;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, stats_opts, &value, &e)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(cli_stats_command.help);
                a.form = ANSWER_JSON;
        }
        if (id == CLI_OPTS_END && o.next < argc)
                id = errmsg_set(&e, -EINVAL, "unexpected argument '%.80s'", argv[o.next]);
        if (id != CLI_OPTS_END) {
                cli_error("stats: %s: see hermes-sandbox stats --help", e.text);
                return EXIT_USAGE;
        }
        return cli_ask_and_say(c, &a);
}

const struct cli_command cli_stats_command = {
        .name = "stats",
        .group = CLI_LOOK,
        .summary = "what has happened since the manager's start",
        .help = "usage: hermes-sandbox stats [--json]\n"
                "\n"
                "Counts since the manager's start: commands by their end, warm and cold starts, waiting,\n"
                "scrubs, and how long commands took.\n"
                "\n"
                "examples:\n"
                "  hermes-sandbox stats\n"
                "  hermes-sandbox stats --json | jq .\n",
        .run = run_stats,
};
