/*
 * Is everything as it was at the handshake? What cannot be answered is not.
 *
 * It runs after every command of a sandbox that is used again, most often with nothing to find. So each row
 * is a few system calls on descriptors that are open already.
 */
#include "agent/places.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The longest list of names and the longest value (linux/limits.h: XATTR_LIST_MAX, XATTR_SIZE_MAX). */
#define XATTR_MAX 65536

/* --- readings ------------------------------------------------------------------------------------ */

static struct {
        ssize_t len, pos;
        char buf[32768] __attribute__((aligned(8)));
} listing PLACED_SCRATCH;

void proof_forget(void) {
        forget(&listing, sizeof(listing));
}

const struct dirent *proof_next(int fd) {
        for (;;) {
                const struct dirent *e;

                if (listing.pos >= listing.len) {
                        errno = 0;
                        listing.pos = 0;
                        /* The C libraries name it differently: getdents64() or getdents(). */
                        listing.len = syscall(SYS_getdents64, fd, listing.buf, sizeof(listing.buf));
                        if (listing.len <= 0)
                                return NULL;
                }
                e = (const struct dirent *)(listing.buf + listing.pos);
                listing.pos += e->d_reclen;
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        return e;
        }
}

const struct dirent *proof_first(int fd) {
        listing.pos = listing.len = 0;
        if (lseek(fd, 0, SEEK_SET) < 0)
                return NULL;
        return proof_next(fd);
}

/* FNV-1a (draft-eastlake-fnv): a change by chance is to be seen, and nobody can search for a collision, as
 * only a privileged process can set such attributes. */
static uint64_t digest(uint64_t h, const void *p, size_t n) {
        for (const uint8_t *b = p; n > 0; b++, n--)
                h = (h ^ *b) * UINT64_C(0x100000001b3);
        return h;
}

static int read_xattrs(int fd, struct place_top *ret) {
        static char names[XATTR_MAX] PLACED_SCRATCH, value[XATTR_MAX] PLACED_SCRATCH;
        ssize_t n = flistxattr(fd, names, sizeof(names)), len;

        if (n < 0)
                return errno == ENOTSUP ? 0 : -errno;
        for (const char *p = names; p < names + n; p += strlen(p) + 1) {
                if (strncmp(p, "security.", strlen("security.")) != 0) {
                        ret->owners_xattrs = true;
                        continue;
                }
                len = fgetxattr(fd, p, value, sizeof(value));
                if (len < 0)
                        return -errno;
                ret->xattrs = digest(ret->xattrs, p, strlen(p) + 1);
                ret->xattrs = digest(ret->xattrs, value, (size_t)len);
        }
        return 0;
}

int proof_top(int fd, struct place_top *ret) {
        struct place_top t = { 0 };
        struct stat st;
        int r, flags = 0;

        if (fstat(fd, &st) < 0)
                return -errno;
        t.dev = st.st_dev;
        t.ino = st.st_ino;
        t.mode = st.st_mode;
        t.uid = st.st_uid;
        t.gid = st.st_gid;
        t.atime = st.st_atim;
        t.mtime = st.st_mtim;
        if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0)
                t.flags = (unsigned)flags;
        else if (errno != ENOTTY && errno != EOPNOTSUPP)
                return -errno;
        r = read_xattrs(fd, &t);
        if (r == 0)
                *ret = t;
        return r;
}

