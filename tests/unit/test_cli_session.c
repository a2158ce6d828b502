/* session, ps, kill, stats, metrics, status: one question each, its answer, and managers that answer wrongly. */
#include "clirig.h"

static bool is_ask(const struct ask *a, uint16_t op, const char *name) {
        return a->op == op && strcmp(a->name, name) == 0;
}

/* --- the questions -------------------------------------------------------------------------- */

static void m_close_two(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_SESSION_CLOSE, "one"), "close");
        put_reject(p, 77, "session one is not yours");
        peer_again(p);
        a = take_ask(p);
        must(is_ask(&a, ASK_SESSION_CLOSE, "two"), "close");
        put_answer(p, "");
}

static void m_list(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_SESSION_LIST, "") && a.all && a.form == ANSWER_JSON, "list");
        put_answer(p, "[]\n");
}

static void m_stop_two(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_SESSION_STOP, "one") && a.grace_ms == 500, "stop");
        put_answer(p, "");
        peer_again(p);
        a = take_ask(p);
        must(is_ask(&a, ASK_SESSION_STOP, "two") && a.grace_ms == 500, "the second");
        put_reject(p, 125, "no session two");
}

static void m_start(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_SESSION_START, "0123abc") && a.form == ANSWER_JSON, "start");
        put_answer(p, "{}\n");
}

static void m_inspect(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_SESSION_INFO, "work"), "inspect");
        put_answer(p, "name: work\n");
}

static void m_ps(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_PS, "work") && a.all && a.form == ANSWER_TEXT, "ps");
        put_answer(p, "rows\n");
}

static void m_kill(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_KILL, EXEC_ID) && a.signal == SIGINT, "kill");
        put_answer(p, "");
}

static void m_kill_tree(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_KILL, EXEC_ID) && a.signal == 0, "kill");
        put_answer(p, "");
        peer_again(p);
        a = take_ask(p);
        must(is_ask(&a, ASK_KILL, "fedcba9876543210") && a.signal == 0, "the second");
        put_reject(p, 125, "no command fedcba9876543210");
}

static void m_stats(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_STATS, "") && a.form == ANSWER_JSON, "stats");
        put_answer(p, "{}\n");
}

static void m_metrics(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_METRICS, "") && a.form == ANSWER_TEXT, "metrics");
        put_answer(p, "# EOF\n");
}

static void test_questions(void **state) {
        (void)state;
        asked(ARGV(W("session"), W("list"), W("--all"), W("--json")), m_list, 0, "[]\n", "");
        asked(ARGV(W("session"), W("close"), W("one"), W("two")), m_close_two, 77, "",
              "hermes-sandbox: session one is not yours\n");
        asked(ARGV(W("session"), W("stop"), W("--grace=500ms"), W("one"), W("two")), m_stop_two, 125, "",
              "hermes-sandbox: no session two\n");
        asked(ARGV(W("session"), W("start"), W("--json"), W("0123abc")), m_start, 0, "{}\n", "");
        asked(ARGV(W("session"), W("inspect"), W("work")), m_inspect, 0, "name: work\n", "");
        asked(ARGV(W("ps"), W("work"), W("--all")), m_ps, 0, "rows\n", "");
        asked(ARGV(W("kill"), W("-s"), W("SIGINT"), W(EXEC_ID)), m_kill, 0, "", "");
        asked(ARGV(W("kill"), W("-2"), W(EXEC_ID)), m_kill, 0, "", "");
        asked(ARGV(W("kill"), W("-INT"), W(EXEC_ID)), m_kill, 0, "", "");
        asked(ARGV(W("kill"), W(EXEC_ID), W("--signal=int")), m_kill, 0, "", "");
        asked(ARGV(W("kill"), W(EXEC_ID), W("fedcba9876543210")), m_kill_tree, 125, "",
              "hermes-sandbox: no command fedcba9876543210\n");
        asked(ARGV(W("stats"), W("--json")), m_stats, 0, "{}\n", "");
        asked(ARGV(W("metrics")), m_metrics, 0, "# EOF\n", "");
}

