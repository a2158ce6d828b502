/* session, ps, kill, stats, metrics, status: one question each, its answer, and managers that answer wrongly. */
#include "clirig.h"

#include <sys/stat.h>

#include "common/mount_proto.h"

/* Runs it and expects that. */
static void asked(char **argv, void (*manager)(struct peer *p), int code, const char *out,
                  const char *err) {
        struct how h = { .manager = manager, .stdin_fd = null_fd() };

        run(argv, &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, code);
        assert_string_equal(o.out, out);
        assert_string_equal(o.err, err);
}

static bool is_ask(const struct ask *a, uint16_t op, const char *name) {
        return a->op == op && strcmp(a->name, name) == 0;
}

/* --- the questions -------------------------------------------------------------------------- */

static void m_open(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_SESSION_OPEN, "work") && strcmp(a.profile, "dev") == 0 &&
                     a.ttl_ms == 7200000,
             "open");
        must(a.n_labels == 2 && strcmp(a.labels[0], "task=4=2") == 0 && strcmp(a.labels[1], "x=") == 0,
             "labels");
        must(!a.json && !a.all && a.signal == 0, "more");
        put_answer(p, "work\n");
}

static void m_open_any(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_SESSION_OPEN, "") && a.profile[0] == '\0' && a.ttl_ms == 0 && a.json,
             "open");
        put_answer(p, "{\"name\":\"s-00112233\"}\n");
}

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

        must(is_ask(&a, ASK_SESSION_LIST, "") && a.all && a.json, "list");
        put_answer(p, "[]\n");
}

static void m_ps(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_PS, "work") && a.all && !a.json, "ps");
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

        must(is_ask(&a, ASK_STATS, "") && a.json, "stats");
        put_answer(p, "{}\n");
}

static void m_metrics(struct peer *p) {
        struct ask a = take_ask(p);

        must(is_ask(&a, ASK_METRICS, "") && !a.json, "metrics");
        put_answer(p, "# EOF\n");
}

