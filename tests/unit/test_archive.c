/* The stream: what goes in comes out, and what is not one is refused. Packing and unpacking are test_files.c's. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/archive.h"

static struct archive_out out;
static struct archive_in in;
static uint8_t stream[1 << 20];

/* What was put, from its file into stream[]. */
static size_t taken(int fd) {
        ssize_t n = pread(fd, stream, sizeof(stream), 0);

        assert_in_range(n, 1, sizeof(stream) - 1);
        close(fd);
        return (size_t)n;
}

static int begin(void) {
        int fd = memfd_create("stream", MFD_CLOEXEC);

        assert_true(fd >= 0);
        archive_out_init(&out, fd);
        return fd;
}

static int put(enum archive_type type, const char *name, const char *target, uint64_t size) {
        struct archive_entry e = { .mode = 0640,
                                   .mtime_s = -5,
                                   .mtime_ns = 999999999,
                                   .size = size,
                                   .name = name,
                                   .target = target,
                                   .kind = 'l',
                                   .links = 2,
                                   .uid = 10000,
                                   .gid = 10001 };

        return archive_put_entry(&out, type, &e);
}

static void put_bytes(const char *s) {
        memcpy(archive_data_room(&out), s, strlen(s));
        archive_put_data(&out, strlen(s));
}

static const uint8_t *at;
static size_t left;

static struct archive_step step(void) {
        struct archive_step s;

        assert_int_equal(archive_next(&in, &at, &left, &s), 1);
        return s;
}

static void read_from(size_t len, enum archive_content content) {
        archive_in_init(&in, content);
        at = stream;
        left = len;
}

static void test_files(void **state) {
        int fd = begin();
        struct archive_step s;

        (void)state;
        assert_int_equal(put(ARCHIVE_DIR, "d", NULL, 0), 0);
        assert_int_equal(put(ARCHIVE_FILE, "f\n\xff", NULL, 3004), 0);
        put_bytes("data");
        archive_put_hole(&out, 3000);
        archive_put_close(&out, 3004, true);
        assert_int_equal(put(ARCHIVE_LINK, "l", "/x/../y", 0), 0);
        archive_put_up(&out);
        assert_int_equal(archive_out_end(&out), 0);
        read_from(taken(fd), ARCHIVE_OF_FILES);

        s = step();
        assert_int_equal(s.type, ARCHIVE_DIR);
        assert_string_equal(s.entry.name, "d");
        assert_int_equal(s.entry.mode, 0640);
        assert_int_equal(s.entry.mtime_s, -5);
        assert_int_equal(s.entry.mtime_ns, 999999999);
        s = step();
        assert_int_equal(s.type, ARCHIVE_FILE);
        assert_string_equal(s.entry.name, "f\n\xff");
        assert_int_equal(s.entry.size, 3004);
        s = step();
        assert_int_equal(s.type, ARCHIVE_DATA);
        assert_int_equal(s.len, 4);
        assert_memory_equal(s.data, "data", 4);
        s = step();
        assert_int_equal(s.type, ARCHIVE_HOLE);
        assert_int_equal(s.bytes, 3000);
        s = step();
        assert_int_equal(s.type, ARCHIVE_CLOSE);
        assert_true(s.whole);
        s = step();
        assert_int_equal(s.type, ARCHIVE_LINK);
        assert_string_equal(s.entry.target, "/x/../y");
        assert_int_equal(step().type, ARCHIVE_UP);
        assert_false(archive_ended(&in));
        s = step();
        assert_int_equal(s.type, ARCHIVE_END);
        assert_int_equal(s.bytes, 3);
        assert_true(archive_ended(&in));
        assert_int_equal(archive_next(&in, &at, &left, &s), 0);
}

static void test_items(void **state) {
        static char name[ARCHIVE_TARGET_MAX + 2];
        int fd = begin();
        struct archive_step s;

        (void)state;
        memset(name, 'n', ARCHIVE_TARGET_MAX);
        assert_int_equal(put(ARCHIVE_ITEM, name, name, 77), 0);
        assert_int_equal(put(ARCHIVE_ITEM, "", "folder", 0), 0);
        assert_int_equal(archive_out_end(&out), 0);
        read_from(taken(fd), ARCHIVE_OF_ITEMS);
        s = step();
        assert_int_equal(s.type, ARCHIVE_ITEM);
        assert_int_equal(s.entry.kind, 'l');
        assert_string_equal(s.entry.name, name);
        assert_string_equal(s.entry.target, name);
        assert_int_equal(s.entry.size, 77);
        assert_int_equal(s.entry.links, 2);
        assert_int_equal(s.entry.uid, 10000);
        assert_int_equal(s.entry.gid, 10001);
        assert_string_equal(step().entry.target, "folder");
        assert_int_equal(step().type, ARCHIVE_END);
}

