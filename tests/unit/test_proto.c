/* Payloads: each there and back, each cut short at every byte, each with a byte too many, and what must be
 * refused. */
#include "protocheck.h"

#include "common/frame.h"
#include "common/proto.h"
#include "common/wire.h"

#define EXEC_ID "0123456789abcdef"
#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void hello(void **state) {
        struct hello h = { 7, HELLO_AGENT, "key=value\n" }, g = { 0 };
        ssize_t n = hello_encode(&h, buf, sizeof(buf));

        (void)state;
        needs_room(hello_encode, &h, n);
        refuses_other_lengths(hello_decode, n, &g);
        assert_int_equal(hello_decode(buf, (size_t)n, &g), 0);
        assert_int_equal(g.version, 7);
        assert_int_equal(g.role, HELLO_AGENT);
        assert_string_equal(g.text, "key=value\n");
        buf[2] = 0;
        assert_int_equal(hello_decode(buf, (size_t)n, &g), -EPROTO);
        buf[2] = HELLO_GATEWAY;
        assert_int_equal(hello_decode(buf, (size_t)n, &g), 0);
        buf[2] = HELLO_GATEWAY + 1;
        assert_int_equal(hello_decode(buf, (size_t)n, &g), -EPROTO);
        memset(text, 'x', 4001);
        text[4001] = '\0';
        h.text = text;
        n = hello_encode(&h, buf, sizeof(buf));
        assert_int_equal(hello_decode(buf, (size_t)n, &g), -EPROTO);
        text[4000] = '\0';
        n = hello_encode(&h, buf, sizeof(buf));
        assert_int_equal(hello_decode(buf, (size_t)n, &g), 0);
}

static struct exec_request request(const char **args, const char **env) {
        struct exec_request r = { .use_stdin = true,
                                  .timeout_ms = 5000,
                                  .profile = "dev",
                                  .workdir = "/tmp",
                                  .session = "work",
                                  .args = args,
                                  .env = env };

        while (args[r.n_args])
                r.n_args++;
        while (env[r.n_env])
                r.n_env++;
        return r;
}

static void exec_request_both_ways(void **state) {
        const char *args[] = { "printf", "%s", "", NULL }, *env[] = { "A=", "B=x=y", NULL };
        struct exec_request r = request(args, env), g;
        ssize_t n = exec_request_encode(&r, buf, sizeof(buf));
        struct wire_in in;

        (void)state;
        assert_int_equal(n, exec_request_size(&r));
        needs_room(exec_request_encode, &r, n);
        refuses_other_lengths(exec_request_decode, n, &g);
        assert_int_equal(exec_request_decode(buf, (size_t)n, &g), 0);
        assert_true(g.use_stdin && !g.shell);
        assert_int_equal(g.timeout_ms, 5000);
        assert_string_equal(g.profile, "dev");
        assert_string_equal(g.workdir, "/tmp");
        assert_string_equal(g.session, "work");
        assert_int_equal(g.n_args, 3);
        assert_int_equal(g.n_env, 2);
        wire_in_init(&in, g.args_wire, g.strings_len);
        for (int i = 0; i < 3; i++)
                assert_string_equal(wire_get_str(&in, 99), args[i]);
        for (int i = 0; i < 2; i++)
                assert_string_equal(wire_get_str(&in, 99), env[i]);
        assert_true(wire_in_done(&in));
}

static int takes(const struct exec_request *r) {
        struct exec_request g;
        ssize_t n = exec_request_encode(r, buf, sizeof(buf));

        assert_true(n > 0);
        return exec_request_decode(buf, (size_t)n, &g);
}

