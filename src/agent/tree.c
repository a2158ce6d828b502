/*
 * A command's processes. Each exec has a supplementary gid of its own; a process without CAP_SETGID can
 * neither drop it nor pass it by, so that a scan of /proc for the gid finds every descendant, whatever
 * double fork or setsid it went through.
 *
 * A tree may fork while it is scanned. What is found is stopped, with its process group: to the kernel a fork and
 * a signal to the group come one after the other, so that no child slips by. And a scan asks for one process after
 * the other and looks at it at once: what is born meanwhile has a higher pid and is asked for later, so that a scan
 * does not end before a chain of processes that each fork the next. Where that does not calm the tree soon (hundreds
 * of such chains leave little of the processor to the agent), everybody in the sandbox is stopped for as long as
 * it takes to kill the tree, by a signal that the kernel gives to all at once.
 *
 * Where the agent is not root there is no such gid, and every command has the agent's uid. There a process is known
 * by its session, by a variable that the command has in its environment, or by its parent. One that has left all three
 * behind by its own will is found no more; it ends with the sandbox.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Time to calm a tree before everybody is stopped, and the most that a look at it takes: new processes might come
 * for ever. */
#define CALM_MAX_US UINT64_C(100000)
/* Passes over /proc until no more descendants come up. */
#define KIN_PASSES 8
/* Pids are below it (PID_MAX_LIMIT, linux/threads.h). */
#define PIDS 4194304
/* The environment that is looked through for a marker: it stands in front (start.c). */
#define ENVIRON_MAX 131072

/* --- one process after the other ------------------------------------------------------------------- */

/* The kernel's struct linux_dirent64 (man 2 getdents). */
struct entry {
        uint64_t ino, off;
        uint16_t reclen;
        uint8_t type;
        char name[];
};

/* Room for one or two entries: none grows old before it is looked at. */
struct walk {
        int fd; /* /proc */
        uint64_t until_us;
        long at, len;
        uint64_t buf[8];
};

static int walk_init(struct walk *w, uint64_t until_us) {
        w->until_us = until_us;
        w->at = w->len = 0;
        w->fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return w->fd < 0 ? -errno : 0;
}

/* The next pid; 0 at the end. */
static pid_t walk_next(struct walk *w) {
        while (now_us() < w->until_us) {
                const struct entry *e;

                if (w->at >= w->len) {
                        w->at = 0;
                        w->len = syscall(SYS_getdents64, w->fd, w->buf, sizeof(w->buf));
                        if (w->len <= 0)
                                return 0;
                }
                e = (const struct entry *)(const void *)((const char *)w->buf + w->at);
                w->at += e->reclen;
                /* Not PID 1: the agent. */
                if (e->name[0] >= '1' && e->name[0] <= '9' && strcmp(e->name, "1") != 0)
                        return (pid_t)strtol(e->name, NULL, 10);
        }
        return 0;
}

struct seen {
        pid_t ppid, pgid, sid;
        bool has_gid;
        bool stopped;
        bool doomed; /* SIGKILL is on its way */
};

