/* Less than the profile: what each number makes of it, what is refused and in which words, and what fits into less memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/load.h"
#include "config/narrow.h"
#include "config/profile.h"

#define MIB (UINT64_C(1) << 20)
#define KIB UINT64_C(1024)

static struct config *config;
static const struct config_profile *profile;

static void use(const char *yaml) {
        struct errmsg e = { "" };

        config_free(config);
        if (config_load_memory("f", yaml, strlen(yaml), &config, &e) < 0)
                fail_msg("%s", e.text);
        profile = &config->profiles[0];
}

static int begin(void **state) {
        (void)state;
        use("pool:\n"
            "  memory_limit: 1g\n"
            "  memory_reserve: 100m\n"
            "  network: bridge\n"
            "  tmpfs: {/tmp: 256m, /home/sandbox: 0, /work: 512m, /run: 64m}\n"
            "  shm_size: 128m\n"
            "  user: 0\n"
            "  users: [\"0:5\", 1000, \"1001:7\"]\n"
            "  capabilities: [CHOWN]\n");
        return 0;
}

static int end(void **state) {
        (void)state;
        config_free(config);
        config = NULL;
        return 0;
}

static struct config_profile narrowed(const struct narrow *n) {
        struct config_profile p;
        struct errmsg e = { "" };

        if (config_narrow(profile, n, &p, &e) < 0)
                fail_msg("%s", e.text);
        return p;
}

static void refused(const struct narrow *n, const char *line) {
        struct config_profile p;
        struct errmsg e = { "" };

        assert_int_equal(config_narrow(profile, n, &p, &e), -EINVAL);
        assert_string_equal(e.text, line);
        assert_false(config_narrow_changes_nothing(profile, n));
}

static uint64_t in_memory(const struct config_profile *p) {
        uint64_t sum = p->shm_bytes;

        for (size_t i = 0; i < p->n_tmpfs; i++)
                sum += p->tmpfs[i].bytes;
        return sum;
}

/* Asking for nothing, or for what is there, or for more, is the profile itself. */
static void nothing(void **state) {
        const struct narrow rows[] = {
                { 0 },
                { .memory_bytes = 1024 * MIB,
                  .cpu_nano = 1000000000,
                  .pids_limit = 256,
                  .shm_bytes = 128 * MIB },
                { .memory_bytes = UINT64_MAX,
                  .cpu_nano = UINT64_MAX,
                  .pids_limit = UINT32_MAX,
                  .shm_bytes = UINT64_MAX,
                  .n_tmpfs = 1,
                  .tmpfs = { { "/work", UINT64_MAX } } },
                { .user = true },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct config_profile p = narrowed(&rows[i]);

                assert_true(config_narrow_changes_nothing(profile, &rows[i]));
                assert_true(p.memory_bytes == 1024 * MIB && p.memory_reserve_bytes == 100 * MIB);
                assert_true(p.cpu_nano == 1000000000 && p.shm_bytes == 128 * MIB && p.pids_limit == 256);
                assert_true(in_memory(&p) == 960 * MIB);
                assert_string_equal(p.network, "bridge");
                assert_int_equal(p.n_users, 3);
                /* Whatever the hash is made of is the same as before. */
                config_recipe(&p);
                assert_memory_equal(p.recipe, profile->recipe, CONFIG_RECIPE);
                config_profile_done(&p);
        }
}

static void each_number(void **state) {
        const struct narrow rows[] = {
                { .memory_bytes = 1023 * MIB },
                { .cpu_nano = 500000000 },
                { .pids_limit = 32 },
                { .shm_bytes = MIB },
                { .no_network = true },
                { .user = true, .uid = 1000, .gid = 1000 },
                { .n_tmpfs = 2, .tmpfs = { { "/tmp", 8 * KIB }, { "/tmp", 4 * KIB } } },
        };
        struct narrow all = { .memory_bytes = 1023 * MIB,
                              .cpu_nano = 500000000,
                              .pids_limit = 32,
                              .shm_bytes = MIB,
                              .no_network = true,
                              .user = true,
                              .uid = 4711,
                              .gid = 4712,
                              .n_tmpfs = 2,
                              .tmpfs = { { "/tmp", 8 * KIB }, { "/tmp", 4 * KIB } } };
        struct config_profile p;

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                assert_false(config_narrow_changes_nothing(profile, &rows[i]));
        p = narrowed(&all);
        assert_true(p.memory_bytes == 1023 * MIB && p.cpu_nano == 500000000 && p.pids_limit == 32);
        assert_true(p.shm_bytes == MIB && config_profile_tmpfs(&p, "/tmp") == 4 * KIB);
        assert_true(config_profile_tmpfs(&p, "/work") == 512 * MIB);
        assert_string_equal(p.network, "none");
        assert_true(p.uid == 4711 && p.gid == 4712 && p.n_users == 0);
        /* Its identity is the profile's. */
        assert_memory_equal(p.recipe, profile->recipe, CONFIG_RECIPE);
        assert_string_equal(p.name, "default");
        config_profile_done(&p);
}