static void exec_request_refused(void **state) {
        const char *args[] = { "a", "b", NULL }, *none[] = { NULL };
        static const char *const bad_env[] = { "", "A", "=x" };
        struct exec_request r = request(args, none), g;
        ssize_t n;

        (void)state;
        assert_int_equal(takes(&r), 0);
        r.uid = 5; /* of nobody */
        assert_int_equal(takes(&r), -EPROTO);
        r.user = true;
        r.gid = UINT32_MAX;
        assert_int_equal(takes(&r), 0);
        r.uid = UINT32_MAX;
        assert_int_equal(takes(&r), -EPROTO);
        r.user = false;
        r.uid = r.gid = 0;
        r.shell = true; /* of two arguments */
        assert_int_equal(takes(&r), -EPROTO);
        r.n_args = 1;
        assert_int_equal(takes(&r), 0);
        r.n_args = 0;
        assert_int_equal(takes(&r), -EPROTO);
        r = request(args, none);
        r.detach = true; /* reads no stdin */
        assert_int_equal(takes(&r), -EPROTO);
        r.use_stdin = false;
        assert_int_equal(takes(&r), 0);
        r.tty = true;
        assert_int_equal(takes(&r), -EPROTO);
        r.tty = false;
        r.session = ""; /* detached from what? */
        assert_int_equal(takes(&r), -EPROTO);
        r.detach = false;
        r.open = true;
        assert_int_equal(takes(&r), -EPROTO);
        r.open = false;
        r.rows = 24; /* of no terminal */
        assert_int_equal(takes(&r), -EPROTO);
        r.tty = true;
        assert_int_equal(takes(&r), 0);
        r.files = true;
        assert_int_equal(takes(&r), -EPROTO);
        r = request(args, none);
        r.workdir = "tmp";
        assert_int_equal(takes(&r), -EPROTO);
        r.workdir = "";
        assert_int_equal(takes(&r), 0);
        memset(text, 'x', PROTO_NAME_MAX + 1);
        text[PROTO_NAME_MAX + 1] = '\0';
        r.profile = text;
        assert_int_equal(takes(&r), -EPROTO);
        r.profile = text + 1;
        assert_int_equal(takes(&r), 0);
        memset(text, '/', PROTO_PATH_MAX + 1);
        text[PROTO_PATH_MAX + 1] = '\0';
        r.profile = "";
        r.workdir = text;
        assert_int_equal(takes(&r), -EPROTO);
        r.workdir = text + 1;
        assert_int_equal(takes(&r), 0);
        for (int i = 0; i < 3; i++) {
                const char *env[] = { "OK=1", bad_env[i], NULL };

                r = request(args, env);
                assert_int_equal(takes(&r), -EPROTO);
        }
        r = request(args, none);
        n = exec_request_encode(&r, buf, sizeof(buf));
        for (int i = 0; i < 2; i++) { /* neither 0 nor 1 */
                buf[i] = 2;
                assert_int_equal(exec_request_decode(buf, (size_t)n, &g), -EPROTO);
                buf[i] = 0;
        }
        assert_int_equal(exec_request_decode(buf, (size_t)n, &g), 0);
}

/* Counts at their bound and one over it, all strings there. */
static void counts(void **state) {
        size_t cap = 16 * (PROTO_ARGS_MAX + PROTO_ENV_MAX);
        const char **strings = calloc(PROTO_ARGS_MAX + 2, sizeof(*strings));
        uint8_t *p = malloc(cap);

        (void)state;
        assert_true(strings && p);
        for (int i = 0; i <= PROTO_ARGS_MAX; i++)
                strings[i] = "a=b";
        for (uint32_t more = 0; more < 4; more++) {
                struct exec_request r = { .n_args = PROTO_ARGS_MAX + (more & 1),
                                          .n_env = PROTO_ENV_MAX + (more >> 1),
                                          .args = strings,
                                          .env = strings },
                                    g;
                ssize_t n = exec_request_encode(&r, p, cap);

                assert_true(n > 0);
                assert_int_equal(exec_request_decode(p, (size_t)n, &g), more ? -EPROTO : 0);
        }
        free(strings);
        free(p);
}

static size_t order(const struct exec_order *o, const char *const *strings) {
        struct wire_out out;
        ssize_t n = exec_order_encode_head(o, buf, sizeof(buf));

        assert_true(n > 0);
        wire_out_init(&out, buf + n, sizeof(buf) - (size_t)n);
        for (; *strings; strings++)
                wire_put_str(&out, *strings);
        return (size_t)n + out.len;
}

