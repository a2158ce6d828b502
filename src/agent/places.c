/*
 * Where can a command write? The sandbox's own mount table says it, once, before the first command.
 *
 *     tmpfs                 a place. Where the command's uid can write at its top, it is emptied between two
 *                           commands; else only its counters are compared, and nothing in it may be writable.
 *     mqueue                a place whose entries are POSIX message queues
 *     proc, sysfs, devpts,  the engine's own; a command without privilege leaves nothing there
 *     cgroup, cgroup2
 *     anything else         read-only, or a file that the command cannot write to. Else this sandbox is never
 *                           proved clean: what a disk holds, no counter tells.
 *
 * Root without CAP_DAC_OVERRIDE does not get into HOME, and what a command may do is best asked with its own
 * rights: for the look around the agent takes the command's identity and keeps a way back. There is no
 * command yet that could make use of it. If the way back is not there, PID 1 ends, and the sandbox with it.
 */
#include "agent/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
/* Bytes of the whole mount table. */
#define TABLE_MAX 65536
#define GROUPS_MAX 64
/* Folders below each other in a tmpfs that a command cannot write to, such as /dev. */
#define FIXED_DEPTH_MAX 8
/* Sockets of a network that is nobody else's, before there is a stream to the manager: dockerd keeps one there
 * to configure it. */
#define SOCKETS_MAX 4
/* The access time that a place's top is given lies so far ahead (10 years) that no look at the place moves
 * it: a mount with relatime, the default, only moves one that is older than the last change, or a day old
 * (man 8 mount). A command that lists /tmp would else leave the scrub something to do. */
#define ATIME_AHEAD_S 315360000

static struct places all PLACED_LIST;
static struct { char table[TABLE_MAX], path[TABLE_MAX]; } scratch PLACED_SCRATCH;
static bool usable;

const struct places *places_get(void) {
        return usable ? &all : NULL;
}

struct reason {
        char *buf;
        size_t cap;
};

/* -ENOTSUP, after saying why. */
__attribute__((format(printf, 2, 3))) static int refuse(const struct reason *why, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(why->buf, why->cap, fmt, ap);
        va_end(ap);
        return -ENOTSUP;
}

/* --- the mount table (man 5 proc, /proc/pid/mountinfo) --------------------------------------------- */

struct mount {
        dev_t dev;
        char *root, *point, *options, *type, *source, *super;
};

static char *next_field(char **line) {
        char *field = strsep(line, " ");

        return field ? field : (char *)"";
}

/* Cuts the line into its fields. */
static int parse_mount(char *line, struct mount *ret) {
        unsigned major, minor;
        char *field;

        next_field(&line);
        next_field(&line);
        if (sscanf(next_field(&line), "%u:%u", &major, &minor) != 2)
                return -EPROTO;
        ret->dev = makedev(major, minor);
        ret->root = next_field(&line);
        ret->point = next_field(&line);
        ret->options = next_field(&line);
        do {
                if (!line)
                        return -EPROTO;
                field = next_field(&line); /* peer groups, which are the host's */
        } while (strcmp(field, "-") != 0);
        ret->type = next_field(&line);
        ret->source = next_field(&line);
        ret->super = next_field(&line);
        return ret->point[0] == '/' && ret->super[0] ? 0 : -EPROTO;
}

/* Octal escapes stand for blanks and backslashes (fs/seq_file.c, mangle_path()). */
static void unescape(char *s) {
        char *to = s;

        for (; *s; s++) {
                if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
                    s[3] >= '0' && s[3] <= '7') {
                        *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
                        s += 3;
                } else
                        *to++ = *s;
        }
        *to = '\0';
}

/* Both tell: the mount, and the file system itself. */
static bool read_only(const struct mount *m) {
        return strcmp(m->options, "ro") == 0 || strncmp(m->options, "ro,", 3) == 0 ||
               strcmp(m->super, "ro") == 0 || strncmp(m->super, "ro,", 3) == 0;
}

