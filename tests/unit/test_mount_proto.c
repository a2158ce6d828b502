/* The messages by which a caller names the folders of his sandbox: round trips and every refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/engine_msg.h"
#include "common/mount_proto.h"

static void round_trip(void **state) {
        struct mount_msg m = { .index = 2, .total = 3, .read_only = true, .dst = "/work/ä b" }, got;
        uint8_t buf[MOUNT_MSG_MAX];
        ssize_t n = mount_msg_encode(&m, buf, sizeof(buf));

        (void)state;
        assert_true(n > 0);
        assert_int_equal(mount_msg_decode(buf, (size_t)n, &got), 0);
        assert_int_equal(got.index, 2);
        assert_int_equal(got.total, 3);
        assert_true(got.read_only);
        assert_string_equal(got.dst, m.dst);
        for (size_t len = 0; len < (size_t)n; len++)
                assert_int_equal(mount_msg_decode(buf, len, &got), -EPROTO);
        assert_int_equal(mount_msg_encode(&m, buf, (size_t)n - 1), -EMSGSIZE);
}

static void refused(void **state) {
        struct mount_msg m = { .index = 0, .total = 1, .dst = "/work" }, got;
        uint8_t buf[MOUNT_MSG_MAX + 1];
        size_t n = (size_t)mount_msg_encode(&m, buf, sizeof(buf));

        (void)state;
        assert_int_equal(mount_msg_decode(buf, n + 1, &got), -EPROTO);
        buf[0] = MOUNT_PROTO_VERSION + 1;
        assert_int_equal(mount_msg_decode(buf, n, &got), -EPROTO);
        buf[0] = MOUNT_PROTO_VERSION;
        buf[2] = 1;
        assert_int_equal(mount_msg_decode(buf, n, &got), -EPROTO);
        buf[2] = 0;
        buf[3] = 0;
        assert_int_equal(mount_msg_decode(buf, n, &got), -EPROTO);
        buf[3] = MOUNT_MAX + 1;
        assert_int_equal(mount_msg_decode(buf, n, &got), -EPROTO);
        buf[3] = 1;
        buf[4] = 2;
        assert_int_equal(mount_msg_decode(buf, n, &got), -EPROTO);
        buf[4] = 0;
        buf[9] = 'x';
        assert_int_equal(mount_msg_decode(buf, n, &got), -EPROTO);
        buf[9] = '/';
        assert_int_equal(mount_msg_decode(buf, n, &got), 0);
        m.total = 0;
        assert_int_equal(mount_msg_encode(&m, buf, sizeof(buf)), -EINVAL);
        m.total = MOUNT_MAX + 1;
        assert_int_equal(mount_msg_encode(&m, buf, sizeof(buf)), -EINVAL);
        m.total = m.index = 1;
        assert_int_equal(mount_msg_encode(&m, buf, sizeof(buf)), -EINVAL);
}

static void destinations(void **state) {
        static const char *const bad[] = { "",      "work",  "/",         "//",
                                           "/a/",   "/a//b", "/a/./b",    "/a/..",
                                           "/..",   "/.",    "/a\nb",     "/a\177",
                                           "/\xff", "/a/.",  "/\xc2\x85", "/\xe2\x80\xa8" };
        static const char *const good[] = { "/a", "/a/b", "/...", "/.a", "/..a", "/a b", "/\xc3\xa4" };
        char longest[MOUNT_DST_MAX + 2];

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_non_null(mount_dst_fault(bad[i]));
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                assert_null(mount_dst_fault(good[i]));
        memset(longest, 'x', sizeof(longest));
        longest[0] = '/';
        longest[MOUNT_DST_MAX + 1] = '\0';
        assert_non_null(mount_dst_fault(longest));
        longest[MOUNT_DST_MAX] = '\0';
        assert_null(mount_dst_fault(longest));
}

static void components(void **state) {
        (void)state;
        assert_true(mount_path_below("/srv/a", "/srv/a"));
        assert_true(mount_path_below("/srv/a/b", "/srv/a"));
        assert_false(mount_path_below("/srv/ab", "/srv/a"));
        assert_false(mount_path_below("/srv", "/srv/a"));
        assert_false(mount_path_below("/other/srv/a", "/srv/a"));
}

/* One message a packet, with its descriptor. */
static void sent(void **state) {
        struct mount_msg m = { .index = 0, .total = 1, .dst = "/work" }, got;
        int pair[2], dir = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
        uint8_t buf[MOUNT_MSG_MAX];
        struct stat a, b;
        ssize_t n;

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(mount_msg_send(pair[0], &m, -1), -EBADF);
        assert_int_equal(mount_msg_send(pair[0], &m, dir), 0);
        n = engine_msg_recv(pair[1], buf, sizeof(buf), &fd);
        assert_true(n > 0 && fd >= 0);
        assert_int_equal(mount_msg_decode(buf, (size_t)n, &got), 0);
        assert_string_equal(got.dst, "/work");
        assert_int_equal(fstat(dir, &a), 0);
        assert_int_equal(fstat(fd, &b), 0);
        assert_int_equal(a.st_ino, b.st_ino);
        close(fd);
        close(dir);
        close(pair[0]);
        close(pair[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(round_trip), cmocka_unit_test(refused), cmocka_unit_test(destinations),
                cmocka_unit_test(components), cmocka_unit_test(sent),
        };

        return cmocka_run_group_tests_name("mount_proto", tests, NULL, NULL);
}