static void exec_order(void **state) {
        const char *const strings[] = { "sleep", "1", "A=b", NULL };
        struct exec_order o = { .use_stdin = true,
                                .one_shot = true,
                                .scrub = true,
                                .uid = 1000,
                                .gid = 100,
                                .exec_id = "0123456789abcdef",
                                .timeout_ms = 1000,
                                .grace_ms = 200,
                                .output_bytes = 1 << 20,
                                .workdir = "/tmp",
                                .n_args = 2,
                                .n_env = 1 },
                          g;
        size_t n = order(&o, strings);

        (void)state;
        refuses_other_lengths(exec_order_decode, n, &g);
        assert_int_equal(exec_order_decode(buf, n, &g), 0);
        assert_true(g.use_stdin && !g.shell && g.one_shot && g.scrub);
        assert_true(g.uid == 1000 && g.gid == 100);
        assert_int_equal(g.timeout_ms, 1000);
        assert_int_equal(g.grace_ms, 200);
        assert_int_equal(g.output_bytes, 1 << 20);
        assert_string_equal(g.workdir, "/tmp");
        assert_string_equal(g.exec_id, "0123456789abcdef");
        assert_int_equal(g.n_args, 2);
        assert_int_equal(g.n_env, 1);
        for (int i = 0; i < 7; i++) {
                uint8_t was = buf[i];

                buf[i] = 0xff;
                assert_int_equal(exec_order_decode(buf, n, &g), -EPROTO);
                buf[i] = was;
        }
        /* A detached command has no stdin and outlives its caller. */
        o.detached = true;
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), -EPROTO);
        o.scrub = o.one_shot = o.use_stdin = false;
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), 0);
        o.detached = false;
        o.tty = true; /* without stdin */
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), -EPROTO);
        o.use_stdin = true;
        o.rows = 24;
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), 0);
        assert_true(g.tty && g.rows == 24);
        o.files = true;
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), -EPROTO);
        o.files = o.tty = false;
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), -EPROTO);
        o.rows = 0;
        o.one_shot = o.scrub = true;
        /* A scrub kills all that runs in the sandbox: not beside other commands. */
        o.one_shot = false;
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), -EPROTO);
        o.scrub = false;
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), 0);
        assert_true(!g.one_shot && !g.scrub);
        o.one_shot = true;
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), 0);
        assert_true(g.one_shot && !g.scrub);
        o.workdir = "";
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), -EPROTO);
        o.workdir = "/";
        o.shell = true;
        assert_int_equal(exec_order_decode(buf, order(&o, strings), &g), -EPROTO);
        needs_room(exec_order_encode_head, &o, exec_order_encode_head(&o, buf, sizeof(buf)));
}

static void window(void **state) {
        struct window w = { STREAM_STDERR, 65536 }, g;

        (void)state;
        window_encode(&w, buf);
        refuses_other_lengths(window_decode, WINDOW_SIZE, &g);
        assert_int_equal(window_decode(buf, WINDOW_SIZE, &g), 0);
        assert_int_equal(g.stream, STREAM_STDERR);
        assert_int_equal(g.bytes, 65536);
        w.stream = 3;
        window_encode(&w, buf);
        assert_int_equal(window_decode(buf, WINDOW_SIZE, &g), -EPROTO);
        w = (struct window){ STREAM_STDIN, 0 };
        window_encode(&w, buf);
        assert_int_equal(window_decode(buf, WINDOW_SIZE, &g), -EPROTO);
}

static void started(void **state) {
        static const char *const bad[] = { "", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdeg",
                                           "0123456789abcdef0" };
        struct started s = { EXEC_ID, CONTAINER, "default", true }, g;
        ssize_t n = started_encode(&s, buf, sizeof(buf));

        (void)state;
        assert_true(n <= 512); /* the frame's bound */
        needs_room(started_encode, &s, n);
        refuses_other_lengths(started_decode, n, &g);
        assert_int_equal(started_decode(buf, (size_t)n, &g), 0);
        assert_string_equal(g.exec_id, EXEC_ID);
        assert_string_equal(g.container_id, CONTAINER);
        assert_string_equal(g.profile, "default");
        assert_true(g.pool_hit);
        buf[n - 1] = 2;
        assert_int_equal(started_decode(buf, (size_t)n, &g), -EPROTO);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                s.exec_id = bad[i];
                n = started_encode(&s, buf, sizeof(buf));
                assert_int_equal(started_decode(buf, (size_t)n, &g), -EPROTO);
        }
        s = (struct started){ EXEC_ID, EXEC_ID, "", false };
        n = started_encode(&s, buf, sizeof(buf));
        assert_int_equal(started_decode(buf, (size_t)n, &g), -EPROTO);
}

