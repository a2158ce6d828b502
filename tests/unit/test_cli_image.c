/* image: what is asked, what a pull looks like on a terminal and elsewhere, and registries that want too much. */
#include "clirig.h"

#include "cli/cli_board.h"

static void m_list(struct peer *p) {
        struct ask a = take_ask(p);

        must(a.op == ASK_IMAGE_LIST && a.form == ANSWER_JSON && a.n_labels == 0, "list");
        put_answer(p, "[]\n");
}

/* put_reject() of the rig says HELLO, too. */
static void put_bare_reject(struct peer *p, uint8_t code, const char *line) {
        struct reject r = { code, REJECT_OTHER, line };
        uint8_t buf[2048];

        put(p, FRAME_REJECT, 1, buf, (size_t)reject_encode(&r, buf, sizeof(buf)));
}

static void m_verify(struct peer *p) {
        struct ask a = take_ask(p);

        must(a.op == ASK_IMAGE_VERIFY && a.form == ANSWER_TEXT && a.n_labels == 2, "verify");
        must(strcmp(a.labels[0], "profile=dev") == 0 && strcmp(a.labels[1], "profile=x") == 0,
             "profiles");
        put_hello(p, FRAME_VERSION);
        put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, "other  dev: no\n", 15);
        put_bare_reject(p, 1, "image verify: 1 of 2 profiles are not as they should be");
}

static const char progress[] = "pulling image x\n"
                               "0123456789ab: Downloading 1 of 9 kB\n"
                               "ba9876543210: Waiting\n"
                               "0123456789ab: Downloading 8 of 9 kB\n"
                               "0123456789ab: Pull complete\n"
                               "ba9876543210: Waiting\n"
                               "0123456789abc: no layer\n";

static void m_pull(struct peer *p) {
        struct ask a = take_ask(p);

        must(a.op == ASK_IMAGE_PULL && a.n_labels == 1 && strcmp(a.labels[0], "profile=dev") == 0,
             "pull");
        put_hello(p, FRAME_VERSION);
        /* In pieces that are no lines. */
        for (size_t i = 0; i + 1 < sizeof(progress); i += 7) {
                size_t n = sizeof(progress) - 1 - i;

                put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, progress + i, n < 7 ? n : 7);
        }
        put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, "pulled \x1b[31mx\n", 14);
        put(p, FRAME_ANSWER, 1, "", 0);
}

static void m_pull_fails(struct peer *p) {
        take_ask(p);
        put_hello(p, FRAME_VERSION);
        put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, "pulling image x\n", 16);
        put_bare_reject(p, 125, "image pull: no\x1b[2J\xc2\x9b");
}

static void test_questions(void **state) {
        (void)state;
        asked(ARGV(W("image"), W("list"), W("--json")), m_list, 0, "[]\n", "");
        asked(ARGV(W("image"), W("verify"), W("dev"), W("x")), m_verify, 1, "other  dev: no\n",
              "hermes-sandbox: image verify: 1 of 2 profiles are not as they should be\n");
        asked(ARGV(W("image"), W("pull"), W("dev")), m_pull, 0,
              "pulling image x\n0123456789ab: Downloading\nba9876543210: Waiting\n0123456789ab: Pull complete\n"
              "0123456789abc: no layer\npulled ?[31mx\n",
              "");
        asked(ARGV(W("image"), W("pull")), m_pull_fails, 125, "pulling image x\n",
              "hermes-sandbox: image pull: no?[2J??\n");
}

static void test_bad_usage(void **state) {
        static const struct bad_usage cases[] = {
                { { "image" }, "image: list, pull or verify?: see hermes-sandbox image --help" },
                { { "image", "push" }, "image: no such subcommand: see hermes-sandbox image --help" },
                { { "image", "list", "x" },
                  "image list: unexpected argument 'x': see hermes-sandbox image --help" },
                { { "image", "list", "--all" },
                  "image list: unknown option --all: see hermes-sandbox image --help" },
                { { "image", "pull", "--json" },
                  "image pull: unknown option --json: see hermes-sandbox image --help" },
        };

        (void)state;
        refused(cases, sizeof(cases) / sizeof(cases[0]));
}

/* build and remove: the other program, with all of its words. */
static void test_other_program(void **state) {
        struct how h = { .stdin_fd = null_fd() };

        (void)state;
        run(ARGV(W("image"), W("build"), W("--json"), W("x")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 125);
        if (!strstr(o.err, "/hermes-sandbox-image: No such file or directory\n"))
                fail_msg("it says: %s", o.err);
}

/* --- the board ----------------------------------------------------------------------------------- */

/* What it writes to stdout. */
static void board_says(const char *text, bool tty, unsigned rows, unsigned columns, char *ret,
                       size_t cap) {
        static struct board b;
        int saved = dup(STDOUT_FILENO);
        FILE *f = tmpfile();
        size_t n;

        assert_non_null(f);
        fflush(stdout);
        assert_true(dup2(fileno(f), STDOUT_FILENO) >= 0);
        board_init(&b, tty, rows, columns);
        n = (size_t)board_take(&b, text, strlen(text));
        dup2(saved, STDOUT_FILENO);
        close(saved);
        assert_int_equal(n, 0);
        rewind(f);
        n = fread(ret, 1, cap - 1, f);
        ret[n] = '\0';
        fclose(f);
}

static void test_terminal(void **state) {
        char out[8192];

        (void)state;
        board_says(progress, true, 24, 80, out, sizeof(out));
        assert_string_equal(out, "pulling image x\n"
                                 "0123456789ab: Downloading 1 of 9 kB\n"
                                 "ba9876543210: Waiting\n"
                                 "\033[2A\r0123456789ab: Downloading 8 of 9 kB\033[K\033[2B\r"
                                 "\033[2A\r0123456789ab: Pull complete\033[K\033[2B\r"
                                 "\033[1A\rba9876543210: Waiting\033[K\033[1B\r"
                                 "0123456789abc: no layer\n");
        /* Cut to the terminal's width, not inside of a character; more layers than rows have no row. */
        board_says("000000000001: \303\244\303\244\303\244\n000000000002: b\n000000000003: c\n"
                   "000000000001: d\n000000000002: e\n",
                   true, 4, 18, out, sizeof(out));
        assert_string_equal(out, "000000000001: \303\244\n000000000002: b\n"
                                 "\033[2A\r000000000001: d\033[K\033[2B\r"
                                 "\033[1A\r000000000002: e\033[K\033[1B\r");
}

/* Layers without end, words without end, a line without end. */
static void test_too_much(void **state) {
        static char text[1 << 20], out[1 << 20];
        size_t n = 0, lines = 0;

        (void)state;
        for (unsigned i = 0; i < 500; i++)
                for (unsigned k = 0; k < 50; k++)
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%012x: %c\n", i, 'a' + k % 2);
        board_says(text, false, 0, 0, out, sizeof(out));
        for (const char *p = out; *p; p++)
                lines += *p == '\n';
        assert_int_equal(lines, BOARD_LAYERS * BOARD_LINES);
        memset(text, 'x', sizeof(text));
        memcpy(text + 100000, "\nend\n", 6);
        board_says(text, false, 0, 0, out, sizeof(out));
        assert_true(strlen(out) < 1500);
        assert_string_equal(strchr(out, '\n'), "\nend\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_questions),     cmocka_unit_test(test_bad_usage),
                cmocka_unit_test(test_other_program), cmocka_unit_test(test_terminal),
                cmocka_unit_test(test_too_much),
        };

        return cmocka_run_group_tests_name("cli_image", tests, setup, teardown);
}