static int read_table(int fd, char buf[TABLE_MAX]) {
        size_t len = 0;
        ssize_t n;

        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        while ((n = read(fd, buf + len, TABLE_MAX - 1 - len)) > 0)
                len += (size_t)n;
        if (n < 0)
                return -errno;
        buf[len] = '\0';
        return len == 0 || len == TABLE_MAX - 1 ? -EFBIG : 0;
}

int places_mounts(int fd, uint64_t *ret) {
        char *table = scratch.table;
        uint64_t h = 0;
        char *line, *rest = table;
        int r = read_table(fd, table);

        while (r == 0 && (line = strsep(&rest, "\n")) && *line) {
                struct mount m;

                r = parse_mount(line, &m);
                if (r < 0)
                        break;
                h = (h ^ m.dev) * UINT64_C(0x100000001b3);
                for (size_t i = 0; i < 6; i++) {
                        const char *p = (const char *[]){ m.root, m.point,  m.options,
                                                          m.type, m.source, m.super }[i];

                        for (; *p; p++)
                                h = (h ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
                        h = (h ^ ' ') * UINT64_C(0x100000001b3);
                }
        }
        if (r == 0)
                *ret = h;
        return r;
}

/* --- with the command's identity ----------------------------------------------------------------- */

struct identity {
        gid_t gid;
        int n_groups;
        gid_t groups[GROUPS_MAX];
};

/* The saved ids stay root's: the way back. */
static int take_identity(const struct agent_ids *ids, struct identity *ret) {
        ret->gid = getgid();
        ret->n_groups = getgroups(GROUPS_MAX, ret->groups);
        if (ret->n_groups < 0 || syscall(SYS_setgroups, 0, NULL) < 0 ||
            syscall(SYS_setresgid, ids->user.gid, ids->user.gid, -1) < 0 ||
            syscall(SYS_setresuid, ids->user.uid, ids->user.uid, -1) < 0)
                return -errno;
        return 0;
}

static void leave_identity(const struct identity *old) {
        gid_t groups[GROUPS_MAX];
        uid_t uid[3];
        gid_t gid[3];

        syscall(SYS_setresuid, 0, 0, 0);
        syscall(SYS_setresgid, old->gid, old->gid, old->gid);
        syscall(SYS_setgroups, old->n_groups, old->groups);
        /* As after any change of uid (child.c). */
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0 ||
            uid[0] != 0 || uid[1] != 0 || uid[2] != 0 || gid[0] != old->gid || gid[1] != old->gid ||
            gid[2] != old->gid || getgroups(GROUPS_MAX, groups) != old->n_groups ||
            prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
                _exit(71);
}

/* The owner may as well: a mode is no obstacle to it. */
static bool may_write(int dir, const char *name, const struct stat *st) {
        return st->st_uid == getuid() || faccessat(dir, name, W_OK, 0) == 0;
}

/* Those that keep nothing of what is written to them (Documentation/admin-guide/devices.txt): 1, such as
 * /dev/null, and 5, /dev/tty and its like. */
static bool is_plain_device(const struct stat *st) {
        return S_ISCHR(st->st_mode) && (major(st->st_rdev) == 1 || major(st->st_rdev) == 5);
}

/* Something in this tmpfs, on whose top the command cannot write, can be written to. 1, 0, or -errno. */
static int holds_writable(int fd, dev_t dev, int depth) {
        char buf[4096] __attribute__((aligned(8)));
        ssize_t n;

        if (depth == 0)
                return 1;
        while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
                const struct dirent *e;

                for (ssize_t pos = 0; pos < n; pos += e->d_reclen) {
                        _cleanup_fd_ int sub = -1;
                        struct stat st;
                        int r;

                        e = (const struct dirent *)(buf + pos);
                        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                                continue;
                        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                                return -errno;
                        /* Another mount has a line of its own. */
                        if (st.st_dev != dev || S_ISLNK(st.st_mode) || is_plain_device(&st))
                                continue;
                        if (may_write(fd, e->d_name, &st))
                                return 1;
                        if (!S_ISDIR(st.st_mode))
                                continue;
                        sub = openat(fd, e->d_name, DIR_FLAGS | O_NOFOLLOW);
                        r = sub < 0 ? -errno : holds_writable(sub, dev, depth - 1);
                        if (r != 0)
                                return r;
                }
        }
        return n < 0 ? -errno : 0;
}

