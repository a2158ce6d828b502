/* OPEN and the records: what is written is read back, and nothing else is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/frame.h"
#include "common/proto_open.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static uint8_t buf[FRAME_PAYLOAD_MAX];

static struct open_request request(void) {
        static const char *env[] = { "A=1", "B=" };

        return (struct open_request){
                .form = ANSWER_RECORDS,
                .mounts = true,
                .name = "work",
                .profile = "hermes",
                .image = "debian:12",
                .workdir = "/workspace",
                .ttl_ms = 60000,
                .narrow = { .memory_bytes = 1 << 26,
                            .cpu_nano = 5,
                            .pids_limit = 6,
                            .shm_bytes = 7,
                            .no_network = true,
                            .user = true,
                            .uid = 1000,
                            .gid = 100,
                            .n_tmpfs = 1,
                            .tmpfs = { { "/tmp", 4096 } } },
                .n_labels = 1,
                .labels = { "k=v" },
                .n_env = 2,
                .env = env,
        };
}

static int takes(const struct open_request *r, struct open_request *g) {
        ssize_t n = open_request_encode(r, buf, sizeof(buf));

        assert_true(n > 0);
        return open_request_decode(buf, (size_t)n, g);
}

static void open_there_and_back(void **state) {
        struct open_request r = request(), g;
        ssize_t n = open_request_encode(&r, buf, sizeof(buf));
        struct wire_in in;

        (void)state;
        assert_int_equal(open_request_encode(&r, buf, (size_t)n - 1), -EMSGSIZE);
        n = open_request_encode(&r, buf, (size_t)n);
        for (ssize_t len = 0; len < n; len++)
                assert_int_equal(open_request_decode(buf, (size_t)len, &g), -EPROTO);
        buf[n] = 0;
        assert_int_equal(open_request_decode(buf, (size_t)n + 1, &g), -EPROTO);
        assert_int_equal(open_request_decode(buf, (size_t)n, &g), 0);
        assert_true(g.form == ANSWER_RECORDS && g.mounts && g.ttl_ms == 60000);
        assert_string_equal(g.name, "work");
        assert_string_equal(g.profile, "hermes");
        assert_string_equal(g.image, "debian:12");
        assert_string_equal(g.workdir, "/workspace");
        assert_true(g.narrow.memory_bytes == 1 << 26 && g.narrow.cpu_nano == 5);
        assert_true(g.narrow.pids_limit == 6 && g.narrow.shm_bytes == 7 && g.narrow.no_network);
        assert_true(g.narrow.user && g.narrow.uid == 1000 && g.narrow.gid == 100);
        assert_int_equal(g.narrow.n_tmpfs, 1);
        assert_string_equal(g.narrow.tmpfs[0].path, "/tmp");
        assert_int_equal(g.narrow.tmpfs[0].bytes, 4096);
        assert_int_equal(g.n_labels, 1);
        assert_string_equal(g.labels[0], "k=v");
        wire_in_init(&in, g.env_wire, g.env_len);
        assert_string_equal(wire_get_str(&in, 9), "A=1");
        assert_string_equal(wire_get_str(&in, 9), "B=");
        assert_true(wire_in_done(&in));
}

static void open_refused(void **state) {
        static char text[PROTO_OPEN_ENV_BYTES + 64] = "X=";
        struct open_request r = request(), g;
        const char *env[PROTO_OPEN_ENV_MAX + 1];

        (void)state;
        r.workdir = "tmp";
        assert_int_equal(takes(&r, &g), -EPROTO);
        r.workdir = "";
        assert_int_equal(takes(&r, &g), 0);
        r.form = ANSWER_FORMS;
        assert_int_equal(takes(&r, &g), -EPROTO);
        r = request();
        r.narrow.user = false; /* and ids of nobody */
        assert_int_equal(takes(&r, &g), -EPROTO);
        r.narrow.user = true;
        r.narrow.gid = UINT32_MAX;
        assert_int_equal(takes(&r, &g), -EPROTO);
        r = request();
        r.narrow.tmpfs[0].path = "tmp";
        assert_int_equal(takes(&r, &g), -EPROTO);
        r.narrow.tmpfs[0].path = "/tmp";
        r.narrow.tmpfs[0].bytes = 0;
        assert_int_equal(takes(&r, &g), -EPROTO);
        r = request();
        r.labels[0] = "=v";
        assert_int_equal(takes(&r, &g), -EPROTO);
        r = request();
        env[0] = "=x";
        r.env = env;
        r.n_env = 1;
        assert_int_equal(takes(&r, &g), -EPROTO);
        for (int i = 0; i <= PROTO_OPEN_ENV_MAX; i++)
                env[i] = "A=";
        r.n_env = PROTO_OPEN_ENV_MAX;
        assert_int_equal(takes(&r, &g), 0);
        r.n_env++;
        assert_int_equal(takes(&r, &g), -EPROTO);
        /* Each alone is short enough, together they are not. */
        memset(text + 2, 'x', PROTO_OPEN_ENV_BYTES / 2);
        env[0] = env[1] = text;
        r.n_env = 1;
        assert_int_equal(takes(&r, &g), 0);
        r.n_env = 2;
        assert_int_equal(takes(&r, &g), -EPROTO);
}

