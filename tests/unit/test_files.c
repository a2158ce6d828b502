/*
 * Packing and unpacking where they meet what test_cli_files.c does not show: a file system without nameless files, an
 * end by a signal, a full disk, a bound on descriptors, a source that changes while it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/files.h"
#include "common/pack.h"
#include "common/unpack.h"
#include "filetree.h"

static char top[] = "/tmp/test-files.XXXXXX";
static struct pack pack;
static struct unpack unpack;
static char said[4096];

static void say(void *userdata, const char *what, const char *path, const char *why) {
        size_t len = strlen(said);

        (void)userdata;
        snprintf(said + len, sizeof(said) - len, "%s '%s': %s\n", what, path, why);
}

static int setup(void **state) {
        (void)state;
        umask(022);
        said[0] = '\0';
        strcpy(top, "/tmp/test-files.XXXXXX");
        return mkdtemp(top) && chdir(top) == 0 && mkdir("from", 0755) == 0 && mkdir("to", 0755) == 0
                       ? 0
                       : -1;
}

static int teardown(void **state) {
        (void)state;
        if (chdir("/") < 0)
                return -1;
        tree_remove(top);
        return 0;
}

/* A stream of @path, in memory. */
static int stream_of(const char *path) {
        int fd = memfd_create("stream", MFD_CLOEXEC);

        pack_init(&pack, fd, say, NULL);
        assert_int_equal(pack_path(&pack, path), 0);
        assert_int_equal(pack_end(&pack), 0);
        return fd;
}

/* Into to/ or what else @path is. Returns what unpack_done() does. */
static int write_stream(int fd, const char *path) {
        struct unpack_rules rules = { .links = true, .mode_bits = 07777, .say = say };
        struct unpack_target target;
        static uint8_t buf[10000];
        const char *why;
        off_t at = 0;
        ssize_t n;
        int r;

        if (unpack_target_open(path, false, &target, &why) < 0)
                return -ENOENT;
        unpack_init(&unpack, &target, path, &rules);
        while ((n = pread(fd, buf, sizeof(buf), at)) > 0 && unpack_feed(&unpack, buf, (size_t)n) == 0)
                at += n;
        r = unpack_done(&unpack);
        close(target.dir);
        return r;
}

static uint64_t entries_in(const char *path) {
        uint64_t n = 0;

        tree_digest(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), &n);
        return n;
}

/* --- no nameless files: without /proc they cannot be given a name ------------------------------------------- */

static int named_in_chroot(int stream, int cut) {
        if (chroot(top) < 0 || chdir("/") < 0)
                return 99;
        if (write_stream(stream, "to") != 0 || write_stream(cut, "to") != -EPIPE)
                return 1;
        return said[0] ? 0 : 2;
}

static void test_named(void **state) {
        int stream, cut, status;
        struct stat st;
        pid_t pid;

        (void)state;
        if (geteuid() != 0) {
                skip();
                return;
        }
        tree_file("from/old", "new", 0640);
        tree_file("from/other", "other", 0400);
        assert_int_equal(symlink("old", "from/link"), 0);
        assert_int_equal(mkdir("to/from", 0755), 0);
        tree_file("to/from/old", "old", 0600);
        stream = stream_of("from");
        tree_file("from/half", "half", 0600);
        cut = stream_of("from/half");
        assert_int_equal(ftruncate(cut, lseek(cut, 0, SEEK_END) - 20), 0);
        pid = fork();
        if (pid == 0)
                _exit(named_in_chroot(stream, cut));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(stream);
        close(cut);
        assert_int_equal(stat("to/from/old", &st), 0);
        assert_int_equal(st.st_size, 3);
        assert_int_equal(st.st_mode, S_IFREG | 0640);
        assert_int_equal(lstat("to/from/link", &st), 0);
        /* No temporary name is left. */
        assert_int_equal(entries_in("to"), 4);
}

/* --- ends ----------------------------------------------------------------------------------------------------- */

/* The tool, with one half of a file in its stdin, which is *ret. */
static pid_t half_way(int *ret) {
        struct archive_entry e = { .mode = 0600, .size = ARCHIVE_SIZE_UNKNOWN, .name = "f" };
        static struct archive_out out;
        int p[2];
        pid_t pid;

        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                alarm(30);
                dup2(p[0], 0);
                close(p[1]);
                if (chroot(top) < 0 || chdir("/") < 0)
                        _exit(99);
                _exit(files_main(3,
                                 (char *[]){ (char *)FILES_NAME, (char *)"put", (char *)"to", NULL }));
        }
        archive_out_init(&out, p[1]);
        archive_put_entry(&out, ARCHIVE_FILE, &e);
        memset(archive_data_room(&out), 'x', 1000);
        archive_put_data(&out, 1000);
        assert_int_equal(archive_flush(&out), 0);
        close(p[0]);
        *ret = p[1];
        return pid;
}

