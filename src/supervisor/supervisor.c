/*
 * One loop: wait for a signal or for the next restart that is due. All signals that matter are blocked
 * and taken with sigtimedwait(2), so there is no handler and nothing to race with.
 *
 * A daemon is down (with a time at which it is started again), up, or held: it said that its config is
 * bad, and only a word from root (start, SIGHUP) makes it try again.
 */
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sys/wait.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/exitcode.h"

enum child_state { CHILD_DOWN, CHILD_UP, CHILD_HELD };

struct child {
        enum child_state state;
        pid_t pid;        /* while up */
        uint64_t at_ms;   /* up: since when; down: when it is due */
        unsigned wait_ms; /* the back-off that comes next */
};

struct supervisor {
        const struct sup_config *c;
        struct child children[SUPERVISOR_DAEMONS];
        sigset_t signals;
};

static uint64_t now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int complain(const char *what, int r) {
        fprintf(stderr, "supervisor: %s: %s\n", what, strerror(-r));
        return 1;
}

/* One line into the daemon's own log, where its administrator looks. */
static void note(const struct sup_config *c, const struct sup_daemon *d, const char *text, int number) {
        _cleanup_fd_ int fd = sup_open_log(c->log_dir, d->log, geteuid());
        char line[256];
        int len = snprintf(line, sizeof(line), "supervisor: %s: %s %d\n", d->name, text, number);

        /* Nobody is left to be told of a log that cannot be written. */
        if (fd >= 0 && len > 0 && write(fd, line, (size_t)len) < 0)
                return;
}