static bool time_equal(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool proof_top_equal(const struct place_top *a, const struct place_top *b) {
        return a->dev == b->dev && a->ino == b->ino && a->mode == b->mode && a->uid == b->uid &&
               a->gid == b->gid && time_equal(&a->atime, &b->atime) &&
               time_equal(&a->mtime, &b->mtime) && a->flags == b->flags && a->xattrs == b->xattrs &&
               a->owners_xattrs == b->owners_xattrs;
}

int proof_counters(int fd, uint64_t *ret_blocks, uint64_t *ret_inodes) {
        struct statfs s;

        if (fstatfs(fd, &s) < 0)
                return -errno;
        *ret_blocks = s.f_bfree;
        *ret_inodes = s.f_ffree;
        return 0;
}

/* The number behind @key in @text. */
static int number_after(const char *text, const char *key, unsigned *ret) {
        const char *p = strstr(text, key);
        char *end;

        if (!p)
                return -EPROTO;
        p += strlen(key);
        *ret = (unsigned)strtoul(p, &end, 10);
        return end == p ? -EPROTO : 0;
}

static int read_text(int fd, char *buf, size_t cap) {
        ssize_t n = pread(fd, buf, cap - 1, 0);

        if (n <= 0)
                return n < 0 ? -errno : -EPROTO;
        buf[n] = '\0';
        return 0;
}

int proof_sockets(const struct places *all, struct places_sockets *ret) {
        struct places_sockets s = { 0 };
        char text[1024];
        int r = read_text(all->sockets_fd, text, sizeof(text));

        if (r == 0)
                r = number_after(text, "sockets: used ", &s.used);
        if (r == 0)
                r = number_after(text, "\nTCP: inuse ", &s.tcp);
        if (r == 0)
                r = number_after(text, " tw ", &s.tcp_timewait);
        if (r == 0 && all->sockets6_fd >= 0) {
                r = read_text(all->sockets6_fd, text, sizeof(text));
                if (r == 0)
                        r = number_after(text, "TCP6: inuse ", &s.tcp6);
        }
        if (r == 0)
                *ret = s;
        return r;
}

/* --- checks: 0, -errno, or 1: something is left, at *@place -------------------------------------- */

static int processes(const struct places *all, const char **place) {
        const struct dirent *e = proof_first(all->proc_fd);
        pid_t self = getpid(), spare = spare_pid();

        (void)place;
        for (; e; e = proof_next(all->proc_fd)) {
                long pid;

                if (e->d_name[0] < '1' || e->d_name[0] > '9')
                        continue;
                pid = strtol(e->d_name, NULL, 10);
                if (pid != self && pid != spare)
                        return 1;
        }
        return -errno;
}

static int entries(const struct places *all, bool queues, const char **place) {
        for (size_t i = 0; i < all->n; i++) {
                const struct place *p = &all->place[i];

                if (!p->emptied || p->queues != queues)
                        continue;
                *place = p->name;
                if (proof_first(p->fd))
                        return 1;
                if (errno)
                        return -errno;
        }
        return 0;
}

static int files(const struct places *all, const char **place) {
        return entries(all, false, place);
}

static int queues(const struct places *all, const char **place) {
        return entries(all, true, place);
}

static int attributes(const struct places *all, const char **place) {
        for (size_t i = 0; i < all->n; i++) {
                const struct place *p = &all->place[i];
                struct place_top now;
                int r;

                if (!p->emptied)
                        continue;
                *place = p->name;
                r = proof_top(p->fd, &now);
                if (r < 0)
                        return r;
                if (!proof_top_equal(&now, &p->top))
                        return 1;
        }
        return 0;
}

static int blocks(const struct places *all, const char **place) {
        for (size_t i = 0; i < all->n; i++) {
                const struct place *p = &all->place[i];
                uint64_t free_blocks = 0, free_inodes = 0;
                int r;

                if (!p->counted)
                        continue;
                *place = p->name;
                r = proof_counters(p->fd, &free_blocks, &free_inodes);
                if (r < 0)
                        return r;
                if (free_blocks != p->free_blocks || free_inodes != p->free_inodes)
                        return 1;
        }
        return 0;
}

/* How many there are, as shmctl(2), msgctl(2) and semctl(2) say for their _INFO commands. A kernel without
 * System V IPC has none. */
static int sysv_ipc(const struct places *all, const char **place) {
        struct shm_info shm = { 0 };
        struct msginfo msg = { 0 };
        struct seminfo sem = { 0 };
        union {
                int val;
                struct seminfo *info;
        } arg = { .info = &sem };

        (void)all;
        (void)place;
        if (shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&shm) < 0 ||
            msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&msg) < 0 || semctl(0, 0, SEM_INFO, arg) < 0)
                return errno == ENOSYS ? 0 : -errno;
        return shm.used_ids > 0 || msg.msgpool > 0 || sem.semusz > 0;
}

/* The stream to the manager, with both its ends: the kernel counts the one that was accepted with the one
 * that connected. It was not there yet at the handshake. */
#define STREAM_SOCKETS 2

/* A TCP connection outlives its process, and so may a socket that was on its way through another one. */
static int sockets(const struct places *all, const char **place) {
        struct places_sockets now;
        int r = proof_sockets(all, &now);

        if (r < 0)
                return r;
        if (now.tcp_timewait != all->sockets.tcp_timewait)
                *place = "TIME_WAIT";
        else if (now.tcp != all->sockets.tcp || now.tcp6 != all->sockets.tcp6)
                *place = "TCP";
        else if (now.used <= all->sockets.used + STREAM_SOCKETS)
                return 0;
        return 1;
}

/* To read the table costs more than all else. The kernel tells of a change since the last poll (man 5 proc,
 * /proc/pid/mounts); the table itself is read then, and for as long as it is not the first one. */
static int mounts(const struct places *all, const char **place) {
        static bool in_doubt;
        struct pollfd p = { .fd = all->mounts_fd, .events = POLLPRI };
        uint64_t now;
        int r;

        (void)place;
        if (poll(&p, 1, 0) < 0)
                return -errno;
        in_doubt |= p.revents & (POLLPRI | POLLERR);
        if (!in_doubt)
                return 0;
        r = places_mounts(all->mounts_fd, &now);
        if (r < 0)
                return r;
        in_doubt = now != all->mounts;
        return in_doubt;
}

static const struct {
        uint8_t check; /* enum scrub_check */
        const char *name;
        int (*fn)(const struct places *all, const char **place);
} checks[] = {
        /* One row a line. */
        /* clang-format off */
        { SCRUB_PROCESSES, "processes", processes },
        { SCRUB_FILES, "files", files },
        { SCRUB_ATTRIBUTES, "attributes", attributes },
        { SCRUB_BLOCKS, "blocks", blocks },
        { SCRUB_SYSV_IPC, "sysv_ipc", sysv_ipc },
        { SCRUB_QUEUES, "queues", queues },
        { SCRUB_SOCKETS, "sockets", sockets },
        { SCRUB_MOUNTS, "mounts", mounts },
        /* clang-format on */
};

bool proof(const struct places *all, struct scrubbed *ret) {
        for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
                const char *place = "";
                int r = checks[i].fn(all, &place);

                if (r == 0)
                        continue;
                ret->check = r > 0 ? checks[i].check : SCRUB_UNPROVED;
                /* Of a check that could not be made, the name says more than a place. */
                ret->place = r > 0 ? place : checks[i].name;
                return false;
        }
        ret->check = SCRUB_CLEAN;
        ret->place = "";
        return true;
}
