/* attach and wait: a detached command's output, as far as the sandbox keeps it, and its end. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_capture.h"
#include "cli/cli_conn.h"
#include "cli/cli_opts.h"
#include "cli/cli_run.h"
#include "cli/cli_words.h"
#include "common/exitcode.h"
#include "common/proto_session.h"

static const char attach_help[] =
        "usage: hermes-sandbox attach [OPTION]... ID\n"
        "\n"
        "Prints what the command that exec --detach has started wrote and writes, and exits with its\n"
        "exit status. Ending attach, by ^C say, leaves the command running. The last 256 KiB of each\n"
        "stream are kept; where what was asked for is kept no more, attach begins later and says so.\n"
        "\n"
        "options:\n"
        "  --offset N          begin both streams N bytes behind the command's start (default: 0);\n"
        "                      end: only what comes from now on\n"
        "  --stdout-offset N   the same for one of them; stdout_bytes of --json is where the\n"
        "  --stderr-offset N   next attach can go on\n"
        "  --json              one JSON object on stdout when the command has ended, as exec's\n"
        "\n"
        "exit status: the command's, as exec has it; 125 no such command, or the sandbox failed.\n"
        "\n"
        "examples:\n"
        "  id=$(hermes-sandbox exec --session work --detach make)\n"
        "  hermes-sandbox attach $id\n"
        "  hermes-sandbox attach $id --offset end\n"
        "  hermes-sandbox attach $id --json\n";

static const char wait_help[] =
        "usage: hermes-sandbox wait [--json] ID...\n"
        "\n"
        "Waits until each of these commands, which exec --detach has started, has ended, and exits with\n"
        "the exit status of the last one named. With --json it prints one object a line for each, as\n"
        "exec's, in which the output is null.\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox wait 5f1d0c7e92a4b386\n"
        "  hermes-sandbox wait --json $a $b | jq .exit_code\n";

enum { OPT_HELP, OPT_OFFSET, OPT_STDOUT, OPT_STDERR, OPT_JSON };

static const struct cli_opt attach_opts[] = {
        { "help", 'h', false, OPT_HELP },         { "offset", 0, true, OPT_OFFSET },
        { "stdout-offset", 0, true, OPT_STDOUT }, { "stderr-offset", 0, true, OPT_STDERR },
        { "json", 0, false, OPT_JSON },           { .name = "" },
};

static const struct cli_opt wait_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

struct words {
        const char *what;
        bool help, json;
        struct attach attach;
        char **ids;
        int n_ids;
};

static int parse_offset(const char *what, const char *s, uint64_t *ret, struct errmsg *e) {
        uint64_t v = 0;

        if (strcmp(s, "end") == 0) {
                *ret = ATTACH_END;
                return 0;
        }
        if (s[0] == '\0' || strspn(s, "0123456789") != strlen(s) || strlen(s) > 18)
                return errmsg_set(e, -EINVAL, "%s: offset '%.80s': expected a number of bytes, or end",
                                  what, s);
        for (; *s; s++)
                v = v * 10 + (uint64_t)(*s - '0');
        *ret = v;
        return 0;
}

static int take_option(struct words *w, int id, const char *value, struct errmsg *e) {
        int r = 0;

        switch (id) {
        case OPT_HELP:
                w->help = true;
                return 0;
        case OPT_OFFSET:
                r = parse_offset(w->what, value, &w->attach.offset[0], e);
                w->attach.offset[1] = w->attach.offset[0];
                return r;
        case OPT_STDOUT:
                return parse_offset(w->what, value, &w->attach.offset[0], e);
        case OPT_STDERR:
                return parse_offset(w->what, value, &w->attach.offset[1], e);
        default:
                w->json = true;
                return 0;
        }
}

static int parse(struct words *w, const struct cli_opt *opts, int argc, char **argv, struct errmsg *e) {
        struct cli_opts o;
        struct errmsg why;
        const char *value;
        int id, r;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, opts, &value, &why)) >= 0) {
                r = take_option(w, id, value, e);
                if (r < 0 || w->help)
                        return r;
        }
        if (id != CLI_OPTS_END)
                return errmsg_set(e, -EINVAL, "%s: %s: see hermes-sandbox %s --help", w->what, why.text,
                                  w->what);
        w->ids = argv + 1;
        w->n_ids = o.n_operands;
        if (w->n_ids == 0)
                return errmsg_set(e, -EINVAL, "%s: no command given: hermes-sandbox ps lists them",
                                  w->what);
        for (int i = 0; i < w->n_ids; i++) {
                r = cli_check_exec_id(w->what, w->ids[i], e);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void run(const struct cli *c, struct words *w, const char *id, struct cli_sink *sink,
                struct cli_outcome *o) {
        const struct cli_way way = { .kind = w->attach.output ? CLI_ATTACH : CLI_WAIT };
        static struct cli_conn conn;
        static struct errmsg e;
        uint8_t payload[64];
        ssize_t len;
        int r;

        w->attach.exec_id = id;
        len = attach_encode(&w->attach, payload, sizeof(payload));
        r = cli_conn_open(&conn, c, &e);
        if (r != 0) {
                cli_outcome_refused(o, r, e.text);
                return;
        }
        r = len < 0 ? (int)len : cli_conn_request(&conn, FRAME_ATTACH, payload, (size_t)len);
        if (r < 0) {
                errmsg_set(&e, 0, "cannot send to the manager: %s", strerror(-r));
                cli_outcome_refused(o, EXIT_SANDBOX, e.text);
        } else
                cli_run_way(&conn, &way, sink, o);
        close(conn.fd);
}

static int say_json(const struct cli_capture *capture, const struct cli_outcome *o) {
        int r = cli_capture_print(capture, o, "", capture != NULL, stdout);

        return r < 0 ? cli_write_failed("to stdout", r) : o->exit_code;
}

/* What the sandbox keeps no more is missed by nobody who is told. */
static void say_missing(const struct words *w, const struct cli_outcome *o) {
        static const char *const names[] = { "stdout", "stderr" };

        for (int i = 0; i < 2; i++)
                if (o->attached && w->attach.offset[i] != ATTACH_END && o->from[i] > w->attach.offset[i])
                        cli_error("attach: %" PRIu64
                                  " bytes of %s are no longer kept: it begins at %" PRIu64,
                                  o->from[i] - w->attach.offset[i], names[i], o->from[i]);
}

