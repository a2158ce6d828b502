/*
 * Text from outside as one unambiguous word of a line: what stands between the quotes of a field in the
 * readable trail. docs/audit.md has the rules for readers.
 *
 * A backslash of the source is always escaped, so every backslash in the output starts an escape and the
 * source can be had back byte for byte:
 *
 *     \xNN     one byte: ASCII control characters, '"', '\', DEL, and bytes that are no valid UTF-8
 *     \u{H…}   one code point that is not visible as itself: controls, separators, blanks other than
 *              U+0020, format and bidi characters, variation selectors, tags, noncharacters
 *     \...     the source goes on, its rest is left out (the last thing in the field)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A bounded text under construction. Sticky: after something did not fit nothing is added any more. */
struct text {
        char *p;
        size_t cap;
        size_t len; /* without the NUL, which is always there */
        bool bad;
};

/* @buf has @cap (> 0) bytes and stays the caller's. */
void text_init(struct text *t, char *buf, size_t cap);
__attribute__((format(printf, 2, 3))) void text_addf(struct text *t, const char *fmt, ...);
void text_add(struct text *t, const char *s, size_t len);

/* Appends @src[0..len) escaped. At most four bytes come out of one byte of the source. */
void text_add_escaped(struct text *t, const void *src, size_t len);

/* The same for text that stands by itself on a terminal: '"' is itself and a backslash is doubled. */
void text_add_shown(struct text *t, const void *src, size_t len);

/* The same for at most @max bytes of it; what is longer is cut before a character that would straddle
 * the limit, and marked by \... at the end. @total (>= @len) is how long the whole source is, of which
 * @src may hold only the start. */
void text_add_cut(struct text *t, const void *src, size_t len, uint64_t total, size_t max);
