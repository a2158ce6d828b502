/* exec in sessions and detached, attach and wait. */
#include "clirig.h"

/* --- exec ------------------------------------------------------------------------------------ */

static void m_session(struct peer *p) {
        struct exec_request r = take_request(p);
        struct result res = a_result();

        must(strcmp(r.session, "work") == 0 && r.open && !r.detach && !r.tty && !r.use_stdin,
             "the request");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        res.session = "work";
        put_result(p, &res);
}

static void m_detach(struct peer *p) {
        struct exec_request r = take_request(p);

        must(strcmp(r.session, "work") == 0 && !r.open && r.detach && !r.use_stdin, "the request");
        put_hello(p, FRAME_VERSION);
        put_started(p);
}

static void m_refused(struct peer *p) {
        take_request(p);
        put_reject(p, 125, "no session work");
}

static void m_detach_lost(struct peer *p) {
        take_request(p);
        put_hello(p, FRAME_VERSION);
}

static void m_detach_output(struct peer *p) {
        take_request(p);
        put_hello(p, FRAME_VERSION);
        put(p, FRAME_STDOUT, 1, "x", 1);
        peer_next(p);
}

static void test_sessions(void **state) {
        (void)state;
        asked(ARGV(W("exec"), W("--session"), W("work"), W("--open"), W("cmd")), m_session, 0, "", "");
        asked(ARGV(W("exec"), W("--session=work"), W("--detach"), W("cmd")), m_detach, 0, EXEC_ID "\n",
              "");
        asked(ARGV(W("exec"), W("--session=work"), W("-d"), W("cmd")), m_refused, 125, "",
              "hermes-sandbox: no session work\n");
        asked(ARGV(W("exec"), W("--session=work"), W("-d"), W("cmd")), m_detach_lost, 125, "",
              "hermes-sandbox: lost the manager: nothing is known of the command's end\n");
        asked(ARGV(W("exec"), W("--session=work"), W("-d"), W("cmd")), m_detach_output, 125, "",
              "hermes-sandbox: protocol error: output before the command was started\n");
}

/* That the object in o.out has these texts. */
static void has(const char *const *texts) {
        for (; *texts; texts++)
                if (!strstr(o.out, *texts)) {
                        print_message("%s is not in %s\n", *texts, o.out);
                        fail();
                }
}

static void test_json(void **state) {
        struct how h = { .manager = m_session, .stdin_fd = null_fd() };

        (void)state;
        run(ARGV(W("exec"), W("--json"), W("--session"), W("work"), W("--open"), W("cmd")), &h, &o);
        assert_exit(&o, 0);
        has((const char *[]){ "\"session\":\"work\"", NULL });
        h.manager = m_detach;
        run(ARGV(W("exec"), W("--json"), W("--session"), W("work"), W("-d"), W("cmd")), &h, &o);
        assert_exit(&o, 0);
        has((const char *[]){ "{\"exit_code\":0,\"cause\":null,", "\"exec_id\":\"" EXEC_ID "\"",
                              "\"sandbox\":\"" SANDBOX "\"", "\"session\":\"work\"", "\"error\":null}\n",
                              NULL });
        h.manager = m_refused;
        run(ARGV(W("exec"), W("--json"), W("--session"), W("work"), W("cmd")), &h, &o);
        assert_exit(&o, 125);
        has((const char *[]){ "\"cause\":\"rejected\"", "\"session\":\"work\"",
                              "\"error\":\"no session work\"", NULL });
        close(h.stdin_fd);
}

/* --- attach ---------------------------------------------------------------------------------- */

static void put_attached(struct peer *p, uint64_t out, uint64_t err) {
        struct attached a = { { out, err } };
        uint8_t buf[ATTACHED_SIZE];

        attached_encode(&a, buf);
        put(p, FRAME_ATTACHED, 1, buf, sizeof(buf));
}

