/* The names in a folder, as they come, through one small buffer. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct walk_names {
        int error;      /* -errno of the last walk_next() that gave none, 0 at the end */
        size_t at, len; /* in buf; both 0 to begin */
        uint8_t buf[4096] __attribute__((aligned(8)));
};

/* The next name in the folder that is open as @fd, without "." and ".."; good until the next call. NULL at the end,
 * or with w->error. */
const char *walk_next(struct walk_names *w, int fd);
