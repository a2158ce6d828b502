/* ps and kill. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cli/cli_opts.h"
#include "cli/cli_words.h"
#include "common/exitcode.h"

static const char ps_help[] =
        "usage: hermes-sandbox ps [--all] [--json] [SESSION]\n"
        "\n"
        "Lists your commands, or those of one session: what runs, and of the detached ones what has\n"
        "ended, too, as long as attach and wait can find it.\n"
        "\n"
        "options:\n"
        "  --all   of every user, for root\n"
        "  --json  JSON in place of text\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox ps\n"
        "  hermes-sandbox ps work --json\n";

static const char kill_help[] =
        "usage: hermes-sandbox kill [-s SIGNAL] ID...\n"
        "\n"
        "Ends commands: each with all processes that came from it, whatever they do. With -s it only\n"
        "sends that signal to the command's process group, as ^C does.\n"
        "\n"
        "options:\n"
        "  -s, --signal SIGNAL  such as TERM, INT or 15; -TERM and -15 are understood, too\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox kill 5f1d0c7e92a4b386\n"
        "  hermes-sandbox kill -s INT 5f1d0c7e92a4b386\n";

enum { OPT_HELP, OPT_ALL, OPT_JSON, OPT_SIGNAL };

static const struct cli_opt ps_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "all", 0, false, OPT_ALL },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

static const struct cli_opt kill_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "signal", 's', true, OPT_SIGNAL },
        { .name = "" },
};

static int bad_usage(const struct errmsg *e) {
        cli_error("%s", e->text);
        return EXIT_USAGE;
}

static int run_ps(const struct cli *c, int argc, char **argv) {
        struct ask a = { .op = ASK_PS };
        struct cli_opts o;
        struct errmsg e, why;
        const char *value;
        int id;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, ps_opts, &value, &why)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(ps_help);
                a.all |= id == OPT_ALL;
                if (id == OPT_JSON)
                        a.form = ANSWER_JSON;
        }
        if (id == CLI_OPTS_END && o.n_operands > 1)
                id = errmsg_set(&why, -EINVAL, "unexpected argument '%.80s'", argv[2]);
        if (id != CLI_OPTS_END) {
                errmsg_set(&e, 0, "ps: %s: see hermes-sandbox ps --help", why.text);
                return bad_usage(&e);
        }
        if (o.n_operands > 0) {
                a.name = argv[1];
                if (cli_check_session("ps", a.name, &e) < 0)
                        return bad_usage(&e);
        }
        return cli_ask_and_say(c, &a);
}

/* "-9", "-TERM": as the shell's own kill has it. No option of ours looks like that. */
static const char *old_signal(int argc, char **argv) {
        const char *s = argc > 1 && argv[1][0] == '-' ? argv[1] + 1 : "";

        return isupper((unsigned char)s[0]) || isdigit((unsigned char)s[0]) ? s : NULL;
}

static int run_kill(const struct cli *c, int argc, char **argv) {
        struct ask a = { .op = ASK_KILL };
        const char *value = old_signal(argc, argv);
        struct cli_opts o;
        struct errmsg e, why;
        int id = 0, first = 0;

        if (value) {
                if (cli_parse_signal("kill", value, &a.signal, &e) < 0)
                        return bad_usage(&e);
                argc--;
                argv++;
        }
        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, kill_opts, &value, &why)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(kill_help);
                if (cli_parse_signal("kill", value, &a.signal, &e) < 0)
                        return bad_usage(&e);
        }
        if (id == CLI_OPTS_END && o.n_operands == 0)
                id = errmsg_set(&why, -EINVAL, "no command given");
        if (id != CLI_OPTS_END) {
                errmsg_set(&e, 0, "kill: %s: see hermes-sandbox kill --help", why.text);
                return bad_usage(&e);
        }
        for (int i = 1; i <= o.n_operands; i++)
                if (cli_check_exec_id("kill", argv[i], &e) < 0)
                        return bad_usage(&e);
        for (int i = 1; i <= o.n_operands; i++) {
                int r;

                a.name = argv[i];
                r = cli_ask_and_say(c, &a);
                first = first != 0 ? first : r;
        }
        return first;
}

const struct cli_command cli_ps_command = {
        .name = "ps",
        .group = CLI_SESSIONS,
        .summary = "your commands: what runs, and what has ended",
        .help = ps_help,
        .run = run_ps,
};

const struct cli_command cli_kill_command = {
        .name = "kill",
        .group = CLI_SESSIONS,
        .summary = "end commands, or send them a signal",
        .help = kill_help,
        .run = run_kill,
};
