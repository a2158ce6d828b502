/* exec: every kind of stream that stdout can be gets all bytes, in order and in its place. */
#include <sys/ioctl.h>

#include "clirig.h"

#define FRAMES 48
#define TOTAL (FRAMES * FRAME_PAYLOAD_MAX)

static uint8_t byte_at(size_t i) {
        return (uint8_t)(i * 31 + i / FRAME_PAYLOAD_MAX);
}

static void m_pattern(struct peer *p) {
        static uint8_t chunk[FRAME_PAYLOAD_MAX];
        struct result r = a_result();

        greet(p);
        for (size_t i = 0; i < TOTAL; i += sizeof(chunk)) {
                for (size_t k = 0; k < sizeof(chunk); k++)
                        chunk[k] = byte_at(i + k);
                put(p, FRAME_STDOUT, 1, chunk, sizeof(chunk));
        }
        r.bytes[0] = TOTAL;
        put_result(p, &r);
}

/* Reads @fd to its end; @late: not before it is full. True when all is as it was sent. */
static bool whole(int fd, bool late) {
        static uint8_t buf[10000];
        size_t done = 0;
        int held = -1, now = 0;

        while (late && held != now) {
                held = now;
                poll(NULL, 0, 20);
                if (ioctl(fd, FIONREAD, &now) < 0)
                        return false;
        }
        for (;;) {
                ssize_t n = read(fd, buf, sizeof(buf));

                if (n <= 0)
                        return n == 0 && done == TOTAL;
                for (ssize_t i = 0; i < n; i++)
                        if (buf[i] != byte_at(done + (size_t)i))
                                return false;
                done += (size_t)n;
        }
}

/* @p[0] is read by a process of its own, @p[1] is the stdout of the CLI. */
static void into(int p[2], bool late) {
        struct how h = { .manager = m_pattern, .stdin_fd = null_fd(), .stdout_fd = p[1] };
        int status;
        pid_t reader = fork();

        if (reader == 0) {
                close(p[1]);
                _exit(whole(p[0], late) ? 0 : 1);
        }
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        close(h.stdin_fd);
        close(p[0]);
        close(p[1]);
        assert_exit(&o, 0);
        assert_int_equal(waitpid(reader, &status, 0), reader);
        assert_int_equal(status, 0);
}

static void test_pipes(void **state) {
        int p[2];

        (void)state;
        for (int late = 0; late < 2; late++) {
                assert_int_equal(pipe2(p, O_CLOEXEC), 0);
                into(p, late);
                assert_int_equal(pipe2(p, O_CLOEXEC), 0);
                fcntl(p[1], F_SETFL, O_NONBLOCK);
                into(p, late);
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
                into(p, late);
        }
}

/* Sizes around those that a pipe takes at once, with the other stream in between. */
static void m_pieces(struct peer *p) {
        static const size_t sizes[] = { 1,     4095, 4096,  4097,  65536, 12, 65535, 8192,
                                        65536, 3,    65536, 40000, 65536, 1,  65536, 65536 };
        static uint8_t chunk[FRAME_PAYLOAD_MAX];
        struct result r = a_result();
        size_t done = 0;

        greet(p);
        for (size_t i = 0; done < TOTAL; i++) {
                size_t n = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];

                n = n < TOTAL - done ? n : TOTAL - done;
                for (size_t k = 0; k < n; k++)
                        chunk[k] = byte_at(done + k);
                put(p, FRAME_STDOUT, 1, chunk, n);
                put(p, FRAME_STDERR, 1, "e", i % 2);
                done += n;
        }
        put_result(p, &r);
}

static void test_pieces(void **state) {
        struct how h = { .manager = m_pieces, .stdin_fd = null_fd() };
        int p[2], status;
        pid_t reader;

        (void)state;
        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        reader = fork();
        if (reader == 0) {
                close(p[1]);
                _exit(whole(p[0], false) ? 0 : 1);
        }
        h.stdout_fd = p[1];
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        close(p[0]);
        close(p[1]);
        close(h.stdin_fd);
        assert_exit(&o, 0);
        assert_true(strlen(o.err) > 10 && strspn(o.err, "e") == strlen(o.err));
        assert_int_equal(waitpid(reader, &status, 0), reader);
        assert_int_equal(status, 0);
}