static ssize_t slurp(const struct walk *w, pid_t pid, const char *file, char *buf, size_t cap) {
        char path[64];
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
        fd = openat(w->fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        n = read(fd, buf, cap - 1);
        close(fd);
        if (n >= 0)
                buf[n] = '\0';
        return n;
}

static bool groups_have(const char *line, gid_t gid) {
        while (*line && *line != '\n') {
                char *end;
                unsigned long v = strtoul(line, &end, 10);

                if (end == line)
                        return false;
                if (v == gid)
                        return true;
                line = end;
                while (*line == ' ' || *line == '\t')
                        line++;
        }
        return false;
}

/* What stands behind @key. The first line is the process' name, chosen by it: the kernel escapes a newline there. */
static const char *field(const char *status, const char *key) {
        const char *p = strstr(status, key);

        return p ? p + strlen(key) : "";
}

/* "Z" stands for a dead process, and for a living one whose first thread has ended before the others. */
static bool is_dead(const char *status, char state) {
        return !state ||
               ((state == 'Z' || state == 'X') && strtol(field(status, "\nThreads:\t"), NULL, 10) <= 1);
}

/* False: it is dead, or has gone. */
static bool look(const struct walk *w, pid_t pid, gid_t gid, struct seen *ret) {
        char buf[4096];
        char state;

        if (slurp(w, pid, "status", buf, sizeof(buf)) <= 0)
                return false;
        state = *field(buf, "\nState:\t");
        if (is_dead(buf, state))
                return false;
        ret->stopped = state == 'T' || state == 't';
        ret->doomed = strtoull(field(buf, "\nSigPnd:\t"), NULL, 16) & 1u << (SIGKILL - 1);
        ret->has_gid = gid && groups_have(field(buf, "\nGroups:\t"), gid);
        ret->ppid = (pid_t)strtol(field(buf, "\nPPid:\t"), NULL, 10);
        ret->pgid = (pid_t)strtol(field(buf, "\nNSpgid:\t"), NULL, 10);
        ret->sid = (pid_t)strtol(field(buf, "\nNSsid:\t"), NULL, 10);
        return true;
}

/* --- whose is it ------------------------------------------------------------------------------------ */

/* Sets of pids. */
static uint8_t kin[PIDS / 8] PLACED_SCRATCH;
static uint8_t paused[PIDS / 8] PLACED_SCRATCH;     /* none of the tree, and stopped by its own like */
static uint8_t bystanders[PIDS / 8] PLACED_SCRATCH; /* none of the tree, and stopped by the agent */

static bool has(const uint8_t *set, pid_t pid) {
        return pid > 0 && pid < PIDS && set[pid / 8] & 1u << pid % 8;
}

static void add(uint8_t *set, pid_t pid) {
        if (pid > 0 && pid < PIDS)
                set[pid / 8] |= (uint8_t)(1u << pid % 8);
}

/* The value of the marker's variable in the process' environment: 1 this command's, 0 there is none, -1 another's. */
static int marked(const struct walk *w, pid_t pid, const char *marker) {
        static char buf[ENVIRON_MAX] PLACED_SCRATCH;
        ssize_t n = slurp(w, pid, "environ", buf, sizeof(buf));

        for (const char *p = buf; n > 0 && p < buf + n; p += strlen(p) + 1)
                if (strncmp(p, EXEC_MARKER, strlen(EXEC_MARKER)) == 0)
                        return strcmp(p, marker) == 0 ? 1 : -1;
        return 0;
}

/* A session's number lives as long as the session; afterwards it may be another's, who is marked. */
static bool is_member(const struct tree *t, const struct walk *w, pid_t pid, const struct seen *s) {
        int m;

        if (t->gid)
                return s->has_gid;
        if (has(kin, pid) || has(kin, s->ppid))
                return true;
        m = marked(w, pid, t->marker);
        return m > 0 || (m == 0 && s->sid == t->sid);
}

/* Without a gid, descent is looked for in passes, each of which may bring up children for the next. */
static void find_kin(const struct tree *t, uint64_t until_us) {
        bool more = t->gid == 0;

        for (int i = 0; more && i < KIN_PASSES; i++) {
                struct walk w;
                pid_t pid;

                more = false;
                if (walk_init(&w, until_us) < 0)
                        return;
                while ((pid = walk_next(&w))) {
                        struct seen s;

                        if (has(kin, pid) || !look(&w, pid, 0, &s) || !is_member(t, &w, pid, &s))
                                continue;
                        add(kin, pid);
                        more = true;
                }
                close(w.fd);
        }
}

/* --- what is done to each ------------------------------------------------------------------------------ */

struct visit {
        const struct tree *t;
        uint64_t until_us;
        int signo; /* for each; 0: none */
        int n;     /* how many there were */
        int running;
        pid_t last; /* the process group that was stopped last */
};

static void count_or_signal(struct visit *v, pid_t pid, const struct seen *s, bool member) {
        (void)s;
        if (!member)
                return;
        v->n++;
        if (v->signo)
                kill(pid, v->signo);
}

/* The whole group is the tree's, as a group is within a session, and the session's leader is the command or
 * descends from it. */
static void stop_running(struct visit *v, pid_t pid, const struct seen *s, bool member) {
        if (!member && s->stopped)
                add(paused, pid);
        if (!member || s->stopped || s->doomed)
                return;
        v->running++;
        if (v->t->gid && s->pgid > 1 && s->pgid != v->last)
                kill(-s->pgid, SIGSTOP);
        v->last = s->pgid;
        kill(pid, SIGSTOP);
}

static void kill_stopped(struct visit *v, pid_t pid, const struct seen *s, bool member) {
        (void)s;
        if (member) {
                v->n++;
                kill(pid, SIGKILL);
        } else if (!has(paused, pid))
                add(bystanders, pid);
}

/* 0, or -errno. */
static int scan(struct visit *v,
                void (*each)(struct visit *v, pid_t pid, const struct seen *s, bool member)) {
        struct walk w;
        pid_t pid;
        int r = walk_init(&w, v->until_us);

        if (r < 0)
                return r;
        while ((pid = walk_next(&w))) {
                struct seen s;
                bool member;

                if (!look(&w, pid, v->t->gid, &s))
                        continue;
                member = is_member(v->t, &w, pid, &s);
                if (member && v->t->gid == 0)
                        add(kin, pid);
                each(v, pid, &s, member);
        }
        close(w.fd);
        return 0;
}

static void forget_pids(const struct tree *t) {
        if (t->gid == 0)
                forget(kin, sizeof(kin));
}

int tree_signal(const struct tree *t, int signo) {
        struct visit v = { .t = t, .until_us = now_us() + CALM_MAX_US, .signo = signo };
        int r;

        find_kin(t, v.until_us);
        r = scan(&v, count_or_signal);
        forget_pids(t);
        return r < 0 ? r : v.n;
}

int tree_count(const struct tree *t) {
        return tree_signal(t, 0);
}

static void count_any(struct visit *v, pid_t pid, const struct seen *s, bool member) {
        (void)pid;
        (void)s;
        (void)member;
        v->n++;
}

int tree_count_all(void) {
        const struct tree any = { .gid = (gid_t)-1 };
        struct visit v = { .t = &any, .until_us = now_us() + CALM_MAX_US };
        int r = scan(&v, count_any);

        return r < 0 ? r : v.n;
}

/* Children before parents, which are older as a rule: so a parent that waits for stopped children sees none. */
static void wake_bystanders(void) {
        for (pid_t byte = PIDS / 8 - 1; byte >= 0; byte--)
                for (int bit = 7; bystanders[byte] && bit >= 0; bit--)
                        if (bystanders[byte] & 1u << bit)
                                kill(byte * 8 + bit, SIGCONT);
        forget(bystanders, sizeof(bystanders));
}

/* Nobody forks meanwhile: in the kernel a fork fails once kill(-1) has reached its process, or the child is there
 * before. And nobody else takes the processor. Bystanders notice it where a system call of theirs is one that ends
 * with EINTR (man 7 signal). */
static int kill_frozen(const struct tree *t) {
        struct visit v = { .t = t, .until_us = UINT64_MAX };
        int r;

        kill(-1, SIGSTOP);
        find_kin(t, v.until_us);
        r = scan(&v, kill_stopped);
        wake_bystanders();
        return r < 0 ? r : v.n;
}

/* 1: none of it runs, 0: some still do, or -errno. */
static int calm(const struct tree *t, uint64_t until_us) {
        struct visit v = { .t = t, .until_us = until_us };
        int r;

        do {
                v.running = 0;
                r = scan(&v, stop_running);
        } while (r == 0 && v.running > 0 && now_us() < until_us);
        return r < 0 ? r : now_us() < until_us;
}

int tree_kill(const struct tree *t) {
        uint64_t until_us = now_us() + CALM_MAX_US;
        struct visit v = { .t = t, .until_us = UINT64_MAX, .signo = SIGKILL };
        int r;

        find_kin(t, until_us);
        r = calm(t, until_us);
        /* Everybody is everybody in the sandbox for its PID 1 alone. */
        if (r == 0 && getpid() == 1)
                v.n = kill_frozen(t);
        else if (r >= 0)
                r = scan(&v, count_or_signal);
        forget(paused, sizeof(paused));
        forget_pids(t);
        return r < 0 ? r : v.n;
}
