/* stats.h and tally.h: what is counted, and how it is told to people and programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "countrig.h"

static const char *text(void) {
        size_t len = 0;
        char *s = stats_text(&m, false, &len);

        return checked(s, len);
}

static const char *json(void) {
        size_t len = 0;
        char *s = stats_text(&m, true, &len);

        return checked(s, len);
}

static void buckets(void **state) {
        struct stats_latency l = { 0 };

        (void)state;
        for (size_t i = 0; i < STATS_BOUNDS; i++) {
                assert_true(i == 0 || stats_bounds[i].us > stats_bounds[i - 1].us);
                stats_latency_add(&l, stats_bounds[i].us);
                assert_int_equal(l.n[i], 1);
                stats_latency_add(&l, stats_bounds[i].us + 1);
                assert_int_equal(l.n[i + 1], 1);
                l.n[i + 1] = 0;
        }
        assert_int_equal(stats_count(&l), STATS_BOUNDS);
        l = (struct stats_latency){ 0 };
        stats_latency_add(&l, 0);
        stats_latency_add(&l, UINT64_MAX / 2);
        assert_int_equal(l.n[0], 1);
        assert_int_equal(l.n[STATS_BOUNDS], 1);
        assert_int_equal(l.sum_us, UINT64_MAX / 2);
}

static void quantiles(void **state) {
        struct stats_latency l = { 0 };

        (void)state;
        l.n[3] = 1;
        assert_int_equal(stats_quantile(&l, 500), 3);
        assert_int_equal(stats_quantile(&l, 990), 3);
        l.n[3] = 90;
        l.n[7] = 9;
        l.n[STATS_BOUNDS] = 1;
        assert_int_equal(stats_quantile(&l, 500), 3);
        assert_int_equal(stats_quantile(&l, 900), 3);
        assert_int_equal(stats_quantile(&l, 901), 7);
        assert_int_equal(stats_quantile(&l, 990), 7);
        assert_int_equal(stats_quantile(&l, 1000), STATS_BOUNDS);
}

static void tallies(void **state) {
        struct tally t = { 0 };
        char word[64];

        (void)state;
        assert_int_equal(tally_words(&t), 0);
        tally_add(&t, "one", 1);
        tally_add(&t, "two", 5);
        tally_add(&t, "one", 1);
        assert_int_equal(tally_words(&t), 2);
        assert_int_equal(tally_get(&t, "one"), 2);
        assert_int_equal(tally_get(&t, "three"), 0);
        assert_int_equal(tally_get(&t, ""), 0);
        /* What is long is cut, and still found. */
        memset(word, 'w', sizeof(word) - 1);
        word[sizeof(word) - 1] = '\0';
        tally_add(&t, word, 1);
        tally_add(&t, word, 1);
        assert_int_equal(tally_get(&t, word), 2);
        for (int i = 0; i < 40; i++) {
                snprintf(word, sizeof(word), "word%d", i);
                tally_add(&t, word, 1);
        }
        assert_int_equal(tally_words(&t), TALLY_MAX);
        assert_int_equal(tally_get(&t, "other"), 40 - (TALLY_MAX - 1 - 3));
        assert_int_equal(tally_sum(&t), 2 + 5 + 2 + 40);
}

static void nothing_yet(void **state) {
        (void)state;
        assert_true(widest(text()) < 80);
        has(text(), "since the start, 61 s ago\ncommands: 0 ended, 0 running, 0 waiting\n");
        has_not(text(), "p50");
        has(json(), "\"ended\":{\"exited\":0,\"signaled\":0,");
        has_not(json(), "null,\"count\":1");
}