/* The manager dies in the middle of a frame that goes right into the pipe. */
static void m_torn(struct peer *p) {
        static uint8_t frame[FRAME_MAX];

        greet(p);
        for (int i = 0; i < 3; i++)
                put(p, FRAME_STDOUT, 1, frame, FRAME_PAYLOAD_MAX);
        frame_put_header(frame, FRAME_STDOUT, 0, 1, FRAME_PAYLOAD_MAX);
        must(send(p->fd, frame, 20000, MSG_NOSIGNAL) == 20000, "cannot send");
}

static void test_torn(void **state) {
        struct how h = { .manager = m_torn, .stdin_fd = null_fd() };

        (void)state;
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 125);
        assert_non_null(strstr(o.err, "lost the manager"));
        assert_int_equal(o.out_len, 3 * FRAME_PAYLOAD_MAX + 20000 - FRAME_HEADER);
}

/* The pipe's other users do not find it non-blocking. */
static void test_flags_stay(void **state) {
        struct how h = { .manager = m_pattern, .stdin_fd = null_fd() };
        int p[2];
        pid_t reader;

        (void)state;
        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        reader = fork();
        if (reader == 0) {
                close(p[1]);
                _exit(whole(p[0], false) ? 0 : 1);
        }
        h.stdout_fd = p[1];
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_int_equal(fcntl(p[1], F_GETFL) & O_NONBLOCK, 0);
        close(p[0]);
        close(p[1]);
        close(h.stdin_fd);
        assert_int_equal(waitpid(reader, NULL, 0), reader);
}

/* Behind what stands in a file already, whether it is open for appending or only at its end. */
static void test_files(void **state) {
        char path[sizeof(dir) + 8];

        (void)state;
        snprintf(path, sizeof(path), "%s/out", dir);
        for (int i = 0; i < 2; i++) {
                struct how h = { .manager = m_pattern, .stdin_fd = null_fd() };
                char head[4];

                h.stdout_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | (i ? O_APPEND : 0),
                                   0600);
                assert_int_equal(write(h.stdout_fd, "head", 4), 4);
                run(ARGV(W("exec"), W("cmd")), &h, &o);
                assert_exit(&o, 0);
                assert_int_equal(write(h.stdout_fd, "tail", 4), 4);
                assert_int_equal(lseek(h.stdout_fd, 0, SEEK_END), TOTAL + 8);
                assert_int_equal(pread(h.stdout_fd, head, 4, 0), 4);
                assert_memory_equal(head, "head", 4);
                assert_int_equal(ftruncate(h.stdout_fd, TOTAL + 4), 0);
                lseek(h.stdout_fd, 4, SEEK_SET);
                assert_true(whole(h.stdout_fd, false));
                close(h.stdout_fd);
                close(h.stdin_fd);
        }
        unlink(path);
}

static void m_once(struct peer *p) {
        static uint8_t chunk[FRAME_PAYLOAD_MAX];

        greet(p);
        put(p, FRAME_STDOUT, 1, chunk, sizeof(chunk));
        peer_next(p);
}

static void test_devices(void **state) {
        struct how h = { .manager = m_once, .stdin_fd = null_fd() };

        (void)state;
        h.stdout_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_exit(&o, 125);
        assert_non_null(strstr(o.err, "cannot write the command's stdout: "));
        close(h.stdout_fd);
        h.manager = m_pattern;
        h.stdout_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        run(ARGV(W("exec"), W("cmd")), &h, &o);
        assert_exit(&o, 0);
        close(h.stdout_fd);
        close(h.stdin_fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pipes), cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_torn),  cmocka_unit_test(test_flags_stay),
                cmocka_unit_test(test_files), cmocka_unit_test(test_devices),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