static void exited(void **state) {
        struct exited e = { .cause = CAUSE_SIGNALED,
                            .code = 64,
                            .signaled = true,
                            .truncated = true,
                            .error = 0,
                            .wall_us = 1,
                            .user_us = 2,
                            .system_us = 3,
                            .maxrss_bytes = 4,
                            .sandbox_peak_bytes = 5,
                            .dropped_bytes = { 6, 7 },
                            .dropped_lines = { 8, 9 },
                            .background_left = 10 },
                      g = { 0 };
        ssize_t n = exited_encode(&e, buf, sizeof(buf));

        (void)state;
        assert_true(n <= 256);
        needs_room(exited_encode, &e, n);
        refuses_other_lengths(exited_decode, n, &g);
        assert_int_equal(exited_decode(buf, (size_t)n, &g), 0);
        assert_memory_equal(&g.wall_us, &e.wall_us,
                            offsetof(struct exited, background_left) - offsetof(struct exited, wall_us));
        assert_int_equal(g.background_left, 10);
        assert_true(g.signaled && g.truncated && g.code == 64 && g.cause == CAUSE_SIGNALED);
        for (unsigned cause = 0; cause < 256; cause++) {
                bool good = cause >= CAUSE_EXITED && cause <= CAUSE_NOT_EXECUTABLE &&
                            cause != CAUSE_SANDBOX_LOST && cause != CAUSE_REJECTED;

                buf[0] = (uint8_t)cause;
                assert_int_equal(exited_decode(buf, (size_t)n, &g), good ? 0 : -EPROTO);
        }
        buf[0] = CAUSE_SIGNALED;
        buf[1] = 65; /* no such signal */
        assert_int_equal(exited_decode(buf, (size_t)n, &g), -EPROTO);
        buf[1] = 0;
        assert_int_equal(exited_decode(buf, (size_t)n, &g), -EPROTO);
        e.error = -5;
        n = exited_encode(&e, buf, sizeof(buf));
        assert_int_equal(exited_decode(buf, (size_t)n, &g), -EPROTO);
}

static void scrubbed(void **state) {
        struct scrubbed s = { SCRUB_MOUNTS, true, UINT64_C(1) << 40, "/home/sandbox" }, g;
        ssize_t n = scrubbed_encode(&s, buf, sizeof(buf));

        (void)state;
        needs_room(scrubbed_encode, &s, n);
        refuses_other_lengths(scrubbed_decode, n, &g);
        assert_int_equal(scrubbed_decode(buf, (size_t)n, &g), 0);
        assert_int_equal(g.check, SCRUB_MOUNTS);
        assert_true(g.emptied);
        assert_int_equal(g.us, UINT64_C(1) << 40);
        assert_string_equal(g.place, "/home/sandbox");
        for (unsigned check = 0; check < 256; check++) {
                bool known = strcmp(scrub_check_name((uint8_t)check), "unknown") != 0;

                buf[0] = (uint8_t)check;
                assert_int_equal(scrubbed_decode(buf, (size_t)n, &g), known ? 0 : -EPROTO);
                assert_true(known == (check < SCRUB_CHECKS));
        }
        buf[0] = SCRUB_CLEAN;
        buf[1] = 2;
        assert_int_equal(scrubbed_decode(buf, (size_t)n, &g), -EPROTO);
        /* The longest place, which stays below the frame's bound, and one byte more. */
        memset(text, '/', PROTO_NAME_MAX + 1);
        text[PROTO_NAME_MAX + 1] = '\0';
        s = (struct scrubbed){ .check = SCRUB_CLEAN, .place = text };
        n = scrubbed_encode(&s, buf, sizeof(buf));
        assert_int_equal(scrubbed_decode(buf, (size_t)n, &g), -EPROTO);
        s.place = text + 1;
        n = scrubbed_encode(&s, buf, sizeof(buf));
        assert_int_equal(scrubbed_decode(buf, (size_t)n, &g), 0);
        assert_true(n <= 128);
        assert_false(g.emptied);
}

