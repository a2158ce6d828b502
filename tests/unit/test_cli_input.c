/* exec: what goes the other way, stdin and signals. */
#include "clirig.h"

/* stdin: everything that is sent comes, within the credit, and its end. */
static void m_stdin(struct peer *p) {
        uint64_t credit = FRAME_CREDIT, total = 0;
        struct window w = { STREAM_STDIN, 100000 };
        uint8_t buf[WINDOW_SIZE];

        must(take_request(p).use_stdin, "no -i");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        for (;;) {
                must(peer_next(p) && p->f.type == FRAME_STDIN && p->f.len <= credit,
                     "stdin over its credit");
                credit -= p->f.len;
                total += p->f.len;
                if (p->f.flags & FRAME_EOF)
                        break;
                if (credit < 100000) {
                        window_encode(&w, buf);
                        put(p, FRAME_WINDOW, 1, buf, sizeof(buf));
                        credit += w.bytes;
                }
        }
        must(total == 3000000, "bytes of stdin");
        put_exit(p, 0);
}

/* Asks for nothing and ends: a stdin without an end must not hold the program. */
static void m_ignores_stdin(struct peer *p) {
        must(take_request(p).use_stdin, "no -i");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put(p, FRAME_STDOUT, 1, "done", 4);
        put_exit(p, 3);
        while (peer_next(p))
                ;
}

static void m_empty_stdin(struct peer *p) {
        must(take_request(p).use_stdin, "no -i");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        must(peer_next(p) && p->f.type == FRAME_STDIN && p->f.len == 0 && (p->f.flags & FRAME_EOF),
             "no EOF");
        put_exit(p, 0);
}

static void test_stdin(void **state) {
        char path[] = "/tmp/test-stdin.XXXXXX";
        struct how h = { .manager = m_stdin };
        int never[2];

        (void)state;
        h.stdin_fd = mkstemp(path);
        unlink(path);
        assert_int_equal(ftruncate(h.stdin_fd, 3000000), 0);
        run(ARGV(W("exec"), W("-i"), W("cmd")), &h, &o);
        assert_exit(&o, 0);
        close(h.stdin_fd);

        assert_int_equal(pipe2(never, O_CLOEXEC), 0);
        h = (struct how){ .manager = m_ignores_stdin, .stdin_fd = never[0] };
        run(ARGV(W("exec"), W("-i"), W("cmd")), &h, &o);
        assert_exit(&o, 3);
        assert_string_equal(o.out, "done");
        h.stdin_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        run(ARGV(W("exec"), W("-i"), W("cmd")), &h, &o);
        assert_exit(&o, 3);

        h = (struct how){ .manager = m_empty_stdin, .stdin_fd = -1 };
        run(ARGV(W("exec"), W("-i"), W("cmd")), &h, &o);
        assert_exit(&o, 0);
        h.stdin_fd = open("/", O_RDONLY | O_CLOEXEC);
        run(ARGV(W("exec"), W("-i"), W("cmd")), &h, &o);
        assert_exit(&o, 0);
        assert_string_equal(o.err, "hermes-sandbox: cannot read stdin: Is a directory\n");
        close(h.stdin_fd);
        close(never[0]);
        close(never[1]);
}

/* stdin without -i is not touched: fd 0 closed, and the socket takes none of the standard numbers. */
static void test_closed_stdin(void **state) {
        struct how h = { .manager = m_plain, .stdin_fd = -1 };

        (void)state;
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_exit(&o, 7);
        assert_string_equal(o.out, "out\n");
}

static void m_signal(struct peer *p) {
        greet(p);
        put(p, FRAME_STDERR, 1, "up", 2);
        must(peer_next(p) && p->f.type == FRAME_SIGNAL && p->f.payload[0] == SIGTERM, "no SIGNAL");
        put_exit(p, 143);
}

static void send_term(pid_t cli) {
        when_blocked(cli, SIGTERM);
        poll(NULL, 0,
             50); /* STARTED may be behind the mask; earlier, the signal would end the program */
        kill(cli, SIGTERM);
}

static void m_queued(struct peer *p) {
        take_request(p);
        put_hello(p, FRAME_VERSION);
        must(!peer_next(p), "a frame where the end was expected");
}

static void m_two_ints(struct peer *p) {
        greet(p);
        must(peer_next(p) && p->f.type == FRAME_SIGNAL && p->f.payload[0] == SIGINT, "no SIGNAL");
        must(!peer_next(p), "a second SIGNAL");
}

static void send_two_ints(pid_t cli) {
        when_blocked(cli, SIGTERM);
        poll(NULL, 0, 50);
        kill(cli, SIGINT);
        poll(NULL, 0, 50);
        kill(cli, SIGINT);
}

/* Output goes on, nobody reads it, and TERM must still end the program. */
static void m_stuck(struct peer *p) {
        static uint8_t frame[FRAME_MAX];

        greet(p);
        frame_put_header(frame, FRAME_STDOUT, 0, 1, FRAME_PAYLOAD_MAX);
        /* The program may be gone before it has read them all: then sending fails. */
        for (int i = 0; i < 4; i++)
                if (send(p->fd, frame, sizeof(frame), MSG_NOSIGNAL) < 0)
                        return;
        while (peer_next(p))
                ;
}

static void test_signals(void **state) {
        struct how h = { .manager = m_signal, .stdin_fd = null_fd(), .meanwhile = send_term };
        int stuck[2];

        (void)state;
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_exit(&o, 143);

        h.manager = m_queued;
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGTERM);

        h.manager = m_two_ints;
        h.meanwhile = send_two_ints;
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGINT);

        assert_int_equal(pipe2(stuck, O_CLOEXEC), 0);
        h = (struct how){
                .manager = m_stuck, .stdin_fd = h.stdin_fd, .stdout_fd = stuck[1], .meanwhile = send_term
        };
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGTERM);
        close(stuck[1]);

        /* Nobody holds the reading end: we end as any filter does. */
        close(stuck[0]);
        assert_int_equal(pipe2(stuck, O_CLOEXEC), 0);
        close(stuck[0]);
        h.stdout_fd = stuck[1];
        h.meanwhile = NULL;
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGPIPE);
        close(stuck[1]);
        close(h.stdin_fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stdin),
                cmocka_unit_test(test_closed_stdin),
                cmocka_unit_test(test_signals),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