static int run_attach(const struct cli *c, int argc, char **argv) {
        struct words w = { .what = "attach", .attach = { .output = true } };
        struct cli_capture capture;
        struct cli_outcome o;
        struct errmsg e;
        int r = parse(&w, attach_opts, argc, argv, &e);

        if (r == 0 && w.help)
                return cli_say(attach_help);
        if (r == 0 && w.n_ids > 1)
                r = errmsg_set(&e, -EINVAL, "attach: unexpected argument '%.80s'", w.ids[1]);
        if (r < 0) {
                cli_error("%s", e.text);
                return EXIT_USAGE;
        }
        if (w.json) {
                cli_capture_init(&capture);
                run(c, &w, w.ids[0], &capture.sink, &o);
                return say_json(&capture, &o);
        }
        run(c, &w, w.ids[0], &cli_raw_sink, &o);
        say_missing(&w, &o);
        cli_outcome_say(&o);
        return o.exit_code;
}

static int run_wait(const struct cli *c, int argc, char **argv) {
        struct words w = { .what = "wait" };
        struct cli_outcome o;
        struct errmsg e;
        int r = parse(&w, wait_opts, argc, argv, &e);

        if (r < 0) {
                cli_error("%s", e.text);
                return EXIT_USAGE;
        }
        if (w.help)
                return cli_say(wait_help);
        for (int i = 0; i < w.n_ids; i++) {
                run(c, &w, w.ids[i], &cli_raw_sink, &o);
                r = o.exit_code;
                if (w.json)
                        r = say_json(NULL, &o);
                else
                        cli_outcome_say(&o);
        }
        return r;
}

const struct cli_command cli_attach_command = {
        .name = "attach",
        .group = CLI_SESSIONS,
        .summary = "output and end of a detached command",
        .help = attach_help,
        .run = run_attach,
};

const struct cli_command cli_wait_command = {
        .name = "wait",
        .group = CLI_SESSIONS,
        .summary = "wait for the end of detached commands",
        .help = wait_help,
        .run = run_wait,
};
