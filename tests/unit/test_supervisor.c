/*
 * The supervisor with daemons of our own (shell lines) in folders of our own: start, a second start,
 * restart with back-off, a bad config, reload, and a stop that kills what ignores it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervisor/supervisor.h"

static char dir[] = "/tmp/test-sup.XXXXXX";
static char pid_file[64], logs[64], user[64], group[64];

static const char *path_in(const char *name) {
        static char path[4][128];
        static int n;

        n = (n + 1) % 4;
        snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
        return path[n];
}

/* Bytes of a file of the folder, 0 if there is none: each run of a daemon appends one. */
static int size_of(const char *name) {
        struct stat st;

        return stat(path_in(name), &st) == 0 ? (int)st.st_size : 0;
}

static void wait_for(const char *name, int bytes) {
        for (int i = 0; i < 1000 && size_of(name) < bytes; i++)
                poll(NULL, 0, 10);
        assert_true(size_of(name) >= bytes);
}

static int log_holds(const char *log, const char *text) {
        char buf[4096];
        FILE *f = fopen(path_in(log), "re");
        size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;

        if (f)
                fclose(f);
        buf[n] = '\0';
        return strstr(buf, text) != NULL;
}

struct setting {
        struct sup_config c;
        struct sup_folder folders[2];
        const char *argv[2][4];
        char script[2][512];
};

static void make(struct setting *s, const char *engine, const char *manager) {
        const char *scripts[2] = { engine, manager };

        memset(s, 0, sizeof(*s));
        s->folders[0] = (struct sup_folder){ logs, user, group, 0750 };
        s->c = (struct sup_config){ .pid_file = pid_file,
                                    .log_dir = logs,
                                    .folders = s->folders,
                                    .backoff_first_ms = 20,
                                    .backoff_max_ms = 80,
                                    .settled_ms = 60000,
                                    .deadline_ms = 500 };
        for (int i = 0; i < 2; i++) {
                snprintf(s->script[i], sizeof(s->script[i]), "cd %s; %s", dir, scripts[i]);
                s->argv[i][0] = "/bin/sh";
                s->argv[i][1] = "-c";
                s->argv[i][2] = s->script[i];
                s->c.daemons[i] = (struct sup_daemon){ i ? "manager" : "engine",
                                                       i ? "pool.log" : "engine.log", s->argv[i] };
        }
}

#define STAYS "while :; do sleep 0.05; done"

static void test_start_stop(void **state) {
        struct setting s;

        (void)state;
        make(&s, "printf e >>e; env >env; ls -l /proc/$$/fd >fds; " STAYS,
             "trap 'printf h >>hup' HUP; trap 'printf t >>term; exit' TERM; printf m >>m; " STAYS);
        assert_int_equal(supervisor_stop(&s.c), 0); /* none runs */
        assert_int_equal(supervisor_start(&s.c), 0);
        wait_for("m", 1);
        wait_for("fds", 1);
        assert_int_equal(supervisor_start(&s.c), 0); /* already running */
        assert_int_equal(size_of("m"), 1);
        assert_true(log_holds("env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"));
        assert_false(log_holds("env", "HOME="));
        assert_true(log_holds("fds", "0 -> /dev/null"));
        assert_true(log_holds("fds", "engine.log"));
        assert_int_equal(supervisor_stop(&s.c), 0);
        assert_int_equal(size_of("term"), 1);
        assert_int_equal(size_of("hup"), 0);
        assert_int_equal(supervisor_stop(&s.c), 0);
}

static void test_restart(void **state) {
        struct setting s;

        (void)state;
        make(&s, "printf x >>crash; exit 3", STAYS);
        assert_int_equal(supervisor_start(&s.c), 0);
        wait_for("crash", 5);
        assert_int_equal(supervisor_stop(&s.c), 0);
        assert_true(log_holds("logs/engine.log", "supervisor: engine: ended with exit status 3\n"));
}

static void test_bad_config(void **state) {
        struct setting s;

        (void)state;
        make(&s, STAYS, "printf x >>bad; exit 78");
        assert_int_equal(supervisor_start(&s.c), 0);
        for (int i = 0; i < 500 && !log_holds("logs/pool.log", "held until"); i++)
                poll(NULL, 0, 10);
        poll(NULL, 0, 200); /* ten times the back-off: a restart would have come */
        assert_int_equal(size_of("bad"), 1);
        assert_int_equal(supervisor_start(&s.c), 0);
        wait_for("bad", 2);
        assert_int_equal(supervisor_stop(&s.c), 0);
}

