/* A create with less than the profile gives, from the manager's message to what the engine is asked for, in a whole broker. */
#include "unit/broker_rig.h"

static int begin(void **state) {
        rig_pool = "pool: {network: bridge, memory_limit: 128m, cpus: 1, pids_limit: 100}\n"
                   "profiles: {root: {user: 0, users: [\"0:3\", 5], capabilities: [CHOWN]}}\n";
        return setup(state);
}

static void next_is_created(void) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        next_message(buf, &m, &fd);
        if (m.type == ENGINE_FAILED)
                fail_msg("%s", m.text);
        assert_int_equal(m.type, ENGINE_CREATED);
        assert_true(fd >= 0);
        close(fd);
}

static void next_is_failed(enum engine_error error, const char *why) {
        struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        int fd = -1;

        next_message(buf, &m, &fd);
        assert_int_equal(m.type, ENGINE_FAILED);
        assert_int_equal(m.error, error);
        if (!strstr(m.text, why))
                fail_msg("\"%s\" does not say \"%s\"", m.text, why);
        assert_int_equal(fd, -1);
        assert_string_equal(t.create_body, "");
        assert_int_equal(entries("state/containers") + entries("run"), 0);
}

static void body_has(const char *what) {
        if (!strstr(t.create_body, what))
                fail_msg("no %s in %s", what, t.create_body);
}

static void less(void **state) {
        const struct narrow n = { .memory_bytes = 64 << 20,
                                  .cpu_nano = 500000000,
                                  .pids_limit = 32,
                                  .shm_bytes = 1 << 20,
                                  .no_network = true,
                                  .user = true,
                                  .uid = 4711,
                                  .gid = 4712,
                                  .n_tmpfs = 1,
                                  .tmpfs = { { "/tmp", 8 << 20 } } };

        (void)state;
        ask_create_for("", &n, -1);
        next_is_created();
        body_has("\"Memory\":67108864,");
        body_has("\"MemorySwap\":67108864,");
        body_has("\"NanoCpus\":500000000,");
        body_has("\"PidsLimit\":32,");
        body_has("\"ShmSize\":1048576,");
        body_has("\"NetworkMode\":\"none\"");
        body_has("\"NetworkDisabled\":true");
        body_has("size=8388608,mode=1777");
        body_has("mode=0700,uid=4711,gid=4712");
        body_has("\"CapAdd\":[\"SETUID\",\"SETGID\",\"KILL\"]");
        body_has("\"4711\",\"4712\",\"1900000000\",\"65536\",\"120000\",\"0000000000000000\"]");
}

/* More than the profile has is what it has. */
static void more(void **state) {
        const struct narrow n = { .memory_bytes = UINT64_MAX,
                                  .cpu_nano = UINT64_MAX,
                                  .pids_limit = UINT32_MAX,
                                  .shm_bytes = UINT64_MAX,
                                  .n_tmpfs = 1,
                                  .tmpfs = { { "/tmp", UINT64_MAX } } };

        (void)state;
        ask_create_for("", &n, -1);
        next_is_created();
        body_has("\"Memory\":134217728,");
        body_has("\"NanoCpus\":1000000000,");
        body_has("\"PidsLimit\":100,");
        body_has("\"ShmSize\":16777216,");
        body_has("\"NetworkMode\":\"bridge\"");
        body_has("size=50331648,mode=1777");
}

static void root_inside(void **state) {
        (void)state;
        ask_create_for("root", NULL, -1);
        next_is_created();
        body_has("\"CapAdd\":[\"SETUID\",\"SETGID\",\"KILL\",\"CHOWN\"]");
        body_has(
                "[\"/.hermes-sandbox/agent\",\"0\",\"0\",\"1900000000\",\"65536\",\"120000\",\"0000000000000001\","
                "\"0:3\",\"5:5\"]");
        body_has("mode=0755,uid=0,gid=0");
}

static void root_of_the_list(void **state) {
        const struct narrow n = { .user = true, .uid = 0, .gid = 3 };

        (void)state;
        ask_create_for("root", &n, -1);
        next_is_created();
        body_has(
                "[\"/.hermes-sandbox/agent\",\"0\",\"3\",\"1900000000\",\"65536\",\"120000\",\"0000000000000001\"]");
}

static void no_root(void **state) {
        const struct narrow n = { .user = true };

        (void)state;
        ask_create_for("", &n, -1);
        next_is_failed(ENGINE_E_NOT_ALLOWED, "--user 0:0: neither user nor users of the profile has it");
}

static void no_other_root(void **state) {
        const struct narrow n = { .user = true, .uid = 0, .gid = 4 };

        (void)state;
        ask_create_for("root", &n, -1);
        next_is_failed(ENGINE_E_NOT_ALLOWED, "--user 0:4: ");
}

static void no_such_place(void **state) {
        const struct narrow n = { .n_tmpfs = 1, .tmpfs = { { "/etc", 4096 } } };

        (void)state;
        ask_create_for("", &n, -1);
        next_is_failed(ENGINE_E_REFUSED, "--tmpfs /etc: profile \"default\" has none there");
}

static void too_little(void **state) {
        const struct narrow n = { .memory_bytes = 16 << 20 };

        (void)state;
        ask_create_for("", &n, -1);
        next_is_failed(ENGINE_E_REFUSED, "--memory 16m: less than 16m and 64k for each of the 3 places");
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(less, begin, teardown),
                cmocka_unit_test_setup_teardown(more, begin, teardown),
                cmocka_unit_test_setup_teardown(root_inside, begin, teardown),
                cmocka_unit_test_setup_teardown(root_of_the_list, begin, teardown),
                cmocka_unit_test_setup_teardown(no_root, begin, teardown),
                cmocka_unit_test_setup_teardown(no_other_root, begin, teardown),
                cmocka_unit_test_setup_teardown(no_such_place, begin, teardown),
                cmocka_unit_test_setup_teardown(too_little, begin, teardown),
        };
        int r = broker_main(argc, argv);

        if (r >= 0)
                return r;
        return cmocka_run_group_tests_name("engine_narrow", tests, NULL, NULL);
}
