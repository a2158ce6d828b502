/* exec: output, results, refusals, and managers that speak wrongly. */
#include "clirig.h"

static void test_plain(void **state) {
        (void)state;
        simple(m_plain, 7, "out\n", "err\n");
}

/* All of it, a byte at a time. */
static void m_fragments(struct peer *p) {
        static uint8_t all[8192];
        int pair[2];
        struct peer q = { 0 };
        ssize_t n;

        take_request(p);
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
        q.fd = pair[0];
        put_hello(&q, FRAME_VERSION);
        put_started(&q);
        put(&q, FRAME_STDOUT, 1, "hello", 5);
        put_exit(&q, 0);
        n = recv(pair[1], all, sizeof(all), 0);
        must(n > 0, "recv");
        for (ssize_t i = 0; i < n; i++) {
                must(send(p->fd, all + i, 1, MSG_NOSIGNAL) == 1, "send");
                poll(NULL, 0, 1);
        }
}

static void test_fragments(void **state) {
        (void)state;
        simple(m_fragments, 0, "hello", "");
}

static void m_eof(struct peer *p) {
        greet(p);
        put(p, FRAME_STDOUT, 1, "half", 4);
}

static void m_eof_at_once(struct peer *p) {
        close(p->fd);
}

static void m_giant(struct peer *p) {
        uint8_t h[FRAME_HEADER];

        greet(p);
        frame_put_header(h, FRAME_STDOUT, 0, 1, 0xffffffffu);
        must(send(p->fd, h, sizeof(h), 0) == sizeof(h), "send");
        peer_next(p);
}

static void m_version(struct peer *p) {
        take_request(p);
        put_hello(p, 9);
        peer_next(p);
}

static void m_no_hello(struct peer *p) {
        take_request(p);
        put_started(p);
        peer_next(p);
}

static void m_early_output(struct peer *p) {
        take_request(p);
        put_hello(p, FRAME_VERSION);
        put(p, FRAME_STDOUT, 1, "x", 1);
        peer_next(p);
}

static void m_other_channel(struct peer *p) {
        greet(p);
        put(p, FRAME_STDOUT, 2, "x", 1);
        peer_next(p);
}

