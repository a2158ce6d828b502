/* cp, cat, ls and rm, both sides, with a manager between them that has no sandbox. */
#include "filesrig.h"

#include <sys/ioctl.h>
#include <sys/time.h>

#include "cli/files/files.h"

static void set_mtime(const char *path, time_t s, long ns) {
        struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { s, ns } };

        assert_int_equal(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW), 0);
}

static const char odd[] = "odd\n\x1b[31m\xff\xfe \\ name";

/* All that a tree may have: modes, times, holes, links, odd names. */
static void make_tree(const char *top) {
        char path[512];
        int fd;

        assert_int_equal(mkdir(top, 0700), 0);
        assert_int_equal(chmod(top, 0755), 0);
        snprintf(path, sizeof(path), "%s/sub", top);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/sub/exec", top);
        tree_file(path, "#!/bin/sh\n", 0755);
        set_mtime(path, 1000000000, 123456789);
        snprintf(path, sizeof(path), "%s/%s", top, odd);
        tree_file(path, "odd", 0604);
        snprintf(path, sizeof(path), "%s/empty", top);
        tree_file(path, "", 0);
        snprintf(path, sizeof(path), "%s/sparse", top);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(pwrite(fd, "front", 5, 0), 5);
        assert_int_equal(pwrite(fd, "middle", 6, 8 << 20), 6);
        assert_int_equal(ftruncate(fd, 64 << 20), 0);
        close(fd);
        snprintf(path, sizeof(path), "%s/sub", top);
        assert_int_equal(chmod(path, 0555), 0);
        set_mtime(path, 1100000000, 5);
}

static void check_tree(const char *top) {
        char path[512];
        struct stat st;
        char buf[6];
        int fd;

        snprintf(path, sizeof(path), "%s/sub/exec", top);
        st = stat_of(path);
        assert_int_equal(st.st_mode, S_IFREG | 0755);
        assert_int_equal(st.st_mtim.tv_sec, 1000000000);
        assert_int_equal(st.st_mtim.tv_nsec, 123456789);
        snprintf(path, sizeof(path), "%s/%s", top, odd);
        assert_int_equal(stat_of(path).st_mode, S_IFREG | 0604);
        assert_text(path, "odd");
        snprintf(path, sizeof(path), "%s/empty", top);
        st = stat_of(path);
        assert_int_equal(st.st_mode, S_IFREG);
        assert_int_equal(st.st_size, 0);
        snprintf(path, sizeof(path), "%s/sub", top);
        st = stat_of(path);
        assert_int_equal(st.st_mode, S_IFDIR | 0555);
        assert_int_equal(st.st_mtim.tv_sec, 1100000000);
        assert_int_equal(stat_of(top).st_mode, S_IFDIR | 0755);
        snprintf(path, sizeof(path), "%s/sparse", top);
        st = stat_of(path);
        assert_int_equal(st.st_size, 64 << 20);
        assert_in_range(st.st_blocks, 1, 4096);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(pread(fd, buf, 6, 8 << 20), 6);
        assert_memory_equal(buf, "middle", 6);
        assert_int_equal(pread(fd, buf, 6, 8 << 10), 6);
        assert_memory_equal(buf, "\0\0\0\0\0", 6);
        close(fd);
}

static void test_there_and_back(void **state) {
        (void)state;
        make_tree("t");
        FILES(0, W("cp"), W("t"), W("s1:"));
        assert_string_equal(o.err, "");
        assert_int_equal(o.out_len, 0);
        check_tree(in("t"));
        FILES(0, W("cp"), W("-r"), W("s1:t"), W("back"));
        assert_string_equal(o.err, "");
        check_tree("back");
        /* And again, over what is there. */
        assert_int_equal(chmod("back/sub", 0700), 0);
        FILES(0, W("cp"), W("s1:t/."), W("back/"));
        assert_int_equal(stat_of("back/sub").st_mode, S_IFDIR | 0700);
        assert_int_equal(chmod("back/sub", 0555), 0);
        set_mtime("back/sub", 1100000000, 5);
        check_tree("back");
}

