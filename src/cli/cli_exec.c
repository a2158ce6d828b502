/* exec: arguments, one request and its end, the exit status. */
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
#include "cli/cli_tty.h"
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
        "  --session NAME      in the sandbox of that session, beside what runs there\n"
        "  --open              open the session if there is none of that name\n"
        "  -d, --detach        in a session: print the command's id and leave it running, see\n"
        "                      hermes-sandbox help attach\n"
        "  -e, --env K[=V]     set a variable; K alone takes its value from here, if it is set here\n"
        "  -w, --workdir DIR   working directory in the sandbox, absolute\n"
        "  -i, --stdin         pass stdin on; without it the command reads /dev/null\n"
        "  -t, --tty           a terminal for the command; -it for one that you type into\n"
        "  --script FILE       the line for sh -c is FILE's contents (-: stdin's), however long\n"
        "  -u, --user U[:G]    as that user, in numbers, where the profile lists it (users:)\n"
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
        "  hermes-sandbox exec --session work --open 'echo kept >/tmp/file'\n"
        "  hermes-sandbox exec --session work --detach 'make >/tmp/log'\n"
        "  hermes-sandbox exec --session work -it bash\n"
        "  hermes-sandbox exec --json 'exit 3'\n";

/* What fd 0 is to a command on a terminal, and how large that is. 0, or -EINVAL and a line in *e. */
static int look_at_terminal(struct cli_exec_args *a, struct errmsg *e) {
        if (a->input && !isatty(STDIN_FILENO))
                return errmsg_set(
                        e, -EINVAL,
                        "exec: -it: stdin is no terminal: give -i alone to pass it on, or -t alone for a "
                        "terminal that nobody types into");
        cli_tty_size(&a->request.rows, &a->request.cols);
        return 0;
}

static void run(const struct cli *c, const struct cli_exec_args *a, struct cli_sink *sink,
                struct cli_outcome *o) {
        const struct cli_way way = {
                .kind = a->request.detach ? CLI_DETACH : CLI_EXEC,
                .use_stdin = a->input,
                .no_input = a->request.tty && !a->input,
                .tty = a->request.tty,
                .rows = a->request.rows,
                .cols = a->request.cols,
        };

        cli_exec_send(c, &a->request, &way, sink, o);
}

static int say_id(const struct cli_outcome *o) {
        char line[PROTO_EXEC_ID + 2];

        snprintf(line, sizeof(line), "%s\n", o->exec_id);
        return cli_say(line);
}

static int run_json(const struct cli *c, const struct cli_exec_args *a, struct cli_outcome *o) {
        struct cli_capture capture;
        int r;

        cli_capture_init(&capture);
        run(c, a, &capture.sink, o);
        r = cli_capture_print(&capture, o, a->request.session, false, stdout);
        return r < 0 ? cli_write_failed("to stdout", r) : o->exit_code;
}

static int run_exec(const struct cli *c, int argc, char **argv) {
        struct cli_exec_args a;
        struct cli_outcome o;
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
        if (a.request.tty && look_at_terminal(&a, &e) < 0) {
                cli_error("%s", e.text);
                return EXIT_USAGE;
        }
        if (a.json)
                return run_json(c, &a, &o);
        run(c, &a, a.request.tty ? &cli_terminal_sink : &cli_raw_sink, &o);
        cli_outcome_say(&o);
        if (o.end == CLI_END_DETACHED)
                return say_id(&o);
        return o.exit_code;
}

const struct cli_command cli_exec_command = {
        .name = "exec",
        .group = CLI_RUN,
        .summary = "run a command in a sandbox",
        .help = exec_help,
        .run = run_exec,
};
