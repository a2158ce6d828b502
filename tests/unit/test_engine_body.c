/*
 * Whole create bodies against tests/unit/golden/: what a sandbox's container may do changes only where a
 * golden file changes with it. UPDATE_GOLDEN=1 writes them anew; read the diff.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/narrow.h"
#include "config/profile.h"
#include "engine/body.h"

static const uint8_t recipe[CONFIG_RECIPE] = { 0xab, 0xcd, [31] = 0x01 };

static struct body_context context(bool cgroup_v2) {
        return (struct body_context){
                .image = "debian:bookworm-slim",
                .installation = "00112233445566778899aabbccddeeff",
                .recipe = recipe,
                .agent_path = "/usr/libexec/hermes-sandbox/agent",
                .stream_folder = "/run/hermes-sandbox-engine/0123456789abcdef0123456789abcdef",
                .stream_gid = 994,
                .cgroup_v2 = cgroup_v2,
        };
}

static struct config_tmpfs default_tmpfs[] = { { (char *)"/home/sandbox", 16 << 20 },
                                               { (char *)"/tmp", 32 << 20 } };
static char *no_env[] = { NULL };

static struct config_profile default_profile(void) {
        return (struct config_profile){
                .name = (char *)"default",
                .image = (char *)"debian:bookworm-slim",
                .memory_bytes = 128 << 20,
                .memory_reserve_bytes = 16 << 20,
                .cpu_nano = 1000000000,
                .network = (char *)"none",
                .read_only = true,
                .pids_limit = 256,
                .reconnect_grace_ms = 120000,
                .tmpfs = default_tmpfs,
                .n_tmpfs = 2,
                .shm_bytes = 8 << 20,
                .runtime = (char *)"",
                .uid = 10000,
                .gid = 10000,
                .workdir = (char *)"/home/sandbox",
                .home = (char *)"/home/sandbox",
                .env = no_env,
        };
}

static void compare(const char *body, const char *golden) {
        json_t *j = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
        char *text, *want;
        size_t len;
        FILE *f;

        assert_non_null(j);
        text = json_dumps(j, JSON_INDENT(2) | JSON_SORT_KEYS);
        if (getenv("UPDATE_GOLDEN")) {
                f = fopen(golden, "we");
                assert_non_null(f);
                fprintf(f, "%s\n", text);
                fclose(f);
        }
        f = fopen(golden, "re");
        assert_non_null(f);
        want = calloc(1, 65536);
        len = fread(want, 1, 65535, f);
        fclose(f);
        assert_true(len > 0 && want[len - 1] == '\n');
        want[len - 1] = '\0';
        assert_string_equal(text, want);
        free(want);
        free(text);
        json_decref(j);
}

static void golden_default(void **state) {
        struct config_profile p = default_profile();
        struct body_context ctx = context(false);
        char *body = body_create(&p, &ctx);

        (void)state;
        assert_non_null(body);
        compare(body, "tests/unit/golden/create-default.json");
        free(body);
}

/* With host folders: the caller himself, without any capability. */
static void golden_mounted(void **state) {
        const struct body_mount mounts[] = { { "/work", 17, false }, { "/srv/data", 18, true } };
        const struct body_caller caller = {
                .uid = 1000, .gid = 1001, .pid = 4711, .n = 2, .mounts = mounts
        };
        struct config_profile p = default_profile();
        struct body_context ctx = context(false);
        char *body;

        (void)state;
        ctx.caller = &caller;
        body = body_create(&p, &ctx);
        assert_non_null(body);
        compare(body, "tests/unit/golden/create-mounted.json");
        free(body);
}

/* Root inside: HOME is root's, and its commands have what the profile lists, beside the agent's own three. */
static struct config_profile root_profile(void) {
        static struct config_user users[] = { { 0, 0 }, { 0, 5 }, { 1000, 1000 } };
        static struct config_tmpfs places[] = { { (char *)"/root", 16 << 20 },
                                                { (char *)"/tmp", 32 << 20 },
                                                { (char *)"/work", 16 << 20 } };
        struct config_profile p = default_profile();

        p.name = (char *)"root";
        p.uid = p.gid = 0;
        p.users = users;
        p.n_users = 3;
        p.capabilities = CONFIG_CAPABILITIES;
        p.home = p.workdir = (char *)"/root";
        p.tmpfs = places;
        p.n_tmpfs = 3;
        p.allow_users = p.allow_groups = no_env;
        return p;
}

static void golden_root(void **state) {
        struct config_profile p = root_profile();
        struct body_context ctx = context(false);
        char *body = body_create(&p, &ctx);

        (void)state;
        assert_non_null(body);
        compare(body, "tests/unit/golden/create-root.json");
        free(body);
}

/* The same for one session that asks for less: as a user for whom none of that is left. */
static void golden_narrowed(void **state) {
        const struct narrow n = { .memory_bytes = 64 << 20,
                                  .cpu_nano = 500000000,
                                  .pids_limit = 32,
                                  .no_network = true,
                                  .user = true,
                                  .uid = 1000,
                                  .gid = 1001 };
        struct config_profile p = root_profile(), less;
        struct body_context ctx = context(false);
        struct errmsg e;
        char *body;

        (void)state;
        p.network = (char *)"bridge";
        assert_int_equal(config_narrow(&p, &n, &less, &e), 0);
        body = body_create(&less, &ctx);
        assert_non_null(body);
        compare(body, "tests/unit/golden/create-narrowed.json");
        free(body);
        config_profile_done(&less);
}