static bool is_known(const struct stat *st) {
        for (size_t i = 0; i < all.n; i++)
                if (all.place[i].top.dev == st->st_dev && all.place[i].top.ino == st->st_ino)
                        return true;
        return false;
}

static int add_place(const struct mount *m, int dir, const struct stat *st, const struct reason *why) {
        _cleanup_fd_ int fd = dir;
        struct place *p = &all.place[all.n];
        int r;

        if (is_known(st))
                return 0;
        if (all.n == PLACES_MAX)
                return refuse(why, "there are more than %d writable mounts", PLACES_MAX);
        *p = (struct place){ .queues = strcmp(m->type, "mqueue") == 0, .top = { .dev = st->st_dev } };
        p->counted = !p->queues;
        p->top.ino = st->st_ino;
        p->top.uid = st->st_uid;
        snprintf(p->name, sizeof(p->name), "%s", m->point);
        p->emptied = p->queues || may_write(fd, ".", st);
        if (p->emptied && st->st_uid != 0 && st->st_uid != getuid())
                return refuse(why, "%s belongs to uid %u", p->name, (unsigned)st->st_uid);
        if (!p->emptied) {
                r = holds_writable(fd, st->st_dev, FIXED_DEPTH_MAX);
                if (r < 0)
                        return refuse(why, "%s cannot be read: %s", p->name, strerror(-r));
                if (r > 0)
                        return refuse(why, "something in %s is writable", p->name);
        }
        p->fd = take_fd(&fd);
        all.n++;
        return 0;
}

static int examine(const struct mount *m, const struct reason *why) {
        static const char *const own[] = { "proc", "sysfs", "devpts", "cgroup", "cgroup2" };
        char *path = scratch.path;
        struct stat st;
        int fd;

        if (read_only(m))
                return 0;
        if (strcmp(m->point, "/") == 0)
                return refuse(why, "the root file system is writable");
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
                if (strcmp(m->type, own[i]) == 0)
                        return 0;
        snprintf(path, TABLE_MAX, "%s", m->point);
        unescape(path);
        if (stat(path, &st) < 0)
                return refuse(why, "%s cannot be looked at: %s", m->point, strerror(errno));
        if (st.st_dev != m->dev && (strcmp(m->type, "tmpfs") == 0 || strcmp(m->type, "mqueue") == 0))
                return refuse(why, "%s is hidden by another mount", m->point);
        if (!S_ISDIR(st.st_mode)) {
                if (is_plain_device(&st) || (st.st_uid == 0 && !may_write(AT_FDCWD, path, &st)))
                        return 0;
                return refuse(why, "%s (%s) is writable", m->point, m->type);
        }
        if (strcmp(m->type, "tmpfs") != 0 && strcmp(m->type, "mqueue") != 0)
                return refuse(why, "%s (%s) is writable", m->point, m->type);
        /* Without that flag a listing moves the access time; only the owner may set it. */
        fd = open(path, DIR_FLAGS | O_NOATIME);
        if (fd < 0 && errno == EPERM)
                fd = open(path, DIR_FLAGS);
        if (fd < 0)
                return refuse(why, "%s cannot be opened: %s", m->point, strerror(errno));
        return add_place(m, fd, &st, why);
}

static int examine_all(const struct reason *why) {
        char *table = scratch.table;
        char *line, *rest = table;
        int r = read_table(all.mounts_fd, table);

        if (r < 0)
                return refuse(why, "the mount table cannot be read: %s", strerror(-r));
        while (r == 0 && (line = strsep(&rest, "\n")) && *line) {
                struct mount m;

                if (parse_mount(line, &m) < 0)
                        return refuse(why, "a line of the mount table cannot be understood");
                r = examine(&m, why);
        }
        return r;
}

