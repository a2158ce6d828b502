/*
 * Reading and writing the fields of a payload. Little-endian, no padding.
 *
 * Both sides are sticky: read or write all fields, then judge once. After a failed read every
 * further read returns zeros, so that no field has to be checked on its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct wire_in {
        const uint8_t *p;
        size_t left;
        bool bad;
};

struct wire_out {
        uint8_t *p;
        size_t cap;
        size_t len;
        bool bad; /* it did not fit; len stays at what did */
};

void wire_in_init(struct wire_in *in, const void *buf, size_t len);
uint8_t wire_get_u8(struct wire_in *in);
uint16_t wire_get_u16(struct wire_in *in);
uint32_t wire_get_u32(struct wire_in *in);
uint64_t wire_get_u64(struct wire_in *in);
/* The next @len bytes, in place; NULL when fewer are left. */
const uint8_t *wire_get_raw(struct wire_in *in, size_t len);
/* A u32 length of at most @max and that many bytes, in place. NULL when bad. */
const uint8_t *wire_get_blob(struct wire_in *in, uint32_t max, uint32_t *ret_len);
/* The same for text: the bytes must end with NUL and hold no other; @max counts without it. The
 * string lives in the payload. NULL when bad. */
const char *wire_get_str(struct wire_in *in, uint32_t max);
/* A u8 that is 0 or 1; anything else is bad. */
bool wire_get_bool(struct wire_in *in);
/* Text of exactly @digits lower-case hex digits. NULL, or a text that is none, when bad. */
const char *wire_get_hex(struct wire_in *in, uint32_t digits);
/* Text such as "KEY=VALUE", with a key that is not empty; @max as above. NULL when bad. */
const char *wire_get_pair(struct wire_in *in, uint32_t max);
/* True when every read succeeded and nothing is left over. */
bool wire_in_done(const struct wire_in *in);

void wire_out_init(struct wire_out *out, void *buf, size_t cap);
void wire_put_u8(struct wire_out *out, uint8_t v);
void wire_put_u16(struct wire_out *out, uint16_t v);
void wire_put_u32(struct wire_out *out, uint32_t v);
void wire_put_u64(struct wire_out *out, uint64_t v);
void wire_put_raw(struct wire_out *out, const void *p, size_t len);
void wire_put_blob(struct wire_out *out, const void *p, uint32_t len);
/* Text with its NUL, as wire_get_str() reads it. NULL is written as "". */
void wire_put_str(struct wire_out *out, const char *s);
/* What has been written, in bytes; -EMSGSIZE: it did not fit. */
ssize_t wire_out_len(const struct wire_out *out);
