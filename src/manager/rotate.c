#include "manager/rotate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Regular, no symlink, not blocking on a FIFO; *ret_size is its size. */
static int open_file(const char *path, int flags, uint64_t *ret_size) {
        _cleanup_fd_ int fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ENOTSUP;
        /* Against a umask that would keep the group adm out. */
        if ((flags & O_EXCL) && fchmod(fd, 0640) < 0)
                return -errno;
        *ret_size = (uint64_t)st.st_size;
        return take_fd(&fd);
}

int rotate_open_read(const char *path, uint64_t *ret_size) {
        return open_file(path, O_RDONLY, ret_size);
}

int rotate_init(struct rotate *r, const char *path, uint32_t backups, uint64_t max_bytes) {
        if (strlen(path) + sizeof(".4294967295") > PATH_MAX)
                return -ENAMETOOLONG;
        *r = (struct rotate){ .fd = -1, .backups = backups, .max_bytes = max_bytes };
        r->path = strdup(path);
        return r->path ? 0 : -ENOMEM;
}

void rotate_done(struct rotate *r) {
        close_fd(r->fd);
        free(r->path);
        *r = (struct rotate){ .fd = -1 };
}

int rotate_open(struct rotate *r) {
        uint64_t size;
        int fd = open_file(r->path, O_RDWR | O_APPEND, &size);

        if (fd == -ENOENT)
                fd = open_file(r->path, O_RDWR | O_APPEND | O_CREAT | O_EXCL, &size);
        if (fd < 0)
                return fd;
        close_fd(r->fd);
        r->fd = fd;
        r->size = size;
        r->cut = false;
        return 0;
}

bool rotate_due(const struct rotate *r, size_t len) {
        return r->backups > 0 && r->max_bytes > 0 && r->size > 0 && r->size + len > r->max_bytes;
}

/* The new file is there before anything moves. */
int rotate_now(struct rotate *r) {
        char from[PATH_MAX], to[PATH_MAX], new[PATH_MAX];
        _cleanup_fd_ int fd = -1;
        uint64_t size;

        snprintf(new, sizeof(new), "%s.new", r->path);
        unlink(new);
        fd = open_file(new, O_RDWR | O_APPEND | O_CREAT | O_EXCL, &size);
        if (fd < 0)
                return fd;
        for (uint32_t i = r->backups; i > 0; i--) {
                if (i > 1)
                        snprintf(from, sizeof(from), "%s.%" PRIu32, r->path, i - 1);
                else
                        snprintf(from, sizeof(from), "%s", r->path);
                snprintf(to, sizeof(to), "%s.%" PRIu32, r->path, i);
                if (rename(from, to) < 0 && errno != ENOENT)
                        return -errno;
        }
        if (rename(new, r->path) < 0)
                return -errno;
        close_fd(r->fd);
        r->fd = take_fd(&fd);
        r->size = size;
        r->cut = false;
        return 0;
}

int rotate_append(struct rotate *r, const void *p, size_t len) {
        size_t done = 0;
        int error;

        while (done < len) {
                ssize_t n = write(r->fd, (const char *)p + done, len - done);

                if (n > 0) {
                        done += (size_t)n;
                        continue;
                }
                if (n < 0 && errno == EINTR)
                        continue;
                error = n < 0 ? -errno : -ENOSPC;
                if (done > 0 && ftruncate(r->fd, (off_t)r->size) < 0) {
                        r->size += done;
                        r->cut = true;
                }
                return error;
        }
        r->size += len;
        return 0;
}
