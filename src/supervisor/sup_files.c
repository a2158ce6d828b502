/* Folders and logs, by descriptor: what was checked is what is changed. */
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define LOG_MAX (5 << 20)

static int make_folder(const struct sup_folder *f, uid_t uid, gid_t gid, struct errmsg *e) {
        bool made = mkdir(f->path, 0700) == 0;
        _cleanup_fd_ int fd = -1;
        struct stat st;

        if (!made && errno != EEXIST)
                return errmsg_set(e, -errno, "%s: cannot make it: %s", f->path, strerror(errno));
        fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return errmsg_set(e, -errno, "%s: cannot open it: %s", f->path, strerror(errno));
        if (st.st_uid != (made ? geteuid() : uid))
                return errmsg_set(e, -EPERM,
                                  "%s: it belongs to uid %u, expected %s: remove it, or give it "
                                  "back",
                                  f->path, (unsigned)st.st_uid, f->user);
        /* chown clears the set-group-id bit, hence the order. */
        if ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0)
                return errmsg_set(e, -errno, "%s: cannot change its owner: %s", f->path,
                                  strerror(errno));
        if (fchmod(fd, f->mode) < 0)
                return errmsg_set(e, -errno, "%s: cannot change its mode: %s", f->path, strerror(errno));
        return 0;
}

int sup_make_folders(const struct sup_folder *f, struct errmsg *e) {
        for (; f->path; f++) {
                struct passwd *pw = getpwnam(f->user);
                struct group *gr = getgrnam(f->group);
                int r;

                if (!pw || !gr)
                        return errmsg_set(e, -ENOENT, "no such %s: %s: is the package installed?",
                                          pw ? "group" : "user", pw ? f->group : f->user);
                r = make_folder(f, pw->pw_uid, gr->gr_gid, e);
                if (r < 0)
                        return r;
        }
        return 0;
}

int sup_open_log(const char *dir, const char *name, uid_t owner) {
        _cleanup_fd_ int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char old[64];
        struct stat st;
        int fd;

        if (dirfd < 0 || fstat(dirfd, &st) < 0)
                return -errno;
        if (st.st_uid != owner || (st.st_mode & 022))
                return -EPERM;
        if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > LOG_MAX) {
                snprintf(old, sizeof(old), "%s.1", name);
                if (renameat(dirfd, name, dirfd, old) < 0)
                        return -errno;
        }
        /* O_NONBLOCK: a FIFO must fail, not wait; a regular file does not know it. */
        fd = openat(dirfd, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                    0640);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != owner || st.st_nlink != 1 ||
            fchmod(fd, 0640) < 0) {
                close(fd);
                return -EPERM;
        }
        return fd;
}
