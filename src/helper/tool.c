/*
 * The tool is usermod -aG. gpasswd -a touches fewer files, but reads the group's members before it takes the lock and
 * writes them after: whoever joined in between is thrown out again (tried). usermod locks passwd, shadow, group and
 * gshadow, then reads, and writes the last two. Both need CAP_CHOWN alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helper/helper.h"

int64_t tool_clock_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

_Noreturn static void child(const struct helper *h) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        sigset_t none;

        sigemptyset(&none);
        if (null >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2 &&
            setsid() > 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
                execve(h->tool, (char *const *)h->tool_argv, (char *const *)h->env);
        _exit(127);
}

/* What a killed tool leaves. shadow's locks are files with their owner's pid: a dead owner's are in nobody's way until
 * another process gets that pid. Copies that it has just begun have mode 0 still, and without CAP_DAC_OVERRIDE not
 * even root could write over them. The child is not yet reaped: its pid is its own, and to others it is alive. */
static void unlock(int etc, pid_t pid) {
        static const char *const files[] = { "gshadow", "group", "shadow", "passwd" };

        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
                char name[32], holder[32] = "";
                struct stat st;
                int fd;

                snprintf(name, sizeof(name), "%s.%d", files[i], (int)pid);
                unlinkat(etc, name, 0);
                snprintf(name, sizeof(name), "%s.lock", files[i]);
                fd = openat(etc, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                if (fd < 0)
                        continue;
                if (read(fd, holder, sizeof(holder) - 1) > 0 && atol(holder) == pid) {
                        snprintf(name, sizeof(name), "%s+", files[i]);
                        unlinkat(etc, name, 0);
                        snprintf(name, sizeof(name), "%s-", files[i]);
                        if (fstatat(etc, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !(st.st_mode & 0777))
                                unlinkat(etc, name, 0);
                        snprintf(name, sizeof(name), "%s.lock", files[i]);
                        unlinkat(etc, name, 0); /* the last, as it guards the others */
                }
                close(fd);
        }
}

/* Whether it ended in time; it is not reaped. SIGCHLD is blocked since the prologue, so none is missed. */
static bool ended(pid_t pid, int64_t until) {
        siginfo_t si = { 0 };
        sigset_t chld;

        sigemptyset(&chld);
        sigaddset(&chld, SIGCHLD);
        while (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || si.si_pid != pid) {
                int64_t left = until - tool_clock_ms();

                if (left <= 0)
                        return false;
                sigtimedwait(&chld, NULL, &(struct timespec){ left / 1000, left % 1000 * 1000000 });
        }
        return true;
}

int tool_run(const struct helper *h, int etc, int64_t until) {
        pid_t pid = fork();
        bool in_time;
        int status;

        if (pid < 0)
                return -errno;
        if (pid == 0)
                child(h);
        in_time = ended(pid, until);
        if (!in_time) {
                kill(-pid, SIGKILL); /* with all that it has started */
                kill(pid, SIGKILL);  /* it may not be in its own session yet */
                waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
        }
        unlock(etc, pid);
        if (waitpid(pid, &status, 0) < 0)
                return -errno;
        return in_time ? status : -ETIME;
}
