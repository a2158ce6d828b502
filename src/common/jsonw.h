/*
 * A JSON writer (RFC 8259), into a buffer of the caller's or a FILE. No reader, no allocation.
 *
 * Sticky like wire.h: write everything, judge once with jsonw_done(). Commas and nesting are kept by the
 * writer; a key without a value, a value without a key or a wrong end makes jsonw_done() say -EINVAL.
 *
 * Strings: bytes that are not UTF-8 come out as U+FFFD, one for each byte, and set ->lossy. Beside what
 * the RFC asks, DEL, the C1 controls, U+2028, U+2029 and the bidi controls (U+202A-E, U+2066-9) are
 * escaped, so that a value can neither drive a terminal, nor turn what is around it, nor look like a
 * line's end to whoever splits lines the Unicode way. They read back unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSONW_DEPTH_MAX 31

struct jsonw {
        FILE *f;   /* or NULL: */
        char *buf; /* always NUL-terminated; the text written so far */
        size_t cap, len;

        int error;  /* the first thing that went wrong, -errno */
        bool lossy; /* a string held bytes that were not UTF-8 */

        /* Nesting: one bit a level. */
        uint32_t is_object, has_items;
        uint8_t depth;
        bool after_key;
};

/* @cap counts the NUL; at least 1. The buffer and the FILE stay the caller's. */
void jsonw_init_buf(struct jsonw *j, char *buf, size_t cap);
void jsonw_init_file(struct jsonw *j, FILE *f);

void jsonw_object(struct jsonw *j);
void jsonw_object_end(struct jsonw *j);
void jsonw_array(struct jsonw *j);
void jsonw_array_end(struct jsonw *j);
void jsonw_key(struct jsonw *j, const char *key);

void jsonw_str(struct jsonw *j, const char *s); /* NULL: null */
void jsonw_strn(struct jsonw *j, const void *p, size_t len);
void jsonw_base64(struct jsonw *j, const void *p, size_t len); /* as a string, RFC 4648 with padding */
void jsonw_int(struct jsonw *j, int64_t v);
void jsonw_uint(struct jsonw *j, uint64_t v);
void jsonw_bool(struct jsonw *j, bool v);
void jsonw_null(struct jsonw *j);
/* A key with its value; null where it is NULL, or not known. */
void jsonw_key_str(struct jsonw *j, const char *key, const char *s);
void jsonw_key_count(struct jsonw *j, const char *key, uint64_t v); /* it is always known */
void jsonw_key_uint(struct jsonw *j, const char *key, bool known, uint64_t v);

/* 0 when one complete value was written (the FILE is flushed), else the first error: -EMSGSIZE (the
 * buffer was too small), -EINVAL (wrong nesting), or the errno of a failed write. */
int jsonw_done(struct jsonw *j);