static void test_signal(void **state) {
        static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };

        (void)state;
        if (geteuid() != 0) {
                skip();
                return;
        }
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
                int in, status;
                pid_t pid = half_way(&in);

                /* Its temporary name is there when the file is open. */
                while (entries_in("to") == 0) {
                        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
                        usleep(1000);
                }
                kill(pid, signals[i]);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFSIGNALED(status));
                assert_int_equal(WTERMSIG(status), signals[i]);
                assert_int_equal(entries_in("to"), 0);
                close(in);
        }
}

static int on_small_disk(int stream) {
        struct stat st;
        int r;

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("small", "to", "tmpfs", 0, "size=1m") < 0)
                return 77;
        r = write_stream(stream, "to");
        if (r != -ENOSPC || strcmp(said, "cannot write 'to/d/large': No space left on device\n") != 0)
                return 1;
        /* What was whole stays, the folders have their modes, and there is nothing else. */
        return entries_in("to") == 2 && stat("to/d/small", &st) == 0 && st.st_size == 5 &&
                               stat("to/d", &st) == 0 && (st.st_mode & 07777) == 0550
                       ? 0
                       : 2;
}

/* One folder, in which a small file comes before one that is too large. */
static int stream_of_large(void) {
        struct archive_entry e = { .mode = 0550, .name = "d", .size = ARCHIVE_SIZE_UNKNOWN };
        static struct archive_out out;
        int fd = memfd_create("stream", MFD_CLOEXEC);

        archive_out_init(&out, fd);
        archive_put_entry(&out, ARCHIVE_DIR, &e);
        e.mode = 0600;
        e.name = "small";
        archive_put_entry(&out, ARCHIVE_FILE, &e);
        memcpy(archive_data_room(&out), "small", 5);
        archive_put_data(&out, 5);
        archive_put_close(&out, 5, true);
        e.name = "large";
        archive_put_entry(&out, ARCHIVE_FILE, &e);
        for (int i = 0; i < 40; i++) {
                memset(archive_data_room(&out), i, ARCHIVE_DATA_MAX);
                archive_put_data(&out, ARCHIVE_DATA_MAX);
        }
        archive_put_close(&out, 40 * ARCHIVE_DATA_MAX, true);
        archive_put_up(&out);
        assert_int_equal(archive_out_end(&out), 0);
        return fd;
}

static void test_full(void **state) {
        int stream = stream_of_large(), status;
        pid_t pid = fork();

        (void)state;
        if (pid == 0)
                _exit(on_small_disk(stream));
        close(stream);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WEXITSTATUS(status) == 77)
                skip();
        assert_int_equal(status, 0);
}

/* --- sources ------------------------------------------------------------------------------------------------- */

/* While from/f is read it becomes another size. */
static off_t becomes;

static void change(void *userdata, const char *path, uint64_t bytes) {
        (void)userdata;
        (void)path;
        if (bytes > 0 && truncate("from/f", becomes) < 0)
                abort();
}

static int stream_of_changing(off_t to) {
        int fd = memfd_create("stream", MFD_CLOEXEC);

        becomes = to;
        tree_file("from/f", "", 0600);
        for (int i = 0; i < 100; i++) {
                static const char bytes[10000] = { 'x' };
                int f = open("from/f", O_WRONLY | O_APPEND | O_CLOEXEC);

                assert_int_equal(write(f, bytes, sizeof(bytes)), sizeof(bytes));
                close(f);
        }
        pack_init(&pack, fd, say, NULL);
        pack.progress = change;
        assert_int_equal(pack_path(&pack, "from/f"), 0);
        assert_int_equal(pack_end(&pack), 0);
        return fd;
}