/* Beside a host folder nobody is root, and nothing of the profile's users and capabilities is left. */
static void never_beside_a_folder(void **state) {
        const struct body_mount mounts[] = { { "/root", 17, false } };
        const struct body_caller caller = { 1000, 1001, 4711, 1, mounts };
        struct config_profile p = root_profile();
        struct body_context ctx = context(false);
        char *body;

        (void)state;
        ctx.caller = &caller;
        body = body_create(&p, &ctx);
        assert_non_null(strstr(body, "\"CapAdd\":[],"));
        assert_non_null(strstr(body, "\"User\":\"1000:1001\""));
        assert_non_null(strstr(body,
                               "[\"/.hermes-sandbox/agent\",\"1000\",\"1001\",\"0\",\"0\",\"120000\","
                               "\"0000000000000000\"]"));
        /* The folder is in the place of the tmpfs. */
        assert_null(strstr(body, "\"/root\":"));
        assert_non_null(strstr(body, "\"/work\":"));
        assert_non_null(strstr(body, "\"Target\":\"/root\""));
        free(body);
}

/* Capabilities are for commands as uid 0: where there can be none, nobody has them. */
static void no_root_no_capabilities(void **state) {
        struct config_profile p = root_profile();
        struct body_context ctx = context(false);
        char *body;

        (void)state;
        p.uid = p.gid = 7;
        p.users += 2;
        p.n_users = 1;
        body = body_create(&p, &ctx);
        assert_non_null(strstr(body, "\"CapAdd\":[\"SETUID\",\"SETGID\",\"KILL\"]"));
        assert_non_null(strstr(body, ",\"0000000000000000\",\"1000:1000\"]"));
        free(body);
}

static void golden_dev(void **state) {
        struct config_ulimit ulimits[] = { { (char *)"core", 4096, 8192 },
                                           { (char *)"nofile", 1024, UINT64_MAX } };
        struct config_profile p = default_profile();
        struct body_context ctx = context(true);
        char *body;

        (void)state;
        p.name = (char *)"dev";
        p.network = (char *)"bridge";
        p.read_only = false;
        p.memory_bytes = 1ull << 30;
        p.memory_reserve_bytes = 0;
        p.cpu_nano = 500000000;
        p.runtime = (char *)"runsc";
        p.uid = 2000;
        p.gid = 3000;
        p.ulimits = ulimits;
        p.n_ulimits = 2;
        body = body_create(&p, &ctx);
        assert_non_null(body);
        compare(body, "tests/unit/golden/create-dev.json");
        free(body);
}

/* What no profile may ever change. */
static void always_closed(void **state) {
        struct config_profile p = default_profile();
        struct body_context ctx = context(true);
        char *body;

        (void)state;
        p.network = (char *)"host-like";
        p.read_only = false;
        body = body_create(&p, &ctx);
        assert_non_null(strstr(body, "\"Privileged\":false"));
        assert_non_null(strstr(body, "\"CapDrop\":[\"ALL\"]"));
        assert_non_null(strstr(body, "\"CapAdd\":[\"SETUID\",\"SETGID\",\"KILL\"]"));
        assert_non_null(strstr(body, "\"SecurityOpt\":[\"no-new-privileges:true\"]"));
        assert_non_null(strstr(body, "\"User\":\"0:994\""));
        assert_non_null(strstr(body, "\"AutoRemove\":true"));
        assert_null(strstr(body, "\"ReadOnly\":false"));
        assert_null(strstr(body, "docker.sock"));
        assert_null(strstr(body, "NetworkDisabled"));
        free(body);
}

/* The gids of commands: one that is not mapped could not be set. */
static void gids(void **state) {
        struct config_profile p = default_profile();
        struct body_context ctx = context(true);
        char *body = body_create(&p, &ctx);

        (void)state;
        assert_non_null(strstr(body, ",\"1900000000\",\"65536\","));
        free(body);
        ctx.rootless = true;
        body = body_create(&p, &ctx);
        assert_non_null(strstr(body, ",\"40000\",\"20000\","));
        free(body);
}

/* Quotes and the like in the config's words stay inside of their strings. */
static void words_stay_words(void **state) {
        struct config_profile p = default_profile();
        struct body_context ctx = context(false);
        json_t *j;
        char *body;

        (void)state;
        ctx.image = "x\",\"Privileged\":true,\"y\":\"";
        body = body_create(&p, &ctx);
        j = json_loads(body, 0, NULL);
        assert_non_null(j);
        assert_string_equal(json_string_value(json_object_get(j, "Image")), ctx.image);
        assert_null(json_object_get(j, "Privileged"));
        json_decref(j);
        free(body);
        ctx.image = "\xff not UTF-8";
        assert_null(body_create(&p, &ctx));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(golden_default),
                cmocka_unit_test(golden_dev),
                cmocka_unit_test(golden_mounted),
                cmocka_unit_test(always_closed),
                cmocka_unit_test(gids),
                cmocka_unit_test(words_stay_words),
                cmocka_unit_test(golden_root),
                cmocka_unit_test(golden_narrowed),
                cmocka_unit_test(never_beside_a_folder),
                cmocka_unit_test(no_root_no_capabilities),
        };

        return cmocka_run_group_tests_name("engine_body", tests, NULL, NULL);
}
