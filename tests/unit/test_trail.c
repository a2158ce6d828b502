/* trail.h: the chain over restarts, rotations and crashes; a full file system; files that are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/sha2.h>

#include "manager/audit_command.h"
#include "manager/trail.h"

static char dir[64], path[128];

static int setup(void **state) {
        (void)state;
        snprintf(dir, sizeof(dir), "/tmp/test-trail-XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        snprintf(path, sizeof(path), "%s/log", dir);
        return 0;
}

static int teardown(void **state) {
        char name[160];

        (void)state;
        for (int i = 0; i < 6; i++) {
                snprintf(name, sizeof(name), i ? "%s.%d" : "%s", path, i);
                unlink(name);
        }
        return rmdir(dir);
}

static struct trail *opened(uint32_t backups, uint64_t max) {
        struct trail *t = NULL;
        struct errmsg e = { "" };

        if (trail_open(path, backups, max, &t, &e) < 0)
                fail_msg("%s", e.text);
        return t;
}

static void put(struct trail *t, const char *body) {
        struct trail_stamp s;

        assert_int_equal(trail_write(t, body, &s), 0);
        assert_true(s.seq > 0);
}

static void raw(const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0640);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
}

/* Checks the chain over all files, oldest first; returns how many lines of ours there are. */
static unsigned verify(char last[TRAIL_LINE_MAX]) {
        char line[TRAIL_LINE_MAX], name[160], want[80], prev[TRAIL_HASH + 1];
        unsigned long long seq = 0;
        unsigned n = 0;

        memset(prev, '0', TRAIL_HASH);
        prev[TRAIL_HASH] = 0;
        for (int i = 5; i >= 0; i--) {
                FILE *f;

                snprintf(name, sizeof(name), i ? "%s.%d" : "%s", path, i);
                f = fopen(name, "re");
                while (f && fgets(line, sizeof(line), f)) {
                        uint8_t digest[SHA256_DIGEST_SIZE];
                        struct sha256_ctx ctx;
                        char *mark;

                        assert_non_null(strchr(line, '\n'));
                        line[strcspn(line, "\n")] = 0;
                        mark = strstr(line, " seq=");
                        if (mark) {
                                if (n++ == 0)
                                        seq = strtoull(mark + 5, NULL, 10) - 1;
                                snprintf(want, sizeof(want), " seq=%llu prev=", ++seq);
                                assert_memory_equal(mark, want, strlen(want));
                                if (n > 1 || seq == 1)
                                        assert_string_equal(mark + strlen(want), prev);
                        }
                        sha256_init(&ctx);
                        sha256_update(&ctx, strlen(line), (uint8_t *)line);
                        sha256_digest(&ctx, sizeof(digest), digest);
                        audit_hex(digest, prev);
                        strcpy(last, line);
                }
                if (f)
                        fclose(f);
        }
        return n;
}

static void test_chain_over_restart(void **state) {
        char last[TRAIL_LINE_MAX];
        struct trail *t = opened(3, 1 << 20);
        struct trail_stamp s;
        struct stat st;

        (void)state;
        trail_tip(t, &s);
        assert_int_equal(s.seq, 0);
        put(t, "ONE");
        put(t, "TWO");
        trail_free(t);
        t = opened(3, 1 << 20);
        trail_tip(t, &s);
        assert_int_equal(s.seq, 2);
        put(t, "THREE");
        trail_free(t);
        assert_int_equal(verify(last), 3);
        assert_non_null(strstr(last, "Z THREE seq=3 prev="));
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
}

static void test_older_lines_of_others(void **state) {
        char last[TRAIL_LINE_MAX];
        struct trail *t;

        (void)state;
        raw("2026-06-08T05:02:59Z POOL-STOP containers=3\n");
        t = opened(3, 1 << 20);
        put(t, "ONE");
        trail_free(t);
        assert_int_equal(verify(last), 1);
        assert_non_null(strstr(last, " seq=1 "));
}

