/* One line of the readable trail, whoever wrote it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REVIEW_LINE_HASH 64

struct review_trail_line {
        int64_t time_ms;
        uint64_t seq; /* > 0 */
        char prev[REVIEW_LINE_HASH + 1];
        bool recorded; /* a line of this kind has a kernel record of its own */
        uint64_t torn; /* of a TORN line: the bytes of the line before; else 0 */
        uint64_t lost; /* of a LOST line: how many lines; else 0 */
};

/* Reads @p[0..len), without its newline. 0, or -EBADMSG: it is no line that the manager writes (time,
 * body, " seq=N prev=HEX"). */
int review_line_parse(const char *p, size_t len, struct review_trail_line *ret);
