/* Fields of a payload: bounds-checked, sticky, byte by byte so that no alignment is assumed. */
#include "common/wire.h"

#include <errno.h>
#include <string.h>

void wire_in_init(struct wire_in *in, const void *buf, size_t len) {
        in->p = buf;
        in->left = len;
        in->bad = false;
}

const uint8_t *wire_get_raw(struct wire_in *in, size_t len) {
        const uint8_t *p = in->p;

        if (in->bad || len > in->left) {
                in->bad = true;
                return NULL;
        }
        in->p += len;
        in->left -= len;
        return p;
}

static uint64_t get_le(struct wire_in *in, size_t width) {
        const uint8_t *p = wire_get_raw(in, width);
        uint64_t v = 0;

        if (!p)
                return 0;
        for (size_t i = width; i-- > 0;)
                v = v << 8 | p[i];
        return v;
}

uint8_t wire_get_u8(struct wire_in *in) {
        return (uint8_t)get_le(in, 1);
}

uint16_t wire_get_u16(struct wire_in *in) {
        return (uint16_t)get_le(in, 2);
}

uint32_t wire_get_u32(struct wire_in *in) {
        return (uint32_t)get_le(in, 4);
}

uint64_t wire_get_u64(struct wire_in *in) {
        return get_le(in, 8);
}

const uint8_t *wire_get_blob(struct wire_in *in, uint32_t max, uint32_t *ret_len) {
        uint32_t len = wire_get_u32(in);
        const uint8_t *p;

        if (len > max)
                in->bad = true;
        p = wire_get_raw(in, len);
        if (p)
                *ret_len = len;
        return p;
}

const char *wire_get_str(struct wire_in *in, uint32_t max) {
        uint32_t len;
        const uint8_t *p = wire_get_blob(in, max < UINT32_MAX ? max + 1 : max, &len);

        if (!p)
                return NULL;
        if (len == 0 || memchr(p, 0, len) != p + len - 1) {
                in->bad = true;
                return NULL;
        }
        return (const char *)p;
}

bool wire_get_bool(struct wire_in *in) {
        uint8_t v = wire_get_u8(in);

        if (v > 1)
                in->bad = true;
        return v == 1;
}

const char *wire_get_hex(struct wire_in *in, uint32_t digits) {
        const char *s = wire_get_str(in, digits);

        if (s && (strlen(s) != digits || strspn(s, "0123456789abcdef") != digits))
                in->bad = true;
        return s;
}

const char *wire_get_pair(struct wire_in *in, uint32_t max) {
        const char *s = wire_get_str(in, max);

        if (s && (s[0] == '=' || !strchr(s, '='))) {
                in->bad = true;
                return NULL;
        }
        return s;
}

bool wire_in_done(const struct wire_in *in) {
        return !in->bad && in->left == 0;
}

void wire_out_init(struct wire_out *out, void *buf, size_t cap) {
        out->p = buf;
        out->cap = cap;
        out->len = 0;
        out->bad = false;
}

void wire_put_raw(struct wire_out *out, const void *p, size_t len) {
        if (out->bad || len > out->cap - out->len) {
                out->bad = true;
                return;
        }
        if (len > 0)
                memcpy(out->p + out->len, p, len);
        out->len += len;
}

static void put_le(struct wire_out *out, uint64_t v, size_t width) {
        uint8_t b[8];

        for (size_t i = 0; i < width; i++, v >>= 8)
                b[i] = (uint8_t)v;
        wire_put_raw(out, b, width);
}

void wire_put_u8(struct wire_out *out, uint8_t v) {
        put_le(out, v, 1);
}

void wire_put_u16(struct wire_out *out, uint16_t v) {
        put_le(out, v, 2);
}

void wire_put_u32(struct wire_out *out, uint32_t v) {
        put_le(out, v, 4);
}

void wire_put_u64(struct wire_out *out, uint64_t v) {
        put_le(out, v, 8);
}

void wire_put_blob(struct wire_out *out, const void *p, uint32_t len) {
        wire_put_u32(out, len);
        wire_put_raw(out, p, len);
}

void wire_put_str(struct wire_out *out, const char *s) {
        if (!s)
                s = "";
        wire_put_blob(out, s, (uint32_t)strlen(s) + 1);
}

ssize_t wire_out_len(const struct wire_out *out) {
        return out->bad ? -EMSGSIZE : (ssize_t)out->len;
}
