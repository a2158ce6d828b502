/*
 * Between two commands: kill what is left, empty and restore the places, remove IPC objects; and prove it.
 *
 * Files are removed by a child with the command's uid and no privilege: whatever name or link it meets, it
 * can do no more than the command could. What it cannot remove, such as root's file in a sticky folder, the
 * proof finds. The child shares the agent's memory (vfork), and the agent sleeps for as long: a timer of its
 * own ends it.
 */
#include "agent/places.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define KILL_MAX_US UINT64_C(400000)
#define CHILD_MAX_US 1400000
/* Something freed may be gone a moment later: a file that was on its way through a socket, what a killed
 * process had mapped. */
#define PROOF_MAX_US UINT64_C(150000)
_Static_assert(KILL_MAX_US + CHILD_MAX_US + PROOF_MAX_US < SCRUB_MAX_US, "the parts fit into the whole");
#define PROOF_PAUSE_NS 1000000L
#define KILL_PAUSE_NS 200000L

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define XATTR_LIST_MAX 65536 /* linux/limits.h */

static void pause_for(long ns) {
        struct timespec t = { 0, ns };

        nanosleep(&t, NULL);
}

/* Nobody waits for them: no command is running, so that these are orphans, or the spare process. */
static void reap(void) {
        while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
                ;
}

/* --- processes: done by the agent ----------------------------------------------------------------- */

/* The spare process dies too; spare.c notices. */
static void kill_all(const struct places *all) {
        uint64_t until = now_us() + KILL_MAX_US;

        (void)all;
        /* Until there is nobody to signal: a dead process counts until its parent has reaped it, and the
         * parent of one that came in from outside is not the agent. */
        while (kill(-1, SIGKILL) == 0) {
                reap();
                if (kill(-1, 0) < 0 || now_us() > until)
                        return;
                pause_for(KILL_PAUSE_NS);
        }
}

/* --- files: done by the child ---------------------------------------------------------------------- */

static int remove_entry(int dir, const struct dirent *e) {
        if (e->d_type != DT_DIR && unlinkat(dir, e->d_name, 0) == 0)
                return 0;
        if (e->d_type != DT_DIR && errno != EISDIR)
                return -errno;
        return unlinkat(dir, e->d_name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Removes until nothing is left: 0; or up to a folder that is not empty: 1, and its name, which stands until
 * the next listing; -errno where something cannot be removed. */
static int remove_entries(int dir, const char **ret_name) {
        const struct dirent *e;

        while ((e = proof_first(dir)))
                for (; e; e = proof_next(dir)) {
                        int r = remove_entry(dir, e);

                        *ret_name = e->d_name;
                        if (r < 0)
                                return r == -ENOTEMPTY ? 1 : r;
                }
        return -errno;
}

/* A folder that its owner has closed is opened by its inode, as a name could be a link to somewhere else. */
static int open_up(int dir, const char *name) {
        char path[32];
        int r, fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        r = chmod(path, 0700) < 0 ? -errno : 0;
        close(fd);
        return r;
}

/* A descriptor of the folder, which can be listed and emptied; never one of another file system. */
static int descend(int dir, const char *name, dev_t dev) {
        int r = 0, fd = openat(dir, name, DIR_FLAGS);
        struct stat st;

        if (fd < 0 && errno == EACCES) {
                r = open_up(dir, name);
                if (r < 0)
                        return r;
                fd = openat(dir, name, DIR_FLAGS);
        }
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                r = -errno;
        else if (st.st_dev != dev)
                r = -EXDEV;
        else if ((st.st_mode & 0700) != 0700 && fchmod(fd, 0700) < 0)
                r = -errno;
        if (r == 0)
                return fd;
        close(fd);
        return r;
}

static int ascend(int dir, const struct place *p) {
        int fd = openat(dir, "..", DIR_FLAGS);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_dev == p->top.dev && st.st_ino == p->top.ino) {
                close(fd);
                return p->fd;
        }
        return fd;
}

/* One folder is open at a time, however deep they are nested. */
static void empty_place(const struct place *p) {
        const char *name;
        int next, r, fd = p->fd;

        if (p->top.uid == geteuid() && fchmod(fd, (p->top.mode & 07777) | 0700) < 0)
                return;
        do {
                r = remove_entries(fd, &name);
                if (r < 0 || (r == 0 && fd == p->fd))
                        next = -1;
                else
                        next = r > 0 ? descend(fd, name, p->top.dev) : ascend(fd, p);
                if (fd != p->fd)
                        close(fd);
                fd = next;
        } while (fd >= 0);
}

static void empty_places(const struct places *all) {
        for (size_t i = 0; i < all->n; i++)
                if (all->place[i].emptied && !all->place[i].queues)
                        empty_place(&all->place[i]);
}

static void remove_queues(const struct places *all) {
        const char *name;

        for (size_t i = 0; i < all->n; i++)
                if (all->place[i].queues)
                        remove_entries(all->place[i].fd, &name);
}

/* --- attributes: done by who owns the top ---------------------------------------------------------- */

static void remove_xattrs(int fd) {
        static char names[XATTR_LIST_MAX] PLACED_SCRATCH;
        ssize_t n = flistxattr(fd, names, sizeof(names));

        for (const char *p = names; n > 0 && p < names + n; p += strlen(p) + 1)
                if (strncmp(p, "security.", strlen("security.")) != 0)
                        fremovexattr(fd, p);
}

static void restore_top(const struct place *p) {
        const struct timespec times[2] = { p->top.atime, p->top.mtime };
        mode_t mode = p->top.mode & 07777;
        int flags = (int)p->top.flags;
        struct place_top now;

        if (proof_top(p->fd, &now) < 0 || proof_top_equal(&now, &p->top))
                return;
        /* Whether something could not be set back, the proof will see. */
        if (now.owners_xattrs) {
                fchmod(p->fd, mode | 0700); /* user attributes are as writable as the folder */
                remove_xattrs(p->fd);
        }
        if (now.gid != p->top.gid && fchown(p->fd, (uid_t)-1, p->top.gid) < 0)
                return;
        fchmod(p->fd, mode);
        if (now.flags != p->top.flags && ioctl(p->fd, FS_IOC_SETFLAGS, &flags) < 0)
                return;
        futimens(p->fd, times);
}

static void restore_tops(const struct places *all) {
        for (size_t i = 0; i < all->n; i++)
                if (all->place[i].emptied && all->place[i].top.uid == geteuid())
                        restore_top(&all->place[i]);
}

/* --- System V IPC: done by the child, as the maker of an object may always remove it ----------------- */

/* The _INFO commands return the highest index in use, the _STAT_ANY commands the id at an index. */
static void remove_sysv_ipc(const struct places *all) {
        union {
                int val;
                void *buf;
        } arg;
        struct shm_info shm;
        struct shmid_ds shm_ds;
        struct msginfo msg;
        struct msqid_ds msg_ds;
        struct seminfo sem;
        struct semid_ds sem_ds;
        int id, max;

        (void)all;
        max = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&shm);
        for (int i = 0; i <= max; i++)
                if ((id = shmctl(i, SHM_STAT_ANY, &shm_ds)) >= 0)
                        shmctl(id, IPC_RMID, NULL);
        max = msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&msg);
        for (int i = 0; i <= max; i++)
                if ((id = msgctl(i, MSG_STAT_ANY, &msg_ds)) >= 0)
                        msgctl(id, IPC_RMID, NULL);
        arg.buf = &sem;
        max = semctl(0, 0, SEM_INFO, arg);
        arg.buf = &sem_ds;
        for (int i = 0; i <= max; i++)
                if ((id = semctl(i, 0, SEM_STAT_ANY, arg)) >= 0)
                        semctl(id, 0, IPC_RMID);
}

