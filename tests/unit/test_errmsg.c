/* One bounded line, whatever goes into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/errmsg.h"

static void one_line(void **state) {
        struct errmsg e;
        char text[2 * ERRMSG_MAX];

        (void)state;
        assert_int_equal(errmsg_set(&e, -EINVAL, "%s: %d", "a\nb\x1b[0m\x7f\tc", 5), -EINVAL);
        assert_string_equal(e.text, "a?b?[0m??c: 5");
        assert_int_equal(errmsg_set(NULL, -EIO, "%s", "x"), -EIO);
        assert_int_equal(errmsg_set(&e, 0, "gr\xc3\xbc\xc3\x9f"), 0);
        assert_string_equal(e.text, "gr\xc3\xbc\xc3\x9f");
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        errmsg_set(&e, 0, "%s", text);
        assert_int_equal(strlen(e.text), ERRMSG_MAX - 1);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(one_line) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