/* Of those tops that belong to this uid: root's, or the command's. */
static int set_times(const struct reason *why) {
        for (size_t i = 0; i < all.n; i++) {
                const struct place *p = &all.place[i];
                struct timespec t[2] = { { 0, 0 }, { 0, UTIME_OMIT } };

                if (!p->emptied || p->top.uid != geteuid())
                        continue;
                clock_gettime(CLOCK_REALTIME, &t[0]);
                t[0].tv_sec += ATIME_AHEAD_S;
                if (futimens(p->fd, t) < 0 || fcntl(p->fd, F_SETFL, O_NOATIME) < 0)
                        return refuse(why, "%s: %s", p->name, strerror(errno));
        }
        return 0;
}

static int look_around(const struct agent_ids *ids, const struct reason *why) {
        struct identity root;
        int r = take_identity(ids, &root);

        if (r < 0)
                r = refuse(why, "no change of identity: %s", strerror(-r));
        if (r == 0)
                r = examine_all(why);
        if (r == 0)
                r = set_times(why);
        leave_identity(&root);
        return r == 0 ? set_times(why) : r;
}

/* --- how it is before the first command ---------------------------------------------------------- */

static int open_readings(const struct reason *why) {
        const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY;
        int r;

        all.proc_fd = open("/proc", DIR_FLAGS);
        all.mounts_fd = open("/proc/self/mountinfo", flags);
        all.sockets_fd = open("/proc/net/sockstat", flags);
        if (all.proc_fd < 0 || all.mounts_fd < 0 || all.sockets_fd < 0)
                return refuse(why, "/proc cannot be read: %s", strerror(errno));
        all.sockets6_fd = open("/proc/net/sockstat6", flags);
        r = all.sockets6_fd < 0 && errno != ENOENT ? -errno : proof_sockets(&all, &all.sockets);
        if (r < 0)
                return refuse(why, "/proc/net/sockstat cannot be read: %s", strerror(-r));
        if (all.sockets.tcp || all.sockets.tcp6 || all.sockets.tcp_timewait ||
            all.sockets.used > SOCKETS_MAX)
                return refuse(why, "the network is not the sandbox's own");
        return 0;
}

static int read_place(struct place *p, const struct reason *why) {
        int r = proof_top(p->fd, &p->top);

        if (r == 0 && p->counted) {
                struct statfs s;

                r = fstatfs(p->fd, &s) < 0 ? -errno : 0;
                /* Without a limit the kernel does not count. */
                if (r == 0 && (s.f_blocks == 0 || s.f_files == 0))
                        return refuse(why, "%s has no limit", p->name);
        }
        if (r == 0 && p->counted)
                r = proof_counters(p->fd, &p->free_blocks, &p->free_inodes);
        if (r < 0)
                return refuse(why, "%s cannot be read: %s", p->name, strerror(-r));
        if (p->emptied && p->top.owners_xattrs)
                return refuse(why, "%s has extended attributes", p->name);
        return 0;
}

/* Queues are made and opened without any mount: one is needed to see them all. */
static int need_queues(const struct reason *why) {
        for (size_t i = 0; i < all.n; i++)
                if (all.place[i].queues)
                        return 0;
        if (syscall(SYS_mq_open, "hermes-sandbox", O_RDONLY, 0, NULL) < 0 && errno == ENOSYS)
                return 0;
        return refuse(why, "no mqueue is mounted");
}

int places_init(const struct agent_ids *ids, char *buf, size_t cap) {
        struct reason why = { buf, cap };
        struct scrubbed first = { 0 };
        int r = open_readings(&why);

        if (r == 0)
                r = look_around(ids, &why);
        for (size_t i = 0; i < all.n && r == 0; i++)
                r = read_place(&all.place[i], &why);
        if (r == 0)
                r = need_queues(&why);
        if (r == 0 && places_mounts(all.mounts_fd, &all.mounts) < 0)
                r = refuse(&why, "the mount table cannot be read");
        if (r == 0 && !proof(&all, &first))
                r = refuse(&why, "not clean from the start: %s %s", scrub_check_name(first.check),
                           first.place);
        usable = r == 0;
        forget(&scratch, sizeof(scratch));
        proof_forget();
        return r;
}
