/* The command line: which words mean what, the exact lines for wrong ones, and durations. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli_conn.h"
#include "cli/cli_exec_args.h"
#include "cli/cli_opts.h"

#define WORDS(...) ((char *[]){ (char[]){ "exec" }, __VA_ARGS__, NULL })
#define W(s) ((char[]){ s })

static struct cli_exec_args a;
static char *env[] = { (char[]){ "HOME=/h" }, (char[]){ "EMPTY=" }, (char[]){ "HOMER=no" },
                       (char[]){ "TERM=test-9" }, NULL };

static int parse(char **argv, struct errmsg *e) {
        int argc = 0;

        while (argv[argc])
                argc++;
        return cli_exec_args_parse(&a, argc, argv, env, e);
}

static void test_operands(void **state) {
        struct errmsg e;

        (void)state;
        assert_int_equal(parse(WORDS(W("ls -l")), &e), 0);
        assert_true(a.request.shell);
        assert_int_equal(a.request.n_args, 1);
        assert_string_equal(a.request.args[0], "ls -l");
        assert_string_equal(a.request.profile, "");
        assert_string_equal(a.request.workdir, "");
        assert_false(a.request.use_stdin || a.json);
        assert_int_equal(a.request.timeout_ms, 0);

        assert_int_equal(parse(WORDS(W("--"), W("ls")), &e), 0);
        assert_false(a.request.shell);
        assert_int_equal(a.request.n_args, 1);

        assert_int_equal(parse(WORDS(W("ls"), W("--json"), W("-i"), W("--")), &e), 0);
        assert_false(a.request.shell || a.json || a.request.use_stdin);
        assert_int_equal(a.request.n_args, 4);
        assert_string_equal(a.request.args[3], "--");

        assert_int_equal(parse(WORDS(W("--"), W("--json")), &e), 0);
        assert_string_equal(a.request.args[0], "--json");
        assert_false(a.json);

        assert_int_equal(parse(WORDS(W("")), &e), 0);
        assert_true(a.request.shell);
        assert_int_equal(parse(WORDS(W("-")), &e), 0);
        assert_true(a.request.shell);
}

static void test_options(void **state) {
        struct errmsg e;

        (void)state;
        assert_int_equal(parse(WORDS(W("--json"), W("--profile=dev"), W("-ie"), W("A=1=2"), W("-eHOME"),
                                     W("-e"), W("NOT_SET"), W("--env=EMPTY"), W("-w"), W("/tmp"),
                                     W("--timeout"), W("500ms"), W("x")),
                               &e),
                         0);
        assert_true(a.json && a.request.use_stdin);
        assert_string_equal(a.request.profile, "dev");
        assert_string_equal(a.request.workdir, "/tmp");
        assert_int_equal(a.request.timeout_ms, 500);
        assert_int_equal(a.request.n_env, 3);
        assert_string_equal(a.request.env[0], "A=1=2");
        assert_string_equal(a.request.env[1], "HOME=/h");
        assert_string_equal(a.request.env[2], "EMPTY=");

        assert_int_equal(parse(WORDS(W("-e"), W("A=line\nbreak\xff"), W("x")), &e), 0);
        assert_string_equal(a.request.env[0], "A=line\nbreak\xff");
        assert_int_equal(parse(WORDS(W("--help")), &e), 0);
        assert_true(a.help);
}

static void test_sessions(void **state) {
        struct errmsg e;

        (void)state;
        assert_int_equal(parse(WORDS(W("--session"), W("work"), W("--open"), W("-d"), W("x")), &e), 0);
        assert_string_equal(a.request.session, "work");
        assert_true(a.request.open && a.request.detach);
        assert_false(a.request.tty || a.request.use_stdin);

        /* A terminal has an input, and says which it is. */
        assert_int_equal(parse(WORDS(W("-it"), W("x")), &e), 0);
        assert_true(a.request.tty && a.request.use_stdin && a.input);
        assert_int_equal(a.request.n_env, 1);
        assert_string_equal(a.request.env[0], "TERM=test-9");
        assert_int_equal(parse(WORDS(W("-t"), W("-e"), W("TERM=dumb"), W("x")), &e), 0);
        assert_true(a.request.tty && a.request.use_stdin && !a.input);
        assert_int_equal(a.request.n_env, 1);
        assert_string_equal(a.request.env[0], "TERM=dumb");
        assert_int_equal(parse(WORDS(W("-i"), W("x")), &e), 0);
        assert_true(a.request.use_stdin && !a.request.tty);
        assert_int_equal(a.request.n_env, 0);
}

