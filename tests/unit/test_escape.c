/* escape.h: what is shown, what is written by number, and that the source can be had back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/escape.h"
#include "unescape.h"

static const char *escaped(const char *src, size_t len) {
        static char buf[1024];
        uint8_t back[1024];
        struct text t;

        text_init(&t, buf, sizeof(buf));
        text_add_escaped(&t, src, len);
        assert_false(t.bad);
        assert_int_equal(unescape(buf, back), len);
        assert_memory_equal(back, src, len);
        return buf;
}
#define E(s) escaped(s, sizeof(s) - 1)

static void test_table(void **state) {
        (void)state;
        assert_string_equal(E("ls -l 'x' | wc"), "ls -l 'x' | wc");
        assert_string_equal(E("a\nb\r\t\033[2J\177"), "a\\x0ab\\x0d\\x09\\x1b[2J\\x7f");
        assert_string_equal(E("\"\\"), "\\x22\\x5c");
        assert_string_equal(E("\\x0a"), "\\x5cx0a");
        assert_string_equal(E("gr\303\274n \346\227\245\346\234\254 \360\237\230\200"),
                            "gr\303\274n \346\227\245\346\234\254 \360\237\230\200");
        assert_string_equal(E("\302\205\342\200\250\342\200\251"), "\\u{85}\\u{2028}\\u{2029}");
        assert_string_equal(E("\342\200\256\342\200\213\357\273\277\302\240"),
                            "\\u{202e}\\u{200b}\\u{feff}\\u{a0}");
        assert_string_equal(E("\363\240\201\201\364\217\277\277"), "\\u{e0041}\\u{10ffff}");
        /* no valid UTF-8: alone, overlong, surrogate, too large, cut */
        assert_string_equal(E("\200\377"), "\\x80\\xff");
        assert_string_equal(E("\300\212\340\200\212"), "\\xc0\\x8a\\xe0\\x80\\x8a");
        assert_string_equal(E("\355\240\200"), "\\xed\\xa0\\x80");
        assert_string_equal(E("\364\220\200\200"), "\\xf4\\x90\\x80\\x80");
        assert_string_equal(E("\342\200"), "\\xe2\\x80");
        assert_string_equal(E("a\0b"), "a\\x00b");
}

static void test_every_pair_of_bytes(void **state) {
        (void)state;
        for (unsigned i = 0; i < 65536; i++) {
                char s[2] = { (char)(i >> 8), (char)(i & 255) };

                escaped(s, 2);
        }
}

static void test_cut(void **state) {
        char buf[64];
        struct text t;

        (void)state;
        text_init(&t, buf, sizeof(buf));
        text_add_cut(&t, "abcdef", 6, 6, 6);
        assert_string_equal(buf, "abcdef");
        text_init(&t, buf, sizeof(buf));
        text_add_cut(&t, "abcdef", 6, 6, 5);
        assert_string_equal(buf, "abcde\\...");
        text_init(&t, buf, sizeof(buf));
        text_add_cut(&t, "ab\342\202\254cd", 7, 7, 4);
        assert_string_equal(buf, "ab\\...");
        text_init(&t, buf, sizeof(buf));
        text_add_cut(&t, "abc", 3, 9, 3);
        assert_string_equal(buf, "abc\\...");
}

static void test_too_long_is_sticky(void **state) {
        char buf[8];
        struct text t;

        (void)state;
        text_init(&t, buf, sizeof(buf));
        text_add(&t, "1234", 4);
        text_addf(&t, "%s", "56789");
        assert_true(t.bad);
        text_add(&t, "x", 1);
        assert_string_equal(buf, "1234");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_every_pair_of_bytes),
                cmocka_unit_test(test_cut),
                cmocka_unit_test(test_too_long_is_sticky),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
