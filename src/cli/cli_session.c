/* session open, list and close: each is one question to the manager, which words the answer. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cli/cli_mount.h"
#include "cli/cli_opts.h"
#include "cli/cli_words.h"
#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/frame.h"
#include "common/proto_open.h"

static const char session_help[] =
        "usage: hermes-sandbox session open [OPTION]... [NAME]\n"
        "       hermes-sandbox session list [--all] [--json]\n"
        "       hermes-sandbox session close [--json] NAME...\n"
        "\n"
        "A session keeps one sandbox for commands that share its files and its background jobs:\n"
        "hermes-sandbox exec --session NAME. It is its user's alone. One in which nothing runs for\n"
        "its time to live is closed. What is closed is thrown away.\n"
        "\n"
        "open:  prints the session's name; without NAME one is made up.\n"
        "list:  your sessions.\n"
        "close: ends all that runs in them, too.\n"
        "\n"
        "options:\n"
        "  --profile P           the sandbox's profile (default: default)\n"
        "  --ttl D               closed when nothing ran for D: 90s, 30m, 8h, 1d (default: the profile's)\n"
        "  --label K=V           shown by list; may be given 32 times\n"
        "  --mount SRC:DST[:ro]  the folder SRC of this machine at DST in the sandbox, if the\n"
        "                        administrator allows it; commands then run as you\n"
        "  --all                 of every user, for root\n"
        "  --json                JSON in place of text\n"
        "\n"
        "exit status: 0; 64 bad usage, or the name is taken; 69 no manager; 77 not allowed, or not\n"
        "your session; 125 no sandbox to be had, over your quota, or no such session.\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox session open work --ttl 2h --label task=42\n"
        "  hermes-sandbox exec --session work 'cd /tmp && tar x' <src.tar -i\n"
        "  hermes-sandbox session open build --mount ~/src:/src:ro\n"
        "  hermes-sandbox session list\n"
        "  hermes-sandbox session close work\n";

enum { OPT_HELP, OPT_PROFILE, OPT_TTL, OPT_LABEL, OPT_MOUNT, OPT_ALL, OPT_JSON };

static const struct cli_opt open_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "profile", 0, true, OPT_PROFILE },
        { "ttl", 0, true, OPT_TTL },
        { "label", 0, true, OPT_LABEL },
        { "mount", 0, true, OPT_MOUNT },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

static const struct cli_opt list_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "all", 0, false, OPT_ALL },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

static const struct cli_opt close_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

struct words {
        bool help;
        struct ask ask;
        struct open_request open;
        struct cli_mounts mounts;
        int n_names;
        char **names;
};

static int take_option(struct words *w, const char *what, int id, const char *value, struct errmsg *e) {
        struct open_request *a = &w->open;

        switch (id) {
        case OPT_HELP:
                w->help = true;
                return 0;
        case OPT_PROFILE:
                a->profile = value;
                return cli_check_profile(what, value, e);
        case OPT_TTL:
                return cli_parse_time(what, "--ttl", value, &a->ttl_ms, e);
        case OPT_LABEL:
                if (a->n_labels == PROTO_LABELS_MAX)
                        return errmsg_set(e, -EINVAL, "%s: more than %d times --label", what,
                                          PROTO_LABELS_MAX);
                a->labels[a->n_labels++] = value;
                return cli_check_label(what, value, e);
        case OPT_MOUNT:
                return cli_mounts_add(&w->mounts, what, value, e);
        case OPT_ALL:
                w->ask.all = true;
                return 0;
        default:
                a->form = w->ask.form = ANSWER_JSON;
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

static int run_open(const struct cli *c, struct words *w, struct errmsg *e) {
        static uint8_t payload[FRAME_PAYLOAD_MAX];
        _cleanup_fd_ int fd = -1;
        ssize_t len;
        int r;

        w->open.name = w->n_names > 0 ? w->names[0] : "";
        if (w->mounts.n > 0) {
                r = cli_mounts_open(&w->mounts, "session open", &fd, e);
                if (r != 0)
                        return r;
        }
        w->open.mounts = fd >= 0;
        len = open_request_encode(&w->open, payload, sizeof(payload));
        if (len < 0)
                return errmsg_set(e, EXIT_USAGE, "session open: the request is longer than %zu bytes",
                                  sizeof(payload));
        return cli_ask_frame(c, FRAME_OPEN, payload, (size_t)len, fd, cli_take_say, NULL, e);
}

static int run_close(const struct cli *c, struct words *w, struct errmsg *e) {
        int first = 0;

        w->ask.op = ASK_SESSION_CLOSE;
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
        w->ask.op = ASK_SESSION_LIST;
        return cli_ask(c, &w->ask, cli_take_say, NULL, e);
}

static const struct verb {
        const char *name, *what;
        const struct cli_opt *opts;
        int (*run)(const struct cli *c, struct words *w, struct errmsg *e);
        int min, max; /* names */
} verbs[] = {
        { "open", "session open", open_opts, run_open, 0, 1 },
        { "list", "session list", list_opts, run_list, 0, 0 },
        { "close", "session close", close_opts, run_close, 1, INT_MAX },
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

static int run_session(const struct cli *c, int argc, char **argv) {
        const struct verb *v = verbs;
        struct words w = { 0 };
        struct errmsg e;
        int r;

        while (argc > 1 && v->name && strcmp(v->name, argv[1]) != 0)
                v++;
        if (argc < 2 || !v->name) {
                cli_error("session: expected open, list or close: see hermes-sandbox session --help");
                return EXIT_USAGE;
        }
        r = parse(&w, v->what, v->opts, argc - 1, argv + 1, &e);
        if (r == 0 && w.help)
                return cli_say(session_help);
        if (r == 0)
                r = check_count(v, &w, &e);
        r = r < 0 ? EXIT_USAGE : v->run(c, &w, &e);
        if (r != 0 && e.text[0] != '\0')
                cli_error("%s", e.text);
        return r;
}

const struct cli_command cli_session_command = {
        .name = "session",
        .group = CLI_SESSIONS,
        .summary = "open, list and close sessions",
        .help = session_help,
        .run = run_session,
};