static void test_refusals(void **state) {
        static const struct {
                const char *words[3];
                const char *line;
        } cases[] = {
                { { NULL }, "exec: no command given: see hermes-sandbox exec --help" },
                { { "--" }, "exec: no command given: see hermes-sandbox exec --help" },
                { { "--nope", "x" }, "exec: unknown option --nope: see hermes-sandbox exec --help" },
                { { "--open", "x" }, "exec: --open is for a session: give --session NAME, too" },
                { { "-d", "x" }, "exec: --detach is for a session: give --session NAME, too" },
                { { "--session=a", "-dt", "x" },
                  "exec: --detach and -t: nobody is there to type, expected one of them" },
                { { "--session=a", "-di", "x" },
                  "exec: --detach and -i: nobody is there to type, expected one of them" },
                { { "--session=-a", "x" },
                  "exec: session '-a': expected a name of 1 to 64 of A-Z a-z 0-9 _ . -, not beginning with - or ." },
                { { "-t", "--json", "x" }, "exec: -t and --json: expected one of them" },
                { { "-q", "x" }, "exec: unknown option -q: see hermes-sandbox exec --help" },
                { { "-iq", "x" }, "exec: unknown option -q: see hermes-sandbox exec --help" },
                { { "--json=1", "x" },
                  "exec: option --json takes no value: see hermes-sandbox exec --help" },
                { { "-e" }, "exec: option -e needs a value: see hermes-sandbox exec --help" },
                { { "--timeout" },
                  "exec: option --timeout needs a value: see hermes-sandbox exec --help" },
                { { "-e", "=x", "c" }, "exec: -e '=x': expected KEY or KEY=VALUE" },
                { { "-e", "1A=x", "c" }, "exec: -e '1A=x': expected KEY or KEY=VALUE" },
                { { "-e", "A B=x", "c" }, "exec: -e 'A B=x': expected KEY or KEY=VALUE" },
                { { "-e", "", "c" }, "exec: -e '': expected KEY or KEY=VALUE" },
                { { "-w", "tmp", "c" },
                  "exec: -w 'tmp': expected an absolute path of at most 4096 bytes" },
                { { "--profile", "", "c" }, "exec: --profile '': expected a name of 1 to 64 bytes" },
                { { "--timeout", "0", "c" },
                  "exec: --timeout '0': expected more than 0 and at most a year" },
                { { "--timeout", "2x", "c" },
                  "exec: --timeout '2x': expected a number with ms, s, m, h, d, or plain seconds" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char words[3][32];
                char *argv[5] = { (char[]){ "exec" } };
                struct errmsg e;

                for (int n = 0; n < 3 && cases[i].words[n]; n++) {
                        snprintf(words[n], sizeof(words[n]), "%s", cases[i].words[n]);
                        argv[n + 1] = words[n];
                }
                assert_int_equal(parse(argv, &e), -EINVAL);
                assert_string_equal(e.text, cases[i].line);
        }
}

static void test_durations(void **state) {
        static const struct {
                const char *s;
                int r;
                uint64_t ms;
        } cases[] = {
                { "500ms", 0, 500 },     { "2s", 0, 2000 },
                { "5m", 0, 300000 },     { "1h", 0, 3600000 },
                { "7", 0, 7000 },        { "1ms", 0, 1 },
                { "007", 0, 7000 },      { "8760h", 0, 31536000000 },
                { "8761h", -ERANGE, 0 }, { "0", -ERANGE, 0 },
                { "0ms", -ERANGE, 0 },   { "9999999999h", -ERANGE, 0 },
                { "", -EINVAL, 0 },      { "s", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },    { "+1", -EINVAL, 0 },
                { "1.5s", -EINVAL, 0 },  { "1 s", -EINVAL, 0 },
                { "1S", -EINVAL, 0 },    { "1sec", -EINVAL, 0 },
                { "1d", 0, 86400000 },   { "0x10", -EINVAL, 0 },
                { " 1", -EINVAL, 0 },    { "99999999999", -EINVAL, 0 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                uint64_t ms = 42;

                assert_int_equal(cli_parse_duration(cases[i].s, &ms), cases[i].r);
                assert_int_equal(ms, cases[i].r == 0 ? cases[i].ms : 42);
        }
}

static void test_eacces(void **state) {
        char path[] = "/tmp/test-group.XXXXXX";
        static const char text[] = "root:x:0:\nhermes-sandbox:x:950:ann,bob\nusers:x:100:eve\n";
        const gid_t none[] = { 100 }, has[] = { 100, 950 };
        int fd = mkstemp(path);
        struct errmsg e;

        (void)state;
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
        cli_conn_explain_eacces(path, "ann", 100, none, 1, "/s", &e);
        assert_string_equal(e.text, "ann joined group hermes-sandbox after this login: run newgrp "
                                    "hermes-sandbox, or log in again and restart the agent");
        cli_conn_explain_eacces(path, "eve", 100, none, 1, "/s", &e);
        assert_string_equal(e.text,
                            "eve is not in group hermes-sandbox: sudo usermod -aG hermes-sandbox eve");
        cli_conn_explain_eacces(path, "ann", 100, has, 2, "/s", &e);
        assert_string_equal(e.text,
                            "/s: permission denied: ask the administrator who may use this socket");
        unlink(path);
        cli_conn_explain_eacces(path, "ann", 100, has, 2, "/s", &e);
        assert_string_equal(e.text, "/s: permission denied and there is no group hermes-sandbox: is the "
                                    "package installed?");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_operands), cmocka_unit_test(test_options),
                cmocka_unit_test(test_refusals), cmocka_unit_test(test_durations),
                cmocka_unit_test(test_eacces),   cmocka_unit_test(test_sessions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
