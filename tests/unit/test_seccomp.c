/* The agent's own filter, in a child that installs it: what it denies, with which error, and what not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"

/* The number of the check that failed, 0 when none did. */
static int checks(void) {
        struct clone_args ca = { .exit_signal = SIGCHLD };
        char c = 'x';
        int status;
        pid_t pid;

        if (seccomp_install() < 0)
                return 1;
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
                return 2;
        if (syscall(SYS_add_key, "user", "d", "x", 1, -3) >= 0 || errno != EPERM)
                return 3;
        if (syscall(SYS_request_key, "user", "d", NULL, -3) >= 0 || errno != EPERM)
                return 4;
        if (syscall(SYS_keyctl, 0, -3, 1) >= 0 || errno != EPERM)
                return 5;
        if (unshare(CLONE_NEWUSER) >= 0 || errno != EPERM)
                return 6;
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) >= 0 || errno != EPERM)
                return 7;
        if (syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) >= 0 || errno != EPERM)
                return 8;
        if (syscall(SYS_clone3, &ca, sizeof(ca)) >= 0 || errno != ENOSYS)
                return 9;
        if (ioctl(0, TIOCSTI, &c) >= 0 || errno != EPERM)
                return 10;
        /* The kernel looks at 32 bits of the request: so must the filter. */
        if (syscall(SYS_ioctl, 0, UINT64_C(0xabcd00000000) | TIOCSTI, &c) >= 0 || errno != EPERM)
                return 11;
        if (ioctl(0, TIOCLINUX, &c) >= 0 || errno != EPERM)
                return 12;
#ifdef __x86_64__
        if (syscall(0x40000000 + SYS_getpid) >= 0 || errno != ENOSYS)
                return 13;
#endif
        /* And what commands live by. */
        pid = fork();
        if (pid == 0)
                _exit(7);
        if (pid < 0 || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
                return 14;
        if (unshare(CLONE_FILES) < 0 || getpid() <= 0)
                return 15;
        if (ioctl(0, FIONREAD, &status) < 0 && errno == EPERM)
                return 16;
        if (system("exit 3") != 3 << 8)
                return 17;
        return 0;
}

static void denies_and_allows(void **state) {
        pid_t pid = fork();
        int status;

        (void)state;
        if (pid == 0)
                _exit(checks());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(denies_and_allows) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