static void test_large(void **state) {
        enum { SIZE = 20 << 20 };
        static uint8_t bytes[SIZE], back[SIZE];
        int fd = open("large", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        (void)state;
        for (uint32_t i = 0, x = 1; i < SIZE; i++) {
                x = x * 1664525 + 1013904223;
                bytes[i] = (uint8_t)(x >> 24);
        }
        assert_int_equal(write(fd, bytes, SIZE), SIZE);
        close(fd);
        FILES(0, W("cp"), W("large"), W("s1:copy"));
        FILES(0, W("cp"), W("s1:copy"), W("again"));
        fd = open("again", O_RDONLY | O_CLOEXEC);
        assert_int_equal(read(fd, back, SIZE), SIZE);
        close(fd);
        assert_memory_equal(bytes, back, SIZE);
}

/* --- where it goes ------------------------------------------------------------------------------- */

static void test_targets(void **state) {
        (void)state;
        tree_file("a", "A", 0644);
        tree_file("b", "B", 0600);
        assert_int_equal(mkdir(in("d"), 0755), 0);
        FILES(0, W("cp"), W("a"), W("b"), W("s1:d"));
        assert_text(in("d/a"), "A");
        assert_text(in("d/b"), "B");
        FILES(0, W("cp"), W("b"), W("s1:d/a"));
        assert_text(in("d/a"), "B");
        assert_int_equal(stat_of(in("d/a")).st_mode, S_IFREG | 0600);
        FILES(1, W("cp"), W("a"), W("b"), W("s1:d/a"));
        assert_string_equal(o.err, "hermes-sandbox: cp: in s1: cannot copy to 'd/a': Not a directory\n");
        FILES(1, W("cp"), W("a"), W("b"), W("s1:new"));
        assert_string_equal(
                o.err, "hermes-sandbox: cp: in s1: cannot copy to 'new': No such file or directory\n");
        FILES(1, W("cp"), W("a"), W("s1:new/x"));
        assert_string_equal(
                o.err, "hermes-sandbox: cp: in s1: cannot copy to 'new/x': No such file or directory\n");
        FILES(1, W("cp"), W("a"), W("s1:new/"));
        assert_string_equal(o.err, "hermes-sandbox: cp: in s1: cannot write 'new': Not a directory\n");
        FILES(0, W("cp"), W("."), W("s1:new/"));
        assert_text(in("new/a"), "A");
        assert_text(in("new/b"), "B");

        FILES(0, W("cp"), W("s1:d/a"), W("s1:d/b"), W("s1:new"), W("."));
        assert_text("a", "B");
        assert_text("new/a", "A");
        FILES(0, W("cp"), W("s1:d"), W("e"));
        assert_text("e/a", "B");
        files_with(NULL, ARGV(W("cp"), W("s1:d/a"), W("s1:d/b"), W("a")), 1);
        assert_string_equal(o.err, "hermes-sandbox: cp: cannot copy to 'a': Not a directory\n");
        FILES(1, W("cp"), W("s1:d"), W("a"));
        assert_string_equal(o.err, "hermes-sandbox: cp: cannot write 'a': it is there and no folder\n");
        FILES(1, W("cp"), W("s1:d/a"), W("none/"));
        assert_string_equal(o.err, "hermes-sandbox: cp: cannot write 'none': Not a directory\n");
        assert_int_equal(mkdir("e/new", 0700), 0);
        assert_int_equal(rmdir("e/new"), 0);
        tree_file(in("only"), "new", 0600);
        assert_int_equal(mkdir("only", 0700), 0);
        tree_file("only/kept", "kept", 0600);
        assert_int_equal(mkdir("in", 0700), 0);
        assert_int_equal(mkdir("in/only", 0700), 0);
        FILES(1, W("cp"), W("s1:only"), W("in"));
        assert_string_equal(o.err, "hermes-sandbox: cp: cannot write 'in/only': it is a folder\n");
}

/* The last component of the target is no link that somebody else could have put there. */
static void test_target_links(void **state) {
        (void)state;
        tree_file(in("f"), "F", 0644);
        assert_int_equal(mkdir("real", 0700), 0);
        assert_int_equal(symlink("real", "link"), 0);
        assert_int_equal(symlink("nowhere", "dangling"), 0);
        files_with(NULL, ARGV(W("cp"), W("s1:f"), W("link")), 1);
        assert_non_null(strstr(o.err, "cannot copy to 'link': it is a symbolic link"));
        files_with(NULL, ARGV(W("cp"), W("s1:f"), W("dangling")), 1);
        assert_false(is_there("nowhere"));
        FILES(0, W("cp"), W("s1:f"), W("link/"));
        assert_text("real/f", "F");
        /* In a folder, a link is replaced and not followed. */
        tree_file("victim", "untouched", 0600);
        assert_int_equal(unlink("real/f"), 0);
        assert_int_equal(symlink("../victim", "real/f"), 0);
        FILES(0, W("cp"), W("s1:f"), W("real"));
        assert_text("victim", "untouched");
        assert_int_equal(stat_of("real/f").st_mode, S_IFREG | 0644);
}

/* --- what is left out ---------------------------------------------------------------------------- */

static void test_links(void **state) {
        char target[64] = "";

        (void)state;
        assert_int_equal(mkdir("t", 0755), 0);
        tree_file("t/file", "F", 06755);
        assert_int_equal(link("t/file", "t/hard"), 0);
        assert_int_equal(symlink("../../etc/passwd", "t/soft"), 0);
        set_mtime("t/soft", 1200000000, 7);
        FILES(0, W("cp"), W("t"), W("s1:"));
        assert_int_equal(readlink(in("t/soft"), target, sizeof(target) - 1), 16);
        assert_string_equal(target, "../../etc/passwd");
        assert_int_equal(stat_of(in("t/soft")).st_mtim.tv_sec, 1200000000);
        assert_int_equal(stat_of(in("t/file")).st_mode, S_IFREG | 06755);
        assert_int_equal(stat_of(in("t/hard")).st_nlink, 1);
        FILES(1, W("cp"), W("s1:t"), W("back"));
        assert_string_equal(o.err, "hermes-sandbox: cp: left out 'back/soft': it is a symbolic link\n");
        assert_false(is_there("back/soft"));
        assert_text("back/hard", "F");
        assert_int_equal(stat_of("back/file").st_mode, S_IFREG | 0755);
        FILES(1, W("cp"), W("s1:t/soft"), W("x"));
        assert_false(is_there("x"));
}

static void test_no_files(void **state) {
        (void)state;
        assert_int_equal(mkdir(in("t"), 0755), 0);
        assert_int_equal(mkfifo(in("t/fifo"), 0666), 0);
        tree_file(in("t/file"), "F", 0644);
        FILES(1, W("cp"), W("s1:t"), W("."));
        assert_string_equal(o.err, "hermes-sandbox: cp: in s1: left out 't/fifo': it is a named pipe\n");
        assert_text("t/file", "F");
        FILES(1, W("cp"), W("/dev/null"), W("t"), W("s1:"));
        assert_string_equal(o.err, "hermes-sandbox: cp: left out '/dev/null': it is a device\n");
        FILES(1, W("cp"), W("none"), W("t"), W("s1:"));
        assert_string_equal(o.err,
                            "hermes-sandbox: cp: cannot read 'none': No such file or directory\n");
        FILES(1, W("cp"), W("s1:none"), W("s1:t/file"), W("."));
        assert_string_equal(
                o.err, "hermes-sandbox: cp: in s1: cannot read 'none': No such file or directory\n");
        assert_text("file", "F");
        FILES(1, W("cp"), W("/proc/self/mem"), W("s1:"));
        assert_false(is_there(in("mem")));
        FILES(0, W("cp"), W("/proc/self/status"), W("s1:"));
        assert_in_range(stat_of(in("status")).st_size, 100, 100000);
}

static void test_max_size(void **state) {
        (void)state;
        assert_int_equal(mkdir(in("t"), 0755), 0);
        for (char name[] = "t/a"; name[2] <= 'e'; name[2]++)
                tree_file(in(name), "0123456789", 0644);
        FILES(0, W("cp"), W("--max-size"), W("25k"), W("s1:t"), W("all"));
        FILES(1, W("cp"), W("--max-size=20000"), W("s1:t"), W("."));
        assert_non_null(strstr(o.err, "more than 20000 bytes came: --max-size takes more\n"));
        assert_true(is_there("t/a") + is_there("t/b") + is_there("t/c") + is_there("t/d") +
                            is_there("t/e") ==
                    3);
}

/* --- streams, cat, ls, rm ------------------------------------------------------------------------- */

static void test_streams(void **state) {
        struct how h = { .manager = m_tool };
        int p[2];

        (void)state;
        for (int i = 0; i < 2; i++) {
                assert_int_equal(pipe2(p, O_CLOEXEC), 0);
                assert_int_equal(write(p[1], "a stream", 8), 8);
                close(p[1]);
                h.stdin_fd = p[0];
                run(ARGV(W("cp"), W("-"), i == 0 ? W("s1:f") : W("s1:.")), &h, &o);
                close(p[0]);
                assert_exit(&o, i);
        }
        assert_string_equal(o.err, "hermes-sandbox: cp: in s1: cannot copy to '.': it is a folder\n");
        assert_text(in("f"), "a stream");
        tree_file(in("g"), "\xff\n\x1b", 0600);
        FILES(0, W("cat"), W("s1:f"), W("s1:g"));
        assert_string_equal(o.out, "a stream\xff\n\x1b");
        FILES(1, W("cat"), W("s1:none"), W("s1:f"), W("s1:."));
        assert_string_equal(o.out, "a stream");
        assert_string_equal(o.err,
                            "hermes-sandbox: cat: in s1: cannot read 'none': No such file or directory\n"
                            "hermes-sandbox: cat: in s1: cannot read '.': Is a directory\n");
}

static void test_ls(void **state) {
        (void)state;
        setenv("TZ", "UTC", 1);
        assert_int_equal(mkdir(in("d"), 0755), 0);
        FILES(0, W("ls"), W("s1:d"));
        assert_string_equal(o.out, "");
        tree_file(in("d/b"), "12345678901", 04750);
        tree_file(in("d/.hidden"), "", 0600);
        tree_file(in("d/a\n\x1b\xff\\"), "", 0600);
        assert_int_equal(symlink("b", in("d/l")), 0);
        set_mtime(in("d/b"), 1000000000, 0);
        set_mtime(in("d/l"), 1000000000, 0);
        FILES(0, W("ls"), W("s1:d"));
        assert_string_equal(o.out, ".hidden\na\\x0a\\x1b\\xff\\\\\nb\nl\n");
        FILES(0, W("ls"), W("-la"), W("s1:d/b"), W("s1:d/l"));
        assert_non_null(strstr(o.out, "-rwsr-x--- 1 "));
        assert_non_null(strstr(o.out, " 11 2001-09-09 01:46 d/b\n"));
        assert_non_null(strstr(o.out, " 2001-09-09 01:46 d/l -> b\n"));
        tree_file(in("f"), "", 0600);
        FILES(1, W("ls"), W("s1:d"), W("s1:none"), W("s1:f"));
        assert_string_equal(o.out, "f\n\ns1:d:\n.hidden\na\\x0a\\x1b\\xff\\\\\nb\nl\n");
        assert_string_equal(
                o.err, "hermes-sandbox: ls: in s1: cannot read 'none': No such file or directory\n");
        FILES(0, W("ls"), W("s1:"));
        assert_string_equal(o.out, "d\nf\n");
}

static void test_rm(void **state) {
        (void)state;
        make_tree(in("t"));
        assert_int_equal(symlink("../../outside", in("t/out")), 0);
        tree_file("kept", "K", 0600);
        FILES(1, W("rm"), W("s1:t"));
        assert_string_equal(
                o.err,
                "hermes-sandbox: rm: in s1: cannot remove 't': it is a folder: rm -r removes it and "
                "all that is in it\n");
        FILES(0, W("rm"), W("s1:t/empty"));
        assert_false(is_there(in("t/empty")));
        FILES(0, W("rm"), W("-rf"), W("s1:t"), W("s1:none"));
        assert_false(is_there(in("t")));
        assert_text("kept", "K");
        FILES(1, W("rm"), W("s1:none"));
        assert_string_equal(
                o.err, "hermes-sandbox: rm: in s1: cannot remove 'none': No such file or directory\n");
        FILES(1, W("rm"), W("-rf"), W("s1:."), W("s1:.."), W("s1:/"), W("s1:"));
        assert_true(is_there(inside));
}

/* --- progress ---------------------------------------------------------------------------------------- */

static void drawn(int terminal, char *buf, size_t size) {
        struct pollfd p = { .fd = terminal, .events = POLLIN };
        size_t len = 0;

        while (poll(&p, 1, 0) > 0) {
                ssize_t n = read(terminal, buf + len, size - 1 - len);

                assert_true(n > 0);
                len += (size_t)n;
        }
        buf[len] = '\0';
}

static void test_progress(void **state) {
        int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), mine = dup(2), fd;
        const struct winsize size = { .ws_row = 24, .ws_col = 60 };
        struct files_progress p;
        char buf[1024];

        (void)state;
        assert_true(grantpt(terminal) == 0 && unlockpt(terminal) == 0);
        fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
        dup2(fd, 2);
        files_progress_init(&p);
        assert_true(p.on);
        /* Not in the first second. */
        files_progress_show(&p, "file", 1);
        assert_false(p.drawn);
        p.begin_ms -= 10000;
        p.next_ms -= 10000;
        files_progress_show(&p, "d/a\x1b[2J", 123456789);
        /* And not at each step. */
        files_progress_show(&p, "other", 123456790);
        dup2(mine, 2);
        drawn(terminal, buf, sizeof(buf));
        assert_memory_equal(buf, "\r\033[K117.7 MiB  1", 16);
        assert_non_null(strstr(buf, " MiB/s  d/a\\x1b[2J"));
        assert_null(strstr(buf, "other"));
        dup2(fd, 2);
        p.next_ms = 0;
        files_progress_show(&p, "0123456789/0123456789/0123456789/\xc3\xa4\xc3\xa4/file", 1023);
        files_progress_clear(&p);
        files_progress_clear(&p);
        dup2(mine, 2);
        drawn(terminal, buf, sizeof(buf));
        assert_memory_equal(buf, "\r\033[K1023 B  10", 14);
        assert_non_null(strstr(buf, "B/s  ...456789/0123456789/\xc3\xa4\xc3\xa4/file\r\033[K"));
        assert_int_equal(strlen(strstr(buf, "\xc3\xa4/file\r\033[K")), 11);
        dup2(null_fd(), 2);
        files_progress_init(&p);
        dup2(mine, 2);
        assert_false(p.on);
        close(mine);
        close(fd);
        close(terminal);
}

