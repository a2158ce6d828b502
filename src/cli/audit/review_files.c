/* The readable trail's folder belongs to the manager's account: what is opened there must be a regular
 * file and no link, and opening it must not block. */
#include "cli/audit/review_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define TRIES 5
#define NUMBER_MAX 999999999u

static int open_regular(const char *path, bool follow, struct stat *st) {
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                                                 (follow ? 0 : O_NOFOLLOW));

        if (fd < 0 || fstat(fd, st) < 0)
                return -errno;
        return S_ISREG(st->st_mode) ? take_fd(&fd) : -ENOTSUP;
}

static int failed(const char *path, int r, struct errmsg *e) {
        if (r == -ENOTSUP || r == -ELOOP)
                return errmsg_set(e, r, "%s: not a regular file", path);
        return errmsg_set(e, r, "%s: %s", path, strerror(-r));
}

/* @f owns @fd in any case. */
static int take(struct review_files *f, const char *path, int fd, const struct stat *st) {
        struct review_file *v = reallocarray(f->v, f->n + 1, sizeof(*v));
        char *copy = strdup(path);

        if (v)
                f->v = v;
        if (!v || !copy) {
                free(copy);
                close(fd);
                return -ENOMEM;
        }
        f->v[f->n++] = (struct review_file){ .path = copy, .fd = fd, .size = (uint64_t)st->st_size };
        return 0;
}

int review_files_add(struct review_files *f, const char *path, bool follow, struct errmsg *e) {
        struct stat st;
        int r = open_regular(path, follow, &st);

        if (r >= 0)
                r = take(f, path, r, &st);
        return r < 0 ? failed(path, r, e) : 0;
}

static int newest_last(const void *a, const void *b) {
        unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

        return (x < y) - (x > y);
}

/* The N of a name "BASE.N", or 0. */
static unsigned number_of(const char *name, const char *base) {
        size_t len = strlen(base);
        unsigned long n;
        char *end;

        if (strncmp(name, base, len) != 0 || name[len] != '.' || name[len + 1] < '1' ||
            name[len + 1] > '9')
                return 0;
        n = strtoul(name + len + 1, &end, 10);
        return *end == 0 && n <= NUMBER_MAX ? (unsigned)n : 0;
}

/* The numbers there are, largest first; *ret is free()d. Returns how many, or -errno. */
static ssize_t numbers(const char *path, unsigned **ret) {
        const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
        _cleanup_free_ char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
        _cleanup_free_ unsigned *v = NULL;
        size_t n = 0;
        struct dirent *d;
        DIR *handle;

        handle = dir ? opendir(dir) : NULL;
        if (!handle)
                return dir ? -errno : -ENOMEM;
        while ((d = readdir(handle))) {
                unsigned number = number_of(d->d_name, base), *more;

                if (number == 0)
                        continue;
                more = reallocarray(v, n + 1, sizeof(*v));
                if (!more) {
                        closedir(handle);
                        return -ENOMEM;
                }
                v = more;
                v[n++] = number;
        }
        closedir(handle);
        if (n > 0)
                qsort(v, n, sizeof(*v), newest_last);
        *ret = v;
        v = NULL;
        return (ssize_t)n;
}

