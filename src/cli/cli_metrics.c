/* metrics: the manager's counters, on stdout or as the answer to one HTTP request. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cli/cli_http.h"
#include "cli/cli_opts.h"
#include "common/exitcode.h"

/* A whole exchange takes no longer. What is slow behind the request, the manager or whoever reads the answer, has a
 * second more, so that a request that does not come can still be answered. */
#define HTTP_DEADLINE_S 5
/* Some 8 KiB a profile. */
#define PAGE_MAX (4u << 20)

static const char metrics_help[] =
        "usage: hermes-sandbox metrics [--http]\n"
        "\n"
        "Prints what the manager has counted since its start, as OpenMetrics text for Prometheus and\n"
        "its like.\n"
        "\n"
        "options:\n"
        "  --http  answer one HTTP request for /metrics on stdin and stdout: what\n"
        "          hermes-sandbox-metrics.socket runs\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox metrics | grep -v '^#'\n"
        "  sudo systemctl enable --now hermes-sandbox-metrics.socket\n";

enum { OPT_HELP, OPT_HTTP };

static const struct cli_opt metrics_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "http", 0, false, OPT_HTTP },
        { .name = "" },
};

struct page {
        const struct cli *c;
        struct errmsg e;
        size_t len;
        char text[PAGE_MAX];
};

static int keep(void *userdata, const char *text, size_t len) {
        struct page *p = userdata;

        if (len > sizeof(p->text) - p->len)
                return errmsg_set(&p->e, EXIT_SANDBOX, "metrics: the answer has more than %zu bytes",
                                  sizeof(p->text));
        memcpy(p->text + p->len, text, len);
        p->len += len;
        return 0;
}

static void fill(void *userdata, struct cli_http_answer *ret) {
        const struct ask a = { .op = ASK_METRICS };
        struct page *p = userdata;
        struct errmsg e;

        if (cli_ask(p->c, &a, keep, p, &e) == 0) {
                ret->status = 200;
                ret->type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        } else {
                if (e.text[0])
                        p->e = e;
                cli_error("%s", p->e.text);
                ret->status = 503;
                p->len = (size_t)snprintf(p->text, sizeof(p->text), "%s\n", p->e.text);
        }
        ret->text = p->text;
        ret->len = p->len;
}

static int serve(const struct cli *c) {
        static struct page page;
        int r;

        page.c = c;
        signal(SIGPIPE, SIG_IGN);
        alarm(HTTP_DEADLINE_S + 1);
        r = cli_http_serve(STDIN_FILENO, STDOUT_FILENO, HTTP_DEADLINE_S * 1000, "/metrics", fill, &page);
        /* One who does not wait for his answer is no failure of ours. */
        return r == -EPIPE || r == -ECONNRESET ? 0 : r < 0 ? cli_write_failed("the answer", r) : 0;
}

static int run_metrics(const struct cli *c, int argc, char **argv) {
        const struct ask a = { .op = ASK_METRICS };
        bool http = false;
        struct cli_opts o;
        struct errmsg e;
        const char *value;
        int id;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, metrics_opts, &value, &e)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(metrics_help);
                http = true;
        }
        if (id == CLI_OPTS_END && o.next < argc)
                id = errmsg_set(&e, -EINVAL, "unexpected argument '%.80s'", argv[o.next]);
        if (id != CLI_OPTS_END) {
                cli_error("metrics: %s: see hermes-sandbox metrics --help", e.text);
                return EXIT_USAGE;
        }
        return http ? serve(c) : cli_ask_and_say(c, &a);
}

const struct cli_command cli_metrics_command = {
        .name = "metrics",
        .group = CLI_LOOK,
        .summary = "the same for Prometheus and its like",
        .help = metrics_help,
        .run = run_metrics,
};
