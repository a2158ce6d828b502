/* The helper's tool, played by /bin/sh, and its reports; with deadlines of this test. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "helper/helper.h"

static char dir[] = "/tmp/hst-tool-XXXXXX";
static int etc = -1;

/* As the prologue leaves it: every signal is blocked, and the environment is its own. */
static int setup(void **state) {
        static char a[] = "A=1", *env[] = { a, NULL };
        sigset_t all;

        (void)state;
        environ = env;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        if (!mkdtemp(dir))
                return -1;
        etc = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return etc < 0 ? -1 : 0;
}

static int teardown(void **state) {
        (void)state;
        close(etc);
        return rmdir(dir);
}

static int64_t clock_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int run(const char *script, int ms) {
        const char *argv[] = { "sh", "-c", script, dir, NULL };
        struct helper h = { .etc = dir, .tool = "/bin/sh", .tool_argv = argv };

        return accounts_change(&h, ms);
}

static int exit_of(const char *script) {
        int status = run(script, 10000);

        assert_true(status >= 0);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void its_status(void **state) {
        int status;

        (void)state;
        assert_int_equal(exit_of("exit 0"), 0);
        assert_int_equal(exit_of("exit 11"), 11);
        assert_int_equal(run("exit 1", 10000), -EBUSY);
        assert_int_equal(run("exit 10", 10000), -EBUSY);
        status = run("kill -SEGV $$", 10000);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void no_tool(void **state) {
        const char *argv[] = { "tool", NULL };
        struct helper h = { .etc = dir, .tool = "/nonexistent/tool", .tool_argv = argv };
        int status;

        (void)state;
        status = accounts_change(&h, 10000);
        assert_int_equal(WEXITSTATUS(status), 127);
}

static void what_it_gets(void **state) {
        (void)state;
        assert_int_equal(exit_of("test \"$(ls -l /proc/self/fd | grep -c /dev/null)\" -ge 2"), 0);
        assert_int_equal(exit_of("test \"$(cut -d' ' -f6 /proc/$$/stat)\" = $$"), 0); /* its session */
        assert_int_equal(exit_of("grep -q '^SigBlk:.0*$' /proc/self/status"), 0);
        assert_int_equal(exit_of("test \"$(env | grep -cv -e ^PWD= -e ^A=1 -e ^_=)\" = 0"), 0);
}

/* A hanging one, with a child that ignores TERM, is gone when the call returns, and so is what it locked. */
static void deadline(void **state) {
        int64_t begin = clock_ms(), took;

        (void)state;
        assert_int_equal(
                run("cd $0; printf '%s\\0' $$ >group.lock; : >group.$$; : >group+; : >passwd-; chmod 0 passwd-;"
                    "printf '%s\\0' $$ >passwd.lock; : >group-; sleep 1000 & echo $! >child; wait",
                    500),
                -ETIME);
        took = clock_ms() - begin;
        assert_in_range(took, 500, 5000);
        assert_int_equal(faccessat(etc, "group-", F_OK, 0), 0); /* a whole backup stays */
        assert_int_equal(
                exit_of("cd $0; for i in 1 2 3 4 5 6 7 8 9; do kill -0 $(cat child) 2>/dev/null || break; sleep .1;"
                        "done; rm child group-; rmdir $0 && mkdir -m 700 $0"),
                0);
        close(etc);
        etc = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Another one's lock is left alone, with what belongs to it. */
static void locks_of_others(void **state) {
        (void)state;
        assert_int_equal(
                run("cd $0; printf '1\\0' >group.lock; : >group+; printf x >gshadow.lock; kill -KILL $$",
                    10000),
                SIGKILL);
        assert_int_equal(unlinkat(etc, "group.lock", 0), 0);
        assert_int_equal(unlinkat(etc, "group+", 0), 0);
        assert_int_equal(unlinkat(etc, "gshadow.lock", 0), 0);
}

static struct helper reporting(char *path, size_t n) {
        snprintf(path, n, "%s/log", dir);
        return (struct helper){ .caller = 1000, .log_socket = path };
}

/* From here on this process's system call @nr fails with @error. */
static int deny(int nr, int error) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -1;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void with_failing(int nr, int error, void (*check)(void)) {
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0) {
                if (deny(nr, error) < 0)
                        _exit(90);
                check();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void refused(void) {
        char path[64];
        struct helper h = reporting(path, sizeof(path));

        if (report_record(&h, "test", "test", true))
                _exit(1);
        if (report(&h, EX_OK, "test", "a success that nobody can prove") != EX_OSERR)
                _exit(2);
        if (report(&h, EX_NOPERM, "test", "a refusal") != EX_NOPERM)
                _exit(3);
}

static void unkept(void) {
        char path[64];
        struct helper h = reporting(path, sizeof(path));

        if (!report_record(&h, "test", "test", true))
                _exit(1);
        if (report(&h, EX_OK, "test", "a success") != EX_OK)
                _exit(2);
}

/* Whatever kind of failure it is that the kernel's answer cannot be had: it is no record. */
static void a_record_that_is_refused(void **state) {
        (void)state;
        with_failing(SYS_socket, EMFILE, refused);
        with_failing(SYS_socket, EACCES, refused);
        with_failing(SYS_sendto, ENOBUFS, refused);
}

static void a_kernel_without_audit(void **state) {
        (void)state;
        with_failing(SYS_socket, EINVAL, unkept);
        with_failing(SYS_socket, EPROTONOSUPPORT, unkept);
        with_failing(SYS_socket, EAFNOSUPPORT, unkept);
        with_failing(SYS_sendto, ECONNREFUSED, unkept);
}

/* Facility authpriv is 10: 85 is its notice, 84 its warning. And a daemon that does not read is not waited for. The
 * last test, as this process writes no audit record any more. */
static void syslog_line(void **state) {
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        char path[64], got[600], want[200];
        struct helper h = reporting(path, sizeof(path));
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ssize_t n;

        (void)state;
        snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
        assert_int_equal(deny(SYS_sendto, ECONNREFUSED), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        report(&h, EX_OK, "test", "%s", "a success");
        n = recv(fd, got, sizeof(got) - 1, 0);
        assert_true(n > 0);
        got[n] = 0;
        snprintf(want, sizeof(want), "<85>hermes-docker-enable[%d]: uid 1000: a success", (int)getpid());
        assert_string_equal(got, want);
        report(&h, EX_NOPERM, "test", "no");
        n = recv(fd, got, sizeof(got) - 1, 0);
        got[n > 0 ? n : 0] = 0;
        assert_memory_equal(got, "<84>", 4);
        for (int i = 0; i < 2000; i++) {
                int64_t begin = clock_ms();

                report(&h, EX_OK, "test", "a flood");
                if (clock_ms() - begin > 500)
                        break;
                assert_int_not_equal(i, 1999);
        }
        close(fd);
        unlink(path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(its_status),
                cmocka_unit_test(no_tool),
                cmocka_unit_test(what_it_gets),
                cmocka_unit_test(deadline),
                cmocka_unit_test(locks_of_others),
                cmocka_unit_test(a_record_that_is_refused),
                cmocka_unit_test(a_kernel_without_audit),
                cmocka_unit_test(syslog_line),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
