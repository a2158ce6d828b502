/* The way back from escape.h's output, as docs/audit.md describes it, for tests. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline size_t unescape_put(uint8_t *out, uint32_t c) {
        if (c < 0x800) {
                out[0] = (uint8_t)(0xc0 | c >> 6);
                out[1] = (uint8_t)(0x80 | (c & 0x3f));
                return 2;
        }
        if (c < 0x10000) {
                out[0] = (uint8_t)(0xe0 | c >> 12);
                out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
                out[2] = (uint8_t)(0x80 | (c & 0x3f));
                return 3;
        }
        out[0] = (uint8_t)(0xf0 | c >> 18);
        out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
        out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        out[3] = (uint8_t)(0x80 | (c & 0x3f));
        return 4;
}

/* @out has room for strlen(@s) bytes. Returns the length, or (size_t)-1 for what is no escape. */
static inline size_t unescape(const char *s, uint8_t *out) {
        size_t n = 0;

        while (*s) {
                char hex[3], *end;

                if (*s != '\\') {
                        out[n++] = (uint8_t)*s++;
                } else if (s[1] == 'x' && s[2] && s[3]) {
                        memcpy(hex, s + 2, 2);
                        hex[2] = 0;
                        out[n++] = (uint8_t)strtoul(hex, &end, 16);
                        if (*end)
                                return (size_t)-1;
                        s += 4;
                } else if (s[1] == 'u' && s[2] == '{') {
                        n += unescape_put(out + n, (uint32_t)strtoul(s + 3, &end, 16));
                        if (*end != '}')
                                return (size_t)-1;
                        s = end + 1;
                } else {
                        return (size_t)-1;
                }
        }
        return n;
}
