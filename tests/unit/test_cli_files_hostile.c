/* What comes out of a sandbox that is hostile: streams that our tool would never send. */
#include "filesrig.h"

#include <sys/mman.h>

#include "common/archive.h"

/* --- the manager's side: a stream that the test has made ------------------------------------------------ */

static int stream_fd = -1;
static struct archive_out out;
static const char *lines; /* on stderr, with what NULs they have */
static size_t n_lines;
static bool endless; /* the last record, a DATA of FRAME_PAYLOAD_MAX bytes in all, again and again */

/* False: the client has gone, as it may. */
static bool try_put(struct peer *p, uint8_t type, const void *payload, size_t len) {
        static uint8_t frame[FRAME_MAX];

        frame_put_header(frame, type, 0, 1, (uint32_t)len);
        memcpy(frame + FRAME_HEADER, payload, len);
        for (size_t done = 0; done < FRAME_HEADER + len;) {
                ssize_t n = send(p->fd, frame + done, FRAME_HEADER + len - done, MSG_NOSIGNAL);

                if (n <= 0)
                        return false;
                done += (size_t)n;
        }
        return true;
}

static void m_stream(struct peer *p) {
        static uint8_t buf[FRAME_PAYLOAD_MAX];
        struct result end = a_result();
        uint8_t last[2048];
        ssize_t n;

        must(take_request(p).files, "the request");
        put_hello(p, FRAME_VERSION);
        put_started(p);
        if (n_lines > 0)
                put(p, FRAME_STDERR, 1, lines, n_lines);
        for (off_t at = 0; (n = pread(stream_fd, buf, sizeof(buf), at)) > 0; at += n)
                if (!try_put(p, FRAME_STDOUT, buf, (size_t)n))
                        return;
        if (endless) {
                memset(buf, 'x', sizeof(buf));
                memcpy(buf, (uint8_t[]){ ARCHIVE_DATA, 0xfb, 0xff, 0, 0 }, ARCHIVE_HEADER);
                while (try_put(p, FRAME_STDOUT, buf, sizeof(buf)))
                        ;
                return;
        }
        try_put(p, FRAME_RESULT, last, (size_t)result_encode(&end, last, sizeof(last)));
}

static void begin(void) {
        if (stream_fd >= 0)
                close(stream_fd);
        stream_fd = memfd_create("stream", MFD_CLOEXEC);
        archive_out_init(&out, stream_fd);
        lines = "";
        n_lines = 0;
        endless = false;
}

static void entry(enum archive_type type, const char *name, const char *target, uint32_t mode) {
        struct archive_entry e = {
                .mode = mode, .size = ARCHIVE_SIZE_UNKNOWN, .name = name, .target = target
        };

        assert_int_equal(archive_put_entry(&out, type, &e), 0);
}

static void data(const char *text) {
        memcpy(archive_data_room(&out), text, strlen(text));
        archive_put_data(&out, strlen(text));
}

static void file(const char *name, const char *text, uint32_t mode) {
        entry(ARCHIVE_FILE, name, NULL, mode);
        data(text);
        archive_put_close(&out, strlen(text), true);
}

static void folder(const char *name) {
        entry(ARCHIVE_DIR, name, NULL, 0700);
}

#define GET(code, ...)                                                  \
        do {                                                            \
                archive_out_end(&out);                                  \
                files_with(m_stream, ARGV(W("cp"), __VA_ARGS__), code); \
        } while (0)

/* All that is in outside/, but for what a test says. */
static uint64_t all(void) {
        return tree_digest_of(outside);
}

/* --- the cases ------------------------------------------------------------------------------------------ */

static void test_names(void **state) {
        uint64_t before;

        (void)state;
        tree_file(".bashrc", "mine", 0600);
        before = all();
        begin();
        file(".bashrc", "evil", 0755);
        GET(125, W("s1:report"), W("."));
        assert_string_equal(o.err, "hermes-sandbox: cp: stopped at './.bashrc': it was not asked for\n");
        assert_true(all() == before);
        begin();
        folder("");
        file(".bashrc", "evil", 0755);
        archive_put_up(&out);
        GET(125, W("s1:report"), W("."));
        assert_true(all() == before);
        /* Again, or out of order. */
        begin();
        file("b", "1", 0600);
        file("a", "2", 0600);
        GET(125, W("s1:a"), W("s1:b"), W("."));
        assert_false(is_there("a"));
        begin();
        file("a", "1", 0600);
        file("a", "2", 0600);
        GET(125, W("s1:a"), W("s1:b"), W("."));
        assert_text("a", "1");
        /* Under another name only where one is given. */
        begin();
        file("other", "1", 0600);
        GET(125, W("s1:c"), W("d"));
        assert_false(is_there("c") || is_there("d") || is_there("other"));
}