/* --- usage --------------------------------------------------------------------------------------- */

static void refused_with(char **argv, const char *line) {
        struct how h = { .stdin_fd = null_fd() };

        run(argv, &h, &o);
        close(h.stdin_fd);
        assert_exit(&o, 64);
        assert_non_null(strstr(o.err, line));
}

static void test_usage(void **state) {
        struct how h = { .stdin_fd = null_fd() };

        (void)state;
        refused_with(ARGV(W("cp")), "expected a source and a target");
        refused_with(ARGV(W("cp"), W("s1:a")), "expected a source and a target");
        refused_with(ARGV(W("cp"), W("a"), W("b")), "neither 'a' nor 'b' is SESSION:PATH");
        refused_with(ARGV(W("cp"), W("./a:b"), W("b")), "neither './a:b' nor 'b'");
        refused_with(ARGV(W("cp"), W("a"), W("/s1:b")), "neither 'a' nor '/s1:b'");
        refused_with(ARGV(W("cp"), W("s1:a"), W("s2:b")), "from a sandbox into a sandbox");
        refused_with(ARGV(W("cp"), W("s1:a"), W("s2:b"), W(".")), "one session at a time");
        refused_with(ARGV(W("cp"), W("x/a"), W("y/a"), W("s1:")), "have the same name");
        refused_with(ARGV(W("cp"), W("s1:x/a"), W("s1:a/"), W(".")), "have the same name");
        refused_with(ARGV(W("cp"), W("-"), W("a"), W("s1:")), "- and other sources");
        refused_with(ARGV(W("cp"), W("s1:a"), W("-")), "use hermes-sandbox cat");
        refused_with(ARGV(W("cp"), W("--max-size"), W("0"), W("s1:a"), W(".")), "--max-size '0'");
        refused_with(ARGV(W("cp"), W("--max-size"), W("1X"), W("s1:a"), W(".")), "--max-size '1X'");
        refused_with(ARGV(W("cp"), W("--max-size"), W("99999999T"), W("s1:a"), W(".")),
                     "--max-size '99999999T'");
        refused_with(ARGV(W("cp"), W("--timeout"), W("0"), W("s1:a"), W(".")), "--timeout '0'");
        refused_with(ARGV(W("cp"), W("-x"), W("s1:a"), W(".")), "unknown option -x");
        refused_with(ARGV(W("cp"), W("a"), W(".s:b")), "session");
        refused_with(ARGV(W("cat")), "expected SESSION:PATH");
        refused_with(ARGV(W("cat"), W("a")), "'a': expected SESSION:PATH");
        refused_with(ARGV(W("ls"), W("-z"), W("s1:")), "unknown option -z");
        refused_with(ARGV(W("ls"), W(":a")), "':a': expected SESSION:PATH");
        refused_with(ARGV(W("rm"), W("s1:a"), W("s2:b")), "one session at a time");
        run(ARGV(W("cp"), W("a"), W("s1:")), &h, &o);
        assert_exit(&o, 69);
        close(h.stdin_fd);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, files_setup, files_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(test_there_and_back),
                CASE(test_large),
                CASE(test_targets),
                CASE(test_target_links),
                CASE(test_links),
                CASE(test_no_files),
                CASE(test_max_size),
                CASE(test_streams),
                CASE(test_ls),
                CASE(test_rm),
                CASE(test_progress),
                CASE(test_usage),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
