/* What the agent is told: the environment's order, the numbers, and what fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/wire.h"
#include "manager/order.h"

#define EXEC_ID "0123456789abcdef"

static struct exec_request decoded(struct exec_request r, uint8_t *buf, size_t cap) {
        ssize_t n = exec_request_encode(&r, buf, cap);
        struct exec_request ret;

        assert_true(n > 0);
        assert_int_equal(exec_request_decode(buf, (size_t)n, &ret), 0);
        return ret;
}

static void command_bytes(void **state) {
        const char *one[] = { "true" }, *three[] = { "printf", "", "abc" }, *env[] = { "A=0123456789" };
        uint8_t buf[512];
        struct exec_request r = decoded(
                (struct exec_request){ .n_args = 1, .args = one, .n_env = 1, .env = env }, buf,
                sizeof(buf));

        (void)state;
        assert_int_equal(order_command_bytes(&r), 4);
        assert_int_equal(order_args_len(&r), 4 + 5);
        r = decoded((struct exec_request){ .n_args = 3, .args = three }, buf, sizeof(buf));
        assert_int_equal(order_command_bytes(&r), strlen("printf  abc"));
        assert_int_equal(order_args_len(&r), r.strings_len);
}

static struct exec_order order(const struct config_profile *p, const struct exec_request *r, bool scrub,
                               uint8_t **ret_buf) {
        struct exec_order o;
        const struct order_place at = { .user = { p->uid, p->gid }, .workdir = p->workdir };
        size_t len;

        *ret_buf = order_encode(p, &at, r, order_args_len(r), true, scrub, EXEC_ID, &len);
        assert_int_equal(exec_order_decode(*ret_buf, len, &o), 0);
        return o;
}

static void environment_and_numbers(void **state) {
        char *profile_env[] = { (char *)"LANG=de", (char *)"P=1", NULL }, home[] = "/home/x",
             workdir[] = "/work";
        const struct config_profile p = {
                .home = home,
                .workdir = workdir,
                .env = profile_env,
                .limits = { .timeout_ms = 180000, .grace_ms = UINT64_C(1) << 40, .output_bytes = 77 }
        };
        const char *args[] = { "echo", "a" }, *env[] = { "P=2", "Q=3" };
        static const char *const want[] = { "echo",         "a",           "LANG=C.UTF-8",
                                            "HOME=/home/x", "TMPDIR=/tmp", "LANG=de",
                                            "P=1",          "P=2",         "Q=3" };
        uint8_t buf[512], *payload;
        struct exec_request r = decoded(
                (struct exec_request){
                        .n_args = 2, .args = args, .n_env = 2, .env = env, .use_stdin = true },
                buf, sizeof(buf));
        struct exec_order o = order(&p, &r, false, &payload);
        struct wire_in in;

        (void)state;
        assert_true(o.use_stdin && !o.shell && o.one_shot && !o.scrub);
        assert_int_equal(o.n_args, 2);
        assert_int_equal(o.n_env, 7);
        assert_int_equal(o.timeout_ms, 180000);
        assert_int_equal(o.grace_ms, UINT32_MAX);
        assert_int_equal(o.output_bytes, 77);
        assert_string_equal(o.workdir, "/work");
        wire_in_init(&in, o.strings, o.strings_len);
        for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
                assert_string_equal(wire_get_str(&in, 99), want[i]);
        assert_true(wire_in_done(&in));
        free(payload);
        r = decoded(
                (struct exec_request){
                        .n_args = 1, .args = args, .shell = true, .timeout_ms = 5, .workdir = "/tmp" },
                buf, sizeof(buf));
        o = order(&p, &r, true, &payload);
        assert_true(o.shell && !o.use_stdin && o.one_shot && o.scrub);
        assert_int_equal(o.timeout_ms, 5);
        assert_string_equal(o.workdir, "/tmp");
        free(payload);
}

/* What a session adds stands between the profile's and the caller's, and HOME is the profile's for whomever. */
static void in_a_session(void **state) {
        char *profile_env[] = { (char *)"P=1", NULL }, home[] = "/home/x", workdir[] = "/work";
        const struct config_profile p = { .home = home, .workdir = workdir, .env = profile_env };
        const char *args[] = { "id" }, *env[] = { "Q=3" };
        static const uint8_t added[] = { 4, 0, 0, 0, 'P', '=', '2', 0 };
        const struct order_place at = {
                .user = { 7, 8 }, .workdir = "/data", .n_env = 1, .env = added, .env_len = sizeof(added)
        };
        static const char *const want[] = { "id",  "LANG=C.UTF-8", "HOME=/home/x", "TMPDIR=/tmp",
                                            "P=1", "P=2",          "Q=3" };
        uint8_t buf[512], *payload;
        struct exec_request r = decoded(
                (struct exec_request){ .n_args = 1, .args = args, .n_env = 1, .env = env }, buf,
                sizeof(buf));
        struct exec_order o;
        struct wire_in in;
        size_t len;

        (void)state;
        payload = order_encode(&p, &at, &r, order_args_len(&r), false, false, EXEC_ID, &len);
        assert_int_equal(exec_order_decode(payload, len, &o), 0);
        assert_true(o.uid == 7 && o.gid == 8 && !o.one_shot);
        assert_string_equal(o.workdir, "/data");
        assert_int_equal(o.n_env, 6);
        wire_in_init(&in, o.strings, o.strings_len);
        for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
                assert_string_equal(wire_get_str(&in, 99), want[i]);
        assert_true(wire_in_done(&in));
        free(payload);
        r.n_env = PROTO_ENV_MAX - 4;
        assert_false(order_fits(&p, 1, sizeof(added), &r));
        assert_true(order_fits(&p, 0, 0, &r));
        r.n_env = 0;
        assert_false(order_fits(&p, 1, PROTO_EXEC_MAX, &r));
}

