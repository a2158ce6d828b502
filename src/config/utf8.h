/* UTF-8, strictly: no overlong form, no surrogate, nothing behind U+10FFFF. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The code point at the front of @p[0..len), its bytes in *ret; 0 when it is none, or @len is 0. */
size_t config_utf8_get(const unsigned char *p, size_t len, uint32_t *ret);

/* Words for the first byte that may not stand in a text file (bad UTF-8, a control character other than
 * tab and line ends), with its line and column from 1; NULL when there is none. */
const char *config_utf8_problem(const void *data, size_t len, unsigned *ret_line, unsigned *ret_column);
