/* UTF-8 by RFC 3629, section 4. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes (1 … 4) of the valid character at the front of @p[0..len), or 0 when there is none: overlong forms, surrogates,
 * code points above U+10FFFF and cut sequences are not valid. *ret is the code point. */
size_t utf8_decode(const uint8_t *p, size_t len, uint32_t *ret);

/* True when all of it is UTF-8. */
bool utf8_valid(const void *p, size_t len);

/* @len less what is left at the end of @p[0..len) of a character that was cut there. */
size_t utf8_whole(const uint8_t *p, size_t len);