/* What does not fit is not put, and the stream goes on as if it had not been. */
static void test_too_long(void **state) {
        static char name[ARCHIVE_TARGET_MAX + 2];
        int fd = begin();

        (void)state;
        memset(name, 'n', ARCHIVE_NAME_MAX + 1);
        assert_int_equal(put(ARCHIVE_FILE, name, NULL, 0), -ENAMETOOLONG);
        assert_int_equal(put(ARCHIVE_DIR, name, NULL, 0), -ENAMETOOLONG);
        memset(name, 'n', ARCHIVE_TARGET_MAX + 1);
        assert_int_equal(put(ARCHIVE_LINK, "l", name, 0), -ENAMETOOLONG);
        name[ARCHIVE_NAME_MAX] = '\0';
        assert_int_equal(put(ARCHIVE_FILE, name, NULL, 0), 0);
        archive_put_close(&out, 0, true);
        assert_int_equal(archive_out_end(&out), 0);
        read_from(taken(fd), ARCHIVE_OF_FILES);
        assert_string_equal(step().entry.name, name);
        assert_int_equal(step().type, ARCHIVE_CLOSE);
        assert_int_equal(step().bytes, 1);
}

/* A failed write sticks. */
static void test_unwritable(void **state) {
        int p[2];

        (void)state;
        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        close(p[0]);
        archive_out_init(&out, p[1]);
        assert_int_equal(archive_flush(&out), -EPIPE);
        for (int i = 0; i < 1000; i++)
                put(ARCHIVE_FILE, "f", NULL, 0);
        assert_int_equal(archive_out_end(&out), -EPIPE);
        close(p[1]);
}

/* --- what is refused ----------------------------------------------------------------------------- */

/* Reads to the end in pieces of each size, and expects it to be bad, for that reason. */
static void refused(size_t len, const char *why) {
        static const size_t pieces[] = { 1, 2, 7, sizeof(stream) };

        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
                struct archive_step s;
                size_t done = 0;
                int r = 0;

                archive_in_init(&in, ARCHIVE_OF_FILES);
                while (done < len && r >= 0) {
                        size_t n = pieces[i] < len - done ? pieces[i] : len - done;

                        at = stream + done;
                        left = n;
                        done += n;
                        while ((r = archive_next(&in, &at, &left, &s)) > 0)
                                ;
                }
                assert_int_equal(r, -EPROTO);
                assert_string_equal(in.why, why);
                assert_false(archive_ended(&in));
                /* For good. */
                at = stream;
                left = len;
                assert_int_equal(archive_next(&in, &at, &left, &s), -EPROTO);
        }
}

#define REFUSED(why, ...)                 \
        do {                              \
                int fd_ = begin();        \
                __VA_ARGS__;              \
                archive_out_end(&out);    \
                refused(taken(fd_), why); \
        } while (0)

static void test_names(void **state) {
        static const char *const names[] = { "..", ".", "a/b", "/", "/etc", "../x", "x/" };

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                REFUSED("a name that is no name of an entry", put(ARCHIVE_FILE, names[i], NULL, 0));
                REFUSED("a name that is no name of an entry", put(ARCHIVE_DIR, names[i], NULL, 0));
                REFUSED("a name that is no name of an entry", put(ARCHIVE_LINK, names[i], "t", 0));
        }
        REFUSED("a name that is no name of an entry", put(ARCHIVE_FILE, "", NULL, 0));
        REFUSED("a name that is no name of an entry", put(ARCHIVE_DIR, "", NULL, 0);
                put(ARCHIVE_DIR, "", NULL, 0));
        REFUSED("a link that leads nowhere", put(ARCHIVE_LINK, "l", "", 0));
}