static void test_no_stream(void **state) {
        static const char *const texts[] = { "", "sh: hermes-files: not found\n", "\1\6\0\0" };
        static uint8_t noise[100000];

        (void)state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                begin();
                out.len = 0;
                archive_flush(&out);
                assert_int_equal(write(stream_fd, texts[i], strlen(texts[i])), strlen(texts[i]));
                files_with(m_stream, ARGV(W("cp"), W("s1:f"), W(".")), 125);
                assert_false(is_there("f"));
        }
        begin();
        archive_flush(&out);
        for (size_t i = 0; i < sizeof(noise); i++)
                noise[i] = (uint8_t)(i * 7919 >> 3);
        assert_int_equal(write(stream_fd, noise, sizeof(noise)), sizeof(noise));
        files_with(m_stream, ARGV(W("cp"), W("s1:f"), W(".")), 125);
        assert_string_equal(
                o.err,
                "hermes-sandbox: cp: stopped at '.': the stream makes no sense: a record that has no "
                "place where it stands\n");
        /* One that was cut: the first file stays, the second never was. */
        begin();
        folder("d");
        file("whole", "1", 0600);
        entry(ARCHIVE_FILE, "half", NULL, 0600);
        data("123");
        archive_flush(&out);
        files_with(m_stream, ARGV(W("cp"), W("s1:d"), W(".")), 125);
        assert_string_equal(
                o.err, "hermes-sandbox: cp: stopped at './d/half': the stream ended before its end\n");
        assert_text("d/whole", "1");
        assert_int_equal(unlink("d/whole"), 0);
        assert_int_equal(rmdir("d"), 0);
        /* And one that goes on behind its end. */
        begin();
        file("f", "1", 0600);
        archive_out_end(&out);
        GET(125, W("s1:f"), W("."));
        assert_text("f", "1");
}

/* Links that are there, and links that come: nothing is ever written through one. */
static void test_links(void **state) {
        (void)state;
        assert_int_equal(mkdir("victim", 0700), 0);
        tree_file("victim/f", "kept", 0600);
        assert_int_equal(mkdir("into", 0700), 0);
        assert_int_equal(symlink("../victim", "into/d"), 0);
        assert_int_equal(symlink("../victim/f", "into/f"), 0);
        begin();
        folder("");
        folder("d");
        file("f", "evil", 0600);
        archive_put_up(&out);
        entry(ARCHIVE_LINK, "k", "../victim", 0777);
        folder("k");
        file("f", "evil", 0600);
        archive_put_up(&out);
        file("f", "mine", 0600);
        entry(ARCHIVE_LINK, "f", "../victim/f", 0777);
        archive_put_up(&out);
        GET(1, W("s1:x/."), W("into"));
        assert_string_equal(o.err,
                            "hermes-sandbox: cp: cannot write 'into/d': it is there and no folder\n"
                            "hermes-sandbox: cp: left out 'into/k': it is a symbolic link\n"
                            "hermes-sandbox: cp: left out 'into/f': it is a symbolic link\n");
        assert_text("victim/f", "kept");
        assert_text("into/k/f", "evil");
        assert_int_equal(stat_of("into/f").st_mode, S_IFREG | 0600);
        assert_int_equal(stat_of("into/d").st_mode & S_IFMT, S_IFLNK);
        assert_text("into/f", "mine");
}

/* What came stays, whatever comes under its name. */
static void test_twice(void **state) {
        (void)state;
        assert_int_equal(mkdir("into", 0700), 0);
        tree_file("into/old", "old", 0600);
        begin();
        folder("");
        file("old", "first", 0600);
        file("old", "second", 0600);
        folder("new");
        file("f", "first", 0600);
        file("f", "second", 0600);
        archive_put_up(&out);
        folder("new");
        file("f", "third", 0600);
        file("g", "first", 0600);
        archive_put_up(&out);
        file("new", "a file", 0600);
        folder("old");
        file("in-file", "x", 0600);
        folder("deeper");
        archive_put_up(&out);
        archive_put_up(&out);
        archive_put_up(&out);
        GET(1, W("s1:x/."), W("into"));
        assert_string_equal(o.err,
                            "hermes-sandbox: cp: cannot write 'into/old': it came twice\n"
                            "hermes-sandbox: cp: cannot write 'into/new/f': it came twice\n"
                            "hermes-sandbox: cp: cannot write 'into/new/f': it came twice\n"
                            "hermes-sandbox: cp: cannot write 'into/new': it is a folder\n"
                            "hermes-sandbox: cp: cannot write 'into/old': it is there and no folder\n");
        assert_text("into/old", "first");
        assert_text("into/new/f", "first");
        assert_text("into/new/g", "first");
}

