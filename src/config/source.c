/*
 * The privileged daemons believe what these files say, so each is judged by its descriptor after it was
 * opened: what is checked is what is read, whatever happens to the path meanwhile.
 */
#include "config/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "config/alloc.h"
#include "config/profile.h"
#include "config/tree.h"

static int cannot(struct errmsg *e, const char *shown, int error) {
        return errmsg_set(e, -error, "%s: cannot be read: %s", shown, strerror(error));
}

/* Owner and mode of what @fd is; @type is S_IFREG or S_IFDIR. */
static int check_trust(int fd, mode_t type, const char *shown, struct errmsg *e) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return cannot(e, shown, errno);
        if ((st.st_mode & S_IFMT) != type)
                return errmsg_set(e, -EPERM, "%s: found a special file, expected a %s", shown,
                                  type == S_IFDIR ? "folder" : "regular file");
        if (st.st_uid != 0 && st.st_uid != geteuid())
                return errmsg_set(e, -EPERM, "%s: found the owner uid %u, expected root: chown root %s",
                                  shown, (unsigned)st.st_uid, shown);
        if (st.st_mode & (S_IWGRP | S_IWOTH))
                return errmsg_set(e, -EPERM,
                                  "%s: found mode %04o, expected one that lets only the owner write: "
                                  "chmod go-w %s",
                                  shown, (unsigned)st.st_mode & 07777, shown);
        return 0;
}

static int open_checked(int dirfd, const char *name, int flags, mode_t type, const char *shown,
                        bool trusted, int *ret_fd, struct errmsg *e) {
        _cleanup_fd_ int fd = -1;
        int r = 0;

        /* O_NONBLOCK: a FIFO in a trusted place is refused, not waited for. */
        if (trusted)
                flags |= O_NOFOLLOW | O_NONBLOCK;
        fd = openat(dirfd, name, flags | O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0 && errno == ELOOP)
                return errmsg_set(e, -ELOOP, "%s: found a symbolic link, expected the file itself",
                                  shown);
        if (fd < 0)
                return cannot(e, shown, errno);
        if (trusted)
                r = check_trust(fd, type, shown, e);
        if (r < 0)
                return r;
        *ret_fd = take_fd(&fd);
        return 0;
}

int config_source_read(int dirfd, const char *name, const char *shown, bool trusted, char **ret_data,
                       size_t *ret_len, struct errmsg *e) {
        _cleanup_free_ char *data = NULL;
        _cleanup_fd_ int fd = -1;
        size_t len = 0, cap = CONFIG_FILE_MAX + 1;
        int r = open_checked(dirfd, name, 0, S_IFREG, shown, trusted, &fd, e);

        if (r < 0)
                return r;
        data = config_calloc(1, cap);
        while (len < cap) {
                ssize_t n = read(fd, data + len, cap - len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return cannot(e, shown, errno);
                if (n == 0)
                        break;
                len += (size_t)n;
        }
        *ret_data = data;
        data = NULL;
        *ret_len = len;
        return 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_dropin(const char *name) {
        size_t len = strlen(name);

        return name[0] != '.' && len > 5 && strcmp(name + len - 5, ".yaml") == 0;
}

/* Takes the names out of @d. */
static int list_names(DIR *d, const char *dir, char ***ret, struct errmsg *e) {
        char **names = config_calloc(1, sizeof(*names));
        size_t n = 0;

        for (;;) {
                struct dirent *de;

                errno = 0;
                de = readdir(d);
                if (!de && errno) {
                        int error = errno;

                        config_strv_free(names);
                        return cannot(e, dir, error);
                }
                if (!de)
                        break;
                if (!is_dropin(de->d_name))
                        continue;
                if (n == CONFIG_DROPINS_MAX) {
                        config_strv_free(names);
                        return errmsg_set(e, -E2BIG, "%s: found more than %d files, expected fewer", dir,
                                          CONFIG_DROPINS_MAX);
                }
                names = config_grow(names, n + 2, sizeof(*names));
                names[n++] = config_strdup(de->d_name);
                names[n] = NULL;
        }
        qsort(names, n, sizeof(*names), compare_names);
        *ret = names;
        return 0;
}

int config_source_list(const char *dir, bool trusted, int *ret_fd, char ***ret_names, struct errmsg *e) {
        _cleanup_fd_ int fd = -1;
        struct errmsg why = { "" };
        int copy, r = open_checked(AT_FDCWD, dir, O_DIRECTORY, S_IFDIR, dir, trusted, &fd, &why);
        DIR *d;

        if (r == -ENOENT) {
                *ret_fd = -1;
                *ret_names = config_calloc(1, sizeof(char *));
                return 0;
        }
        if (r < 0)
                return errmsg_set(e, r, "%s", why.text);
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (copy < 0)
                return cannot(e, dir, errno);
        d = fdopendir(copy);
        if (!d) {
                r = cannot(e, dir, errno);
                close(copy);
                return r;
        }
        r = list_names(d, dir, ret_names, e);
        closedir(d);
        if (r < 0)
                return r;
        *ret_fd = take_fd(&fd);
        return 0;
}