static void narrowing(void **state) {
        struct narrow n = { .memory_bytes = 0 };
        struct wire_out out;
        struct wire_in in;
        struct narrow g;

        (void)state;
        assert_true(narrow_is_empty(&n));
        n.n_tmpfs = NARROW_TMPFS_MAX;
        for (int i = 0; i < NARROW_TMPFS_MAX; i++) {
                n.tmpfs[i].path = "/t";
                n.tmpfs[i].bytes = 1;
        }
        assert_false(narrow_is_empty(&n));
        wire_out_init(&out, buf, sizeof(buf));
        narrow_put(&out, &n);
        wire_in_init(&in, buf, out.len);
        narrow_get(&in, &g);
        assert_true(wire_in_done(&in) && g.n_tmpfs == NARROW_TMPFS_MAX);
        /* One more than there may be. */
        buf[8 + 8 + 4 + 8 + 1 + 1 + 4 + 4] = NARROW_TMPFS_MAX + 1;
        wire_in_init(&in, buf, out.len);
        narrow_get(&in, &g);
        assert_true(in.bad && narrow_is_empty(&g));
        n = (struct narrow){ .no_network = true };
        assert_false(narrow_is_empty(&n));
        n = (struct narrow){ .user = true };
        assert_false(narrow_is_empty(&n));
}

static void sessions(void **state) {
        struct session_info s = { .id = ID,
                                  .name = "work",
                                  .profile = "hermes",
                                  .image = "debian:12",
                                  .network = "none",
                                  .workdir = "/workspace",
                                  .status = SESSION_IS_STOPPED,
                                  .created = 1,
                                  .started = 2,
                                  .finished = 3,
                                  .ttl_ms = 4,
                                  .uid = 5,
                                  .gid = 6,
                                  .memory_bytes = 7,
                                  .cpu_nano = 8,
                                  .shm_bytes = 9,
                                  .pids_limit = 10,
                                  .running = 11,
                                  .mounts = true,
                                  .n_labels = 2,
                                  .labels = { "a=b", "c=" } },
                            g;
        ssize_t n = session_info_encode(&s, buf, sizeof(buf));

        (void)state;
        assert_int_equal(session_info_encode(&s, buf, (size_t)n - 1), -EMSGSIZE);
        n = session_info_encode(&s, buf, (size_t)n);
        for (ssize_t len = 0; len < n; len++)
                assert_int_equal(session_info_decode(buf, (size_t)len, &g), -EPROTO);
        assert_int_equal(session_info_decode(buf, (size_t)n, &g), 0);
        assert_string_equal(g.id, ID);
        assert_string_equal(g.name, "work");
        assert_string_equal(g.profile, "hermes");
        assert_string_equal(g.image, "debian:12");
        assert_string_equal(g.network, "none");
        assert_string_equal(g.workdir, "/workspace");
        assert_true(g.status == SESSION_IS_STOPPED && g.created == 1 && g.started == 2 &&
                    g.finished == 3);
        assert_true(g.ttl_ms == 4 && g.uid == 5 && g.gid == 6 && g.memory_bytes == 7 && g.cpu_nano == 8);
        assert_true(g.shm_bytes == 9 && g.pids_limit == 10 && g.running == 11 && g.mounts);
        assert_int_equal(g.n_labels, 2);
        assert_string_equal(g.labels[1], "c=");
        s.status = 0;
        n = session_info_encode(&s, buf, sizeof(buf));
        assert_int_equal(session_info_decode(buf, (size_t)n, &g), -EPROTO);
}

