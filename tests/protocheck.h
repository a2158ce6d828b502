/* What the tests of payloads share: a buffer for what was encoded, and what holds for every encoder and decoder. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint8_t buf[8192];
static char text[8192];

/* What every decoder refuses: less than all of it (in a buffer of just that size), and more. */
#define refuses_other_lengths(decode, n, r)                                               \
        for (size_t len_ = 0; len_ <= (size_t)(n) + 1; len_++) {                          \
                uint8_t *p_ = calloc(1, len_ + 1);                                        \
                assert_non_null(p_);                                                      \
                memcpy(p_, buf, len_ < (size_t)(n) ? len_ : (size_t)(n));                 \
                assert_int_equal(decode(p_, len_, r), len_ == (size_t)(n) ? 0 : -EPROTO); \
                free(p_);                                                                 \
        }
/* And every encoder a buffer that is too small. */
#define needs_room(encode, v, n)                          \
        for (size_t cap_ = 0; cap_ < (size_t)(n); cap_++) \
        assert_int_equal(encode(v, text, cap_), -EMSGSIZE)