static void test_torn_line(void **state) {
        char last[TRAIL_LINE_MAX];
        struct trail *t = opened(3, 1 << 20);

        (void)state;
        put(t, "ONE");
        trail_free(t);
        raw("2026-06-08T05:02:59Z POOL HI");
        t = opened(3, 1 << 20);
        trail_free(t);
        assert_int_equal(verify(last), 2);
        assert_non_null(strstr(last, "Z TORN bytes=28 seq=2 prev="));
        /* Closed, and the TORN line lost: the number goes on all the same. */
        raw("torn\n");
        t = opened(3, 1 << 20);
        put(t, "THREE");
        trail_free(t);
        assert_int_equal(verify(last), 3);
        assert_non_null(strstr(last, " seq=3 "));
}

static void test_rotation(void **state) {
        char last[TRAIL_LINE_MAX], name[160];
        struct trail *t = opened(3, 400);
        struct stat st;

        (void)state;
        for (int i = 0; i < 20; i++)
                put(t, "SOMETHING");
        trail_free(t);
        assert_int_equal(verify(last), 11); /* 3 + 3 + 3 + 2: what was older is gone */
        assert_non_null(strstr(last, " seq=20 "));
        snprintf(name, sizeof(name), "%s.3", path);
        assert_int_equal(stat(name, &st), 0);
        snprintf(name, sizeof(name), "%s.4", path);
        assert_int_equal(stat(name, &st), -1);
        /* A crash between the rotation and the first line of the new file. */
        assert_int_equal(truncate(path, 0), 0);
        t = opened(3, 400);
        put(t, "AGAIN");
        trail_free(t);
        verify(last);
        assert_non_null(strstr(last, "AGAIN"));
        assert_null(strstr(last, " seq=1 "));
}

static void test_no_backups_no_rotation(void **state) {
        char last[TRAIL_LINE_MAX];
        struct trail *t = opened(0, 400);

        (void)state;
        for (int i = 0; i < 20; i++)
                put(t, "SOMETHING");
        trail_free(t);
        assert_int_equal(verify(last), 20);
}

static void test_no_room(void **state) {
        struct rlimit old, small;
        char last[TRAIL_LINE_MAX];
        struct trail *t = opened(0, 0);
        struct trail_stamp s;
        struct stat st;

        (void)state;
        put(t, "ONE");
        /* A file size limit fails as a full file system does: a part is written, then -EFBIG. */
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        small = old;
        small.rlim_cur = 150;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        assert_int_equal(trail_write(t, "TWO", &s), -EFBIG);
        assert_int_equal(s.seq, 0);
        assert_int_equal(trail_write(t, "THREE", &s), -EFBIG);
        assert_int_equal(trail_ready(t), -EFBIG);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_true(st.st_size < 150);
        put(t, "FOUR");
        assert_int_equal(trail_ready(t), 0);
        trail_free(t);
        assert_int_equal(verify(last), 3);
        assert_non_null(strstr(last, "FOUR seq=3"));
}

static void test_refused(void **state) {
        struct trail *t = NULL;
        struct errmsg e;
        char *big;

        (void)state;
        assert_int_equal(symlink("/dev/null", path), 0);
        assert_int_equal(trail_open(path, 0, 0, &t, &e), -ELOOP);
        unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(trail_open(path, 0, 0, &t, &e), -ENOTSUP);
        unlink(path);
        big = malloc(70001);
        assert_non_null(big);
        memset(big, 'x', 70000);
        big[70000] = 0;
        raw(big);
        free(big);
        assert_int_equal(trail_open(path, 0, 0, &t, &e), -EBADMSG);
        assert_null(t);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_chain_over_restart),
                TEST(test_older_lines_of_others),
                TEST(test_torn_line),
                TEST(test_rotation),
                TEST(test_no_backups_no_rotation),
                TEST(test_no_room),
                TEST(test_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
