/*
 * One component at a time, below an open folder, never through a link: see unpack.h. A component of its own could not
 * leave the folder in any case; openat2(2) makes the kernel refuse it, too, and openat(2) serves kernels and
 * filters that lack it.
 */
#include "common/unpack_place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1 /* linux/fs.h */
#endif

/* The temporary name that there is now, for a signal that ends the process. */
static struct {
        volatile int dir; /* + 1; 0: there is none */
        char name[32];
} temporary;

void unpack_abandon(void) {
        if (temporary.dir > 0)
                unlinkat(temporary.dir - 1, temporary.name, 0);
}

static int open_step(int dir, const char *name, int flags, mode_t mode) {
        struct open_how how = { .flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
                                .mode = mode,
                                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                           RESOLVE_NO_MAGICLINKS };
        int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

        if (fd < 0 && (errno == ENOSYS || errno == EPERM))
                fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
        return fd < 0 ? -errno : fd;
}

/* --- what came in this stream ------------------------------------------------------------------- */

static uint32_t slot_of(const struct stat *st, uint64_t *ret_key) {
        uint64_t key = (uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 40;

        *ret_key = key ? key : 1;
        /* The golden ratio's multiplicative hash (Knuth): inode numbers come in rows. */
        return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 44) % UNPACK_SEEN;
}

static bool was_seen(const struct unpack *u, const struct stat *st) {
        uint64_t key;
        uint32_t i;

        if (!u->rules.seen)
                return false;
        for (i = slot_of(st, &key); u->rules.seen->key[i]; i = (i + 1) % UNPACK_SEEN)
                if (u->rules.seen->key[i] == key)
                        return true;
        return false;
}

/* Remembers what was just made, unless its folder tells it anyway. */
static int see(struct unpack *u, const struct unpack_level *dir, int fd) {
        struct unpack_seen *seen = u->rules.seen;
        struct stat st;
        uint64_t key;
        uint32_t i;

        if (!seen || dir->fresh)
                return 0;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (seen->n >= UNPACK_SEEN / 4 * 3)
                return -ENOBUFS;
        for (i = slot_of(&st, &key); seen->key[i] && seen->key[i] != key;)
                i = (i + 1) % UNPACK_SEEN;
        seen->n += seen->key[i] == 0;
        seen->key[i] = key;
        return 0;
}

