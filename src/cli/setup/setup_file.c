/*
 * The lock is on the file that is renamed into place at the end. Whoever waits for none of it has opened a file that
 * may have become the drop-in meanwhile: hence the look at the name after the lock. The new file's name begins with a
 * dot, so that no daemon reads it; one that a killed setup left is taken over.
 */
#include "cli/setup/setup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/setup/setup.h"
#include "common/cleanup.h"
#include "common/write_all.h"
#include "config/places.h"
#include "config/source.h"

#define NEW_NAME "." SETUP_DROPIN ".new"
#define TRIES 100

static int cannot(const struct setup_file *f, const char *what, struct errmsg *e) {
        int r = -errno;

        return errmsg_set(e, r, "%s: cannot %s: %s", f->dir, what, strerror(-r));
}

/* 1: somebody else's rename or unlink came between. */
static int lock_new(struct setup_file *f, struct errmsg *e) {
        _cleanup_fd_ int fd = openat(f->dirfd, NEW_NAME,
                                     O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        struct stat mine, there;

        if (fd < 0)
                return cannot(f, "make " NEW_NAME, e);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK
                               ? errmsg_set(e, -EBUSY, "%s: another " SETUP_PROGRAM " is at work there",
                                            f->dir)
                               : cannot(f, "lock " NEW_NAME, e);
        if (fstat(fd, &mine) < 0)
                return cannot(f, "look at " NEW_NAME, e);
        if (!S_ISREG(mine.st_mode) || mine.st_uid != geteuid() || mine.st_nlink > 1)
                return errmsg_set(e, -EPERM, "%s/" NEW_NAME ": found somebody else's file: remove it",
                                  f->dir);
        if (fstatat(f->dirfd, NEW_NAME, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
            there.st_ino != mine.st_ino || there.st_dev != mine.st_dev)
                return 1;
        f->new_fd = take_fd(&fd);
        return 0;
}

static int lock(struct setup_file *f, struct errmsg *e) {
        for (int i = 0; i < TRIES; i++) {
                int r = lock_new(f, e);

                if (r <= 0)
                        return r;
        }
        return errmsg_set(e, -EBUSY, "%s: another " SETUP_PROGRAM " is at work there", f->dir);
}

int setup_file_open(struct setup_file *ret, const char *dir, bool change, struct errmsg *e) {
        struct setup_file f = { .dirfd = -1, .new_fd = -1, .dir = dir };
        int r;

        f.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (f.dirfd < 0 && errno == ENOENT && change) {
                mode_t mask = umask(022);

                r = config_places_make(dir, 0755, e);
                umask(mask);
                if (r < 0)
                        return r;
                f.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (f.dirfd < 0 && (errno != ENOENT || change))
                return cannot(&f, "open it", e);
        r = change ? lock(&f, e) : 0;
        if (r < 0) {
                close_fd(f.dirfd);
                return r;
        }
        *ret = f;
        return 0;
}

void setup_file_done(struct setup_file *f) {
        if (f->new_fd >= 0)
                unlinkat(f->dirfd, NEW_NAME, 0);
        f->new_fd = close_fd(f->new_fd);
        f->dirfd = close_fd(f->dirfd);
}

int setup_file_read(const struct setup_file *f, char **ret_data, size_t *ret_len, struct errmsg *e) {
        char shown[4352];
        struct stat st;

        *ret_data = NULL;
        *ret_len = 0;
        if (f->dirfd < 0)
                return 0;
        if (fstatat(f->dirfd, SETUP_DROPIN, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : cannot(f, "look at " SETUP_DROPIN, e);
        snprintf(shown, sizeof(shown), "%s/" SETUP_DROPIN, f->dir);
        return config_source_read(f->dirfd, SETUP_DROPIN, shown, true, ret_data, ret_len, e);
}

int setup_file_replace(struct setup_file *f, const char *data, size_t len, struct errmsg *e) {
        int r;

        if (!data) {
                if (unlinkat(f->dirfd, SETUP_DROPIN, 0) < 0 && errno != ENOENT)
                        return cannot(f, "remove " SETUP_DROPIN, e);
                return fsync(f->dirfd) < 0 ? cannot(f, "write it", e) : 0;
        }
        if (lseek(f->new_fd, 0, SEEK_SET) < 0 || ftruncate(f->new_fd, 0) < 0 ||
            write_all(f->new_fd, data, len) < 0 || fchmod(f->new_fd, 0644) < 0 || fsync(f->new_fd) < 0)
                return cannot(f, "write " NEW_NAME, e);
        if (renameat(f->dirfd, NEW_NAME, f->dirfd, SETUP_DROPIN) < 0)
                return cannot(f, "replace " SETUP_DROPIN, e);
        /* It has the lock's file for its own now: the lock moves to the next one. */
        f->new_fd = close_fd(f->new_fd);
        r = fsync(f->dirfd) < 0 ? cannot(f, "write it", e) : 0;
        return r < 0 ? r : lock(f, e);
}
