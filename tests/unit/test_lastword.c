/* Who waits in a socket that a daemon cannot serve is told why, and the socket is empty afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/exitcode.h"
#include "common/lastword.h"
#include "manager/manager.h"

#define WAITING 12 /* more than are kept open to the end */

static struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "\0test-lastword" };

static int listening(void) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "test-lastword-%d", (int)getpid());
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(fd, 64), 0);
        return fd;
}

static int connected(void) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

static unsigned elapsed_ms(const struct timespec *since) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (unsigned)((now.tv_sec - since->tv_sec) * 1000 +
                          (now.tv_nsec - since->tv_nsec) / 1000000);
}

static void say(int fd, void *userdata) {
        unsigned *told = userdata;

        (*told)++;
        assert_int_equal(write(fd, "no", 2), 2);
}

static void nobody(void **state) {
        int fd = listening();
        struct timespec begin;
        unsigned told = 0;

        (void)state;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        lastword(fd, 60000, say, &told);
        assert_int_equal(told, 0);
        assert_true(elapsed_ms(&begin) < 30000);
        close(fd);
}

static void everybody(void **state) {
        int fd = listening(), peers[WAITING];
        struct pollfd left = { .fd = fd, .events = POLLIN };
        struct timespec begin;
        unsigned told = 0;
        char buf[8];

        (void)state;
        for (int i = 0; i < WAITING; i++)
                peers[i] = connected();
        clock_gettime(CLOCK_MONOTONIC, &begin);
        lastword(fd, 100, say, &told);
        assert_true(elapsed_ms(&begin) >= 99); /* its milliseconds begin before ours */
        assert_int_equal(told, WAITING);
        assert_int_equal(poll(&left, 1, 0), 0);
        for (int i = 0; i < WAITING; i++) {
                assert_int_equal(read(peers[i], buf, sizeof(buf)), 2);
                assert_int_equal(read(peers[i], buf, sizeof(buf)), 0);
                close(peers[i]);
        }
        close(fd);
}

/* The next frame of @buf, which has @len bytes from *done on. */
static struct frame next(uint8_t *buf, size_t len, size_t *done) {
        struct frame f;
        size_t used;

        assert_int_equal(frame_parse(buf + *done, len - *done, FRAME_FROM_MANAGER, &f, &used), 1);
        *done += used;
        return f;
}

/* As the command line reads it. */
static void callers(void **state) {
        int fd = listening(), peer = connected();
        char line[PROTO_LINE_MAX];
        uint8_t buf[4096];
        struct reject r;
        struct hello h;
        struct frame f;
        size_t done = 0;
        ssize_t n;

        (void)state;
        memset(line, 'x', sizeof(line) - 1);
        line[sizeof(line) - 1] = '\0';
        lastword_callers(fd, EXIT_CONFIG, line);
        n = read(peer, buf, sizeof(buf));
        assert_true(n > 0);
        f = next(buf, (size_t)n, &done);
        assert_int_equal(f.type, FRAME_HELLO);
        assert_int_equal(hello_decode(f.payload, f.len, &h), 0);
        assert_int_equal(h.role, HELLO_MANAGER);
        f = next(buf, (size_t)n, &done);
        assert_int_equal(f.type, FRAME_REJECT);
        assert_int_equal(f.channel, 1);
        assert_int_equal(reject_decode(f.payload, f.len, &r), 0);
        assert_int_equal(r.exit_code, EXIT_CONFIG);
        assert_string_equal(r.message, line);
        assert_int_equal(done, n);
        close(peer);
        close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nobody),
                cmocka_unit_test(everybody),
                cmocka_unit_test(callers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
