/* status: the manager words it, for people or as JSON; here it is asked for and laid out for a terminal. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_ask.h"
#include "cli/cli_opts.h"
#include "cli/cli_paint.h"
#include "common/exitcode.h"
#include "common/frame.h"

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

struct whole {
        char *text;
        size_t len;
};

static int keep(void *userdata, const char *text, size_t len) {
        struct whole *w = userdata;
        char *more = realloc(w->text, w->len + len + 1);

        if (!more) {
                cli_error("status: %s", strerror(ENOMEM));
                return EXIT_SANDBOX;
        }
        memcpy(more + w->len, text, len);
        w->text = more;
        w->len += len;
        return 0;
}

/* Nothing is shown of an answer that does not come whole. */
static int ask_and_paint(const struct cli *c, struct errmsg *e) {
        struct whole w = { 0 };
        uint8_t json = 0;
        int r, q;

        r = cli_ask_frame(c, FRAME_STATUS, &json, 1, -1, keep, &w, e);
        if (r == 0) {
                q = cli_paint_say(w.text, w.len);
                if (q < 0)
                        r = cli_write_failed("to the terminal", q);
        }
        free(w.text);
        return r;
}

static int run_status(const struct cli *c, int argc, char **argv) {
        static const struct cli_opt opts[] = {
                { "help", 'h', false, OPT_HELP },
                { "json", 0, false, OPT_JSON },
                { .name = "" },
        };
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
        e.text[0] = '\0';
        r = !json && isatty(STDOUT_FILENO)
                    ? ask_and_paint(c, &e)
                    : cli_ask_frame(c, FRAME_STATUS, &json, 1, -1, cli_take_say, NULL, &e);
        if (r != 0 && e.text[0] != '\0')
                cli_error("%s", e.text);
        return r;
}

const struct cli_command cli_status_command = {
        .name = "status",
        .group = CLI_LOOK,
        .summary = "what runs, and what is enforced",
        .help = status_help,
        .run = run_status,
};