static void images(void **state) {
        struct image_info i = { .profile = "hermes",
                                .name = "debian:12",
                                .present = true,
                                .id = "sha256:00",
                                .digest = "debian@sha256:00",
                                .bytes = 1,
                                .created = "2026-11-30T00:00:00Z",
                                .entrypoint = "[\"/init\"]",
                                .network = "none",
                                .uid = 2,
                                .gid = 3,
                                .memory_bytes = 4,
                                .cpu_nano = 5,
                                .shm_bytes = 6,
                                .pids_limit = 7,
                                .capabilities = UINT64_C(1) << 40 | 3,
                                .workdir = "/work",
                                .read_only = true,
                                .n_tmpfs = 2,
                                .tmpfs = { { "/tmp", 8 }, { "/root", 9 } } },
                          g;
        ssize_t n = image_info_encode(&i, buf, sizeof(buf));

        (void)state;
        assert_int_equal(image_info_encode(&i, buf, (size_t)n - 1), -EMSGSIZE);
        n = image_info_encode(&i, buf, (size_t)n);
        for (ssize_t len = 0; len < n; len++)
                assert_int_equal(image_info_decode(buf, (size_t)len, &g), -EPROTO);
        assert_int_equal(image_info_decode(buf, (size_t)n, &g), 0);
        assert_string_equal(g.profile, "hermes");
        assert_string_equal(g.name, "debian:12");
        assert_string_equal(g.entrypoint, "[\"/init\"]");
        assert_string_equal(g.created, "2026-11-30T00:00:00Z");
        assert_true(g.present && g.bytes == 1 && g.uid == 2 && g.gid == 3 && g.memory_bytes == 4);
        assert_true(g.cpu_nano == 5 && g.shm_bytes == 6 && g.pids_limit == 7);
        assert_true(g.capabilities == (UINT64_C(1) << 40 | 3) && g.n_tmpfs == 2);
        assert_string_equal(g.workdir, "/work");
        assert_true(g.read_only);
        assert_string_equal(g.tmpfs[1].path, "/root");
        assert_true(g.tmpfs[0].bytes == 8 && g.tmpfs[1].bytes == 9);
}

static void records(void **state) {
        const uint8_t *p = buf, *record;
        struct wire_out out;
        size_t left, len;

        (void)state;
        wire_out_init(&out, buf, sizeof(buf));
        wire_put_blob(&out, "one", 3);
        wire_put_blob(&out, "", 0);
        left = out.len;
        assert_int_equal(record_next(&p, &left, &record, &len), 1);
        assert_true(len == 3 && memcmp(record, "one", 3) == 0);
        assert_int_equal(record_next(&p, &left, &record, &len), 1);
        assert_int_equal(len, 0);
        assert_int_equal(record_next(&p, &left, &record, &len), 0);
        p = buf;
        left = out.len - 1;
        assert_int_equal(record_next(&p, &left, &record, &len), 1);
        assert_int_equal(record_next(&p, &left, &record, &len), -EPROTO);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(open_there_and_back),
                cmocka_unit_test(open_refused),
                cmocka_unit_test(narrowing),
                cmocka_unit_test(sessions),
                cmocka_unit_test(images),
                cmocka_unit_test(records),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