/* May what has that name be replaced? */
static int may_replace(const struct unpack *u, const struct unpack_level *dir, const char *name) {
        struct stat st;

        if (fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        return (dir->fresh && u->rules.seen) || was_seen(u, &st) ? -EEXIST : 0;
}

/* --- folders ------------------------------------------------------------------------------------ */

static int take_folder(const struct unpack *u, const struct unpack_level *dir, const char *name,
                       struct unpack_level *ret) {
        int fd = open_step(dir->fd, name, O_PATH | O_DIRECTORY, 0);
        struct stat st;

        if (fd < 0)
                return fd == -ELOOP ? -ENOTDIR : fd;
        if (fstat(fd, &st) < 0) {
                close(fd);
                return -errno;
        }
        ret->fd = fd;
        ret->made = false;
        ret->fresh = dir->fresh || was_seen(u, &st);
        return 0;
}

int place_folder(struct unpack *u, const struct unpack_level *dir, const char *name,
                 struct unpack_level *ret) {
        struct stat st;
        int fd, r;

        if (name[0] == '\0')
                return take_folder(u, dir, ".", ret);
        if (mkdirat(dir->fd, name, 0700) < 0)
                return errno == EEXIST ? take_folder(u, dir, name, ret) : -errno;
        fd = open_step(dir->fd, name, O_RDONLY | O_DIRECTORY, 0);
        if (fd < 0)
                return fd == -ELOOP ? -ENOTDIR : fd;
        r = see(u, dir, fd);
        if (r < 0) {
                close(fd);
                return r;
        }
        ret->fd = fd;
        /* Where others can write, it may be another's by now: that keeps what it has. */
        ret->made = fstat(fd, &st) == 0 && st.st_uid == geteuid();
        ret->fresh = true;
        return 0;
}

int place_attributes(int fd, uint32_t mode, int64_t mtime_s, uint32_t mtime_ns) {
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                     { .tv_sec = (time_t)mtime_s, .tv_nsec = (long)mtime_ns } };

        return fchmod(fd, (mode_t)mode) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

/* --- files -------------------------------------------------------------------------------------- */

static int random_name(void) {
        uint64_t random;

        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return -EIO;
        snprintf(temporary.name, sizeof(temporary.name), ".hermes-%016llx", (unsigned long long)random);
        return 0;
}

/* A temporary name exists in that folder from here on, or -1: none any more. */
static void temporary_in(int dir) {
        temporary.dir = dir + 1;
}

static void forget_temporary(const struct unpack_level *dir) {
        unlinkat(dir->fd, temporary.name, 0);
        temporary_in(-1);
}

/* Files without a name get theirs through /proc, as the other way takes a capability (open(2), O_TMPFILE). */
static int open_unnamed(int dir) {
        if (access("/proc/self/fd", X_OK) < 0)
                return -EOPNOTSUPP;
        return open_step(dir, ".", O_TMPFILE | O_WRONLY, 0600);
}

int place_begin(struct unpack *u, const struct unpack_level *dir) {
        int r = may_replace(u, dir, u->name);

        if (r < 0)
                return r;
        r = open_unnamed(dir->fd);
        u->unnamed = r >= 0;
        /* What file systems and old kernels say that have none (open(2)). */
        if (r == -EOPNOTSUPP || r == -EISDIR || r == -ENOENT || r == -EINVAL) {
                r = random_name();
                if (r < 0)
                        return r;
                temporary_in(dir->fd);
                r = open_step(dir->fd, temporary.name, O_WRONLY | O_CREAT | O_EXCL, 0600);
                if (r < 0)
                        temporary_in(-1);
        }
        if (r < 0)
                return r;
        u->file_fd = r;
        return 0;
}

static int give_name(const struct unpack *u, int dir, const char *name) {
        char path[32];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", u->file_fd);
        return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* From the temporary name to its own. */
static int rename_it(const struct unpack *u, const struct unpack_level *dir, const char *name) {
        int r;

        if (syscall(SYS_renameat2, dir->fd, temporary.name, dir->fd, name, RENAME_NOREPLACE) == 0)
                return 0;
        if (errno != EEXIST && errno != EINVAL && errno != ENOSYS)
                return -errno;
        r = may_replace(u, dir, name);
        if (r < 0)
                return r;
        return renameat(dir->fd, temporary.name, dir->fd, name) < 0 ? -errno : 0;
}

static int name_it(const struct unpack *u, const struct unpack_level *dir) {
        int r;

        if (u->unnamed) {
                r = give_name(u, dir->fd, u->name);
                if (r != -EEXIST)
                        return r;
                r = random_name();
                if (r < 0)
                        return r;
                temporary_in(dir->fd);
                r = give_name(u, dir->fd, temporary.name);
                if (r < 0) {
                        temporary_in(-1);
                        return r;
                }
        }
        r = rename_it(u, dir, u->name);
        if (r < 0)
                forget_temporary(dir);
        temporary_in(-1);
        return r;
}

int place_end(struct unpack *u, const struct unpack_level *dir) {
        int r = ftruncate(u->file_fd, (off_t)u->at) < 0 ? -errno : 0;

        if (r == 0)
                r = place_attributes(u->file_fd, u->mode, u->mtime_s, u->mtime_ns);
        if (r == 0)
                r = see(u, dir, u->file_fd);
        if (r < 0) {
                place_drop(u, dir);
                return r;
        }
        r = name_it(u, dir);
        u->file_fd = close_fd(u->file_fd);
        return r;
}

void place_drop(struct unpack *u, const struct unpack_level *dir) {
        if (!u->unnamed)
                forget_temporary(dir);
        u->file_fd = close_fd(u->file_fd);
}

int place_link(struct unpack *u, const struct unpack_level *dir, const char *name,
               const struct archive_entry *e) {
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                     { .tv_sec = (time_t)e->mtime_s, .tv_nsec = (long)e->mtime_ns } };
        int r = may_replace(u, dir, name);

        if (r == 0)
                r = random_name();
        if (r < 0)
                return r;
        temporary_in(dir->fd);
        if (symlinkat(e->target, dir->fd, temporary.name) < 0) {
                temporary_in(-1);
                return -errno;
        }
        utimensat(dir->fd, temporary.name, times, AT_SYMLINK_NOFOLLOW);
        r = rename_it(u, dir, name);
        if (r < 0)
                forget_temporary(dir);
        temporary_in(-1);
        return r;
}

/* --- the target --------------------------------------------------------------------------------- */

/* The folder that @path names. */
static int target_folder(const char *path, struct unpack_target *ret) {
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        ret->dir = fd;
        ret->name[0] = '\0';
        return 0;
}

/* What has the name ret->name in ret->dir: a folder becomes the target. */
static int look_at_name(struct unpack_target *ret, bool many, const char **why) {
        int fd = open_step(ret->dir, ret->name, O_PATH, 0), r = 0;
        struct stat st;

        if (fd == -ENOENT)
                return many ? -ENOENT : 0;
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                r = -errno;
        else if (S_ISDIR(st.st_mode)) {
                close(ret->dir);
                ret->dir = take_fd(&fd);
                ret->name[0] = '\0';
        } else if (S_ISLNK(st.st_mode)) {
                *why = "it is a symbolic link: with a / behind it, it is followed to a folder";
                r = -ELOOP;
        } else if (many)
                r = -ENOTDIR;
        close_fd(fd);
        return r;
}

/* ret->name is a name, and @parent the path before it. */
static int target_in(const char *parent, bool many, struct unpack_target *ret, const char **why) {
        struct unpack_target folder = { .dir = -1 };
        int r = target_folder(parent, &folder);

        if (r < 0)
                return r;
        ret->dir = folder.dir;
        r = look_at_name(ret, many, why);
        if (r < 0)
                ret->dir = close_fd(ret->dir);
        return r;
}

int unpack_target_open(const char *path, bool many, struct unpack_target *ret, const char **why) {
        char parent[4096];
        size_t len = strlen(path), end = len, begin;
        int r = -ENOENT;

        while (end > 0 && path[end - 1] == '/')
                end--;
        for (begin = end; begin > 0 && path[begin - 1] != '/';)
                begin--;
        *why = NULL;
        memset(ret, 0, sizeof(*ret));
        ret->folder = end < len;
        if (len >= sizeof(parent) || end - begin > ARCHIVE_NAME_MAX)
                r = -ENAMETOOLONG;
        else {
                memcpy(ret->name, path + begin, end - begin);
                memcpy(parent, path, begin);
                parent[begin] = '\0';
                if (ret->folder || !archive_name_ok(ret->name))
                        r = target_folder(len ? path : ".", ret);
                /* One that is to be made may have the '/' already. */
                if (r == -ENOENT && archive_name_ok(ret->name))
                        r = target_in(begin ? parent : ".", many, ret, why);
        }
        if (r < 0 && !*why)
                *why = strerror(-r);
        return r;
}