static void test_sizes(void **state) {
        (void)state;
        REFUSED("a file is longer than was told", put(ARCHIVE_FILE, "f", NULL, 3); put_bytes("four"));
        REFUSED("a file is longer than was told", put(ARCHIVE_FILE, "f", NULL, 3);
                archive_put_hole(&out, 4));
        REFUSED("a file is longer than was told", put(ARCHIVE_FILE, "f", NULL, 3);
                archive_put_hole(&out, 0));
        REFUSED("a file is longer than was told", put(ARCHIVE_FILE, "f", NULL, ARCHIVE_SIZE_UNKNOWN);
                archive_put_hole(&out, INT64_MAX); put_bytes("x"));
        REFUSED("a file's size is not what was told", put(ARCHIVE_FILE, "f", NULL, 3); put_bytes("2b");
                archive_put_close(&out, 2, true));
        REFUSED("a file's size is not what was told", put(ARCHIVE_FILE, "f", NULL, ARCHIVE_SIZE_UNKNOWN);
                put_bytes("2b"); archive_put_close(&out, 3, false));
        REFUSED("a size that no file has", put(ARCHIVE_FILE, "f", NULL, UINT64_C(1) << 63));
        REFUSED("a hole behind a hole", put(ARCHIVE_FILE, "f", NULL, 3); archive_put_hole(&out, 1);
                archive_put_hole(&out, 1));
}

static void test_order(void **state) {
        static const char place[] = "a record that has no place where it stands";

        (void)state;
        REFUSED("the end of a folder that did not begin", archive_put_up(&out));
        REFUSED("entries are missing", put(ARCHIVE_DIR, "d", NULL, 0));
        REFUSED("entries are missing", out.entries = 1);
        REFUSED(place, put(ARCHIVE_FILE, "f", NULL, 0); put(ARCHIVE_FILE, "g", NULL, 0));
        REFUSED(place, put(ARCHIVE_FILE, "f", NULL, 0); archive_put_up(&out));
        REFUSED(place, put(ARCHIVE_FILE, "f", NULL, 0));
        REFUSED(place, put_bytes("x"));
        REFUSED(place, archive_put_hole(&out, 1));
        REFUSED(place, archive_put_close(&out, 0, true));
        REFUSED(place, put(ARCHIVE_ITEM, "i", "", 0));
        REFUSED("there is more behind its end", archive_out_end(&out));
        REFUSED("too many folders within folders",
                for (int i = 0; i <= ARCHIVE_DEPTH_MAX; i++) put(ARCHIVE_DIR, "d", NULL, 0));
}

/* Bytes that the writer would never write. */
static void test_bytes(void **state) {
        static const uint8_t head[] = { 1, 6, 0, 0, 0, 'H', 'S', 'A', 'R', 1, 0 };

        (void)state;
        memcpy(stream, head, sizeof(head));
        stream[9] = 2;
        refused(sizeof(head), "it is of another version");
        stream[5] = 'X';
        refused(sizeof(head), "it does not begin as one");
        memcpy(stream, "sh: not found\n", 14);
        refused(14, "it does not begin as one");
        memcpy(stream, head, sizeof(head));
        memcpy(stream + 11, "\0\0\0\0\0", 5);
        refused(16, "a record that has no place where it stands");
        memcpy(stream + 11, "\x0b\0\0\0\0", 5);
        refused(16, "a record that has no place where it stands");
        memcpy(stream + 11, "\x04\xff\xff\xff\xff", 5);
        refused(16, "a record is too long");
        memcpy(stream + 11, head, sizeof(head));
        refused(22, "a record that has no place where it stands");
        memcpy(stream + 11, "\x0a\x07\0\0\0\0\0\0\0\0\0\0", 12);
        refused(23, "a record of a wrong length");
}

/* Every byte of a stream cut away from its end leaves one that has not ended and is not bad. */
static void test_cut(void **state) {
        int fd = begin();
        size_t len;

        (void)state;
        put(ARCHIVE_DIR, "d", NULL, 0);
        put(ARCHIVE_FILE, "f", NULL, 4);
        put_bytes("data");
        archive_put_close(&out, 4, true);
        archive_put_up(&out);
        archive_out_end(&out);
        len = taken(fd);
        for (size_t n = 0; n <= len; n++) {
                struct archive_step s;
                int r;

                read_from(n, ARCHIVE_OF_FILES);
                while ((r = archive_next(&in, &at, &left, &s)) > 0)
                        ;
                assert_int_equal(r, 0);
                assert_int_equal(archive_ended(&in), n == len);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_files),    cmocka_unit_test(test_items),
                cmocka_unit_test(test_too_long), cmocka_unit_test(test_unwritable),
                cmocka_unit_test(test_names),    cmocka_unit_test(test_sizes),
                cmocka_unit_test(test_order),    cmocka_unit_test(test_bytes),
                cmocka_unit_test(test_cut),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