static void counts(void **state) {
        struct exec waited = { .m = &m, .pool = &dev, .begun_us = 5000000, .waiter.queued_ms = 5001 };
        struct exec running = { .state = EXEC_RUNNING };
        struct session session = { .state = SESSION_OPEN };

        (void)state;
        for (int i = 0; i < 98; i++)
                ran(&dev, true, 90, CAUSE_EXITED, 900);
        ran(&dev, false, 150000, CAUSE_OOM, 400000);
        ran(&web, true, 60, CAUSE_TIMEOUT, 1000000000);
        stats_started(&waited, 5041000);
        LIST_INSERT_HEAD(&m.execs, &running, link);
        web.n_queue = 2;
        stats_created(&dev, true);
        stats_created(&web, true);
        stats_created(&web, false);
        for (int i = 0; i < 3; i++)
                stats_scrubbed(&dev, SCRUB_CLEAN);
        stats_scrubbed(&dev, SCRUB_MOUNTS);
        stats_scrubbed(&dev, SCRUB_CHECKS);
        refused("queue_full");
        refused("queue_full");
        refused("not_allowed");
        m.n_suppressed = 4;
        m.n_rejected += 4 + 1;
        sessions_came_and_went();
        TAILQ_INSERT_TAIL(&m.sessions, &session, link);

        has(text(), "commands: 100 ended, 1 running, 2 waiting\n    exited 98, timeout 1, oom 1\n"
                    "  started in a warm sandbox 99, in a cold one 2\n"
                    "  of these had waited in the queue: 1, 40 ms on average\n"
                    "  output: stdout 10000 bytes, stderr 700 bytes\n");
        has(text(), "from the request to the start:     p50 <= 100 us p90 <= 100 us p99 <= 50 ms");
        has(text(), "from the request to the result:    p50 <= 1 ms   p90 <= 1 ms   p99 <= 500 ms");
        has(text(), "refused: 8\n    queue_full 2, not_allowed 1, exec_rate 4, other 1\n");
        has(text(), "sandboxes: 2 created, 1 failed to start; now\n    starting 0, warm 0, busy 0, ");
        has(text(), "scrubs: 4, of these not proved clean 1\n    mounts 1\n");
        has(text(), "sessions: 2 opened, 1 closed, 1 open now\n    idle 1\n");
        has(text(), "profile web-1.x: 1 commands, 1 warm, 0 cold\n");
        assert_true(widest(text()) < 80);

        has(json(), "\"running\":1,\"waiting\":2,");
        has(json(), "\"timeout\":1,\"oom\":1,");
        has(json(), "\"warm\":99,\"cold\":2,\"waited\":1,\"waited_us\":40000,"
                    "\"stdout_bytes\":10000,\"stderr_bytes\":700,\"created\":2,\"not_created\":1,"
                    "\"scrubs\":{\"clean\":3,\"processes\":0,");
        has(json(), "\"refused\":{\"queue_full\":2,\"not_allowed\":1,\"exec_rate\":4,\"other\":1}");
        has(json(), "\"sessions\":{\"open\":1,\"opened\":2,\"closed\":{\"idle\":1}}");
        has(json(), "{\"at_most_us\":null,\"count\":1}");
        has(json(), "\"suppressed\":4}");
        LIST_REMOVE(&running, link);
}

/* Folding, with the longest numbers and all words. */
static void wide(void **state) {
        (void)state;
        for (uint8_t i = 0; i < STATS_CAUSES; i++)
                dev.stats.ended[i] = UINT64_MAX / STATS_CAUSES;
        for (uint8_t i = 0; i < SCRUB_CHECKS; i++)
                dev.stats.scrubs[i] = UINT64_MAX / SCRUB_CHECKS;
        dev.stats.start.n[STATS_BOUNDS] = dev.stats.wall.n[0] = 1;
        dev.stats.bytes[0] = dev.stats.bytes[1] = UINT64_MAX;
        dev.stats.warm = dev.stats.cold = 99999999999;
        dev.stats.waited = dev.stats.waited_us = 1000;
        for (int i = 0; i < 40; i++) {
                char word[32];

                snprintf(word, sizeof(word), "a_reason_of_23_bytes_%02d", i);
                refused(word);
        }
        if (widest(text()) >= 80)
                fail_msg("%s", text());
        has(text(), "p50 >  300 s");
        has(text(), "p50 <= 50 us");
}

static void states(void **state) {
        struct sandbox sb[3] = { { .state = SANDBOX_WARM },
                                 { .state = SANDBOX_BUSY },
                                 { .state = SANDBOX_STARTING } };
        unsigned n[STATS_STATES];

        (void)state;
        for (size_t i = 0; i < 3; i++)
                TAILQ_INSERT_TAIL(&dev.sandboxes, &sb[i], link);
        dev.n_creating = 2;
        stats_states(&dev, n);
        assert_int_equal(n[SANDBOX_WARM], 1);
        assert_int_equal(n[SANDBOX_BUSY], 1);
        assert_int_equal(n[SANDBOX_STARTING], 3);
        assert_int_equal(n[SANDBOX_SCRUBBING], 0);
        assert_null(stats_state_name(SANDBOX_GONE));
        assert_null(stats_state_name(STATS_STATES));
        has(text(), "    starting 3, warm 1, busy 1, scrubbing 0, leased 0");
        has(json(), "\"sandboxes\":{\"starting\":3,\"warm\":1,\"busy\":1,\"scrubbing\":0,\"leased\":0}");
        TAILQ_INIT(&dev.sandboxes);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(buckets),
                cmocka_unit_test(quantiles),
                cmocka_unit_test(tallies),
                cmocka_unit_test_setup_teardown(nothing_yet, begin, end),
                cmocka_unit_test_setup_teardown(counts, begin, end),
                cmocka_unit_test_setup_teardown(wide, begin, end),
                cmocka_unit_test_setup_teardown(states, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
