/*
 * exec: arguments, one connection, one request, the loop, the exit status. What is large is static, and
 * used only by a large command: each page that is touched for the first time costs microseconds, so that a short one
 * gets by with the stack.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_capture.h"
#include "cli/cli_conn.h"
#include "cli/cli_exec_args.h"
#include "cli/cli_run.h"
#include "cli/cli_script.h"
#include "common/exitcode.h"

static const char exec_help[] =
        "usage: hermes-sandbox exec [OPTION]... CMD\n"
        "       hermes-sandbox exec [OPTION]... [--] PROGRAM ARGUMENT...\n"
        "\n"
        "Runs a command in a sandbox and exits with its exit status. One operand is a line for\n"
        "sh -c; two or more, or any after --, are a program and its arguments as they stand.\n"
        "Options end at the first operand.\n"
        "\n"
        "options:\n"
        "  --profile P         the sandbox's profile (default: default)\n"
        "  -e, --env K[=V]     set a variable; K alone takes its value from here, if it is set here\n"
        "  -w, --workdir DIR   working directory in the sandbox, absolute\n"
        "  -i, --stdin         pass stdin on; without it the command reads /dev/null\n"
        "  --script FILE       the line for sh -c is FILE's contents (-: stdin's), however long\n"
        "  --timeout D         end the command after D: 500ms, 2s, 5m, 1h or plain seconds\n"
        "  --json              one JSON object on stdout: exit code, cause, times, output\n"
        "\n"
        "exit status: the command's own; 124 timed out; 125 the sandbox failed; 126 not executable;\n"
        "127 not found; 128+N ended by signal N; 64 bad usage or too long a command; 69 no manager;\n"
        "77 not allowed; 78 bad config.\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox exec 'ls -l /tmp | wc -l'\n"
        "  hermes-sandbox exec python3 -c 'print(1)'\n"
        "  hermes-sandbox exec -- ls\n"
        "  hermes-sandbox exec --timeout 10s -e LANG -w /tmp 'make test'\n"
        "  hermes-sandbox exec --script build.sh\n"
        "  tar c . | hermes-sandbox exec -i 'tar t'\n"
        "  hermes-sandbox exec --json 'exit 3'\n";

static int fd_of(uint8_t stream) {
        return stream == STREAM_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
}

static int output_failed(uint8_t stream, int r) {
        return cli_write_failed(
                stream == STREAM_STDOUT ? "the command's stdout" : "the command's stderr", r);
}

/* Output as it comes, to our own stdout and stderr. */
static int take_raw(struct cli_sink *s, uint8_t stream, const void *p, size_t len) {
        int r = cli_write_all(fd_of(stream), p, len);

        (void)s;
        return r < 0 ? output_failed(stream, r) : 0;
}

static bool moves_raw(uint8_t stream) {
        return cli_write_is_pipe(fd_of(stream));
}

static int move_raw(uint8_t stream, int from, size_t len, size_t *ret_moved) {
        ssize_t n = cli_write_move(fd_of(stream), from, len);

        if (n == 0 || n == -ECONNRESET)
                return -ECONNRESET;
        if (n < 0 && n != -EAGAIN)
                return output_failed(stream, (int)n);
        *ret_moved = n > 0 ? (size_t)n : 0;
        return 0;
}

/* A refusal, ours or the manager's, as an outcome. */
static void refused(struct cli_outcome *o, int exit_code, const char *message) {
        memset(o, 0, sizeof(*o));
        o->end = CLI_END_REJECT;
        o->exit_code = exit_code;
        o->reject.exit_code = (uint8_t)exit_code;
        o->reject.message = message;
}

static void run(const struct cli *c, const struct cli_exec_args *a, struct cli_sink *sink,
                struct cli_outcome *o) {
        static uint8_t large[PROTO_EXEC_MAX];
        static struct cli_conn conn;
        static struct errmsg e;
        uint8_t small[1024];
        uint8_t *payload = small;
        ssize_t len = exec_request_encode(&a->request, small, sizeof(small));
        int r;

        if (len < 0) {
                payload = large;
                len = exec_request_encode(&a->request, large, sizeof(large));
        }
        if (len < 0) {
                errmsg_set(&e, 0, "the command and its environment have %zu bytes, at most %u",
                           exec_request_size(&a->request), PROTO_EXEC_MAX);
                refused(o, EXIT_USAGE, e.text);
                return;
        }
        r = cli_conn_open(&conn, c, &e);
        if (r != 0) {
                refused(o, r, e.text);
                return;
        }
        r = cli_conn_request(&conn, FRAME_EXEC, payload, (size_t)len);
        if (r < 0) {
                errmsg_set(&e, 0, "cannot send to the manager: %s", strerror(-r));
                refused(o, EXIT_SANDBOX, e.text);
                return;
        }
        cli_run(&conn, a->request.use_stdin, sink, o);
}

static void say_end(const struct cli_outcome *o) {
        switch (o->end) {
        case CLI_END_RESULT:
                if (o->result.message[0] != '\0')
                        cli_error("%s", o->result.message);
                return;
        case CLI_END_REJECT:
                cli_error("%s", o->reject.message);
                return;
        case CLI_END_LOST:
                cli_error("%s", o->error.text);
                return;
        case CLI_END_SINK:
                return;
        }
}

static int run_json(const struct cli *c, const struct cli_exec_args *a, struct cli_outcome *o) {
        struct cli_capture capture;
        int r;

        cli_capture_init(&capture);
        run(c, a, &capture.sink, o);
        r = cli_capture_print(&capture, o, stdout);
        return r < 0 ? cli_write_failed("to stdout", r) : o->exit_code;
}

static int run_exec(const struct cli *c, int argc, char **argv) {
        struct cli_exec_args a;
        struct cli_outcome o;
        struct cli_sink raw = { .take = take_raw, .moves = moves_raw, .move = move_raw };
        struct errmsg e;

        if (cli_exec_args_parse(&a, argc, argv, environ, &e) < 0) {
                cli_error("%s", e.text);
                return EXIT_USAGE;
        }
        if (a.help)
                return cli_say(exec_help);
        if (a.script) {
                const char *text;

                if (cli_script_read(a.script, &text, &e) < 0) {
                        cli_error("%s", e.text);
                        return EXIT_USAGE;
                }
                cli_exec_args_set_script(&a, text);
        }
        if (a.json)
                return run_json(c, &a, &o);
        run(c, &a, &raw, &o);
        say_end(&o);
        return o.exit_code;
}

const struct cli_command cli_exec_command = {
        .name = "exec",
        .summary = "run a command in a sandbox",
        .help = exec_help,
        .run = run_exec,
};