/* --- bad usage ------------------------------------------------------------------------------- */

static void test_refusals(void **state) {
        static const struct bad_usage cases[] = {
                { { "session" },
                  "session: expected open, list, inspect, stop, start or close: see hermes-sandbox "
                  "session --help" },
                { { "session", "shut" },
                  "session: expected open, list, inspect, stop, start or close: see hermes-sandbox "
                  "session --help" },
                { { "session", "close" },
                  "session close: no name given: see hermes-sandbox session --help" },
                { { "session", "stop", "--grace=soon", "a" },
                  "session stop: --grace 'soon': expected a number with ms, s, m, h, d, or plain seconds" },
                { { "session", "inspect", "a", "b" }, "session inspect: unexpected argument 'b'" },
                { { "session", "list", "a" }, "session list: unexpected argument 'a'" },
                { { "ps", "a", "b" }, "ps: unexpected argument 'b': see hermes-sandbox ps --help" },
                { { "ps", "-x" }, "ps: unknown option -x: see hermes-sandbox ps --help" },
                { { "kill" }, "kill: no command given: see hermes-sandbox kill --help" },
                { { "kill", "work" },
                  "kill: 'work': expected the id of a command, 16 hex digits: hermes-sandbox ps lists them" },
                { { "kill", "-s", "NOPE", EXEC_ID },
                  "kill: signal 'NOPE': expected a name such as TERM or a number of 1 to 64" },
                { { "kill", "-0", EXEC_ID },
                  "kill: signal '0': expected a name such as TERM or a number of 1 to 64" },
                { { "kill", "-65", EXEC_ID },
                  "kill: signal '65': expected a name such as TERM or a number of 1 to 64" },
                { { "stats", "x" }, "stats: unexpected argument 'x': see hermes-sandbox stats --help" },
                { { "metrics", "--json" },
                  "metrics: unknown option --json: see hermes-sandbox metrics --help" },
                { { "logs", "-n", "-1" },
                  "logs: -n '-1': expected a number of lines: see hermes-sandbox logs --help" },
                { { "top", "x" }, "top: unexpected argument 'x': see hermes-sandbox top --help" },
        };

        (void)state;
        refused(cases, sizeof(cases) / sizeof(cases[0]));
}

/* --- answers --------------------------------------------------------------------------------- */

static void m_harmful(struct peer *p) {
        take_ask(p);
        put_hello(p, FRAME_VERSION);
        /* An escape sequence, C1, a bell, text that runs backwards; and what is fine. */
        put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, "a\x1b[31mb\tc\r\n", 11);
        put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, "\xc2\x9b\a\x7f\xe2\x80\xaez \xc3\xa4\xe4\xbd\xa0\n",
                    15);
        /* Characters over two frames, a harmful and a good one, and one that has no end. */
        put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, "\xc2", 1);
        put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, "\x9b-\xe4\xbd", 4);
        put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, "\xa0-\xff-", 4);
        put(p, FRAME_ANSWER, 1, "\n\xe2\x80", 3);
}

static void m_harmful_reject(struct peer *p) {
        take_ask(p);
        put_reject(p, 125, "no\x1b[2Jsuch\nthing\xc2\x9b\xe2\x80\xae");
}

static void m_status(struct peer *p) {
        take_hello(p);
        must(peer_next(p) && p->f.type == FRAME_STATUS && p->f.len == 1 && p->f.payload[0] == 0,
             "no STATUS");
        put_hello(p, FRAME_VERSION);
        put(p, FRAME_STATUS, 1, "ok\x1b\n", 4);
}

static void test_harmless(void **state) {
        (void)state;
        asked(ARGV(W("ps")), m_harmful, 0,
              "a?[31mb\tc?\n????"
              "???z \xc3\xa4\xe4\xbd\xa0\n"
              "?\?-\xe4\xbd\xa0-?-\n??",
              "");
        asked(ARGV(W("ps")), m_harmful_reject, 125, "", "hermes-sandbox: no?[2Jsuch?thing?????\n");
        asked(ARGV(W("status")), m_status, 0, "ok?\n", "");
}

