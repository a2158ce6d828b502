/* The fields of a payload: every bound, and that one bad read spoils all that follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/wire.h"

static void numbers(void **state) {
        uint8_t buf[15];
        struct wire_out out;
        struct wire_in in;

        (void)state;
        wire_out_init(&out, buf, sizeof(buf));
        wire_put_u8(&out, 0xfe);
        wire_put_u16(&out, 0x0102);
        wire_put_u32(&out, 0x03040506);
        wire_put_u64(&out, UINT64_C(0x0708090a0b0c0d0e));
        assert_false(out.bad);
        assert_int_equal(out.len, 15);
        assert_memory_equal(buf, "\xfe\x02\x01\x06\x05\x04\x03\x0e\x0d\x0c\x0b\x0a\x09\x08\x07", 15);
        wire_in_init(&in, buf, sizeof(buf));
        assert_int_equal(wire_get_u8(&in), 0xfe);
        assert_int_equal(wire_get_u16(&in), 0x0102);
        assert_int_equal(wire_get_u32(&in), 0x03040506);
        assert_false(wire_in_done(&in));
        assert_true(wire_get_u64(&in) == UINT64_C(0x0708090a0b0c0d0e));
        assert_true(wire_in_done(&in));
        assert_int_equal(wire_get_u8(&in), 0);
        assert_false(wire_in_done(&in));
}

static void bad_stays_bad(void **state) {
        static const uint8_t buf[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
        struct wire_in in;
        uint32_t len = 77;

        (void)state;
        wire_in_init(&in, buf, 7);
        assert_true(wire_get_u64(&in) == 0);
        assert_int_equal(wire_get_u8(&in), 0);
        assert_null(wire_get_raw(&in, 0));
        assert_null(wire_get_blob(&in, 10, &len));
        assert_null(wire_get_str(&in, 10));
        assert_int_equal(len, 77);
        assert_int_equal(in.left, 7);
        assert_false(wire_in_done(&in));
}

static void raw(void **state) {
        static const uint8_t buf[4] = { 1, 2, 3, 4 };
        struct wire_in in;

        (void)state;
        wire_in_init(&in, buf, sizeof(buf));
        assert_ptr_equal(wire_get_raw(&in, 0), buf);
        assert_ptr_equal(wire_get_raw(&in, 4), buf);
        assert_true(wire_in_done(&in));
        wire_in_init(&in, buf, sizeof(buf));
        assert_null(wire_get_raw(&in, SIZE_MAX));
        assert_false(wire_in_done(&in));
}

/* One field that starts with a u32 length; true when it is taken as a whole. */
static bool takes_str(const void *p, size_t n, uint32_t max) {
        struct wire_in in;
        const char *s;

        wire_in_init(&in, p, n);
        s = wire_get_str(&in, max);
        assert_true(!s == in.bad);
        return wire_in_done(&in);
}

static void strings(void **state) {
        (void)state;
        assert_true(takes_str("\x01\0\0\0\0", 5, 0));
        assert_true(takes_str("\x03\0\0\0ab\0", 7, 2));
        assert_false(takes_str("\x03\0\0\0ab\0", 7, 1));  /* too long */
        assert_false(takes_str("\x03\0\0\0abc", 7, 9));   /* no NUL */
        assert_false(takes_str("\x03\0\0\0a\0\0", 7, 9)); /* two */
        assert_false(takes_str("\x03\0\0\0\0ab", 7, 9));  /* NUL inside */
        assert_false(takes_str("\0\0\0\0", 4, 9));        /* not even a NUL */
        assert_false(takes_str("\x04\0\0\0ab\0", 7, 9));  /* more than there is */
        assert_false(takes_str("\xff\xff\xff\xff"
                               "a",
                               5, UINT32_MAX));
        assert_false(takes_str("\x02\0\0\0a\0x", 7, 9)); /* something behind it */
        assert_false(takes_str("\x02\0\0", 3, 9));
}

static void blobs(void **state) {
        struct wire_in in;
        uint32_t len;

        (void)state;
        wire_in_init(&in, "\x02\0\0\0\0a", 6);
        assert_non_null(wire_get_blob(&in, 2, &len));
        assert_int_equal(len, 2);
        assert_true(wire_in_done(&in));
        wire_in_init(&in, "\x02\0\0\0\0a", 6);
        assert_null(wire_get_blob(&in, 1, &len));
        wire_in_init(&in, "\0\0\0\0", 4);
        assert_non_null(wire_get_blob(&in, 0, &len));
        assert_int_equal(len, 0);
        assert_true(wire_in_done(&in));
}

static void what_does_not_fit(void **state) {
        uint8_t buf[8] = { 0 };
        struct wire_out out;

        (void)state;
        for (size_t cap = 0; cap < 7; cap++) {
                wire_out_init(&out, buf, cap);
                wire_put_str(&out, "ab");
                assert_true(out.bad);
                assert_true(out.len <= cap);
                wire_put_u8(&out, 9); /* fits, and is not written any more */
                assert_true(out.bad);
        }
        wire_out_init(&out, buf, 7);
        wire_put_str(&out, "ab");
        assert_false(out.bad);
        wire_put_raw(&out, NULL, 0);
        assert_false(out.bad);
        wire_put_u8(&out, 1);
        assert_true(out.bad);
        assert_int_equal(out.len, 7);
        assert_int_equal(buf[7], 0);
        wire_out_init(&out, buf, 5);
        wire_put_str(&out, NULL);
        assert_false(out.bad);
        assert_memory_equal(buf, "\x01\0\0\0\0", 5);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(numbers), cmocka_unit_test(bad_stays_bad),
                cmocka_unit_test(raw),     cmocka_unit_test(strings),
                cmocka_unit_test(blobs),   cmocka_unit_test(what_does_not_fit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
