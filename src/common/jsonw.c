/*
 * Everything ends in put(): it alone knows where the bytes go, and stops at the first error. A value
 * announces itself with item(), which owes the comma and checks that a value may stand there.
 */
#include "common/jsonw.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/utf8.h"

static void init(struct jsonw *j) {
        memset(j, 0, sizeof(*j));
}

void jsonw_init_buf(struct jsonw *j, char *buf, size_t cap) {
        init(j);
        j->buf = buf;
        j->cap = cap;
        buf[0] = '\0';
}

void jsonw_init_file(struct jsonw *j, FILE *f) {
        init(j);
        j->f = f;
}

static void fail(struct jsonw *j, int error) {
        if (j->error == 0)
                j->error = error;
}

static void put(struct jsonw *j, const void *p, size_t len) {
        if (j->error || len == 0)
                return;
        if (j->f) {
                errno = 0;
                if (fwrite(p, 1, len, j->f) != len)
                        fail(j, errno ? -errno : -EIO);
                return;
        }
        if (len >= j->cap - j->len) {
                fail(j, -EMSGSIZE);
                return;
        }
        memcpy(j->buf + j->len, p, len);
        j->len += len;
        j->buf[j->len] = '\0';
}

static void put_text(struct jsonw *j, const char *s) {
        put(j, s, strlen(s));
}

static uint32_t level(const struct jsonw *j) {
        return UINT32_C(1) << j->depth;
}

/* A value, or a key, begins here. */
static void item(struct jsonw *j, bool is_key) {
        bool in_object = j->depth > 0 && (j->is_object & level(j));

        if (j->after_key) {
                j->after_key = false;
                if (is_key)
                        fail(j, -EINVAL);
                return;
        }
        if (in_object != is_key || (j->depth == 0 && (j->has_items & 1))) {
                fail(j, -EINVAL);
                return;
        }
        if (j->has_items & level(j))
                put(j, ",", 1);
        j->has_items |= level(j);
}

static void open_level(struct jsonw *j, const char *bracket, bool object) {
        item(j, false);
        if (j->depth == JSONW_DEPTH_MAX) {
                fail(j, -EINVAL);
                return;
        }
        put(j, bracket, 1);
        j->depth++;
        j->has_items &= ~level(j);
        j->is_object &= ~level(j);
        if (object)
                j->is_object |= level(j);
}

static void close_level(struct jsonw *j, const char *bracket, bool object) {
        bool in_object = j->is_object & level(j);

        if (j->depth == 0 || in_object != object || j->after_key) {
                fail(j, -EINVAL);
                return;
        }
        j->depth--;
        put(j, bracket, 1);
}

void jsonw_object(struct jsonw *j) {
        open_level(j, "{", true);
}

void jsonw_object_end(struct jsonw *j) {
        close_level(j, "}", true);
}

void jsonw_array(struct jsonw *j) {
        open_level(j, "[", false);
}

void jsonw_array_end(struct jsonw *j) {
        close_level(j, "]", false);
}

/* What stands for the character at @p of @n bytes instead of itself, or NULL. @n is 0 for a byte that
 * begins none. */
static const char *escape(const uint8_t *p, size_t n, char buf[8]) {
        unsigned code;

        if (n == 0)
                return "\\ufffd";
        if (n == 1) {
                switch (p[0]) {
                case '"':
                        return "\\\"";
                case '\\':
                        return "\\\\";
                case '\n':
                        return "\\n";
                case '\r':
                        return "\\r";
                case '\t':
                        return "\\t";
                }
                code = p[0];
                if (code >= 0x20 && code != 0x7f)
                        return NULL;
        } else if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0)
                code = p[1];
        else if (n == 3 && p[0] == 0xe2 && p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae)
                code = 0x2000u | (p[2] - 0x80u);
        else if (n == 3 && p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)
                code = 0x2040u | (p[2] - 0x80u);
        else
                return NULL;

        snprintf(buf, 8, "\\u%04x", code);
        return buf;
}

static void put_quoted(struct jsonw *j, const uint8_t *p, size_t len) {
        size_t plain = 0; /* start of what goes out as it stands */
        char buf[8];

        put(j, "\"", 1);
        for (size_t i = 0; i < len;) {
                uint32_t c;
                size_t n = utf8_decode(p + i, len - i, &c);
                const char *instead = escape(p + i, n, buf);

                if (n == 0) {
                        j->lossy = true;
                        n = 1;
                }
                if (instead) {
                        put(j, p + plain, i - plain);
                        put_text(j, instead);
                        plain = i + n;
                }
                i += n;
        }
        if (plain < len)
                put(j, p + plain, len - plain);
        put(j, "\"", 1);
}

void jsonw_key(struct jsonw *j, const char *key) {
        item(j, true);
        put_quoted(j, (const uint8_t *)key, strlen(key));
        put(j, ":", 1);
        j->after_key = true;
}

void jsonw_strn(struct jsonw *j, const void *p, size_t len) {
        item(j, false);
        put_quoted(j, p, len);
}

void jsonw_str(struct jsonw *j, const char *s) {
        if (!s)
                jsonw_null(j);
        else
                jsonw_strn(j, s, strlen(s));
}

void jsonw_base64(struct jsonw *j, const void *p, size_t len) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const uint8_t *b = p;

        item(j, false);
        put(j, "\"", 1);
        for (size_t i = 0; i < len; i += 3) {
                size_t n = len - i < 3 ? len - i : 3;
                uint32_t v = (uint32_t)b[i] << 16 | (n > 1 ? (uint32_t)b[i + 1] << 8 : 0) |
                             (n > 2 ? b[i + 2] : 0u);
                char out[4] = { digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63],
                                digits[v & 63] };

                if (n < 3)
                        out[3] = '=';
                if (n < 2)
                        out[2] = '=';
                put(j, out, 4);
        }
        put(j, "\"", 1);
}

void jsonw_int(struct jsonw *j, int64_t v) {
        char buf[24];

        item(j, false);
        snprintf(buf, sizeof(buf), "%" PRId64, v);
        put_text(j, buf);
}

void jsonw_uint(struct jsonw *j, uint64_t v) {
        char buf[24];

        item(j, false);
        snprintf(buf, sizeof(buf), "%" PRIu64, v);
        put_text(j, buf);
}

void jsonw_bool(struct jsonw *j, bool v) {
        item(j, false);
        put_text(j, v ? "true" : "false");
}

void jsonw_null(struct jsonw *j) {
        item(j, false);
        put_text(j, "null");
}

void jsonw_key_str(struct jsonw *j, const char *key, const char *s) {
        jsonw_key(j, key);
        jsonw_str(j, s);
}

void jsonw_key_count(struct jsonw *j, const char *key, uint64_t v) {
        jsonw_key(j, key);
        jsonw_uint(j, v);
}

void jsonw_key_uint(struct jsonw *j, const char *key, bool known, uint64_t v) {
        jsonw_key(j, key);
        if (known)
                jsonw_uint(j, v);
        else
                jsonw_null(j);
}

int jsonw_done(struct jsonw *j) {
        if (!j->error && (j->depth != 0 || j->after_key || !(j->has_items & 1)))
                fail(j, -EINVAL);
        if (j->f && !j->error) {
                errno = 0;
                if (fflush(j->f) != 0)
                        fail(j, errno ? -errno : -EIO);
        }
        return j->error;
}
