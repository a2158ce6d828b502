#include "engine/sockdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/agent_args.h"
#include "common/cleanup.h"
#include "engine/records.h"

#define BACKLOG 8

int sockdir_init(struct sockdir *d, const char *runtime_dir) {
        *d = (struct sockdir){ .fd = open(runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
        if (d->fd < 0)
                return -errno;
        /* The engine, on the other side, gets this path: no symlink of ours must be left in it. */
        d->path = realpath(runtime_dir, NULL);
        return d->path ? 0 : -errno;
}

void sockdir_done(struct sockdir *d) {
        d->fd = close_fd(d->fd);
        free(d->path);
        d->path = NULL;
}

/* sun_path holds 108 bytes; through /proc a descriptor stands for any folder. */
int sockdir_listen(int dir_fd, const char *name, mode_t mode, int type, int *ret_fd) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        _cleanup_fd_ int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        mode_t mask;
        int r, n;

        if (fd < 0)
                return -errno;
        n = snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
        if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
                return -ENAMETOOLONG;
        mask = umask(0777 & ~mode);
        r = bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
        umask(mask);
        if (r == 0 && listen(fd, BACKLOG) < 0)
                r = -errno;
        if (r == 0)
                *ret_fd = take_fd(&fd);
        return r;
}

/* The folder's own mode says for whom it is. */
static int listen_in(int dir_fd, int *ret_fd) {
        struct stat st;

        if (fstat(dir_fd, &st) < 0)
                return -errno;
        return sockdir_listen(dir_fd, AGENT_SOCKET, st.st_mode & S_IXOTH ? 0666 : 0660, SOCK_STREAM,
                              ret_fd);
}

static int make_folder(struct sockdir *d, const char *tag, enum sockdir_for whom) {
        mode_t mode = whom == SOCKDIR_CALLER ? 0711 : 0750, mask;
        struct stat st;
        int r;

        if (whom == SOCKDIR_CALLER && (fstat(d->fd, &st) < 0 || st.st_mode & S_IXOTH))
                return -EPERM;
        mask = umask(0777 & ~mode);
        r = mkdirat(d->fd, tag, mode) < 0 ? -errno : 0;
        umask(mask);
        return r;
}

int sockdir_make(struct sockdir *d, const char *tag, enum sockdir_for whom, int *ret_fd) {
        _cleanup_fd_ int dir_fd = -1;
        int r = make_folder(d, tag, whom);

        if (r < 0)
                return r;
        dir_fd = openat(d->fd, tag, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        r = dir_fd < 0 ? -errno : listen_in(dir_fd, ret_fd);
        if (r < 0)
                sockdir_remove(d, tag);
        return r;
}

int sockdir_listen_again(struct sockdir *d, const char *tag, int *ret_fd) {
        _cleanup_fd_ int dir_fd = -1;

        if (!record_tag_valid(tag))
                return -EINVAL;
        dir_fd = openat(d->fd, tag, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (dir_fd < 0)
                return -errno;
        if (unlinkat(dir_fd, AGENT_SOCKET, 0) < 0 && errno != ENOENT)
                return -errno;
        return listen_in(dir_fd, ret_fd);
}

char *sockdir_path(const struct sockdir *d, const char *tag) {
        char *s;

        return asprintf(&s, "%s/%s", d->path, tag) < 0 ? NULL : s;
}

void sockdir_remove(struct sockdir *d, const char *tag) {
        char socket_path[RECORD_TAG_LEN + sizeof("/" AGENT_SOCKET)];

        if (!record_tag_valid(tag))
                return;
        snprintf(socket_path, sizeof(socket_path), "%s/%s", tag, AGENT_SOCKET);
        unlinkat(d->fd, socket_path, 0);
        unlinkat(d->fd, tag, AT_REMOVEDIR);
}

void sockdir_sweep(struct sockdir *d, bool (*wanted)(void *userdata, const char *tag), void *userdata) {
        int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;

        if (!dir) {
                close_fd(fd);
                return;
        }
        while ((e = readdir(dir)))
                if (record_tag_valid(e->d_name) && !wanted(userdata, e->d_name))
                        sockdir_remove(d, e->d_name);
        closedir(dir);
}