static void refusals(void **state) {
        (void)state;
        refused(&(struct narrow){ .memory_bytes = 8 * MIB },
                "--memory 8m: the smallest memory_limit is 16m");
        refused(&(struct narrow){ .cpu_nano = 1 }, "--cpus 0.000000001: the smallest cpus is 0.01");
        refused(&(struct narrow){ .pids_limit = 15 }, "--pids-limit 15: the smallest pids_limit is 16");
        refused(&(struct narrow){ .shm_bytes = 1 }, "--shm-size 1: the smallest shm_size is 64k");
        refused(&(struct narrow){ .n_tmpfs = 1, .tmpfs = { { "/tmp", 4095 } } },
                "--tmpfs /tmp:size=4095: the smallest size of a tmpfs is 4k");
        refused(&(struct narrow){ .n_tmpfs = 1, .tmpfs = { { "/o\n", MIB } } },
                "--tmpfs /o\\x0a: profile \"default\" has none there: the administrator can add it to its tmpfs, "
                "in sandbox.yaml");
        refused(&(struct narrow){ .user = true, .uid = 0, .gid = 1 },
                "--user 0:1: neither user nor users of profile \"default\" has it, in sandbox.yaml");
        refused(&(struct narrow){ .user = true, .uid = 5, .gid = 1900000000 },
                "--user 5:1900000000: no command may run as these (see user in sandbox.yaml(5))");
        refused(&(struct narrow){ .user = true, .uid = 5, .gid = 0 },
                "--user 5:0: no command may run as these (see user in sandbox.yaml(5))");
        refused(&(struct narrow){ .memory_bytes = 16 * MIB + 255 * KIB },
                "--memory 16639k: less than 16m and 64k for each of the 4 places of tmpfs and shm_size that "
                "profile \"default\" has in memory");
}

/* Whatever the limit is: 16 MiB stay free, and each place is whole pages, no more than it was and no less than 64 KiB. */
static void fits(void **state) {
        (void)state;
        for (uint64_t limit = 16 * MIB + 256 * KIB; limit <= 1024 * MIB; limit += limit / 7 + 1) {
                struct config_profile p = narrowed(&(struct narrow){ .memory_bytes = limit });

                assert_true(in_memory(&p) <= limit - 16 * MIB);
                assert_int_equal(p.n_tmpfs, profile->n_tmpfs);
                assert_true(p.memory_reserve_bytes <= limit);
                assert_in_range(p.shm_bytes, 64 * KIB, 128 * MIB);
                for (size_t i = 0; i < p.n_tmpfs; i++) {
                        assert_in_range(p.tmpfs[i].bytes, 64 * KIB, profile->tmpfs[i].bytes);
                        assert_int_equal(p.tmpfs[i].bytes % 4096, 0);
                }
                /* As full as whole pages allow. */
                if (in_memory(profile) > limit - 16 * MIB)
                        assert_true(in_memory(&p) > limit - 16 * MIB - 4 * 4096);
                config_profile_done(&p);
        }
}

static void in_proportion(void **state) {
        struct config_profile p = narrowed(&(struct narrow){ .memory_bytes = (16 + 96) * MIB });

        (void)state;
        /* A tenth of 960 MiB. */
        assert_int_equal(config_profile_tmpfs(&p, "/work") / 4096, 512 * MIB / 10 / 4096);
        assert_int_equal(config_profile_tmpfs(&p, "/run") / 4096, 64 * MIB / 10 / 4096);
        assert_int_equal(p.shm_bytes / 4096, 128 * MIB / 10 / 4096);
        config_profile_done(&p);
        /* What is smaller than 64 KiB stays, and what was asked for is asked for first. */
        use("pool: {memory_limit: 1g, tmpfs: {/tmp: 512m, /home/sandbox: 8k}, shm_size: 256m}\n");
        p = narrowed(&(struct narrow){
                .memory_bytes = 64 * MIB, .n_tmpfs = 1, .tmpfs = { { "/tmp", 16 * MIB } } });
        assert_true(config_profile_tmpfs(&p, "/home/sandbox") == 8 * KIB);
        assert_true(p.shm_bytes > 44 * MIB && config_profile_tmpfs(&p, "/tmp") < 3 * MIB);
        config_profile_done(&p);
}

static void users(void **state) {
        uint32_t gid = 9;

        (void)state;
        assert_true(config_profile_has_user(profile, 0, 0, NULL));
        assert_true(config_profile_has_user(profile, 0, 5, NULL));
        assert_false(config_profile_has_user(profile, 0, 6, &gid));
        assert_int_equal(gid, 9);
        assert_true(config_profile_has_user(profile, 1001, UINT32_MAX, &gid));
        assert_int_equal(gid, 7);
        /* Its own comes before the others. */
        assert_true(config_profile_has_user(profile, 0, UINT32_MAX, &gid));
        assert_int_equal(gid, 0);
        assert_false(config_profile_has_user(profile, 4711, UINT32_MAX, NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(nothing, begin, end),
                cmocka_unit_test_setup_teardown(each_number, begin, end),
                cmocka_unit_test_setup_teardown(refusals, begin, end),
                cmocka_unit_test_setup_teardown(fits, begin, end),
                cmocka_unit_test_setup_teardown(in_proportion, begin, end),
                cmocka_unit_test_setup_teardown(users, begin, end),
        };

        return cmocka_run_group_tests_name("narrow", tests, NULL, NULL);
}
