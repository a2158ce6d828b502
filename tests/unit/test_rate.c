/* rate.h: how many may come at once and a second, one report a burst, what is kept of a uid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "manager/rate.h"

#define SECOND UINT64_C(1000000)
/* Any monotonic time will do. */
#define T0 (1000 * SECOND)

static struct {
        unsigned n;
        uid_t uid;
        uint64_t requests, ms;
} seen;

static void report(void *userdata, uid_t uid, uint64_t requests, uint64_t duration_ms) {
        assert_ptr_equal(userdata, &seen);
        seen.n++;
        seen.uid = uid;
        seen.requests = requests;
        seen.ms = duration_ms;
}

static int setup(void **state) {
        seen.n = 0;
        *state = rate_new(report, &seen);
        return 0;
}

static int teardown(void **state) {
        rate_free(*state);
        return 0;
}

static unsigned take(struct rate *r, uid_t uid, uint32_t rate, uint64_t at, unsigned n) {
        unsigned taken = 0;

        for (unsigned i = 0; i < n; i++)
                taken += rate_take(r, uid, rate, at);
        return taken;
}

static void test_a_second_at_once(void **state) {
        struct rate *r = *state;

        assert_int_equal(take(r, 1000, 7, T0, 20), 7);
        /* From then on one each seventh of a second, for as long as it lasts. */
        for (unsigned i = 1; i <= 70; i++)
                assert_int_equal(take(r, 1000, 7, T0 + i * SECOND / 7 + 1, 3), 1);
        /* After a second of rest all of them again. */
        assert_int_equal(take(r, 1000, 7, T0 + 12 * SECOND, 20), 7);
        assert_int_equal(seen.n, 0);
}

static void test_smallest_and_largest(void **state) {
        struct rate *r = *state;

        assert_int_equal(take(r, 1, 1, T0, 5), 1);
        assert_int_equal(take(r, 1, 1, T0 + SECOND - 1, 5), 0);
        assert_int_equal(take(r, 1, 1, T0 + SECOND, 5), 1);
        assert_int_equal(take(r, 2, 1000000, T0, 1000001), 1000000);
        assert_int_equal(take(r, 3, 0, T0, 2000000), 2000000);
        assert_int_equal(take(r, 4, 1, 0, 2), 1);
}

static void test_each_uid_its_own(void **state) {
        struct rate *r = *state;

        for (uid_t u = 0; u < 300; u++)
                assert_int_equal(take(r, u, 3, T0, 5), 3);
        for (uid_t u = 0; u < 300; u++)
                assert_int_equal(take(r, u, 3, T0 + SECOND / 2, 5), 1);
        rate_check(r, T0 + 10 * SECOND);
        assert_int_equal(seen.n, 300);
}

/* Two profiles, 10 and 2 a second: what one has used up, the other has not. */
static void test_one_account_for_all_rates(void **state) {
        struct rate *r = *state;

        assert_int_equal(take(r, 1000, 10, T0, 5), 5);
        assert_int_equal(take(r, 1000, 2, T0, 5), 1);
        assert_int_equal(take(r, 1000, 10, T0, 5), 0);
        /* What is refused costs nothing. */
        assert_int_equal(take(r, 1000, 10, T0 + SECOND / 2, 9), 5);
        assert_int_equal(take(r, 1000, 0, T0, 5), 5);
}

static void test_one_report_a_burst(void **state) {
        struct rate *r = *state;

        take(r, 1000, 2, T0, 5);
        take(r, 1000, 2, T0 + SECOND / 4, 4);
        rate_check(r, T0 + SECOND);
        assert_int_equal(seen.n, 0);
        rate_check(r, T0 + SECOND / 4 + 1000 * RATE_QUIET_MS);
        assert_int_equal(seen.n, 1);
        assert_int_equal(seen.uid, 1000);
        assert_int_equal(seen.requests, 7);
        assert_int_equal(seen.ms, 250);
        rate_check(r, T0 + 100 * SECOND);
        assert_int_equal(seen.n, 1);
}

/* One that does not end is reported every minute, and each time as what came since. */
static void test_endless_burst(void **state) {
        struct rate *r = *state;
        uint64_t suppressed = 0, reported = 0;
        unsigned was = 0;

        for (unsigned s = 0; s < 150; s++) {
                suppressed += 10 - take(r, 1000, 4, T0 + s * SECOND, 10);
                rate_check(r, T0 + s * SECOND);
                if (seen.n != was)
                        reported += seen.requests;
                was = seen.n;
        }
        assert_int_equal(seen.n, 2);
        assert_int_equal(seen.ms, RATE_REPORT_MS);
        rate_check(r, T0 + 200 * SECOND);
        assert_int_equal(seen.n, 3);
        assert_int_equal(reported + seen.requests, suppressed);
}

static void test_end_reports_what_is_open(void **state) {
        struct rate *r = rate_new(report, &seen);

        (void)state;
        take(r, 1000, 1, T0, 4);
        take(r, 1001, 1, T0, 1);
        rate_free(r);
        assert_int_equal(seen.n, 1);
        assert_int_equal(seen.requests, 3);
        assert_int_equal(seen.ms, 0);
        rate_free(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_second_at_once),         TEST(test_smallest_and_largest),
                TEST(test_each_uid_its_own),         TEST(test_one_account_for_all_rates),
                TEST(test_one_report_a_burst),       TEST(test_endless_burst),
                TEST(test_end_reports_what_is_open),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
