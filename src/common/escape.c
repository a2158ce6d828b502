/*
 * Escaping for lines that people read. The model is an allow list for ASCII and a deny list for the
 * rest: letters of all scripts stay readable, and whatever moves the cursor, ends a line for some
 * reader, turns the direction of text or takes no room is written by number.
 *
 * The ranges are the characters of Unicode's general categories Cc, Cf, Zl, Zp, Zs and Co, the code
 * points with the property Default_Ignorable_Code_Point (UAX #44), and the noncharacters.
 */
#include "common/escape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

static const struct {
        uint32_t first, last;
} hidden[] = {
        { 0x0080, 0x00a0 },   { 0x00ad, 0x00ad },   { 0x034f, 0x034f },    { 0x0600, 0x0605 },
        { 0x061c, 0x061c },   { 0x06dd, 0x06dd },   { 0x070f, 0x070f },    { 0x0890, 0x0891 },
        { 0x08e2, 0x08e2 },   { 0x115f, 0x1160 },   { 0x1680, 0x1680 },    { 0x17b4, 0x17b5 },
        { 0x180b, 0x180f },   { 0x2000, 0x200f },   { 0x2028, 0x202f },    { 0x205f, 0x206f },
        { 0x2800, 0x2800 },   { 0x3000, 0x3000 },   { 0x3164, 0x3164 },    { 0xe000, 0xf8ff },
        { 0xfdd0, 0xfdef },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },    { 0xffa0, 0xffa0 },
        { 0xfff0, 0xfffb },   { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd },  { 0x13430, 0x1343f },
        { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0x10ffff },
};

static bool is_hidden(uint32_t c) {
        if ((c & 0xfffe) == 0xfffe)
                return true;
        for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
                if (c >= hidden[i].first && c <= hidden[i].last)
                        return true;
        return false;
}

void text_init(struct text *t, char *buf, size_t cap) {
        t->p = buf;
        t->cap = cap;
        t->len = 0;
        t->bad = false;
        buf[0] = 0;
}

void text_add(struct text *t, const char *s, size_t len) {
        if (t->bad || len >= t->cap - t->len) {
                t->bad = true;
                return;
        }
        if (len > 0)
                memcpy(t->p + t->len, s, len);
        t->len += len;
        t->p[t->len] = 0;
}

void text_addf(struct text *t, const char *fmt, ...) {
        va_list ap;
        int n;

        if (t->bad)
                return;
        va_start(ap, fmt);
        n = vsnprintf(t->p + t->len, t->cap - t->len, fmt, ap);
        va_end(ap);
        if (n < 0 || (size_t)n >= t->cap - t->len) {
                t->p[t->len] = 0;
                t->bad = true;
                return;
        }
        t->len += (size_t)n;
}

/* @quoted: the text stands between quotes, which it must not end. */
static void add_escaped(struct text *t, const uint8_t *p, size_t len, bool quoted) {
        for (size_t i = 0, n; i < len; i += n) {
                uint32_t c;

                n = utf8_decode(p + i, len - i, &c);
                if (n == 1 && c == '\\' && !quoted) {
                        text_add(t, "\\\\", 2);
                } else if (n == 0 ||
                           (n == 1 && (c < 0x20 || c == 0x7f || (quoted && (c == '"' || c == '\\'))))) {
                        text_addf(t, "\\x%02x", p[i]);
                        n = 1;
                } else if (n > 1 && is_hidden(c)) {
                        text_addf(t, "\\u{%x}", c);
                } else {
                        text_add(t, (const char *)p + i, n);
                }
        }
}

void text_add_escaped(struct text *t, const void *src, size_t len) {
        add_escaped(t, src, len, true);
}

void text_add_shown(struct text *t, const void *src, size_t len) {
        add_escaped(t, src, len, false);
}

void text_add_cut(struct text *t, const void *src, size_t len, uint64_t total, size_t max) {
        const uint8_t *p = src;
        size_t n = len < max ? len : max;
        uint32_t c;

        /* Where the limit falls into a valid sequence, all of it is left out. */
        if (n < len)
                for (size_t back = 1; back <= 3 && back <= n; back++)
                        if (utf8_decode(p + n - back, len - (n - back), &c) > back) {
                                n -= back;
                                break;
                        }
        text_add_escaped(t, p, n);
        if (n < total)
                text_addf(t, "\\...");
}