static bool same_file(const char *path, int fd) {
        struct stat a, b;

        return stat(path, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* -EAGAIN: it was rotated under our hands. */
static int add_once(struct review_files *f, const char *path, struct errmsg *e) {
        _cleanup_free_ unsigned *v = NULL;
        ssize_t n = numbers(path, &v);
        int r;

        if (n < 0)
                return failed(path, (int)n, e);
        for (ssize_t i = 0; v && i < n; i++) {
                char name[PATH_MAX];

                if (snprintf(name, sizeof(name), "%s.%u", path, v[i]) >= (int)sizeof(name))
                        return failed(path, -ENAMETOOLONG, e);
                r = review_files_add(f, name, false, e);
                if (r < 0)
                        return r == -ENOENT ? -EAGAIN : r;
        }
        r = review_files_add(f, path, false, e);
        if (r < 0)
                return r;
        if (!same_file(path, f->v[f->n - 1].fd))
                return errmsg_set(e, -EAGAIN, "%s: it is rotated all the time: try again", path);
        return 0;
}

int review_files_add_rotated(struct review_files *f, const char *path, struct errmsg *e) {
        int r = -EAGAIN;

        for (int i = 0; i < TRIES && (r == -EAGAIN || r == -ENOENT); i++) {
                review_files_done(f);
                r = add_once(f, path, e);
        }
        return r;
}

void review_files_done(struct review_files *f) {
        for (size_t i = 0; i < f->n; i++) {
                close(f->v[i].fd);
                free(f->v[i].path);
        }
        free(f->v);
        *f = (struct review_files){ 0 };
}

/* --- lines ---------------------------------------------------------------------------------------- */

struct review_lines {
        const struct review_files *files;
        size_t file;
        uint64_t off;    /* read so far of this file */
        uint64_t number; /* of the last line */
        size_t start, end;
        bool skipping; /* up to the end of a line that is too long */
        char buf[REVIEW_LINE_MAX];
};

struct review_lines *review_lines_new(const struct review_files *f) {
        struct review_lines *l = malloc(sizeof(*l));

        if (l) {
                l->files = f;
                l->file = l->start = l->end = 0;
                l->off = l->number = 0;
                l->skipping = false;
        }
        return l;
}

void review_lines_free(struct review_lines *l) {
        free(l);
}

const char *review_lines_path(const struct review_lines *l) {
        return l->file < l->files->n ? l->files->v[l->file].path : "?";
}

/* More of the current file behind what is there. Bytes, 0 at its end, or -errno. */
static ssize_t fill(struct review_lines *l) {
        const struct review_file *f = &l->files->v[l->file];
        uint64_t left = f->size - l->off;
        size_t room;
        ssize_t n;

        if (l->start > 0) {
                memmove(l->buf, l->buf + l->start, l->end - l->start);
                l->end -= l->start;
                l->start = 0;
        }
        room = sizeof(l->buf) - l->end;
        do
                n = pread(f->fd, l->buf + l->end, left < room ? (size_t)left : room, (off_t)l->off);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        l->off += (uint64_t)n;
        l->end += (size_t)n;
        return n;
}

static void set_line(struct review_lines *l, struct review_line *ret, size_t len, size_t used) {
        *ret = (struct review_line){
                .p = l->buf + l->start, .len = len, .file = l->file, .number = ++l->number
        };
        l->start += used;
}

/* 1, or 0: the buffer has no whole line. */
static int from_buffer(struct review_lines *l, struct review_line *ret) {
        size_t have = l->end - l->start;
        const char *nl = have > 0 ? memchr(l->buf + l->start, '\n', have) : NULL;

        if (l->skipping) {
                l->start = nl ? (size_t)(nl - l->buf) + 1 : l->end;
                l->skipping = !nl;
                return nl ? from_buffer(l, ret) : 0;
        }
        if (nl) {
                size_t len = (size_t)(nl - (l->buf + l->start));

                set_line(l, ret, len, len + 1);
                return 1;
        }
        if (have < sizeof(l->buf))
                return 0;
        set_line(l, ret, have, have);
        ret->too_long = true;
        l->skipping = true;
        return 1;
}

int review_lines_next(struct review_lines *l, struct review_line *ret) {
        while (l->file < l->files->n) {
                ssize_t n;

                if (from_buffer(l, ret))
                        return 1;
                n = fill(l);
                if (n < 0)
                        return (int)n;
                if (n > 0)
                        continue;
                if (l->end > l->start) {
                        set_line(l, ret, l->end - l->start, l->end - l->start);
                        ret->torn = true;
                        return 1;
                }
                l->file++;
                l->off = l->number = 0;
                l->start = l->end = 0;
                l->skipping = false;
        }
        return 0;
}
