/* One change at a time: the lock is on the folder itself, so that it leaves nothing behind. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/ssh/ssh.h"
#include "common/cleanup.h"
#include "common/write_all.h"

int ssh_folder_open(const struct ssh_places *p, struct ssh_folder *ret, struct errmsg *e) {
        _cleanup_fd_ int fd = -1;
        struct stat st;

        if (mkdir(p->dir, 0755) < 0 && errno != EEXIST)
                return errmsg_set(e, -errno, "cannot make %s: %s", p->dir, strerror(errno));
        fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return errmsg_set(e, -errno, "cannot open %s: %s", p->dir, strerror(errno));
        if (st.st_uid != p->root || (st.st_mode & 022) != 0)
                return errmsg_set(
                        e, -EPERM,
                        "%s: others than root can write there: chown root:root it, and chmod 0755",
                        p->dir);
        while (flock(fd, LOCK_EX) < 0)
                if (errno != EINTR)
                        return errmsg_set(e, -errno, "cannot lock %s: %s", p->dir, strerror(errno));
        *ret = (struct ssh_folder){ .fd = take_fd(&fd), .path = p->dir };
        return 0;
}

void ssh_folder_done(struct ssh_folder *f) {
        f->fd = close_fd(f->fd);
}

int ssh_folder_put(const struct ssh_folder *f, const char *name, const char *data, size_t len,
                   struct errmsg *e) {
        _cleanup_fd_ int fd = -1;
        char new_name[64];
        int r;

        snprintf(new_name, sizeof(new_name), ".%s.new", name);
        /* One that was interrupted has left its own: the lock is ours. */
        unlinkat(f->fd, new_name, 0);
        fd = openat(f->fd, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 && write_all(fd, data, len) == 0 && fchmod(fd, 0644) == 0 && fsync(fd) == 0 &&
            renameat(f->fd, new_name, f->fd, name) == 0 && fsync(f->fd) == 0)
                return 0;
        r = -errno;
        if (fd >= 0)
                unlinkat(f->fd, new_name, 0);
        return errmsg_set(e, r, "cannot write %s/%s: %s", f->path, name, strerror(-r));
}