static void test_stubborn(void **state) {
        struct setting s;

        (void)state;
        make(&s, "trap '' TERM; printf x >>deaf; " STAYS, STAYS);
        assert_int_equal(supervisor_start(&s.c), 0);
        wait_for("deaf", 1);
        assert_int_equal(supervisor_stop(&s.c), 0);
}

/* Twelve runs with back-off would take 40 s. */
static void test_no_failure(void **state) {
        struct setting s;

        (void)state;
        make(&s, "printf x >>zero; exit 0", STAYS);
        s.c.backoff_max_ms = 60000;
        assert_int_equal(supervisor_start(&s.c), 0);
        wait_for("zero", 12);
        assert_int_equal(supervisor_stop(&s.c), 0);
}

static void test_stop_twice(void **state) {
        struct setting s;
        int status;
        pid_t pid;

        (void)state;
        make(&s, STAYS,
             "n=; trap 'printf t >>terms; [ $n ] && exit; n=1' TERM; printf x >>patient; " STAYS);
        s.c.deadline_ms = 60000;
        assert_int_equal(supervisor_start(&s.c), 0);
        wait_for("patient", 1);
        pid = fork();
        if (pid == 0)
                _exit(supervisor_stop(&s.c));
        wait_for("terms", 1);
        assert_int_equal(supervisor_stop(&s.c), 0);
        assert_int_equal(size_of("terms"), 2);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void test_logs(void **state) {
        int fd;

        (void)state;
        assert_int_equal(symlink("/etc/passwd", path_in("logs/link.log")), 0);
        assert_int_equal(sup_open_log(logs, "link.log", geteuid()), -ELOOP);
        unlink(path_in("logs/link.log"));
        assert_int_equal(mkfifo(path_in("logs/fifo.log"), 0600), 0);
        assert_true(sup_open_log(logs, "fifo.log", geteuid()) < 0);
        unlink(path_in("logs/fifo.log"));
        assert_int_equal(chmod(logs, 0770), 0);
        assert_int_equal(sup_open_log(logs, "a.log", geteuid()), -EPERM);
        assert_int_equal(chmod(logs, 0750), 0);
        assert_int_equal(sup_open_log(logs, "a.log", geteuid() + 1), -EPERM);
        assert_int_equal(symlink(logs, path_in("elsewhere")), 0);
        assert_true(sup_open_log(path_in("elsewhere"), "a.log", geteuid()) < 0);

        fd = sup_open_log(logs, "a.log", geteuid());
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, 6 << 20), 0);
        close(fd);
        fd = sup_open_log(logs, "a.log", geteuid());
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(size_of("logs/a.log"), 0);
        assert_int_equal(size_of("logs/a.log.1"), 6 << 20);
}

static void test_folders(void **state) {
        struct sup_folder f[2] = { { path_in("made"), user, group, 02750 }, { 0 } };
        struct errmsg e;
        struct stat st;

        (void)state;
        assert_int_equal(sup_make_folders(f, &e), 0);
        assert_int_equal(stat(f[0].path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 02750);
        assert_int_equal(chmod(f[0].path, 0777), 0);
        assert_int_equal(sup_make_folders(f, &e), 0);
        assert_int_equal(stat(f[0].path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 02750);

        assert_int_equal(rmdir(f[0].path), 0);
        assert_int_equal(symlink("/tmp", f[0].path), 0);
        assert_true(sup_make_folders(f, &e) < 0);
        unlink(f[0].path);
        f[0].user = "no-such-user";
        assert_int_equal(sup_make_folders(f, &e), -ENOENT);
        assert_string_equal(e.text, "no such user: no-such-user: is the package installed?");
        f[0].user = user;
        f[0].path = geteuid() == 0 ? "/var/lib/hermes-test-none/x" : "/root";
        assert_true(sup_make_folders(f, &e) < 0);
}

static int setup(void **state) {
        (void)state;
        if (!mkdtemp(dir))
                return -1;
        snprintf(pid_file, sizeof(pid_file), "%s/pid", dir);
        snprintf(logs, sizeof(logs), "%s/logs", dir);
        snprintf(user, sizeof(user), "%s", getpwuid(geteuid())->pw_name);
        snprintf(group, sizeof(group), "%s", getgrgid(getegid())->gr_name);
        return 0;
}

static int teardown(void **state) {
        char cmd[128];

        (void)state;
        snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
        return system(cmd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_start_stop), cmocka_unit_test(test_restart),
                cmocka_unit_test(test_bad_config), cmocka_unit_test(test_stubborn),
                cmocka_unit_test(test_no_failure), cmocka_unit_test(test_stop_twice),
                cmocka_unit_test(test_logs),       cmocka_unit_test(test_folders),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