/* The caller's variables alone are within their bound; with the others they would not be. */
static void what_fits(void **state) {
        char *none[] = { NULL }, home[] = "/", workdir[] = "/";
        const struct config_profile p = { .home = home, .workdir = workdir, .env = none };
        const char *args[] = { ":" };
        const char **env = calloc(PROTO_ENV_MAX, sizeof(*env));
        size_t cap = PROTO_EXEC_MAX;
        uint8_t *buf = malloc(cap), *payload;
        char *large = malloc(cap);
        struct exec_request r;

        (void)state;
        assert_true(env && buf && large);
        for (int i = 0; i < PROTO_ENV_MAX; i++)
                env[i] = "A=b";
        r = decoded(
                (struct exec_request){
                        .n_args = 1, .args = args, .n_env = PROTO_ENV_MAX - 3, .env = env },
                buf, cap);
        assert_true(order_fits(&p, 0, 0, &r));
        order(&p, &r, true, &payload);
        free(payload);
        r = decoded(
                (struct exec_request){
                        .n_args = 1, .args = args, .n_env = PROTO_ENV_MAX - 2, .env = env },
                buf, cap);
        assert_false(order_fits(&p, 0, 0, &r));
        for (size_t spare = 64; spare < 20000; spare += 499) {
                memset(large, 'x', cap - spare);
                large[1] = '=';
                large[cap - spare] = '\0';
                env[0] = large;
                r = decoded((struct exec_request){ .n_args = 1, .args = args, .n_env = 1, .env = env },
                            buf, cap);
                if (!order_fits(&p, 0, 0, &r))
                        continue;
                order(&p, &r, true, &payload);
                free(payload);
        }
        assert_true(order_fits(&p, 0, 0, &r)); /* the last */
        free(env);
        free(buf);
        free(large);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(command_bytes),
                cmocka_unit_test(environment_and_numbers),
                cmocka_unit_test(in_a_session),
                cmocka_unit_test(what_fits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