/* --- the steps ------------------------------------------------------------------------------------- */

static const struct {
        const char *name;
        void (*first)(const struct places *all); /* by the agent, before the child */
        void (*child)(const struct places *all); /* by the child */
        void (*last)(const struct places *all);  /* by the agent, after the child */
} steps[] = {
        /* One row a line. The times of a top change with each removal: it is restored after the last. */
        { "processes", kill_all, NULL, NULL },
        { "files", NULL, empty_places, NULL },
        { "queues", NULL, remove_queues, NULL },
        { "sysv_ipc", NULL, remove_sysv_ipc, NULL },
        { "attributes", NULL, restore_tops, restore_tops },
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

_Noreturn static void child_main(const struct agent_ids *ids, const struct places *all) {
        const struct itimerval limit = { .it_value = { CHILD_MAX_US / 1000000,
                                                       CHILD_MAX_US % 1000000 } };
        /* Its own gid as the only group: no right that it has not anyway. */
        const struct child c = { .ids = ids, .user = &ids->user, .exec_gid = ids->user.gid };
        sigset_t timer;

        sigemptyset(&timer);
        sigaddset(&timer, SIGALRM);
        /* The agent blocks all signals and handles none. */
        if (sigprocmask(SIG_UNBLOCK, &timer, NULL) < 0 || setitimer(ITIMER_REAL, &limit, NULL) < 0 ||
            child_prefer_for_oom() < 0 || child_drop_identity(&c) < 0)
                _exit(1);
        for (size_t i = 0; i < STEPS; i++)
                if (steps[i].child)
                        steps[i].child(all);
        _exit(0);
}

/* vfork(2) in a function of its own: nothing that it returns into is used by the child. */
__attribute__((noinline)) static pid_t fork_child(const struct agent_ids *ids,
                                                  const struct places *all) {
        pid_t pid = vfork();

        if (pid == 0)
                child_main(ids, all);
        return pid;
}

static void take_steps(const struct agent_ids *ids, const struct places *all) {
        pid_t pid;

        for (size_t i = 0; i < STEPS; i++)
                if (steps[i].first)
                        steps[i].first(all);
        pid = fork_child(ids, all);
        /* It is about to end, if it has not. */
        if (pid > 0)
                waitpid(pid, NULL, 0);
        for (size_t i = 0; i < STEPS; i++)
                if (steps[i].last)
                        steps[i].last(all);
}

void scrub(const struct agent_ids *ids, struct scrubbed *ret) {
        const struct places *all = places_get();
        uint64_t begun = now_us();

        *ret = (struct scrubbed){ .check = SCRUB_UNPROVED, .place = "" };
        if (!all)
                return;
        reap();
        if (!proof(all, ret)) {
                uint64_t until;

                ret->emptied = true;
                take_steps(ids, all);
                until = now_us() + PROOF_MAX_US;
                while (!proof(all, ret) && now_us() < until) {
                        pause_for(PROOF_PAUSE_NS);
                        reap();
                }
        }
        ret->us = now_us() - begun;
}