static void test_questions(void **state) {
        (void)state;
        asked(ARGV(W("session"), W("open"), W("work"), W("--profile=dev"), W("--ttl"), W("2h"),
                   W("--label"), W("task=4=2"), W("--label=x=")),
              m_open, 0, "work\n", "");
        asked(ARGV(W("session"), W("open"), W("--json")), m_open_any, 0, "{\"name\":\"s-00112233\"}\n",
              "");
        asked(ARGV(W("session"), W("list"), W("--all"), W("--json")), m_list, 0, "[]\n", "");
        asked(ARGV(W("session"), W("close"), W("one"), W("two")), m_close_two, 77, "",
              "hermes-sandbox: session one is not yours\n");
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
        static const struct {
                const char *words[5];
                const char *line;
        } cases[] = {
                { { "session" },
                  "session: expected open, list or close: see hermes-sandbox session --help" },
                { { "session", "shut" },
                  "session: expected open, list or close: see hermes-sandbox session --help" },
                { { "session", "open", "a", "b" }, "session open: unexpected argument 'b'" },
                { { "session", "open", ".a" },
                  "session open: session '.a': expected a name of 1 to 64 of A-Z a-z 0-9 _ . -, not beginning with "
                  "- or ." },
                { { "session", "open", "a b" },
                  "session open: session 'a b': expected a name of 1 to 64 of A-Z a-z 0-9 _ . -, not beginning with "
                  "- or ." },
                { { "session", "open", "" },
                  "session open: session '': expected a name of 1 to 64 of A-Z a-z 0-9 _ . -, not beginning with - "
                  "or ." },
                { { "session", "open", "--ttl", "0" },
                  "session open: --ttl '0': expected more than 0 and at most a year" },
                { { "session", "open", "--ttl", "soon" },
                  "session open: --ttl 'soon': expected a number with ms, s, m, h, d, or plain seconds" },
                { { "session", "open", "--label", "=x" },
                  "session open: --label '=x': expected KEY=VALUE of at most 256 bytes" },
                { { "session", "open", "--label", "x" },
                  "session open: --label 'x': expected KEY=VALUE of at most 256 bytes" },
                { { "session", "open", "--all" },
                  "session open: unknown option --all: see hermes-sandbox session --help" },
                { { "session", "open", "--mount", "/a" },
                  "session open: --mount '/a': expected SRC:DST or SRC:DST:ro, DST absolute" },
                { { "session", "open", "--mount", "/a:b" },
                  "session open: --mount '/a:b': expected SRC:DST or SRC:DST:ro, DST absolute" },
                { { "session", "open", "--mount", ":/b" },
                  "session open: --mount ':/b': expected SRC:DST or SRC:DST:ro, DST absolute" },
                { { "session", "open", "--mount", "/a:/b:rw" },
                  "session open: --mount '/a:/b:rw': expected SRC:DST or SRC:DST:ro, DST absolute" },
                { { "session", "open", "--mount", "/:/b/../c" },
                  "session open: --mount: /b/../c has an empty, \".\" or \"..\" component" },
                { { "session", "open", "--mount", "/nonexistent:/b" },
                  "session open: --mount /nonexistent: No such file or directory" },
                { { "session", "open", "--mount", "/etc/passwd:/b" },
                  "session open: --mount /etc/passwd: Not a directory" },
                { { "session", "open", "--mount", "/proc/self/root:/b" },
                  "session open: --mount /proc/self/root: a symbolic link stands in its path: give the path that "
                  "realpath prints" },
                { { "session", "close" },
                  "session close: no name given: see hermes-sandbox session --help" },
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
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct how h = { .stdin_fd = null_fd() };
                char words[5][64], *argv[7] = { W("hermes-sandbox") };
                char line[512];

                for (int n = 0; n < 5 && cases[i].words[n]; n++) {
                        snprintf(words[n], sizeof(words[n]), "%s", cases[i].words[n]);
                        argv[n + 1] = words[n];
                }
                run(argv, &h, &o);
                close(h.stdin_fd);
                snprintf(line, sizeof(line), "hermes-sandbox: %s\n", cases[i].line);
                assert_string_equal(o.err, line);
                assert_exit(&o, 64);
                assert_string_equal(o.out, "");
        }
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

/* --- mounts ---------------------------------------------------------------------------------- */

static char folder[64];

/* One message with its descriptor, which is that folder's. */
static void take_mount(int from, struct mount_msg *ret) {
        static uint8_t buf[MOUNT_MSG_MAX];
        struct iovec iov = { buf, sizeof(buf) };
        union {
                struct cmsghdr h;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct msghdr m = { .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        char link[64], path[256];
        int fd;

        must(n > 0 && m.msg_controllen > 0, "no message");
        must(mount_msg_decode(buf, (size_t)n, ret) == 0, "a bad message");
        memcpy(&fd, CMSG_DATA(&control.h), sizeof(fd));
        must((fcntl(fd, F_GETFL) & O_PATH) != 0, "the descriptor is more than a place");
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        must(n > 0, "readlink");
        path[n] = '\0';
        must(strcmp(path, folder) == 0, "another folder");
        close(fd);
}

static void m_mounts(struct peer *p) {
        struct ask a = take_ask(p);
        struct ucred cred;
        socklen_t len = sizeof(cred);
        struct mount_msg m;
        char c;

        must(is_ask(&a, ASK_SESSION_OPEN, "") && a.mounts, "open");
        must(getsockopt(p->passed, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == getuid() &&
                     cred.pid != getpid(),
             "whose pair it is");
        take_mount(p->passed, &m);
        must(m.index == 0 && m.total == 2 && strcmp(m.dst, "/a") == 0 && !m.read_only, "the first");
        take_mount(p->passed, &m);
        must(m.index == 1 && m.total == 2 && strcmp(m.dst, "/b c") == 0 && m.read_only, "the second");
        must(recv(p->passed, &c, 1, MSG_DONTWAIT) == 0, "more than that");
        put_answer(p, "s-1\n");
}

static void test_mounts(void **state) {
        char first[128], second[128], link[128], path[80];
        static char line[400];

        (void)state;
        /* A colon may stand in it. */
        snprintf(folder, sizeof(folder), "%s/x:y", dir);
        assert_int_equal(mkdir(folder, 0700), 0);
        snprintf(first, sizeof(first), "%s:/a", folder);
        snprintf(second, sizeof(second), "--mount=%s:/b c:ro", folder);
        asked(ARGV(W("session"), W("open"), W("--mount"), first, second), m_mounts, 0, "s-1\n", "");

        snprintf(path, sizeof(path), "%s/link", dir);
        assert_int_equal(symlink(folder, path), 0);
        snprintf(link, sizeof(link), "%s:/a", path);
        snprintf(
                line, sizeof(line),
                "hermes-sandbox: session open: --mount %s: a symbolic link stands in its path: give the path that "
                "realpath prints\n",
                path);
        asked(ARGV(W("session"), W("open"), W("--mount"), link), NULL, 64, "", line);
        unlink(path);
        rmdir(folder);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_questions),    cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_harmless),     cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_bad_managers), cmocka_unit_test(test_mounts),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