static void test_modes(void **state) {
        (void)state;
        assert_int_equal(mkdir("there", 0700), 0);
        begin();
        entry(ARCHIVE_DIR, "d", NULL, 07777);
        file("f", "x", 07777);
        archive_put_up(&out);
        entry(ARCHIVE_DIR, "there", NULL, 07777);
        archive_put_up(&out);
        GET(0, W("s1:d"), W("s1:there"), W("."));
        assert_int_equal(stat_of("d").st_mode, S_IFDIR | 0777);
        assert_int_equal(stat_of("d/f").st_mode, S_IFREG | 0777);
        /* One that was there is the caller's own. */
        assert_int_equal(stat_of("there").st_mode, S_IFDIR | 0700);
}

static void test_endless(void **state) {
        (void)state;
        begin();
        entry(ARCHIVE_FILE, "f", NULL, 0600);
        archive_flush(&out);
        endless = true;
        files_with(m_stream, ARGV(W("cp"), W("--max-size=3M"), W("s1:f"), W(".")), 1);
        assert_string_equal(
                o.err,
                "hermes-sandbox: cp: stopped at './f': more than 3145728 bytes came: --max-size takes "
                "more\n");
        assert_false(is_there("f"));
        /* Nothing but a hole: no disk is needed for it, and the file is as large as was said. */
        begin();
        entry(ARCHIVE_FILE, "f", NULL, 0600);
        archive_put_hole(&out, UINT64_C(1) << 40);
        archive_put_close(&out, UINT64_C(1) << 40, true);
        GET(0, W("s1:f"), W("."));
        assert_in_range(stat_of("f").st_blocks, 0, 16);
        assert_int_equal(unlink("f"), 0);
        begin();
        entry(ARCHIVE_FILE, "f", NULL, 0600);
        archive_put_hole(&out, INT64_MAX);
        archive_put_close(&out, INT64_MAX, true);
        GET(1, W("s1:f"), W("."));
        assert_false(is_there("f"));
        /* Empty files and folders count, too. */
        begin();
        folder("d");
        for (char name[] = "0000"; name[0] < '3';
             name[3] == '9' ? (name[3] = '0', name[2]++) : name[3]++) {
                for (int i = 2; i > 0; i--)
                        if (name[i] > '9') {
                                name[i] = '0';
                                name[i - 1]++;
                        }
                file(name, "", 0600);
        }
        archive_put_up(&out);
        GET(1, W("--max-size=1M"), W("s1:d"), W("."));
        assert_true(is_there("d/0254"));
        assert_false(is_there("d/0255"));
}

static void test_lines(void **state) {
        static const char said[] = "\x1b]0;title\a \xff \xe2\x80\xae\0two\nlines\\\0\0no end";

        (void)state;
        begin();
        file("f", "x", 0600);
        lines = said;
        n_lines = sizeof(said) - 1;
        GET(0, W("s1:f"), W("."));
        assert_string_equal(o.err, "hermes-sandbox: cp: in s1: \\x1b]0;title\\x07 \\xff \\u{202e}\n"
                                   "hermes-sandbox: cp: in s1: two\\x0alines\\\\\n"
                                   "hermes-sandbox: cp: in s1: no end\n");
}

static void test_listing(void **state) {
        struct archive_entry e = { .kind = '-', .name = "a\nb\x1b[2J\xff", .target = "" };

        (void)state;
        begin();
        archive_put_entry(&out, ARCHIVE_ITEM, &e);
        e.name = "";
        e.target = "x\ny";
        archive_put_entry(&out, ARCHIVE_ITEM, &e);
        archive_out_end(&out);
        files_with(m_stream, ARGV(W("ls"), W("s1:")), 0);
        assert_string_equal(o.out, "a\\x0ab\\x1b[2J\\xff\n\ns1:x\\x0ay:\n");
        begin();
        archive_put_entry(&out, ARCHIVE_ITEM, &e);
        archive_flush(&out);
        files_with(m_stream, ARGV(W("ls"), W("s1:")), 125);
        assert_non_null(strstr(o.err, "ls: what came from s1 is not all of it\n"));
        begin();
        file("f", "x", 0600);
        archive_out_end(&out);
        files_with(m_stream, ARGV(W("ls"), W("s1:")), 125);
        assert_non_null(strstr(o.err, "is no listing: a record that has no place where it stands\n"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, files_setup, files_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(test_names), CASE(test_no_stream), CASE(test_links), CASE(test_twice),
                CASE(test_modes), CASE(test_endless),   CASE(test_lines), CASE(test_listing),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
