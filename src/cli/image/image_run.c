/*
 * Two processes: the first is PID 1 of the new namespace, which only waits, and the second becomes the program. Once
 * the first has ended, by itself, by our kill or as its parent died, the kernel ends all others of the namespace.
 */
#include "cli/image/image_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

struct running {
        pid_t pid;
        int out, err; /* -1: at its end */
        size_t words_len;
        char words[4096]; /* the end of its stderr */
};

int image_run_signal(int signal_fd) {
        struct signalfd_siginfo si;

        return read(signal_fd, &si, sizeof(si)) == sizeof(si) ? (int)si.ssi_signo : 0;
}

/* --- the child ---------------------------------------------------------------------------------- */

/* On the stderr that our parent reads. */
static void say(const char *what) {
        dprintf(STDERR_FILENO, "E: %s: %s\n", what, strerror(errno));
}

static int be_init(const struct image_run_setup *s) {
        pid_t pid = fork(), one;
        int status;

        if (pid == 0) {
                setsid();
                execve(s->argv[0], s->argv, s->envp);
                say(s->argv[0]);
                _exit(127);
        }
        if (pid < 0) {
                say("fork");
                return 127;
        }
        /* What else ends is an orphan that became ours. */
        while ((one = wait(&status)) != pid)
                if (one < 0 && errno != EINTR)
                        return 127;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int child(const struct image_run_setup *s, int out, int err) {
        char work[4096];
        sigset_t none;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(s->stdin_fd, STDIN_FILENO) < 0 ||
            dup2(err, STDERR_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
                return 127;
        if (close_range(3, ~0U, 0) < 0) {
                say("close_range");
                return 127;
        }
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setsid();
        umask(022);
        snprintf(work, sizeof(work), "%s/work", s->folder);
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount(work, s->folder, NULL, MS_BIND, NULL) < 0) {
                say("cannot mount");
                return 127;
        }
        if (chdir("/") < 0) {
                say("/");
                return 127;
        }
        return be_init(s);
}

/* --- the parent --------------------------------------------------------------------------------- */

static int start(const struct image_run_setup *s, struct running *run, struct errmsg *e) {
        int out[2] = { -1, -1 }, err[2] = { -1, -1 }, r = 0;
        long pid = -1;

        if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
                r = errmsg_set(e, -errno, "no pipe: %s", strerror(errno));
        if (r == 0) {
                fcntl(out[0], F_SETPIPE_SZ, 1 << 20);
                fflush(NULL);
                /* As cli_fork(): ignored, it would leave no status. */
                signal(SIGCHLD, SIG_DFL);
                pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
        }
        if (pid == 0)
                _exit(child(s, out[1], err[1]));
        if (r == 0 && pid < 0)
                r = errmsg_set(e, -errno, "no namespaces for mmdebstrap: %s%s", strerror(errno),
                               errno == EPERM ? ": it needs all of root's rights (CAP_SYS_ADMIN)" : "");
        close_fd(out[1]);
        close_fd(err[1]);
        if (r < 0) {
                close_fd(out[0]);
                close_fd(err[0]);
                return r;
        }
        *run = (struct running){ .pid = (pid_t)pid, .out = out[0], .err = err[0] };
        return 0;
}

static void keep_words(struct running *run, const char *p, size_t len) {
        if (len > sizeof(run->words)) {
                p += len - sizeof(run->words);
                len = sizeof(run->words);
        }
        if (run->words_len + len > sizeof(run->words)) {
                size_t drop = run->words_len + len - sizeof(run->words);

                memmove(run->words, run->words + drop, run->words_len - drop);
                run->words_len -= drop;
        }
        memcpy(run->words + run->words_len, p, len);
        run->words_len += len;
}

/* Reads what there is. *fd is -1 at the end. */
static int from_child(const struct image_run_setup *s, struct running *run, int *fd, struct errmsg *e) {
        static uint8_t buf[1 << 16];
        ssize_t n = read(*fd, buf, sizeof(buf));

        if (n < 0)
                return errno == EINTR || errno == EAGAIN ? 0
                                                         : errmsg_set(e, -errno, "%s", strerror(errno));
        if (n == 0) {
                *fd = close_fd(*fd);
                return 0;
        }
        if (fd == &run->out)
                return s->output(s->userdata, buf, (size_t)n, e);
        keep_words(run, (char *)buf, (size_t)n);
        if (s->verbose && write(STDERR_FILENO, buf, (size_t)n) < 0)
                return 0;
        return 0;
}

static int pump(const struct image_run_setup *s, struct running *run, struct errmsg *e) {
        int r;

        while (run->out >= 0 || run->err >= 0) {
                struct pollfd p[] = { { .fd = s->signal_fd, .events = POLLIN },
                                      { .fd = run->out, .events = POLLIN },
                                      { .fd = run->err, .events = POLLIN } };

                if (poll(p, 3, -1) < 0 && errno != EINTR)
                        return errmsg_set(e, -errno, "poll: %s", strerror(errno));
                if (p[0].revents && (r = image_run_signal(s->signal_fd)) > 0)
                        return r;
                if (p[1].revents && (r = from_child(s, run, &run->out, e)) != 0)
                        return r;
                if (p[2].revents && (r = from_child(s, run, &run->err, e)) != 0)
                        return r;
        }
        return 0;
}

/* The last line that is an error's, else the last that is one at all. */
static const char *last_words(struct running *run) {
        const char *last = "it said nothing", *error = NULL;
        char *save = NULL;

        run->words[run->words_len < sizeof(run->words) ? run->words_len : sizeof(run->words) - 1] = '\0';
        for (char *s = strtok_r(run->words, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
                if (s[strspn(s, " \t\r")] == '\0')
                        continue;
                last = s;
                /* apt says what is wrong, and mmdebstrap that apt failed. */
                if (strncmp(s, "E: ", 3) == 0 && (!error || !strstr(s, " failed")))
                        error = s + 3;
        }
        return error ? error : last;
}

static int failed(struct running *run, int status, struct errmsg *e) {
        bool full = memmem(run->words, run->words_len, "No space left on device", 23) != NULL;

        if (full)
                return errmsg_set(e, -ENOSPC, "mmdebstrap failed: no space left on the disk");
        if (WIFSIGNALED(status))
                return errmsg_set(e, -ECHILD, "mmdebstrap was ended by signal %d", WTERMSIG(status));
        return errmsg_set(e, -ECHILD, "mmdebstrap failed (status %d): %.300s", WEXITSTATUS(status),
                          last_words(run));
}

int image_run(const struct image_run_setup *s, struct errmsg *e) {
        struct running run;
        int r, status;

        r = start(s, &run, e);
        if (r < 0)
                return r;
        r = pump(s, &run, e);
        if (r != 0)
                kill(run.pid, SIGKILL);
        while (waitpid(run.pid, &status, 0) < 0 && errno == EINTR)
                ;
        close_fd(run.out);
        close_fd(run.err);
        if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
                r = failed(&run, status, e);
        return r;
}