static void m_attach(struct peer *p) {
        struct attach a = take_attach(p);
        struct result r = a_result();

        must(strcmp(a.exec_id, EXEC_ID) == 0 && a.output && a.offset[0] == 0 && a.offset[1] == 0,
             "the request");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put_attached(p, 0, 0);
        put(p, FRAME_STDOUT, 1, "out\n", 4);
        put(p, FRAME_STDERR, 1, "err\n", 4);
        r.cause = CAUSE_SIGNALED;
        r.exit_code = 137;
        r.code = 9;
        r.signaled = true;
        r.session = "work";
        put_result(p, &r);
}

static void m_attach_late(struct peer *p) {
        struct attach a = take_attach(p);

        must(a.offset[0] == 10 && a.offset[1] == ATTACH_END, "the offsets");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put_attached(p, 1000, 7);
        put(p, FRAME_STDOUT, 1, "x", 1);
        put_exit(p, 3);
}

static void m_attach_none(struct peer *p) {
        take_attach(p);
        put_reject(p, 125, "no command " EXEC_ID);
}

/* Credit is given back, or a long output would never end. */
static void m_attach_long(struct peer *p) {
        static uint8_t piece[32768];
        int credit = FRAME_CREDIT;

        take_attach(p);
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put_attached(p, 0, 0);
        for (int i = 0; i < 64; i++) {
                while (credit < (int)sizeof(piece)) {
                        struct window w;

                        must(peer_next(p) && p->f.type == FRAME_WINDOW, "no WINDOW");
                        must(window_decode(p->f.payload, p->f.len, &w) == 0 && w.stream == STREAM_STDOUT,
                             "which");
                        credit += (int)w.bytes;
                }
                put(p, FRAME_STDOUT, 1, piece, sizeof(piece));
                credit -= (int)sizeof(piece);
        }
        put_exit(p, 0);
}

static void test_attach(void **state) {
        struct how h = { .manager = m_attach_long, .stdin_fd = null_fd() };

        (void)state;
        asked(ARGV(W("attach"), W(EXEC_ID)), m_attach, 137, "out\n", "err\n");
        asked(ARGV(W("attach"), W(EXEC_ID), W("--offset"), W("end"), W("--stdout-offset=10")),
              m_attach_late, 3, "x",
              "hermes-sandbox: attach: 990 bytes of stdout are no longer kept: it begins at 1000\n");
        asked(ARGV(W("attach"), W(EXEC_ID)), m_attach_none, 125, "",
              "hermes-sandbox: no command " EXEC_ID "\n");
        run(ARGV(W("attach"), W(EXEC_ID)), &h, &o);
        assert_exit(&o, 0);
        assert_int_equal(o.out_len, 64 * 32768);

        h.manager = m_attach;
        run(ARGV(W("attach"), W("--json"), W(EXEC_ID)), &h, &o);
        assert_exit(&o, 137);
        has((const char *[]){ "{\"exit_code\":137,\"cause\":\"signaled\",\"signal\":9,",
                              "\"stdout\":\"out\\n\"", "\"session\":\"work\"",
                              "\"stdout_offset\":0,\"stderr_offset\":0}\n", NULL });
        h.manager = m_attach_late;
        run(ARGV(W("attach"), W("--json"), W(EXEC_ID), W("--stdout-offset"), W("10"),
                 W("--stderr-offset=end")),
            &h, &o);
        assert_exit(&o, 3);
        has((const char *[]){ "\"stdout_offset\":1000,\"stderr_offset\":7}\n", NULL });
        h.manager = m_attach_none;
        run(ARGV(W("attach"), W("--json"), W(EXEC_ID)), &h, &o);
        assert_exit(&o, 125);
        has((const char *[]){ "\"error\":\"no command " EXEC_ID "\"",
                              "\"stdout_offset\":null,\"stderr_offset\":null}", NULL });
        close(h.stdin_fd);
}

static void m_attach_twice(struct peer *p) {
        take_attach(p);
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put_attached(p, 0, 0);
        put_attached(p, 0, 0);
        peer_next(p);
}

