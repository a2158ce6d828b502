/* session open, list and the others: each is one question to the manager, which words the answer. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cli/cli_opts.h"
#include "cli/cli_session_open.h"
#include "cli/cli_words.h"
#include "common/exitcode.h"

static const char session_help[] =
        "usage: hermes-sandbox session open [OPTION]... [NAME]\n"
        "       hermes-sandbox session list [--all] [--json]\n"
        "       hermes-sandbox session inspect [--json] SESSION\n"
        "       hermes-sandbox session stop [--grace D] [--json] SESSION...\n"
        "       hermes-sandbox session start [--json] SESSION...\n"
        "       hermes-sandbox session close [--json] SESSION...\n"
        "\n"
        "A session keeps one sandbox for commands that share its files and its background jobs:\n"
        "hermes-sandbox exec --session NAME. It is its user's alone. One in which nothing runs for\n"
        "its time to live is closed. What is closed is thrown away. SESSION is its name, or the\n"
        "first digits of its sandbox's id.\n"
        "\n"
        "open:    prints the session's name; without NAME one is made up.\n"
        "list:    your sessions.\n"
        "inspect: all that is known of one.\n"
        "stop:    ends all that runs in it, and keeps its files; nothing runs there until start.\n"
        "close:   ends all that runs in it, and throws it away.\n"
        "\n"
        "options:\n"
        "  --profile P           the sandbox's profile (default: default)\n"
        "  --ttl D               closed when nothing ran for D: 90s, 30m, 8h, 1d (default: the profile's)\n"
        "  --label K=V           shown by list; may be given 32 times\n"
        "  --mount SRC:DST[:ro]  the folder SRC of this machine at DST in the sandbox, if the\n"
        "                        administrator allows it; commands then run as you\n"
        "  -e, --env K[=V]       a variable of every command in it\n"
        "  -w, --workdir DIR     where its commands start\n"
        "  -u, --user UID:GID    whose its commands are: your own ids, or what the profile lists\n"
        "  --memory S, --cpus N, --pids-limit N, --shm-size S, --tmpfs PATH=S\n"
        "                        less than the profile gives; more is not to be had\n"
        "  --no-network          no network, where the profile has one\n"
        "  --grace D             what stop waits between TERM and KILL (default: the profile's)\n"
        "  --all                 of every user, for root\n"
        "  --json                JSON in place of text\n"
        "\n"
        "exit status: 0; 64 bad usage, or the name is taken; 69 no manager; 77 not allowed, or not\n"
        "your session; 125 no sandbox to be had, over your quota, or no such session.\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox session open work --ttl 2h --label task=42\n"
        "  hermes-sandbox exec --session work 'cd /tmp && tar x' <src.tar -i\n"
        "  hermes-sandbox session open build --mount ~/src:/src:ro --memory 64m\n"
        "  hermes-sandbox session list\n"
        "  hermes-sandbox session stop work\n"
        "  hermes-sandbox session close work\n";

enum { OPT_HELP, OPT_ALL, OPT_GRACE, OPT_JSON };

static const struct cli_opt list_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "all", 0, false, OPT_ALL },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

static const struct cli_opt stop_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "grace", 0, true, OPT_GRACE },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

static const struct cli_opt plain_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

struct words {
        bool help;
        struct ask ask;
        int n_names;
        char **names;
};

static int take_option(struct words *w, const char *what, int id, const char *value, struct errmsg *e) {
        switch (id) {
        case OPT_HELP:
                w->help = true;
                return 0;
        case OPT_ALL:
                w->ask.all = true;
                return 0;
        case OPT_GRACE:
                return cli_parse_time(what, "--grace", value, &w->ask.grace_ms, e);
        default:
                w->ask.form = ANSWER_JSON;
                return 0;
        }
}

static int parse(struct words *w, const char *what, const struct cli_opt *opts, int argc, char **argv,
                 struct errmsg *e) {
        struct cli_opts o;
        struct errmsg why;
        const char *value;
        int id, r;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, opts, &value, &why)) >= 0) {
                r = take_option(w, what, id, value, e);
                if (r < 0 || w->help)
                        return r;
        }
        if (id != CLI_OPTS_END)
                return errmsg_set(e, -EINVAL, "%s: %s: see hermes-sandbox session --help", what,
                                  why.text);
        w->n_names = o.n_operands;
        w->names = argv + 1;
        for (int i = 0; i < w->n_names; i++) {
                r = cli_check_session(what, w->names[i], e);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int run_each(const struct cli *c, struct words *w, struct errmsg *e) {
        int first = 0;

        for (int i = 0; i < w->n_names; i++) {
                int r;

                w->ask.name = w->names[i];
                r = cli_ask_and_say(c, &w->ask);
                first = first != 0 ? first : r;
        }
        e->text[0] = '\0';
        return first;
}

static int run_list(const struct cli *c, struct words *w, struct errmsg *e) {
        return cli_ask(c, &w->ask, cli_take_say, NULL, e);
}

static const struct verb {
        const char *name, *what;
        uint16_t op;
        const struct cli_opt *opts;
        int (*run)(const struct cli *c, struct words *w, struct errmsg *e);
        int min, max; /* names */
} verbs[] = {
        { "list", "session list", ASK_SESSION_LIST, list_opts, run_list, 0, 0 },
        { "inspect", "session inspect", ASK_SESSION_INFO, plain_opts, run_each, 1, 1 },
        { "stop", "session stop", ASK_SESSION_STOP, stop_opts, run_each, 1, INT_MAX },
        { "start", "session start", ASK_SESSION_START, plain_opts, run_each, 1, INT_MAX },
        { "close", "session close", ASK_SESSION_CLOSE, plain_opts, run_each, 1, INT_MAX },
        { 0 },
};