static void test_changing(void **state) {
        struct stat st;
        int fd;

        (void)state;
        fd = stream_of_changing(70000);
        assert_true(pack.failed);
        assert_string_equal(said, "cannot read 'from/f': it became shorter meanwhile\n");
        assert_int_equal(write_stream(fd, "to"), 1);
        close(fd);
        assert_int_equal(entries_in("to"), 0);
        fd = stream_of_changing(50000000);
        assert_false(pack.failed);
        assert_int_equal(write_stream(fd, "to"), 0);
        close(fd);
        assert_int_equal(stat("to/f", &st), 0);
        assert_int_equal(st.st_size, 1000000);
}

static void test_deep(void **state) {
        int fd, at = open("from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct rlimit files, few = { 40, 40 };

        (void)state;
        for (int i = 0; i < 300; i++) {
                int next;

                assert_int_equal(mkdirat(at, "d", 0755), 0);
                next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                close(at);
                at = next;
        }
        close(at);
        tree_file("from/f", "f", 0600);
        fd = stream_of("from");
        assert_true(pack.failed);
        assert_non_null(strstr(said, "/d/d': too many folders within folders\n"));
        assert_int_equal(write_stream(fd, "to"), 0);
        assert_int_equal(entries_in("to"), 257);
        /* With few descriptors, neither side goes as deep, and both do the rest. */
        said[0] = '\0';
        getrlimit(RLIMIT_NOFILE, &files);
        few.rlim_max = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &few);
        assert_int_equal(mkdir("few", 0755), 0);
        assert_int_equal(write_stream(fd, "few"), 1);
        close(fd);
        assert_non_null(strstr(said, "Too many open files\n"));
        fd = stream_of("from");
        setrlimit(RLIMIT_NOFILE, &files);
        assert_true(pack.failed);
        assert_int_equal(mkdir("again", 0755), 0);
        assert_int_equal(write_stream(fd, "again"), 0);
        close(fd);
        assert_int_equal(access("again/from/f", F_OK), 0);
        /* rm goes deeper than its stack. */
        assert_int_equal(files_main(4, (char *[]){ (char *)FILES_NAME, (char *)"rm", (char *)"-r",
                                                   (char *)"from", NULL }),
                         0);
        assert_int_equal(access("from", F_OK), -1);
}

/* In a process of its own, as it goes there. */
static int make_folder(const char *path) {
        char word[512];
        pid_t pid = fork();
        int status;

        snprintf(word, sizeof(word), "%s", path);
        if (pid == 0)
                _exit(files_main(3, (char *[]){ (char *)FILES_NAME, (char *)"mkdir", word, NULL }));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WEXITSTATUS(status);
}

static void test_mkdir(void **state) {
        char here[256], path[512];
        struct stat st;

        (void)state;
        assert_non_null(getcwd(here, sizeof(here)));
        assert_int_equal(mkdir("old", 0711), 0);
        assert_int_equal(symlink("old", "link"), 0);
        snprintf(path, sizeof(path), "%s/link//one/two/", here);
        for (int i = 0; i < 2; i++)
                assert_int_equal(make_folder(path), 0);
        assert_int_equal(stat("old/one/two", &st), 0);
        assert_int_equal(st.st_mode, S_IFDIR | 0755);
        assert_int_equal(stat("old/one", &st), 0);
        assert_int_equal(st.st_mode, S_IFDIR | 0755);
        assert_int_equal(stat("old", &st), 0);
        assert_int_equal(st.st_mode, S_IFDIR | 0711);
        assert_int_equal(make_folder("/"), 0);
        /* A file is none, neither at the end nor before it. */
        tree_file("old/file", "x", 0644);
        snprintf(path, sizeof(path), "%s/old/file", here);
        assert_int_equal(make_folder(path), 1);
        strcat(path, "/three");
        assert_int_equal(make_folder(path), 1);
        assert_int_equal(make_folder("/proc/nosuch"), 1);
        assert_int_equal(make_folder("relative"), 64);
        assert_int_equal(access("relative", F_OK), -1);
}

/* The kernel's own trees are no files: they are left out where they are met, and not where they are named. */
static void test_kernels(void **state) {
        int fd;

        (void)state;
        fd = stream_of("/proc/self/status");
        assert_false(pack.failed);
        close(fd);
        pack_init(&pack, open("/dev/null", O_WRONLY | O_CLOEXEC), say, NULL);
        assert_int_equal(pack_path(&pack, "/sys/kernel/mm/transparent_hugepage"), 0);
        close(pack.out.fd);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(test_named), CASE(test_signal),  CASE(test_full),  CASE(test_changing),
                CASE(test_deep),  CASE(test_kernels), CASE(test_mkdir),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
