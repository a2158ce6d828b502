/* status: the manager words it, for people or as JSON; here it is only asked for and passed on. */
#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

#include "cli/cli_conn.h"
#include "cli/cli_opts.h"
#include "common/exitcode.h"
#include "common/proto.h"

enum { OPT_HELP, OPT_JSON };

static const char status_help[] =
        "usage: hermes-sandbox status [--json]\n"
        "\n"
        "Says what the manager, its pool and its engine do, and layer by layer what is\n"
        "really enforced.\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox status\n"
        "  hermes-sandbox status --json\n";

/* -1: more is to come; else the exit status. */
static int on_frame(const struct frame *f) {
        struct reject reject;
        int r;

        if (f->type == FRAME_REJECT && reject_decode(f->payload, f->len, &reject) == 0) {
                cli_error("%s", reject.message);
                return reject.exit_code;
        }
        if (f->type != FRAME_STATUS || f->channel != CLI_CHANNEL) {
                cli_error("protocol error: the manager's answer is no status");
                return EXIT_SANDBOX;
        }
        r = cli_write_all(STDOUT_FILENO, f->payload, f->len);
        if (r < 0)
                return cli_write_failed("to stdout", r);
        return f->flags & FRAME_MORE ? -1 : 0;
}

static int ask(struct cli_conn *conn, uint8_t json) {
        struct errmsg e;
        struct frame f;
        int code, r = cli_conn_request(conn, FRAME_STATUS, &json, 1);

        if (r == 0)
                r = 1;
        while (r > 0) {
                r = cli_conn_fill(conn, SIZE_MAX, 0);
                if (r <= 0)
                        break;
                while ((r = cli_conn_next(conn, &f, &e)) > 0) {
                        code = on_frame(&f);
                        if (code >= 0)
                                return code;
                }
                if (r < 0) {
                        cli_error("%s", e.text);
                        return EXIT_SANDBOX;
                }
                r = 1;
        }
        cli_error("lost the manager%s%s", r < 0 ? ": " : "", r < 0 ? strerror(-r) : "");
        return EXIT_SANDBOX;
}

static int run_status(const struct cli *c, int argc, char **argv) {
        static const struct cli_opt opts[] = {
                { "help", 'h', false, OPT_HELP },
                { "json", 0, false, OPT_JSON },
                { 0 },
        };
        static struct cli_conn conn;
        struct cli_opts o;
        struct errmsg e;
        const char *value;
        uint8_t json = 0;
        int id, r;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, opts, &value, &e)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(status_help);
                json = 1;
        }
        if (id != CLI_OPTS_END || o.next < argc) {
                if (id == CLI_OPTS_END)
                        errmsg_set(&e, 0, "unexpected argument '%.80s'", argv[o.next]);
                cli_error("status: %s: see hermes-sandbox status --help", e.text);
                return EXIT_USAGE;
        }
        r = cli_conn_open(&conn, c, &e);
        if (r != 0) {
                cli_error("%s", e.text);
                return r;
        }
        r = ask(&conn, json);
        close(conn.fd);
        return r;
}

const struct cli_command cli_status_command = {
        .name = "status",
        .summary = "what runs, and what is enforced",
        .help = status_help,
        .run = run_status,
};
