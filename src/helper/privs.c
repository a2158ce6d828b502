/*
 * Whatever a process takes over an execve() is its caller's choice: here it ends. Where something cannot be reset (a
 * container's root may not raise a limit), the run goes on: it may fail then, and says so.
 * Of root's rights stay CAP_AUDIT_WRITE for the records, and CAP_CHOWN for the tool, which writes the new gshadow as
 * root:shadow and stops half-way without it. All else the tool may do as the owner of /etc. The bounding set and
 * no_new_privs see to it that the tool gets CAP_CHOWN alone: execve() gives root what is in the bounding set.
 */
#include <cap-ng.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "helper/helper.h"

/* From here on only the alarm, SIGKILL and SIGSTOP end or stop us; those two no caller may send once the real uid
 * is 0. Pending signals go by being ignored, timers outlive an execve(). */
static void signals(void) {
        /* No flags, an empty mask. By the system call: signal(3) refuses 32 and 33, which are the C library's. */
        static void (*const ignored[8])(int) = { SIG_IGN }, (*const normal[8])(int) = { SIG_DFL };
        static const struct itimerval never;
        sigset_t all;

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        for (int i = ITIMER_REAL; i <= ITIMER_PROF; i++)
                setitimer(i, &never, NULL);
        for (int n = 1; n < NSIG; n++) {
                syscall(SYS_rt_sigaction, n, ignored, NULL, 8);
                syscall(SYS_rt_sigaction, n, normal, NULL, 8);
        }
        setsid(); /* a group's leader cannot; but a terminal's signals are blocked all the same */
        sigdelset(&all, SIGALRM);
        sigprocmask(SIG_SETMASK, &all, NULL);
        alarm(40); /* the last resort, whatever it waits for */
}

static void limit(int which, rlim_t most) {
        struct rlimit l = { most, most };

        if (setrlimit(which, &l) < 0 && getrlimit(which, &l) == 0) {
                l.rlim_cur = l.rlim_max;
                setrlimit(which, &l);
        }
}

void privs_prologue(void) {
        static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", locale[] = "LC_ALL=C.UTF-8";
        static char *env[] = { path, locale, NULL };
        int fd;

        for (fd = 0; fd <= 2; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
                        _exit(EX_OSERR);
        if (close_range(3, ~0U, 0) < 0 || chdir("/") < 0)
                _exit(EX_OSERR);
        environ = env;
        signals();
        umask(077);
        for (int i = 0; i < RLIMIT_NLIMITS; i++)
                limit(i, RLIM_INFINITY);
        limit(RLIMIT_CORE, 0);
        limit(RLIMIT_NOFILE, 1024);
        limit(RLIMIT_STACK, 8 << 20);
        sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
        setpriority(PRIO_PROCESS, 0, 0);
        syscall(SYS_ioprio_set, 1 /* this process */, 0, 0);
        prctl(PR_SET_TIMERSLACK, 50000); /* how late a wait may end: centuries, if a caller likes */
        fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        dprintf(fd, "0");
        close(fd);
        prctl(PR_SET_DUMPABLE, 0);
}

/* Read back from the kernel; and what must fail now is tried. */
static bool proved(unsigned kept) {
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct now[2], want[2] = { { kept, kept, 0 } };
        int in;

        if ((getuid() | geteuid() | getgid() | getegid() | (unsigned)getgroups(0, NULL)) != 0 ||
            prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || syscall(SYS_capget, &head, now) < 0 ||
            memcmp(now, want, sizeof(now)) != 0)
                return false;
        /* Up to the first one that the kernel does not know. */
        for (unsigned long cap = 0; (in = prctl(PR_CAPBSET_READ, cap)) >= 0; cap++)
                if (in != (cap == CAP_CHOWN))
                        return false;
        want[0].permitted = ~0U;
        return syscall(SYS_capset, &head, want) < 0 && setgroups(1, &(gid_t){ 1 }) < 0 &&
               setresgid(1, 1, 1) < 0 && setresuid(1, 1, 1) < 0;
}

bool privs_drop(void) {
        bool audit = capng_get_caps_process() == 0 &&
                     capng_have_capability(CAPNG_PERMITTED, CAP_AUDIT_WRITE);

        capng_clear(CAPNG_SELECT_ALL);
        capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET, CAP_CHOWN);
        if (audit)
                capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_AUDIT_WRITE);
        return setgroups(0, NULL) == 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0 &&
               capng_apply(CAPNG_SELECT_ALL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               proved(1U << CAP_CHOWN | (audit ? 1U << CAP_AUDIT_WRITE : 0));
}
