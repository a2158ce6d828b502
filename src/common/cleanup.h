/* Ownership made visible: _cleanup_ variables and take_fd(). */
#pragma once

#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_fdp(int *fd) {
        if (*fd >= 0)
                close(*fd);
}

static inline void cleanup_freep(void *p) {
        free(*(void **)p);
}

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_fd_ _cleanup_(cleanup_fdp)
#define _cleanup_free_ _cleanup_(cleanup_freep)

/* Moves the descriptor out: the variable no longer owns it. */
static inline int take_fd(int *fd) {
        int r = *fd;

        *fd = -1;
        return r;
}

/* Closes it, if it is one, and returns -1, so that x->fd = close_fd(x->fd) leaves no stale number. */
static inline int close_fd(int fd) {
        if (fd >= 0)
                close(fd);
        return -1;
}
