/* The JSON writer: exact text, escapes, bounds, nesting, and what is not UTF-8. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonw.h"
#include "common/utf8.h"

static void test_values(void **state) {
        char buf[256];
        struct jsonw j;

        (void)state;
        jsonw_init_buf(&j, buf, sizeof(buf));
        jsonw_object(&j);
        jsonw_key(&j, "a");
        jsonw_int(&j, INT64_MIN);
        jsonw_key(&j, "b");
        jsonw_array(&j);
        jsonw_uint(&j, UINT64_MAX);
        jsonw_bool(&j, true);
        jsonw_bool(&j, false);
        jsonw_null(&j);
        jsonw_str(&j, NULL);
        jsonw_object(&j);
        jsonw_object_end(&j);
        jsonw_array(&j);
        jsonw_array_end(&j);
        jsonw_array_end(&j);
        jsonw_key(&j, "c");
        jsonw_str(&j, "");
        jsonw_object_end(&j);
        assert_int_equal(jsonw_done(&j), 0);
        assert_string_equal(buf,
                            "{\"a\":-9223372036854775808,\"b\":[18446744073709551615,true,false,null,"
                            "null,{},[]],\"c\":\"\"}");
        assert_int_equal(j.len, strlen(buf));
        assert_false(j.lossy);
}

static void test_strings(void **state) {
        static const struct {
                const char *in;
                size_t len;
                const char *out;
                bool lossy;
        } cases[] = {
                { "plain", 5, "\"plain\"", false },
                { "a\"b\\c/", 6, "\"a\\\"b\\\\c/\"", false },
                { "\n\r\t\b\f\x1b", 6, "\"\\n\\r\\t\\u0008\\u000c\\u001b\"", false },
                { "a\0b", 3, "\"a\\u0000b\"", false },
                { "\x7f", 1, "\"\\u007f\"", false },
                { "\xc2\x85", 2, "\"\\u0085\"", false },
                { "\xe2\x80\xa8\xe2\x80\xa9", 6, "\"\\u2028\\u2029\"", false },
                { "\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9", 12,
                  "\"\\u202a\\u202e\\u2066\\u2069\"", false },
                { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
                  false },
                { "\xff", 1, "\"\\ufffd\"", true },
                { "x\xc3", 2, "\"x\\ufffd\"", true },
                { "\xc0\xaf", 2, "\"\\ufffd\\ufffd\"", true },                       /* overlong */
                { "\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"", true },            /* surrogate */
                { "\xf4\x90\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"", true }, /* above U+10FFFF */
                { "\xe2\x82x", 3, "\"\\ufffd\\ufffdx\"", true },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char buf[128];
                struct jsonw j;

                jsonw_init_buf(&j, buf, sizeof(buf));
                jsonw_strn(&j, cases[i].in, cases[i].len);
                assert_int_equal(jsonw_done(&j), 0);
                assert_string_equal(buf, cases[i].out);
                assert_int_equal(j.lossy, cases[i].lossy);
                assert_int_equal(utf8_valid(cases[i].in, cases[i].len), !cases[i].lossy);
        }
}

static void test_base64(void **state) {
        static const char *const want[] = { "\"\"", "\"Zg==\"", "\"Zm8=\"", "\"Zm9v\"", "\"Zm9vYg==\"" };

        (void)state;
        for (size_t i = 0; i < 5; i++) {
                char buf[32];
                struct jsonw j;

                jsonw_init_buf(&j, buf, sizeof(buf));
                jsonw_base64(&j, "foob", i);
                assert_int_equal(jsonw_done(&j), 0);
                assert_string_equal(buf, want[i]);
        }
}

static void test_bounds(void **state) {
        (void)state;
        for (size_t cap = 1; cap <= 8; cap++) {
                char *buf = malloc(cap);
                struct jsonw j;

                jsonw_init_buf(&j, buf, cap);
                jsonw_str(&j, "abcde"); /* 7 bytes and a NUL */
                assert_int_equal(jsonw_done(&j), cap == 8 ? 0 : -EMSGSIZE);
                assert_true(strlen(buf) < cap);
                free(buf);
        }
}

static void test_nesting(void **state) {
        char buf[256];
        struct jsonw j;

        (void)state;
        jsonw_init_buf(&j, buf, sizeof(buf));
        assert_int_equal(jsonw_done(&j), -EINVAL); /* nothing */

        jsonw_init_buf(&j, buf, sizeof(buf));
        jsonw_object(&j);
        assert_int_equal(jsonw_done(&j), -EINVAL); /* open */

        jsonw_init_buf(&j, buf, sizeof(buf));
        jsonw_object(&j);
        jsonw_null(&j);
        assert_int_equal(jsonw_done(&j), -EINVAL); /* value without a key */

        jsonw_init_buf(&j, buf, sizeof(buf));
        jsonw_object(&j);
        jsonw_key(&j, "a");
        jsonw_object_end(&j);
        assert_int_equal(jsonw_done(&j), -EINVAL); /* key without a value */

        jsonw_init_buf(&j, buf, sizeof(buf));
        jsonw_array(&j);
        jsonw_object_end(&j);
        assert_int_equal(jsonw_done(&j), -EINVAL); /* wrong end */

        jsonw_init_buf(&j, buf, sizeof(buf));
        jsonw_null(&j);
        jsonw_null(&j);
        assert_int_equal(jsonw_done(&j), -EINVAL); /* two values */

        jsonw_init_buf(&j, buf, sizeof(buf));
        for (int i = 0; i < JSONW_DEPTH_MAX + 1; i++)
                jsonw_array(&j);
        assert_int_equal(jsonw_done(&j), -EINVAL); /* too deep */
}

static void test_file(void **state) {
        char *text = NULL;
        size_t len = 0;
        FILE *f = open_memstream(&text, &len);
        FILE *full = fopen("/dev/full", "w");
        struct jsonw j;

        (void)state;
        jsonw_init_file(&j, f);
        jsonw_array(&j);
        jsonw_str(&j, "x");
        jsonw_array_end(&j);
        assert_int_equal(jsonw_done(&j), 0);
        assert_string_equal(text, "[\"x\"]");
        fclose(f);
        free(text);

        jsonw_init_file(&j, full);
        jsonw_null(&j);
        assert_int_equal(jsonw_done(&j), -ENOSPC);
        fclose(full);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values),  cmocka_unit_test(test_strings),
                cmocka_unit_test(test_base64),  cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_nesting), cmocka_unit_test(test_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