static void test_bad_managers(void **state) {
        (void)state;
        simple(m_eof, 125, "half",
               "hermes-sandbox: lost the manager: nothing is known of the command's end\n");
        simple(m_giant, 125, "",
               "hermes-sandbox: protocol error: a frame from the manager that makes no sense\n");
        simple(m_version, 125, "",
               "hermes-sandbox: the manager speaks version 9 of the protocol and this program version 3: "
               "install the same release of both and restart the manager\n");
        simple(m_no_hello, 125, "", "hermes-sandbox: protocol error: the manager did not say hello\n");
        simple(m_early_output, 125, "",
               "hermes-sandbox: protocol error: output before the command was started\n");
        simple(m_other_channel, 125, "",
               "hermes-sandbox: protocol error: a frame of a channel that is not open\n");

        struct how h = { .manager = m_eof_at_once, .stdin_fd = null_fd() };

        run(ARGV(W("exec"), W("cmd")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 125);
        assert_non_null(strstr(o.err, "lost the manager"));
}

static void m_reject(struct peer *p) {
        struct reject r = { 77, REJECT_OTHER, "not you:\x1b[31m no" };
        uint8_t buf[256];

        take_request(p);
        put_hello(p, FRAME_VERSION);
        put(p, FRAME_REJECT, 1, buf, (size_t)reject_encode(&r, buf, sizeof(buf)));
}

static void test_reject(void **state) {
        struct how h = { .manager = m_reject, .stdin_fd = null_fd() };

        (void)state;
        simple(m_reject, 77, "", "hermes-sandbox: not you:?[31m no\n");
        run(ARGV(W("exec"), W("--json"), W("cmd")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 77);
        assert_string_equal(o.err, "");
        assert_string_equal(
                o.out,
                "{\"exit_code\":77,\"cause\":\"rejected\",\"signal\":null,\"wall_us\":null,"
                "\"user_us\":null,\"system_us\":null,\"maxrss_bytes\":null,\"sandbox_peak_bytes\":null,"
                "\"stdout\":\"\",\"stdout_encoding\":\"utf-8\",\"stdout_bytes\":0,\"stdout_lines\":0,"
                "\"stderr\":\"\",\"stderr_encoding\":\"utf-8\",\"stderr_bytes\":0,\"stderr_lines\":0,"
                "\"truncated\":false,\"captured_truncated\":false,\"background_left\":null,"
                "\"exec_id\":null,\"sandbox\":null,\"profile\":null,\"session\":null,"
                "\"pool_hit\":false,\"error\":\"not you:\\u001b[31m no\"}\n");
}

static void m_json(struct peer *p) {
        struct result r = a_result();

        greet(p);
        put(p, FRAME_STDOUT, 1, "a\xc3", 2); /* a character over two frames */
        put(p, FRAME_STDOUT, 1, "\xa9\n", 2);
        put(p, FRAME_STDERR, 1, "\xff\xfe", 2);
        r.cause = CAUSE_SIGNALED;
        r.exit_code = 137;
        r.code = 9;
        r.signaled = true;
        r.bytes[0] = 4;
        r.bytes[1] = 2;
        r.lines[0] = 1;
        r.background_left = 2;
        put_result(p, &r);
}

static void test_json(void **state) {
        struct how h = { .manager = m_json, .stdin_fd = null_fd() };

        (void)state;
        run(ARGV(W("exec"), W("--json"), W("cmd")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 137);
        assert_string_equal(
                o.out,
                "{\"exit_code\":137,\"cause\":\"signaled\",\"signal\":9,\"wall_us\":1,\"user_us\":2,"
                "\"system_us\":3,\"maxrss_bytes\":4,\"sandbox_peak_bytes\":5,"
                "\"stdout\":\"a\xc3\xa9\\n\",\"stdout_encoding\":\"utf-8\",\"stdout_bytes\":4,"
                "\"stdout_lines\":1,\"stderr\":\"//4=\",\"stderr_encoding\":\"base64\","
                "\"stderr_bytes\":2,\"stderr_lines\":0,\"truncated\":false,"
                "\"captured_truncated\":false,\"background_left\":2,\"exec_id\":\"" EXEC_ID "\","
                "\"sandbox\":\"" SANDBOX "\",\"profile\":\"default\",\"session\":null,"
                "\"pool_hit\":true,\"error\":null}\n");
}

#define FLOOD (40u << 20)

/* Keeps to the credit that was granted, as the real one does. */
static void m_flood(struct peer *p) {
        static uint8_t chunk[FRAME_PAYLOAD_MAX];
        uint64_t credit = FRAME_CREDIT;
        struct result r = a_result();
        struct window w;

        greet(p);
        memset(chunk, 'y', sizeof(chunk));
        for (uint32_t sent = 0; sent < FLOOD; sent += sizeof(chunk)) {
                while (credit < sizeof(chunk)) {
                        must(peer_next(p) && p->f.type == FRAME_WINDOW, "no WINDOW");
                        must(window_decode(p->f.payload, p->f.len, &w) == 0 &&
                                     w.stream == STREAM_STDOUT && w.bytes >= FRAME_CREDIT / 2,
                             "bad WINDOW");
                        credit += w.bytes;
                }
                put(p, FRAME_STDOUT, 1, chunk, sizeof(chunk));
                credit -= sizeof(chunk);
        }
        r.bytes[0] = FLOOD;
        put_result(p, &r);
}

static void test_flood(void **state) {
        struct how h = { .manager = m_flood, .stdin_fd = null_fd() };

        (void)state;
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_exit(&o, 0);
        assert_int_equal(o.out_len, FLOOD);

        run(ARGV(W("exec"), W("--json"), W("cmd")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 0);
        assert_in_range(o.out_len, 16u << 20, (16u << 20) + 2048);
}

static void test_no_manager(void **state) {
        struct how h = { .stdin_fd = null_fd() };
        char want[256];

        (void)state;
        snprintf(want, sizeof(want),
                 "hermes-sandbox: no manager at %s: start it with sudo hermes-sandbox "
                 "start, or systemctl start hermes-sandbox-pool.socket\n",
                 sock);
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_exit(&o, 69);
        assert_string_equal(o.err, want);
        run(ARGV(W("status")), &h, &o);
        assert_exit(&o, 69);
        run(ARGV(W("--socket"), W(""), W("status")), &h, &o);
        assert_exit(&o, 64);
        run(ARGV(W("nonsense")), &h, &o);
        assert_exit(&o, 64);
        assert_string_equal(o.err,
                            "hermes-sandbox: unknown command 'nonsense': see hermes-sandbox help\n");
        run(ARGV(W("exec"), W("--help")), &h, &o);
        assert_exit(&o, 0);
        assert_non_null(strstr(o.out, "examples:"));
        close(h.stdin_fd);
}

/* A request of many frames arrives whole. */
static void m_large(struct peer *p) {
        struct exec_request r = take_request(p);

        must(r.strings_len == 4 + 1000000 + 1, "the length");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        put_exit(p, 0);
}

static void test_large(void **state) {
        struct how h = { .manager = m_large, .stdin_fd = null_fd() };
        char *script = malloc(PROTO_EXEC_MAX + 1);
        char *argv[] = { W("hermes-sandbox"), W("exec"), script, NULL };

        (void)state;
        memset(script, 'x', PROTO_EXEC_MAX);
        script[1000000] = '\0';
        run(argv, &h, &o);
        assert_exit(&o, 0);
        memset(script, 'x', PROTO_EXEC_MAX);
        script[PROTO_EXEC_MAX] = '\0';
        h.manager = NULL;
        run(argv, &h, &o);
        assert_exit(&o, 64);
        assert_non_null(strstr(o.err, "the command and its environment have "));
        close(h.stdin_fd);
        free(script);
}

static void m_message(struct peer *p) {
        struct result r = a_result();

        greet(p);
        r.cause = CAUSE_NOT_FOUND;
        r.exit_code = 127;
        r.error = ENOENT;
        r.message = "nope: no such program";
        put_result(p, &r);
}

static void m_status(struct peer *p) {
        uint8_t h[FRAME_HEADER];

        must(peer_next(p) && p->f.type == FRAME_HELLO, "no HELLO");
        must(peer_next(p) && p->f.type == FRAME_STATUS && p->f.len == 1 && p->f.payload[0] == 1,
             "no STATUS");
        put_hello(p, FRAME_VERSION);
        frame_put_header(h, FRAME_STATUS, FRAME_MORE, 1, 4);
        must(send(p->fd, h, sizeof(h), 0) == sizeof(h) && send(p->fd, "{\"a\"", 4, 0) == 4, "send");
        put(p, FRAME_STATUS, 1, ":1}\n", 4);
}

static void test_message_and_status(void **state) {
        struct how h = { .manager = m_status, .stdin_fd = null_fd() };

        (void)state;
        simple(m_message, 127, "", "hermes-sandbox: nope: no such program\n");
        run(ARGV(W("status"), W("--json")), &h, &o);
        assert_exit(&o, 0);
        assert_string_equal(o.out, "{\"a\":1}\n");
        close(h.stdin_fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plain),
                cmocka_unit_test(test_fragments),
                cmocka_unit_test(test_bad_managers),
                cmocka_unit_test(test_reject),
                cmocka_unit_test(test_json),
                cmocka_unit_test(test_flood),
                cmocka_unit_test(test_no_manager),
                cmocka_unit_test(test_large),
                cmocka_unit_test(test_message_and_status),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
