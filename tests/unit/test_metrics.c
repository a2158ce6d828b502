/* metrics_text(): OpenMetrics, line by line. tests/it/58-observe.sh reads a live manager's with a parser of the format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "countrig.h"

static const char *text(void) {
        size_t len = 0;
        char *s = metrics_text(&m, &len);

        return checked(s, len);
}

static void begins(const char *s, const char *prefix) {
        if (strncmp(s, prefix, strlen(prefix)) != 0)
                fail_msg("no \"%s\" here: %.80s", prefix, s);
}

/* Each family is a TYPE line, perhaps a UNIT line, a HELP line and samples of that name, all in one place. */
static void families(void **state) {
        char name[128] = "", seen[4096] = "\n", line[256];
        const char *s = text();

        (void)state;
        for (size_t n; *s; s += n + 1) {
                n = strcspn(s, "\n");
                assert_true(n > 0 && n < sizeof(line) && s[n] == '\n');
                snprintf(line, sizeof(line), "%.*s", (int)n, s);
                if (strcmp(line, "# EOF") == 0) {
                        assert_string_equal(s + n, "\n");
                        return;
                }
                begins(line + (line[0] == '#' ? 7 : 0), "hermes_sandbox_");
                if (strncmp(line, "# TYPE ", 7) == 0) {
                        snprintf(name, sizeof(name), "\n%.*s\n", (int)strcspn(line + 7, " "), line + 7);
                        has_not(seen, name);
                        strcat(seen, name + 1);
                        snprintf(name, sizeof(name), "%.*s", (int)strcspn(line + 7, " "), line + 7);
                } else
                        begins(line + (line[0] == '#' ? 7 : 0), name);
        }
        fail_msg("no # EOF");
}

static void numbers(void **state) {
        struct exec waited = { .m = &m, .pool = &dev, .begun_us = 5000000, .waiter.queued_ms = 5001 };
        struct sandbox sb = { .state = SANDBOX_BUSY };

        (void)state;
        ran(&dev, true, 50, CAUSE_EXITED, 900);
        ran(&dev, true, 51, CAUSE_EXITED, 300000001);
        ran(&web, false, 150000, CAUSE_OOM, 400000);
        stats_started(&waited, 5041000);
        TAILQ_INSERT_TAIL(&web.sandboxes, &sb, link);
        web.n_queue = 3;
        stats_created(&web, false);
        stats_scrubbed(&dev, SCRUB_SYSV_IPC);
        refused("queue_full");
        m.n_rejected += m.n_suppressed = 2;
        sessions_came_and_went();

#define H "\nhermes_sandbox_"
        has(text(), H "execs_total{profile=\"dev\",cause=\"exited\"} 2\n");
        has(text(), H "execs_total{profile=\"web-1.x\",cause=\"oom\"} 1\n");
        has_not(text(), "cause=\"rejected\"");
        has_not(text(), "unknown");
        has(text(), H "exec_starts_total{profile=\"dev\",sandbox=\"warm\"} 2\n");
        has(text(), H "exec_starts_total{profile=\"dev\",sandbox=\"cold\"} 1\n");
        has(text(), "\n# TYPE hermes_sandbox_exec_start_latency_seconds histogram\n"
                    "# UNIT hermes_sandbox_exec_start_latency_seconds seconds\n# HELP ");
        has(text(), H "exec_start_latency_seconds_bucket{profile=\"dev\",le=\"5e-05\"} 1\n");
        has(text(), H "exec_start_latency_seconds_bucket{profile=\"dev\",le=\"0.0001\"} 2\n");
        has(text(), H "exec_start_latency_seconds_bucket{profile=\"dev\",le=\"+Inf\"} 3\n");
        has(text(), H "exec_start_latency_seconds_sum{profile=\"dev\"} 0.041101\n");
        has(text(), H "exec_duration_seconds_bucket{profile=\"dev\",le=\"300.0\"} 1\n");
        has(text(), H "exec_duration_seconds_count{profile=\"dev\"} 2\n");
        has(text(), H "exec_duration_seconds_sum{profile=\"dev\"} 300.000901\n");
        has(text(), H "output_bytes_total{profile=\"dev\",stream=\"stdout\"} 200\n");
        has(text(), H "queue_wait_seconds_count{profile=\"dev\"} 1\n");
        has(text(), H "queue_wait_seconds_sum{profile=\"dev\"} 0.040000\n");
        has(text(), H "queue_length{profile=\"web-1.x\"} 3\n");
        has(text(), H "rejections_total{reason=\"queue_full\"} 1\n");
        has(text(), H "rejections_total{reason=\"exec_rate\"} 2\n");
        has(text(), H "sandboxes{profile=\"web-1.x\",state=\"busy\"} 1\n");
        has(text(), H "sandbox_creations_total{profile=\"web-1.x\",result=\"failed\"} 1\n");
        has(text(), H "scrubs_total{profile=\"dev\",check=\"sysv_ipc\"} 1\n");
        has(text(), H "sessions_opened_total 2\n");
        has(text(), H "sessions_closed_total{reason=\"idle\"} 1\n");
        has(text(), H "audit_failures_total 0\n");
        has(text(), H "uptime_seconds 61.");
        has(text(), H "build_info{version=\"" VERSION "\"} 1\n");
        TAILQ_INIT(&web.sandboxes);
        families(NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(families, begin, end),
                cmocka_unit_test_setup_teardown(numbers, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