static int check_count(const struct verb *v, const struct words *w, struct errmsg *e) {
        if (w->n_names < v->min)
                return errmsg_set(e, -EINVAL, "%s: no name given: see hermes-sandbox session --help",
                                  v->what);
        if (w->n_names > v->max)
                return errmsg_set(e, -EINVAL, "%s: unexpected argument '%.80s'", v->what,
                                  w->names[v->max]);
        return 0;
}

static int run_open(const struct cli *c, int argc, char **argv) {
        static struct cli_session_open o;
        struct errmsg e;
        int r = cli_session_open_parse(&o, argc, argv, environ, &e);

        if (r == 0 && o.help)
                return cli_say(session_help);
        r = r < 0 ? EXIT_USAGE : cli_session_open_run(c, &o, &e);
        if (r != 0 && e.text[0] != '\0')
                cli_error("%s", e.text);
        return r;
}

static int run_session(const struct cli *c, int argc, char **argv) {
        const struct verb *v = verbs;
        struct words w = { 0 };
        struct errmsg e;
        int r;

        if (argc > 1 && strcmp(argv[1], "open") == 0)
                return run_open(c, argc - 1, argv + 1);
        while (argc > 1 && v->name && strcmp(v->name, argv[1]) != 0)
                v++;
        if (argc < 2 || !v->name) {
                cli_error(
                        "session: expected open, list, inspect, stop, start or close: see hermes-sandbox "
                        "session --help");
                return EXIT_USAGE;
        }
        r = parse(&w, v->what, v->opts, argc - 1, argv + 1, &e);
        if (r == 0 && w.help)
                return cli_say(session_help);
        if (r == 0)
                r = check_count(v, &w, &e);
        w.ask.op = v->op;
        r = r < 0 ? EXIT_USAGE : v->run(c, &w, &e);
        if (r != 0 && e.text[0] != '\0')
                cli_error("%s", e.text);
        return r;
}

const struct cli_command cli_session_command = {
        .name = "session",
        .group = CLI_SESSIONS,
        .summary = "open, list, stop, start and close sessions",
        .help = session_help,
        .run = run_session,
};
