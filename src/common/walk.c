#include "common/walk.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* getdents64(2) */
struct entry64 {
        uint64_t ino;
        int64_t off;
        uint16_t reclen;
        uint8_t type;
        char name[];
};

const char *walk_next(struct walk_names *w, int fd) {
        for (;;) {
                const struct entry64 *d;

                if (w->at >= w->len) {
                        ssize_t n = syscall(SYS_getdents64, fd, w->buf, sizeof(w->buf));

                        w->error = n < 0 ? -errno : 0;
                        if (n <= 0)
                                return NULL;
                        w->at = 0;
                        w->len = (size_t)n;
                }
                d = (const struct entry64 *)(const void *)(w->buf + w->at);
                w->at += d->reclen;
                if (strcmp(d->name, ".") != 0 && strcmp(d->name, "..") != 0)
                        return d->name;
        }
}
