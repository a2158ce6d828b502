/* Lines for a terminal: their width, where they go on, and what gets a colour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/cli_paint.h"

static void expect(const char *line, unsigned columns, bool color, const char *wanted) {
        char *out = malloc(CLI_PAINT_LINE(strlen(line)) + 1);

        assert_non_null(out);
        out[cli_paint_line(line, strlen(line), columns, color, out)] = '\0';
        assert_string_equal(out, wanted);
        free(out);
}

static void as_it_is(void **state) {
        (void)state;
        expect("", 80, true, "");
        expect("  limits        active       memory, pids", 80, false,
               "  limits        active       memory, pids");
        expect("  a line of words that nobody bounds", 0, false, "  a line of words that nobody bounds");
}

static void below_its_column(void **state) {
        (void)state;
        expect("  limits        active       memory 128m, pids 256, one cpu", 46, false,
               "  limits        active       memory 128m, pids\n"
               "                256, one cpu");
        expect("  limits  active    memory 128m, pids 256, one cpu", 40, false,
               "  limits  active    memory 128m, pids\n"
               "                    256, one cpu");
        expect("engine: up, version one and two", 20, false, "engine: up, version\n  one and two");
}

static void too_long_a_word(void **state) {
        (void)state;
        expect("image: 0123456789012345678901234567890123456789 here", 20, false,
               "image:\n  0123456789012345678901234567890123456789\n  here");
}

/* Two bytes, one column. */
static void characters(void **state) {
        (void)state;
        expect("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 0123456789", 20,
               false,
               "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 0123456789");
}

static void colors(void **state) {
        (void)state;
        expect("engine: up, version", 80, true, "\033[1mengine:\033[0m \033[32mup,\033[0m version");
        expect("pool default: 3 of 3 warm, 0 starting", 80, true,
               "\033[1mpool\033[0m \033[1mdefault:\033[0m 3 of 3 warm, 0 starting");
        expect("PROFILE STATE", 80, true, "\033[1mPROFILE\033[0m \033[1mSTATE\033[0m");
        expect("engine: not enabled", 80, true, "\033[1mengine:\033[0m \033[31mnot\033[0m enabled");
        expect("accepted, not enforced in this version:", 80, true,
               "accepted, not enforced in this version:");
        expect("no manager at /run: start it", 80, true, "no manager at /run: start it");
        expect("  limits  degraded  it is not active", 80, true,
               "  limits  \033[33mdegraded\033[0m  it is not active");
        expect("  apparmor  unsupported  the kernel has it down", 80, true,
               "  apparmor  \033[31munsupported\033[0m  the kernel has it down");
}

/* The longest that a line can become. */
static void bound(void **state) {
        char line[4096], *out;
        size_t n;

        (void)state;
        for (unsigned columns = 0; columns < 200; columns++)
                for (unsigned gap = 1; gap < 64; gap *= 2) {
                        memset(line, 'x', sizeof(line));
                        for (size_t i = 0; i + gap < sizeof(line); i += gap + 1)
                                memset(line + i, ' ', gap);
                        out = malloc(CLI_PAINT_LINE(sizeof(line)));
                        assert_non_null(out);
                        n = cli_paint_line(line, sizeof(line), columns, true, out);
                        assert_true(n <= CLI_PAINT_LINE(sizeof(line)));
                        free(out);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(as_it_is),        cmocka_unit_test(below_its_column),
                cmocka_unit_test(too_long_a_word), cmocka_unit_test(characters),
                cmocka_unit_test(colors),          cmocka_unit_test(bound),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
