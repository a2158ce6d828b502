/* rotate.h and logfile.h: files that move, go, fill up or are none; the trail's own rotation is test_trail.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "manager/logfile.h"
#include "manager/rotate.h"

static char dir[64], path[128], said_path[128];
static struct logfile lf;
static int real_stderr;

static const char *name(int i) {
        static char buf[160];

        snprintf(buf, sizeof(buf), i ? "%s.%d" : "%s", path, i);
        return buf;
}

/* What goes to stderr can be looked at in a file. */
static int setup(void **state) {
        int fd;

        (void)state;
        snprintf(dir, sizeof(dir), "/tmp/test-rotate-XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        snprintf(path, sizeof(path), "%s/log", dir);
        snprintf(said_path, sizeof(said_path), "%s/stderr", dir);
        real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        fd = open(said_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        return dup2(fd, STDERR_FILENO) < 0 || close(fd) < 0 ? -1 : 0;
}

static int teardown(void **state) {
        (void)state;
        logfile_done(&lf);
        log_set_level(LOG_P_INFO);
        dup2(real_stderr, STDERR_FILENO);
        close(real_stderr);
        for (int i = 0; i < 6; i++) {
                unlink(name(i));
                rmdir(name(i));
        }
        unlink(said_path);
        return rmdir(dir);
}

/* The whole file, or "" where there is none. */
static const char *text_of(const char *file) {
        static char buf[8192];
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

        assert_true(n >= 0);
        buf[n] = '\0';
        if (fd >= 0)
                close(fd);
        return buf;
}

static unsigned count(const char *text, const char *what) {
        unsigned n = 0;

        for (; (text = strstr(text, what)); text += strlen(what))
                n++;
        return n;
}

static void matches(const char *text, const char *pattern) {
        regex_t re;
        int r;

        assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
        r = regexec(&re, text, 0, NULL, 0);
        regfree(&re);
        if (r != 0)
                fail_msg("\"%s\" does not match %s", text, pattern);
}

/* --- rotate.h ------------------------------------------------------------------------------------ */

static void rotates(void **state) {
        struct rotate r;
        struct stat st;

        (void)state;
        umask(077);
        assert_int_equal(rotate_init(&r, path, 2, 8), 0);
        assert_int_equal(rotate_open(&r), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0640);
        for (int i = 0; i < 5; i++) {
                char line[] = "line 0\n";

                line[5] = (char)('0' + i);
                assert_int_equal(rotate_due(&r, 7), i > 0);
                if (rotate_due(&r, 7))
                        assert_int_equal(rotate_now(&r), 0);
                assert_int_equal(rotate_append(&r, line, 7), 0);
        }
        assert_string_equal(text_of(name(0)), "line 4\n");
        assert_string_equal(text_of(name(1)), "line 3\n");
        assert_string_equal(text_of(name(2)), "line 2\n");
        assert_int_equal(access(name(3), F_OK), -1);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0640);
        rotate_done(&r);
        assert_int_equal(r.fd, -1);

        /* Without backups it only grows. */
        assert_int_equal(rotate_init(&r, path, 0, 8), 0);
        assert_int_equal(rotate_open(&r), 0);
        assert_int_equal(r.size, 7);
        assert_false(rotate_due(&r, 100));
        rotate_done(&r);
}

static void refuses(void **state) {
        char longer[4096];
        struct rotate r = { .fd = -1 };

        (void)state;
        memset(longer, 'a', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = '\0';
        assert_int_equal(rotate_init(&r, longer, 1, 1), -ENAMETOOLONG);
        assert_int_equal(rotate_init(&r, path, 1, 1), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(rotate_open(&r), -ENOTSUP);
        unlink(path);
        assert_int_equal(symlink("elsewhere", path), 0);
        assert_int_equal(rotate_open(&r), -ELOOP);
        assert_int_equal(r.fd, -1);
        rotate_done(&r);
}

/* --- logfile.h ----------------------------------------------------------------------------------- */

static struct config config(enum log_level level) {
        return (struct config){ .log_level = level,
                                .log_backup_count = 2,
                                .log_max_bytes = 1 << 20,
                                .log_file = (char *)"log",
                                .audit_file = (char *)"/nowhere" };
}

static void lines(void **state) {
        struct config c = config(LOG_LEVEL_INFO);
        struct stat st;

        (void)state;
        logfile_set(&lf, dir, &c);
        log_line(LOG_P_INFO, "one %d\n", 1);
        log_line(LOG_P_DEBUG, "two");
        log_line(LOG_P_ERROR, "three");
        matches(text_of(path),
                "^20[0-9-]{8}T[0-9:]{8}Z INFO one 1\\?\n20[0-9-]{8}T[0-9:]{8}Z ERROR three\n$");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0640);
        assert_int_equal(count(text_of(said_path), "\n"), 2);

        /* A reload: the level, and the file's name. */
        c = config(LOG_LEVEL_DEBUG);
        logfile_set(&lf, dir, &c);
        log_line(LOG_P_DEBUG, "four");
        matches(text_of(path), "DEBUG four\n$");
        c = config(LOG_LEVEL_ERROR);
        c.log_file = (char *)"log.1";
        logfile_set(&lf, dir, &c);
        log_line(LOG_P_WARNING, "five");
        log_line(LOG_P_ERROR, "six");
        matches(text_of(name(1)), "^[^ ]+ ERROR six\n$");
        assert_int_equal(count(text_of(path), "\n"), 3);
        c.log_file = (char *)"";
        logfile_set(&lf, dir, &c);
        log_line(LOG_P_ERROR, "seven");
        assert_int_equal(count(text_of(name(1)), "\n"), 1);
        matches(text_of(said_path), "seven\n$");
}

static void log_rotates(void **state) {
        struct config c = config(LOG_LEVEL_INFO);

        (void)state;
        c.log_max_bytes = 100;
        logfile_set(&lf, dir, &c);
        for (int i = 0; i < 9; i++)
                log_line(LOG_P_INFO, "%060d", i);
        matches(text_of(name(0)), "^[^ ]+ INFO 0+8\n$");
        matches(text_of(name(1)), "^[^ ]+ INFO 0+7\n$");
        matches(text_of(name(2)), "^[^ ]+ INFO 0+6\n$");
        assert_int_equal(access(name(3), F_OK), -1);
}

static void moved_away(void **state) {
        struct config c = config(LOG_LEVEL_INFO);

        (void)state;
        logfile_set(&lf, dir, &c);
        log_line(LOG_P_INFO, "one");
        assert_int_equal(rename(path, name(5)), 0);
        log_line(LOG_P_INFO, "two");
        assert_int_equal(unlink(path), 0);
        log_line(LOG_P_INFO, "three");
        matches(text_of(name(5)), "^[^ ]+ INFO one\n$");
        matches(text_of(path), "^[^ ]+ INFO three\n$");
        assert_int_equal(count(text_of(said_path), "log file"), 0);
}

/* One line on stderr however many are lost, and how many these were in the file once it takes lines again. */
static void lost(void **state) {
        struct config c = config(LOG_LEVEL_INFO);

        (void)state;
        assert_int_equal(mkdir(path, 0700), 0);
        logfile_set(&lf, dir, &c);
        for (int i = 0; i < 3; i++)
                log_line(LOG_P_INFO, "lost %d", i);
        assert_int_equal(count(text_of(said_path), "lost "), 3);
        assert_int_equal(count(text_of(said_path), "log file"), 1);
        matches(text_of(said_path), "log file [^ ]+/log: Is a directory: its lines are here alone");
        assert_int_equal(rmdir(path), 0);
        log_line(LOG_P_INFO, "back");
        matches(text_of(path),
                "^[^ ]+ WARNING 3 lines before this one could not be written\n[^ ]+ INFO back\n$");
}

/* A full file system, as far as a limit of the process can play it: a part of a line fits. */
static void full(void **state) {
        struct config c = config(LOG_LEVEL_INFO);
        struct rlimit old, small;

        (void)state;
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        c.log_backup_count = 0;
        logfile_set(&lf, dir, &c);
        log_line(LOG_P_INFO, "%0200d", 1);
        small = (struct rlimit){ 300, old.rlim_max };
        /* stderr is a file here, too. */
        dup2(real_stderr, STDERR_FILENO);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        log_line(LOG_P_INFO, "%0100d", 2);
        log_line(LOG_P_INFO, "%0100d", 3);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        log_line(LOG_P_INFO, "%0100d", 4);
        matches(text_of(path),
                "^[^ ]+ INFO 0+1\n[^ ]+ WARNING 2 lines before this one could not be written\n"
                "[^ ]+ INFO 0+4\n$");
}

static void not_the_trail(void **state) {
        struct config c = config(LOG_LEVEL_INFO);

        (void)state;
        c.audit_file = path;
        logfile_set(&lf, dir, &c);
        log_line(LOG_P_INFO, "one");
        assert_int_equal(access(path, F_OK), -1);
        matches(text_of(said_path), "it is audit.file");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(rotates, setup, teardown),
                cmocka_unit_test_setup_teardown(refuses, setup, teardown),
                cmocka_unit_test_setup_teardown(lines, setup, teardown),
                cmocka_unit_test_setup_teardown(log_rotates, setup, teardown),
                cmocka_unit_test_setup_teardown(moved_away, setup, teardown),
                cmocka_unit_test_setup_teardown(lost, setup, teardown),
                cmocka_unit_test_setup_teardown(full, setup, teardown),
                cmocka_unit_test_setup_teardown(not_the_trail, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