/* In the child: nothing of ours goes along but three descriptors and a fixed environment. */
static _Noreturn void become(const struct sup_config *c, const struct sup_daemon *d) {
        static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", NULL };
        int log = sup_open_log(c->log_dir, d->log, geteuid());
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        const struct rlimit files = { 65536, 65536 };
        sigset_t none;

        /* Where it cannot be raised, the daemon lives with what there is. */
        setrlimit(RLIMIT_NOFILE, &files);
        if (log < 0 || null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
                _exit(EXIT_SANDBOX);
        close_range(3, ~0U, 0);
        for (int s = 1; s < NSIG; s++)
                signal(s, SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        /* execve() changes nothing of either. */
        execve(d->argv[0], (char *const *)(uintptr_t)d->argv, (char *const *)(uintptr_t)env);
        dprintf(2, "supervisor: cannot run %s: %s\n", d->argv[0], strerror(errno));
        _exit(EXIT_SANDBOX);
}

static void child_down(struct supervisor *s, struct child *ch) {
        const struct sup_config *c = s->c;

        if (ch->wait_ms == 0)
                ch->wait_ms = c->backoff_first_ms;
        ch->state = CHILD_DOWN;
        ch->at_ms = now_ms() + ch->wait_ms;
        ch->wait_ms = ch->wait_ms < c->backoff_max_ms / 2 ? ch->wait_ms * 2 : c->backoff_max_ms;
}

static void child_start(struct supervisor *s, int i) {
        struct child *ch = &s->children[i];
        pid_t pid = fork();

        if (pid == 0)
                become(s->c, &s->c->daemons[i]);
        if (pid < 0) {
                child_down(s, ch);
                return;
        }
        *ch = (struct child){ .state = CHILD_UP, .pid = pid, .at_ms = now_ms(), .wait_ms = ch->wait_ms };
}

static void child_ended(struct supervisor *s, int i, int status) {
        struct child *ch = &s->children[i];
        const struct sup_daemon *d = &s->c->daemons[i];

        /* Status 0 is no failure: it was told to end, or wants to be started anew with the groups of now. */
        if (now_ms() - ch->at_ms >= s->c->settled_ms || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
                ch->wait_ms = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CONFIG) {
                ch->state = CHILD_HELD;
                note(s->c, d, "bad config, held until hermes-sandbox start or SIGHUP; exit status",
                     EXIT_CONFIG);
                return;
        }
        child_down(s, ch);
        if (WIFSIGNALED(status))
                note(s->c, d, "ended by signal", WTERMSIG(status));
        else
                note(s->c, d, "ended with exit status", WEXITSTATUS(status));
}

static void reap(struct supervisor *s) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                for (int i = 0; i < SUPERVISOR_DAEMONS; i++)
                        if (s->children[i].state == CHILD_UP && s->children[i].pid == pid)
                                child_ended(s, i, status);
}

/* Waits until @deadline_ms at most. The signal, or 0. */
static int next_signal(const struct supervisor *s, uint64_t deadline_ms) {
        uint64_t now = now_ms(), left = deadline_ms > now ? deadline_ms - now : 0;
        struct timespec ts = { .tv_sec = (time_t)(left / 1000),
                               .tv_nsec = (long)(left % 1000) * 1000000 };
        int signo = sigtimedwait(&s->signals, NULL, &ts);

        return signo < 0 ? 0 : signo;
}

/* With @signo, and whoever does not want to wait so long signals us again. */
static void child_stop(struct supervisor *s, int i, int signo) {
        struct child *ch = &s->children[i];
        uint64_t deadline = now_ms() + s->c->deadline_ms;

        if (ch->state != CHILD_UP)
                return;
        kill(ch->pid, signo);
        while (ch->state == CHILD_UP) {
                signo = next_signal(s, deadline);
                reap(s);
                if (ch->state == CHILD_UP && (signo == SIGTERM || signo == SIGINT))
                        kill(ch->pid, signo);
                if (ch->state == CHILD_UP && now_ms() >= deadline) {
                        kill(ch->pid, SIGKILL);
                        deadline = now_ms() + 1000;
                }
        }
}

/* When the next start is due, after those that are due now. */
static uint64_t start_due(struct supervisor *s) {
        uint64_t next = now_ms() + 3600 * 1000;

        for (int i = 0; i < SUPERVISOR_DAEMONS; i++) {
                struct child *ch = &s->children[i];

                if (ch->state == CHILD_DOWN && ch->at_ms <= now_ms())
                        child_start(s, i);
                if (ch->state == CHILD_DOWN && ch->at_ms < next)
                        next = ch->at_ms;
        }
        return next;
}

static void release_held(struct supervisor *s, int signo) {
        for (int i = 0; i < SUPERVISOR_DAEMONS; i++) {
                struct child *ch = &s->children[i];

                if (ch->state == CHILD_HELD)
                        *ch = (struct child){ .state = CHILD_DOWN };
                else if (ch->state == CHILD_UP && signo == SIGHUP)
                        kill(ch->pid, SIGHUP);
        }
}

static void supervise(struct supervisor *s, int ready_fd) {
        uint64_t due = start_due(s);
        int signo = 0;

        if (write(ready_fd, "", 1) < 0)
                return;
        close(ready_fd);
        while (signo != SIGTERM && signo != SIGINT) {
                signo = next_signal(s, due);
                reap(s);
                if (signo == SIGHUP || signo == SIGUSR1)
                        release_held(s, signo);
                if (signo != SIGTERM && signo != SIGINT)
                        due = start_due(s);
        }
        /* The manager first: it removes its sandboxes, for which it needs the broker. */
        for (int i = SUPERVISOR_DAEMONS; i-- > 0;)
                child_stop(s, i, signo);
}

/* The process that holds the lock, 0: none, or -errno. A lock cannot go stale, unlike a number in a
 * file. */
static pid_t holder(const char *pid_file) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        _cleanup_fd_ int fd = open(pid_file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fcntl(fd, F_GETLK, &lock) < 0)
                return -errno;
        return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

/* Detached from whoever started us; the lock is taken here, as a fork does not inherit it. */
static int background(struct supervisor *s, int ready_fd) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int fd = open(s->c->pid_file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (fd < 0 || null < 0 || fcntl(fd, F_SETLK, &lock) < 0)
                return complain(s->c->pid_file, -errno);
        setsid();
        sigemptyset(&s->signals);
        sigaddset(&s->signals, SIGCHLD);
        sigaddset(&s->signals, SIGTERM);
        sigaddset(&s->signals, SIGINT);
        sigaddset(&s->signals, SIGHUP);
        sigaddset(&s->signals, SIGUSR1);
        sigprocmask(SIG_BLOCK, &s->signals, NULL);
        for (int i = 0; i <= 2; i++)
                dup2(null, i);
        supervise(s, ready_fd);
        return 0;
}

int supervisor_start(const struct sup_config *c) {
        struct supervisor s = { .c = c };
        struct errmsg e;
        pid_t pid = holder(c->pid_file);
        int ready[2];
        char byte;

        if (pid > 0) {
                printf("already running (pid %d)\n", (int)pid);
                kill(pid, SIGUSR1);
                return 0;
        }
        if (pid < 0)
                return complain(c->pid_file, pid);
        if (sup_make_folders(c->folders, &e) < 0) {
                fprintf(stderr, "supervisor: %s\n", e.text);
                return 1;
        }
        if (pipe2(ready, O_CLOEXEC) < 0)
                return complain("pipe", -errno);
        pid = fork();
        if (pid == 0) {
                close(ready[0]);
                _exit(background(&s, ready[1]));
        }
        close(ready[1]);
        if (pid < 0 || read(ready[0], &byte, 1) != 1)
                return complain("cannot start", pid < 0 ? -errno : -EIO);
        close(ready[0]);
        return 0;
}

int supervisor_stop(const struct sup_config *c) {
        pid_t pid = holder(c->pid_file);
        _cleanup_fd_ int fd = -1;
        struct pollfd wait;

        if (pid == 0)
                return 0;
        if (pid < 0)
                return complain(c->pid_file, pid);
        fd = pidfd_open(pid, 0);
        /* The number could have been given to another process before it was pinned. */
        if (fd < 0 || holder(c->pid_file) != pid)
                return holder(c->pid_file) == 0 ? 0 : complain("cannot find it", -ESRCH);
        if (pidfd_send_signal(fd, SIGTERM, NULL, 0) < 0)
                return complain("cannot signal it", -errno);
        wait = (struct pollfd){ .fd = fd, .events = POLLIN };
        while (poll(&wait, 1, (int)c->deadline_ms * SUPERVISOR_DAEMONS + 5000) < 0)
                if (errno != EINTR)
                        return complain("poll", -errno);
        return wait.revents ? 0 : complain("it does not end", -ETIMEDOUT);
}
