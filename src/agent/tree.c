/*
 * A command's processes. Each exec has a supplementary gid of its own; a process without CAP_SETGID can
 * neither drop it nor pass it by, so that a scan of /proc for the gid finds every descendant, whatever
 * double fork or setsid it went through.
 *
 * A tree may fork while it is scanned. What is found is stopped, with its process group: to the kernel a fork and
 * a signal to the group come one after the other, so that no child slips by. And a scan asks for one process after
 * the other and looks at it at once: what is born meanwhile has a higher pid and is asked for later, so that a scan
 * cannot end before a chain of processes that each fork the next. Where rounds of that do not calm the tree (it
 * changes groups all the time, and has the processor more often than the agent), everybody in the sandbox is stopped
 * for as long as it takes to kill the tree, by a signal that the kernel gives to all at once.
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

/* Rounds of stopping before everybody is stopped. */
#define STOP_ROUNDS 32
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
        long at, len;
        uint64_t buf[8];
};

static int walk_init(struct walk *w) {
        w->at = w->len = 0;
        w->fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return w->fd < 0 ? -errno : 0;
}

/* The next pid; 0 at the end. */
static pid_t walk_next(struct walk *w) {
        for (;;) {
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
}

struct seen {
        pid_t ppid, pgid, sid;
        bool has_gid;
        bool stopped;
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
        ret->has_gid = gid && groups_have(field(buf, "\nGroups:\t"), gid);
        ret->ppid = (pid_t)strtol(field(buf, "\nPPid:\t"), NULL, 10);
        ret->pgid = (pid_t)strtol(field(buf, "\nNSpgid:\t"), NULL, 10);
        ret->sid = (pid_t)strtol(field(buf, "\nNSsid:\t"), NULL, 10);
        return true;
}

/* --- whose is it ------------------------------------------------------------------------------------ */

/* Sets of pids. */
static uint8_t kin[PIDS / 8] PLACED_SCRATCH;
static uint8_t bystanders[PIDS / 8] PLACED_SCRATCH;

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
static void find_kin(const struct tree *t) {
        bool more = t->gid == 0;

        for (int i = 0; more && i < KIN_PASSES; i++) {
                struct walk w;
                pid_t pid;

                more = false;
                if (walk_init(&w) < 0)
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

/* --- signals ----------------------------------------------------------------------------------------- */

enum how { COUNT, EACH, STOP_RUNNING };

/* The whole group is the tree's, as a group is within a session, and the session's leader is the command or
 * descends from it. */
static void stop(const struct tree *t, pid_t pid, const struct seen *s, pid_t *last) {
        if (t->gid && s->pgid > 1 && s->pgid != *last)
                kill(-s->pgid, SIGSTOP);
        *last = s->pgid;
        kill(pid, SIGSTOP);
}

/* Returns how many there are; only those that run, where they are to be stopped. */
static int scan(const struct tree *t, enum how how, int signo) {
        struct walk w;
        pid_t pid, last = 0;
        int n = 0, r = walk_init(&w);

        if (r < 0)
                return r;
        while ((pid = walk_next(&w))) {
                struct seen s;

                if (!look(&w, pid, t->gid, &s) || !is_member(t, &w, pid, &s))
                        continue;
                if (t->gid == 0)
                        add(kin, pid);
                if (how == STOP_RUNNING && s.stopped)
                        continue;
                n++;
                if (how == EACH)
                        kill(pid, signo);
                else if (how == STOP_RUNNING)
                        stop(t, pid, &s, &last);
        }
        close(w.fd);
        return n;
}

static void forget_pids(const struct tree *t) {
        if (t->gid == 0)
                forget(kin, sizeof(kin));
}

int tree_count(const struct tree *t) {
        int n;

        find_kin(t);
        n = scan(t, COUNT, 0);
        forget_pids(t);
        return n;
}

int tree_signal(const struct tree *t, int signo) {
        int n;

        find_kin(t);
        n = scan(t, EACH, signo);
        forget_pids(t);
        return n;
}

/* --- the last resort ---------------------------------------------------------------------------------- */

/* Who runs and is none of the tree. */
static void note_bystanders(const struct tree *t) {
        struct walk w;
        pid_t pid;

        if (walk_init(&w) < 0)
                return;
        while ((pid = walk_next(&w))) {
                struct seen s;

                if (look(&w, pid, t->gid, &s) && !s.stopped && !is_member(t, &w, pid, &s))
                        add(bystanders, pid);
        }
        close(w.fd);
}

/* Children before parents, which are older as a rule: so a parent that waits for stopped children sees none. */
static void wake_bystanders(void) {
        for (pid_t byte = PIDS / 8 - 1; byte >= 0; byte--)
                for (int bit = 7; bystanders[byte] && bit >= 0; bit--)
                        if (bystanders[byte] & 1u << bit)
                                kill(byte * 8 + bit, SIGCONT);
        forget(bystanders, sizeof(bystanders));
}

/* Nobody forks meanwhile: a fork during kill(-1) fails or its child is among those that are stopped. Some system calls
 * of bystanders end with EINTR (man 7 signal). */
static int kill_frozen(const struct tree *t) {
        int n;

        note_bystanders(t);
        kill(-1, SIGSTOP);
        find_kin(t);
        n = scan(t, EACH, SIGKILL);
        wake_bystanders();
        return n;
}

int tree_kill(const struct tree *t) {
        int n = 1;

        find_kin(t);
        for (int i = 0; i < STOP_ROUNDS && n > 0; i++)
                n = scan(t, STOP_RUNNING, 0);
        n = n > 0 ? kill_frozen(t) : scan(t, EACH, SIGKILL);
        forget_pids(t);
        return n;
}