static void result(void **state) {
        struct result r = { .cause = CAUSE_TIMEOUT,
                            .exit_code = 124,
                            .code = 15,
                            .signaled = true,
                            .pool_hit = true,
                            .error = 2,
                            .wall_us = 1,
                            .bytes = { 5, 6 },
                            .lines = { 7, 8 },
                            .background_left = 9,
                            .exec_id = EXEC_ID,
                            .container_id = CONTAINER,
                            .profile = "p",
                            .session = "",
                            .message = "one line" },
                      g;
        ssize_t n = result_encode(&r, buf, sizeof(buf));

        (void)state;
        needs_room(result_encode, &r, n);
        refuses_other_lengths(result_decode, n, &g);
        assert_int_equal(result_decode(buf, (size_t)n, &g), 0);
        assert_int_equal(g.exit_code, 124);
        assert_int_equal(g.error, 2);
        assert_int_equal(g.bytes[1], 6);
        assert_int_equal(g.lines[1], 8);
        assert_string_equal(g.message, "one line");
        for (int i = 3; i < 7; i++) {
                uint8_t was = buf[i];

                buf[i] = 2;
                assert_int_equal(result_decode(buf, (size_t)n, &g), -EPROTO);
                buf[i] = was;
        }
        buf[0] = 0;
        assert_int_equal(result_decode(buf, (size_t)n, &g), -EPROTO);
        /* The longest one that there can be stays below the frame's bound. */
        memset(text, 'x', PROTO_LINE_MAX);
        text[PROTO_LINE_MAX] = '\0';
        r.message = text;
        r.profile = r.session = text + PROTO_LINE_MAX - PROTO_NAME_MAX;
        n = result_encode(&r, buf, sizeof(buf));
        assert_int_equal(result_decode(buf, (size_t)n, &g), 0);
        assert_true(n <= 2048);
}

static void reject(void **state) {
        struct reject r = { 77, REJECT_NO_USER, "not allowed" }, g;
        ssize_t n = reject_encode(&r, buf, sizeof(buf));

        (void)state;
        needs_room(reject_encode, &r, n);
        refuses_other_lengths(reject_decode, n, &g);
        assert_int_equal(reject_decode(buf, (size_t)n, &g), 0);
        assert_true(g.exit_code == 77 && g.reason == REJECT_NO_USER);
        assert_string_equal(g.message, "not allowed");
        buf[0] = 0; /* a refusal is no success */
        assert_int_equal(reject_decode(buf, (size_t)n, &g), -EPROTO);
}

static void names(void **state) {
        static const char *const checks[SCRUB_CHECKS] = {
                "clean",    "processes", "files",   "attributes", "blocks",
                "sysv_ipc", "queues",    "sockets", "mounts",     "unproved",
        };

        (void)state;
        assert_string_equal(cause_name(CAUSE_PIDS_LIMIT), "pids_limit");
        assert_string_equal(cause_name(CAUSE_NOT_EXECUTABLE), "not_executable");
        assert_string_equal(cause_name(0), "unknown");
        assert_string_equal(cause_name(11), "unknown");
        assert_string_equal(cause_name(255), "unknown");
        for (unsigned i = 0; i < SCRUB_CHECKS; i++)
                assert_string_equal(scrub_check_name((uint8_t)i), checks[i]);
        assert_string_equal(scrub_check_name(SCRUB_CHECKS), "unknown");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(hello),
                cmocka_unit_test(exec_request_both_ways),
                cmocka_unit_test(exec_request_refused),
                cmocka_unit_test(counts),
                cmocka_unit_test(exec_order),
                cmocka_unit_test(window),
                cmocka_unit_test(started),
                cmocka_unit_test(exited),
                cmocka_unit_test(scrubbed),
                cmocka_unit_test(result),
                cmocka_unit_test(reject),
                cmocka_unit_test(names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
