/* review_time.h: what people write, and what is no time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "cli/audit/review_time.h"

/* 2026-11-30T00:16:46.026Z, which is 01:16:46 on a Monday in Berlin. */
#define NOW INT64_C(1795997806026)
#define HOUR INT64_C(3600000)
#define MIDNIGHT (INT64_C(1795993200000)) /* 2026-11-30 in Berlin */

static int setup(void **state) {
        (void)state;
        setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1); /* needs no tzdata */
        tzset();
        return 0;
}

static void test_accepted(void **state) {
        static const struct {
                const char *s;
                int64_t ms;
        } cases[] = {
                { "2026-11-30", MIDNIGHT },
                { "2026-11-29 18:00", MIDNIGHT - 6 * HOUR },
                { "2026-11-29 18:00:05", MIDNIGHT - 6 * HOUR + 5000 },
                { "2026-11-29T18:00", INT64_C(-1) }, /* a T without a zone is no RFC 3339, but local */
                { "2026-07-01", INT64_C(1782856800000) }, /* in summer time */
                { "2024-02-29", INT64_C(1709161200000) },
                { "2026-11-29T17:00:00Z", MIDNIGHT - 6 * HOUR },
                { "2026-11-29T18:00:00.25+01:00", MIDNIGHT - 6 * HOUR + 250 },
                { "2026-11-29T12:30:00-0430", MIDNIGHT - 6 * HOUR },
                { "2026-11-29 17:00:00Z", MIDNIGHT - 6 * HOUR },
                { "00:30", MIDNIGHT + HOUR / 2 },
                { "00:30:01", MIDNIGHT + HOUR / 2 + 1000 },
                { "now", NOW },
                { "recent", NOW - HOUR / 6 },
                { "today", MIDNIGHT },
                { "yesterday", MIDNIGHT - 24 * HOUR },
                { "week-ago", MIDNIGHT - 7 * 24 * HOUR },
                { "this-month", MIDNIGHT - 29 * 24 * HOUR },
                { "this-year", INT64_C(1767222000000) },
                { "-2h", NOW - 2 * HOUR },
                { "2h ago", NOW - 2 * HOUR },
                { "2 hours ago", NOW - 2 * HOUR },
                { "1h30m ago", NOW - 3 * HOUR / 2 },
                { "1h 30 min ago", NOW - 3 * HOUR / 2 },
                { "-90min", NOW - 3 * HOUR / 2 },
                { "-1w", NOW - 7 * 24 * HOUR },
                { "3 days ago", NOW - 72 * HOUR },
                { "@1795997806", NOW - 26 },
                { "@1795997806.026", NOW },
                { "@0", 0 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                int64_t got = -2;

                if (review_time_parse(cases[i].s, NOW, &got) < 0)
                        fail_msg("refused: %s", cases[i].s);
                if (cases[i].ms == -1)
                        assert_int_equal(got, MIDNIGHT - 6 * HOUR);
                else if (got != cases[i].ms)
                        fail_msg("%s: %lld, expected %lld", cases[i].s, (long long)got,
                                 (long long)cases[i].ms);
        }
}

static void test_refused(void **state) {
        static const char *const cases[] = {
                "",
                " ",
                "tomorrowish",
                "2026",
                "2026-13-01",
                "2026-02-29",
                "2026-11-31",
                "2026-11-00",
                "2026-1-1",
                "2026-11-29 ",
                "26-11-29",
                "2026-11-29 24:00",
                "24:00",
                "18",
                "18:60",
                "1:30",
                "-",
                "ago",
                " ago",
                "-2",
                "2 ago",
                "-2y",
                "2h",
                "-h",
                "-2h ago x",
                "@",
                "@-1",
                "@1.",
                "@1x",
                "@99999999999999",
                "--1h",
                "-2h-",
                "2026-11-29T18:00+1",
                "2026-11-29T18:00:00+25:00",
                "2026-11-29T18:00:00Zx",
                "18:00:00.",
                "-99999999999h",
                "2026-11-29\n",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                int64_t got = -2;

                if (review_time_parse(cases[i], NOW, &got) != -EINVAL || got != -2)
                        fail_msg("accepted: '%s' as %lld", cases[i], (long long)got);
        }
}

static void test_written(void **state) {
        char buf[REVIEW_TIME_TEXT];

        (void)state;
        assert_string_equal(review_time_local(NOW, buf), "2026-11-30 01:16:46");
        assert_string_equal(review_time_utc(NOW, buf), "2026-11-30T00:16:46.026Z");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_accepted, setup),
                cmocka_unit_test_setup(test_refused, setup),
                cmocka_unit_test_setup(test_written, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
