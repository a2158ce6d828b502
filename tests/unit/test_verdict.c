/* Every cause, and what its caller is told: exit code, numbers, one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"
#include "manager/verdict.h"

static struct config_profile profile = { .image = (char *)"debian:x",
                                         .workdir = (char *)"/w",
                                         .memory_bytes = 128 << 20,
                                         .pids_limit = 64,
                                         .limits = { .timeout_ms = 180000 } };
static struct pool pool = { .profile = &profile };
static struct sandbox sandbox = { .uses = 1 };
static struct exec x;
static uint8_t request[256];
static char message[PROTO_LINE_MAX];

static int begin(void **state) {
        const char *args[] = { "no\nsuch" };
        struct exec_request r = { .n_args = 1, .args = args };
        ssize_t n = exec_request_encode(&r, request, sizeof(request));

        (void)state;
        memset(&x, 0, sizeof(x));
        pool.profile = &profile;
        sandbox.uses = 1;
        x.pool = &pool;
        x.sandbox = &sandbox;
        x.pool_hit = true;
        strcpy(x.id, "0123456789abcdef");
        memset(x.container, 'a', sizeof(x.container) - 1);
        strcpy(x.profile, "dev");
        x.bytes[0] = 100;
        x.lines[0] = 3;
        return exec_request_decode(request, (size_t)n, &x.request);
}

/* What comes out must always be what the wire takes. */
static struct result judge(struct exited e) {
        struct result r, back;
        uint8_t buf[2048];
        ssize_t n;

        verdict(&x, &e, &r, message, sizeof(message));
        n = result_encode(&r, buf, sizeof(buf));
        assert_true(n > 0);
        assert_int_equal(result_decode(buf, (size_t)n, &back), 0);
        assert_null(strpbrk(message, "\n\r\x1b"));
        return r;
}

static void exit_codes(void **state) {
        static const struct {
                struct exited e;
                uint8_t code;
                const char *says;
        } cases[] = {
                { { .cause = CAUSE_EXITED, .code = 0 }, 0, "" },
                { { .cause = CAUSE_EXITED, .code = 125 }, 125, "" },
                { { .cause = CAUSE_EXITED, .code = 255 }, 255, "" },
                { { .cause = CAUSE_SIGNALED, .code = 9, .signaled = true }, 137, "" },
                { { .cause = CAUSE_SIGNALED, .code = 64, .signaled = true }, 192, "" },
                { { .cause = CAUSE_TIMEOUT, .code = 15, .signaled = true },
                  124,
                  "timed out after 180000 ms" },
                { { .cause = CAUSE_TIMEOUT, .code = 0 }, 124, "timed out" },
                { { .cause = CAUSE_OOM, .code = 9, .signaled = true, .sandbox_peak_bytes = 2048 },
                  137,
                  "128 MiB" },
                { { .cause = CAUSE_OOM, .code = 1 }, 1, "peak" },
                { { .cause = CAUSE_PIDS_LIMIT, .code = 2 }, 2, "limit of 64 processes" },
                { { .cause = CAUSE_PIDS_LIMIT, .code = START_PLUMBING, .error = EAGAIN },
                  125,
                  "64 processes" },
                { { .cause = CAUSE_CANCELLED, .code = 9, .signaled = true }, 137, "caller has gone" },
                { { .cause = CAUSE_CANCELLED }, 125, "caller has gone" },
                { { .cause = CAUSE_SANDBOX_LOST }, 125, "nothing is known" },
                { { .cause = CAUSE_NOT_FOUND, .error = ENOENT },
                  127,
                  "\"no?such\": no such program in image debian:x" },
                { { .cause = CAUSE_NOT_EXECUTABLE, .error = EACCES },
                  126,
                  "\"no?such\": Permission denied" },
                { { .cause = CAUSE_NOT_EXECUTABLE, .code = START_WORKDIR, .error = ENOENT },
                  126,
                  "directory \"/w\"" },
                { { .cause = CAUSE_NOT_EXECUTABLE, .code = START_IDENTITY, .error = EPERM },
                  126,
                  "could not start" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct result r = judge(cases[i].e);

                assert_int_equal(r.exit_code, cases[i].code);
                assert_int_equal(r.cause, cases[i].e.cause);
                assert_int_equal(r.signaled, cases[i].e.signaled);
                if (!cases[i].says[0])
                        assert_string_equal(message, "");
                else
                        assert_non_null(strstr(message, cases[i].says));
                if (r.error)
                        assert_int_equal(r.code, 0); /* the stage is no exit code */
        }
}

/* The limits of a session that was opened with less are its own. */
static void narrowed(void **state) {
        struct session s = { .shape = { .n_users = 1, .memory_bytes = 64 << 20, .pids_limit = 64 } };

        (void)state;
        x.session = &s;
        judge((struct exited){ .cause = CAUSE_OOM });
        assert_non_null(strstr(message, "limit of 64 MiB"));
        assert_non_null(strstr(message,
                               "see what its session was opened with, and memory_limit of profile dev"));
        judge((struct exited){ .cause = CAUSE_PIDS_LIMIT });
        assert_non_null(
                strstr(message, "limit of 64 processes was reached: see pids_limit of profile dev"));
}

static void numbers(void **state) {
        struct result r = judge((struct exited){ .cause = CAUSE_EXITED,
                                                 .truncated = true,
                                                 .user_us = 5,
                                                 .maxrss_bytes = 6,
                                                 .dropped_bytes = { 11, 12 },
                                                 .dropped_lines = { 1, 2 },
                                                 .background_left = 4 });

        (void)state;
        assert_int_equal(r.bytes[0], 111);
        assert_int_equal(r.bytes[1], 12);
        assert_int_equal(r.lines[0], 4);
        assert_int_equal(r.lines[1], 2);
        assert_int_equal(r.background_left, 4);
        assert_true(r.truncated && r.pool_hit && !r.reused);
        assert_non_null(strstr(message, "output beyond 100 bytes was dropped"));
        sandbox.uses = 2;
        r = judge((struct exited){ .cause = CAUSE_EXITED });
        assert_true(r.reused);
        assert_string_equal(r.session, "");
        assert_string_equal(r.profile, "dev");
}

/* A reload has dropped the profile meanwhile. */
static void profile_gone(void **state) {
        (void)state;
        pool.profile = NULL;
        for (uint8_t cause = CAUSE_EXITED; cause <= CAUSE_NOT_EXECUTABLE; cause++)
                for (uint8_t code = 0; code < 4; code++)
                        judge((struct exited){ .cause = cause, .code = code, .error = ENOENT });
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(exit_codes, begin),
                cmocka_unit_test_setup(numbers, begin),
                cmocka_unit_test_setup(narrowed, begin),
                cmocka_unit_test_setup(profile_gone, begin),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