static void m_attach_early(struct peer *p) {
        take_attach(p);
        put_hello(p, FRAME_VERSION);
        put_attached(p, 0, 0);
        peer_next(p);
}

static void m_attach_output(struct peer *p) {
        take_attach(p);
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put(p, FRAME_STDOUT, 1, "x", 1);
        peer_next(p);
}

static void m_attach_lost(struct peer *p) {
        take_attach(p);
        put_hello(p, FRAME_VERSION);
        put_started(p);
}

static void m_exec_attached(struct peer *p) {
        greet(p);
        put_attached(p, 0, 0);
        peer_next(p);
}

static void test_bad_managers(void **state) {
        static const char
                bad[] = "hermes-sandbox: protocol error: a bad ATTACHED frame\n",
                early[] = "hermes-sandbox: protocol error: output before the command was started\n";

        (void)state;
        asked(ARGV(W("attach"), W(EXEC_ID)), m_attach_twice, 125, "", bad);
        asked(ARGV(W("attach"), W(EXEC_ID)), m_attach_early, 125, "", bad);
        asked(ARGV(W("attach"), W(EXEC_ID)), m_attach_output, 125, "", early);
        asked(ARGV(W("wait"), W(EXEC_ID)), m_attach_output, 125, "", early);
        asked(ARGV(W("wait"), W(EXEC_ID)), m_attach_twice, 125, "", bad);
        asked(ARGV(W("attach"), W(EXEC_ID)), m_attach_lost, 125, "",
              "hermes-sandbox: lost the manager: the command goes on without us: ask again\n");
        asked(ARGV(W("exec"), W("cmd")), m_exec_attached, 125, "", bad);
}

/* ^C ends attach as it ends any program, and no SIGNAL comes for the command. */
static void m_attach_interrupted(struct peer *p) {
        take_attach(p);
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put_attached(p, 0, 0);
        put(p, FRAME_STDOUT, 1, "up\n", 3);
        must(!peer_next(p), "a frame where the end was expected");
}

static int up[2];

static void interrupt(pid_t cli) {
        char c;

        assert_int_equal(read(up[0], &c, 1), 1);
        kill(cli, SIGINT);
}

static void test_interrupted(void **state) {
        struct how h = { .manager = m_attach_interrupted,
                         .stdin_fd = null_fd(),
                         .meanwhile = interrupt };

        (void)state;
        assert_int_equal(pipe2(up, O_CLOEXEC), 0);
        h.stdout_fd = up[1];
        run(ARGV(W("attach"), W(EXEC_ID)), &h, &o);
        assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGINT);
        close(up[0]);
        close(up[1]);
        close(h.stdin_fd);
}

/* --- wait ------------------------------------------------------------------------------------ */

static void m_wait(struct peer *p) {
        struct attach a = take_attach(p);

        must(strcmp(a.exec_id, EXEC_ID) == 0 && !a.output, "the request");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put_exit(p, 4);
        peer_again(p);
        a = take_attach(p);
        must(strcmp(a.exec_id, "fedcba9876543210") == 0, "the second");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put_exit(p, 5);
}

static void test_wait(void **state) {
        struct how h = { .manager = m_wait, .stdin_fd = null_fd() };

        (void)state;
        asked(ARGV(W("wait"), W(EXEC_ID), W("fedcba9876543210")), m_wait, 5, "", "");
        asked(ARGV(W("wait"), W(EXEC_ID)), m_attach_none, 125, "",
              "hermes-sandbox: no command " EXEC_ID "\n");
        run(ARGV(W("wait"), W("--json"), W(EXEC_ID), W("fedcba9876543210")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 5);
        has((const char *[]){ "{\"exit_code\":4,\"cause\":\"exited\",",
                              "\"stdout\":null,\"stdout_encoding\":null", "}\n{\"exit_code\":5,",
                              NULL });
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sessions),    cmocka_unit_test(test_json),
                cmocka_unit_test(test_attach),      cmocka_unit_test(test_bad_managers),
                cmocka_unit_test(test_interrupted), cmocka_unit_test(test_wait),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
