/* The words for a person: what failed, on what, why, and what mends it. One line, bounded. */
#pragma once

#define ERRMSG_MAX 512

struct errmsg {
        char text[ERRMSG_MAX];
};

/* Formats into @e (NULL is allowed and ignored) and returns @r, so that a failing branch is one
 * statement: return errmsg_set(e, -EINVAL, "…"). Too long a text is cut; control characters in it
 * become '?', so that it stays one line on any terminal. */
__attribute__((format(printf, 3, 4))) int errmsg_set(struct errmsg *e, int r, const char *fmt, ...);