static void m_pieces(struct peer *p) {
        static uint8_t all[1024];
        int pair[2];
        struct peer q = { 0 };
        ssize_t n;

        take_ask(p);
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
        q.fd = pair[0];
        put_hello(&q, FRAME_VERSION);
        put_flagged(&q, FRAME_ANSWER, FRAME_MORE, 1, "hello ", 6);
        put(&q, FRAME_ANSWER, 1, "world\n", 6);
        n = recv(pair[1], all, sizeof(all), 0);
        for (ssize_t i = 0; i < n; i++) {
                must(send(p->fd, all + i, 1, MSG_NOSIGNAL) == 1, "send");
                poll(NULL, 0, 1);
        }
}

static void m_large(struct peer *p) {
        static char line[FRAME_PAYLOAD_MAX];

        take_ask(p);
        put_hello(p, FRAME_VERSION);
        memset(line, 'x', sizeof(line));
        for (int i = 0; i < 64; i++)
                put_flagged(p, FRAME_ANSWER, i < 63 ? FRAME_MORE : 0, 1, line, sizeof(line));
}

static void test_pieces(void **state) {
        struct how h = { .manager = m_large, .stdin_fd = null_fd() };

        (void)state;
        asked(ARGV(W("ps")), m_pieces, 0, "hello world\n", "");
        run(ARGV(W("ps")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 0);
        assert_int_equal(o.out_len, 64 * FRAME_PAYLOAD_MAX);
}

static void m_half(struct peer *p) {
        uint8_t h[FRAME_HEADER];

        take_ask(p);
        put_hello(p, FRAME_VERSION);
        put_flagged(p, FRAME_ANSWER, FRAME_MORE, 1, "half\n", 5);
        frame_put_header(h, FRAME_ANSWER, 0, 1, 100);
        must(send(p->fd, h, sizeof(h), 0) == sizeof(h), "send");
}

static void m_status_for_answer(struct peer *p) {
        take_ask(p);
        put_hello(p, FRAME_VERSION);
        put(p, FRAME_STATUS, 1, "x", 1);
        peer_next(p);
}

static void m_other_channel(struct peer *p) {
        take_ask(p);
        put_hello(p, FRAME_VERSION);
        put(p, FRAME_ANSWER, 2, "x", 1);
        peer_next(p);
}

static void m_started(struct peer *p) {
        take_ask(p);
        put_hello(p, FRAME_VERSION);
        put_started(p);
        peer_next(p);
}

static void m_giant(struct peer *p) {
        uint8_t h[FRAME_HEADER];

        take_ask(p);
        put_hello(p, FRAME_VERSION);
        frame_put_header(h, FRAME_ANSWER, 0, 1, 0xffffffffu);
        must(send(p->fd, h, sizeof(h), 0) == sizeof(h), "send");
        peer_next(p);
}

static void m_bad_reject(struct peer *p) {
        take_ask(p);
        put_hello(p, FRAME_VERSION);
        put(p, FRAME_REJECT, 1, "\0\1\0\0\0", 5);
        peer_next(p);
}

static void test_bad_managers(void **state) {
        static const char none[] =
                "hermes-sandbox: protocol error: the manager's answer is none to the question\n";

        (void)state;
        asked(ARGV(W("ps")), m_half, 125, "half\n", "hermes-sandbox: lost the manager\n");
        asked(ARGV(W("ps")), m_status_for_answer, 125, "", none);
        asked(ARGV(W("ps")), m_other_channel, 125, "", none);
        asked(ARGV(W("ps")), m_started, 125, "", none);
        asked(ARGV(W("ps")), m_bad_reject, 125, "", none);
        asked(ARGV(W("ps")), m_giant, 125, "",
              "hermes-sandbox: protocol error: a frame from the manager that makes no sense\n");
        asked(ARGV(W("ps"), W("--json")), NULL, 69, "", o.err);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_questions),    cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_harmless),     cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_bad_managers),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
