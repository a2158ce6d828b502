/*
 * Whatever a process takes over an execve() is its caller's choice: here it ends. Where something cannot be reset (a
 * container's root may not raise a limit), the run goes on: it may fail then, and says so.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "helper/helper.h"

static void descriptors(void) {
        for (int fd = 0; fd <= 2; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
                        _exit(EX_OSERR);
        if (close_range(3, ~0U, 0) < 0)
                _exit(EX_OSERR);
}

static void last_resort(int signal) {
        (void)signal;
        _exit(EX_TEMPFAIL);
}

/* By the system call: signal(3) refuses 32 and 33, which the C library has for itself. */
static void disposition(int n, void (*handler)(int)) {
        void (*const act[8])(
                int) = { handler }; /* no flags, an empty mask, however the kernel orders them */

        syscall(SYS_rt_sigaction, n, act, NULL, 8);
}

/* From here on only the alarm, SIGKILL and SIGSTOP end or stop us; those two no caller may send once the real uid
 * is 0. Pending signals go by being ignored, timers outlive an execve(). */
static void signals(unsigned seconds) {
        static const struct itimerval never;
        sigset_t all;

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        for (int i = ITIMER_REAL; i <= ITIMER_PROF; i++)
                setitimer((__itimer_which_t)i, &never, NULL);
        prctl(PR_SET_PDEATHSIG, 0);
        for (int n = 1; n < NSIG; n++) {
                disposition(n, SIG_IGN);
                disposition(n, SIG_DFL);
        }
        setsid(); /* a group's leader cannot; but a terminal's signals are blocked all the same */
        signal(SIGALRM, last_resort);
        sigdelset(&all, SIGALRM);
        sigprocmask(SIG_SETMASK, &all, NULL);
        alarm(seconds);
}

static void limits(void) {
        for (int i = 0; i < RLIMIT_NLIMITS; i++) {
                struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

                if (i == RLIMIT_CORE)
                        limit = (struct rlimit){ 0, 0 };
                else if (i == RLIMIT_NOFILE)
                        limit = (struct rlimit){ 1024, 4096 };
                else if (i == RLIMIT_STACK)
                        limit.rlim_cur = 8 << 20;
                if (setrlimit((__rlimit_resource_t)i, &limit) == 0)
                        continue;
                getrlimit((__rlimit_resource_t)i, &limit);
                limit.rlim_cur = limit.rlim_max;
                setrlimit((__rlimit_resource_t)i, &limit);
        }
}

static void scheduling(void) {
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
        setpriority(PRIO_PROCESS, 0, 0);
        syscall(SYS_ioprio_set, 1 /* this process */, 0, 0);
        /* By how much a wait may end late: up to centuries, if a caller likes. */
        prctl(PR_SET_TIMERSLACK, 50000);
        if (fd >= 0 && write(fd, "0", 1) == 1)
                close(fd);
}

void helper_prologue(const struct helper *h) {
        descriptors();
        environ = (char **)(uintptr_t)h->env;
        signals(h->last_resort_s);
        umask(077);
        if (chdir("/") < 0)
                _exit(EX_OSERR);
        limits();
        scheduling();
        prctl(PR_SET_DUMPABLE, 0);
}
