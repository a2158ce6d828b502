/* What a good config means: defaults, inheritance, the recipe's hash, and `show` read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "config/load.h"

#define MIB (UINT64_C(1) << 20)

static struct config *load(const char *yaml) {
        struct config *c = NULL;
        struct errmsg e = { "" };

        if (config_load_memory("f", yaml, strlen(yaml), &c, &e) < 0)
                fail_msg("%s\n%s", yaml, e.text);
        return c;
}

static char *show(const struct config *c) {
        char *text = NULL;
        size_t len;
        FILE *f = open_memstream(&text, &len);

        assert_non_null(f);
        assert_int_equal(config_show(c, f), 0);
        fclose(f);
        return text;
}

/* The file of the earlier scripts, byte by byte. */
static const char earlier[] = "pool:\n"
                              "  size: 3\n"
                              "  memory_limit: \"128m\"\n"
                              "  memory_reserve: \"16m\"\n"
                              "  cpus: \"1\"\n"
                              "  network: \"none\"\n"
                              "  read_only: true\n"
                              "  image: \"debian:bookworm-slim\"\n"
                              "waf_mode: \"read-only\"\n"
                              "allowed_file_paths:\n"
                              "  - \"/home/hermes\"\n"
                              "tool_overrides: {}\n"
                              "logging:\n"
                              "  level: DEBUG         # DEBUG | INFO | WARNING | ERROR\n"
                              "  backup_count: 3\n"
                              "  max_size_mb: 5\n"
                              "  file: sandbox-log.log\n";

static void earlier_file(void **state) {
        struct config *c = load(earlier);
        const struct config_profile *p = &c->profiles[0];

        (void)state;
        assert_int_equal(c->n_profiles, 1);
        assert_string_equal(p->name, "default");
        assert_int_equal(p->size, 3);
        assert_int_equal(p->memory_bytes, 128 * MIB);
        assert_int_equal(p->memory_reserve_bytes, 16 * MIB);
        assert_int_equal(p->cpu_nano, 1000000000);
        assert_string_equal(p->network, "none");
        assert_true(p->read_only);
        assert_string_equal(p->image, "debian:bookworm-slim");
        assert_string_equal(c->waf_mode, "read-only");
        assert_string_equal(c->allowed_file_paths[0], "/home/hermes");
        assert_null(c->allowed_file_paths[1]);
        assert_int_equal(c->log_level, LOG_LEVEL_DEBUG);
        assert_int_equal(c->log_backup_count, 3);
        assert_int_equal(c->log_max_bytes, 5 * MIB);
        assert_string_equal(c->log_file, "sandbox-log.log");
        config_free(c);
}

static void defaults(void **state) {
        static const char *const empty[] = { "", "# nothing\n", "{}\n", "pool: {}\n",
                                             "%YAML 1.1\n---\npool: {}\n...\n" };

        (void)state;
        for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
                struct config *c = load(empty[i]);
                const struct config_profile *p = config_profile_find(c, "");

                assert_ptr_equal(p, config_profile_find(c, "default"));
                assert_null(config_profile_find(c, "dev"));
                assert_int_equal(p->n_tmpfs, 2);
                assert_string_equal(p->tmpfs[0].path, "/home/sandbox");
                assert_int_equal(p->tmpfs[0].bytes, 32 * MIB);
                assert_string_equal(p->tmpfs[1].path, "/tmp");
                assert_int_equal(p->tmpfs[1].bytes, 48 * MIB);
                assert_int_equal(p->shm_bytes, 16 * MIB);
                assert_int_equal(p->pids_limit, 256);
                assert_int_equal(p->uid, 10000);
                assert_int_equal(p->gid, 10000);
                assert_string_equal(p->home, "/home/sandbox");
                assert_string_equal(p->workdir, "/home/sandbox");
                assert_string_equal(p->runtime, "");
                assert_null(p->env[0]);
                assert_int_equal(p->reuse, REUSE_SCRUB);
                assert_int_equal(p->max_uses, 10000);
                assert_int_equal(p->max_age_ms, 24 * 3600 * 1000);
                assert_int_equal(p->on_empty, ON_EMPTY_COLD);
                assert_int_equal(p->cold_after_ms, 100);
                assert_int_equal(p->max_sandboxes, 12);
                assert_int_equal(p->queue_limit, 100);
                assert_int_equal(p->queue_timeout_ms, 30000);
                assert_int_equal(p->session_ttl_ms, 30 * 60 * 1000);
                assert_int_equal(p->session_ttl_max_ms, 24 * 3600 * 1000);
                assert_int_equal(p->reconnect_grace_ms, 120000);
                assert_int_equal(p->limits.command_bytes, 16384);
                assert_int_equal(p->limits.timeout_ms, 180000);
                assert_int_equal(p->limits.timeout_max_ms, 3600000);
                assert_int_equal(p->limits.output_bytes, 0);
                assert_int_equal(p->limits.grace_ms, 2000);
                assert_int_equal(p->limits.exec_rate, 0);
                assert_int_equal(p->limits.sessions, 16);
                assert_int_equal(p->limits.execs, 512);
                assert_int_equal(p->limits.queued, 100);
                assert_int_equal(c->audit_required, TRI_AUTO);
                assert_string_equal(c->audit_file, "/var/log/hermes-sandbox/sandbox-audit.log");
                assert_string_equal(c->engine_socket, "/run/docker.sock");
                assert_string_equal(c->log_file, "");
                config_free(c);
        }
}

static void inheritance(void **state) {
        struct config *c = load("profiles:\n"
                                "  zed: {home: /z, size: 0, queue_limit: 3}\n"
                                "  dev:\n"
                                "    tmpfs: {/tmp: 200m, /home/sandbox: 0, /w: 4k}\n"
                                "    memory_limit: 1g\n"
                                "    env: {B: \"2\", AB: x}\n"
                                "    ulimits: {core: 0}\n"
                                "    allow_users: []\n"
                                "    user: 5\n"
                                "    size: 5\n"
                                "    limits: {timeout: 90}\n"
                                "pool:\n"
                                "  env: {B: \"1\", A: \"\", A_: y}\n"
                                "  ulimits: {nofile: \"5:6\", core: 1}\n"
                                "  allow_users: [u, v]\n"
                                "  user: \"7:8\"\n"
                                "  limits: {grace: 5s}\n"
                                "limits: {grace: 1s, timeout: 60, exec_rate: 9}\n");
        const struct config_profile *pool = &c->profiles[0], *dev = config_profile_find(c, "dev");

        (void)state;
        assert_int_equal(c->n_profiles, 3);
        assert_ptr_equal(dev, &c->profiles[1]);
        assert_string_equal(c->profiles[2].name, "zed");
        assert_string_equal(c->profiles[2].workdir, "/z");
        assert_int_equal(c->profiles[2].limits.queued, 3);
        assert_int_equal(c->profiles[2].max_sandboxes, 8);
        assert_int_equal(pool->limits.grace_ms, 5000);
        assert_int_equal(pool->limits.timeout_ms, 60000);
        assert_int_equal(pool->limits.exec_rate, 9);
        assert_int_equal(dev->limits.grace_ms, 5000);
        assert_int_equal(dev->limits.timeout_ms, 90000);
        assert_int_equal(dev->n_tmpfs, 2);
        assert_string_equal(dev->tmpfs[0].path, "/tmp");
        assert_int_equal(dev->tmpfs[0].bytes, 200 * MIB);
        assert_string_equal(dev->tmpfs[1].path, "/w");
        assert_string_equal(dev->env[0], "A=");
        assert_string_equal(dev->env[1], "AB=x");
        assert_string_equal(dev->env[2], "A_=y");
        assert_string_equal(dev->env[3], "B=2");
        assert_null(dev->env[4]);
        assert_string_equal(pool->env[2], "B=1");
        assert_int_equal(dev->n_ulimits, 2);
        assert_string_equal(dev->ulimits[0].name, "core");
        assert_int_equal(dev->ulimits[0].hard, 0);
        assert_int_equal(dev->ulimits[1].soft, 5);
        assert_int_equal(dev->ulimits[1].hard, 6);
        assert_null(dev->allow_users[0]);
        assert_string_equal(pool->allow_users[1], "v");
        assert_int_equal(dev->uid, 5);
        assert_int_equal(dev->gid, 5);
        assert_int_equal(pool->gid, 8);
        assert_int_equal(dev->max_sandboxes, 20);
        config_free(c);
}

/* A second reading of what `show` prints gives the same text and the same hashes. */
static void check_round_trip(const char *yaml) {
        struct config *a = load(yaml), *b;
        char *first = show(a), *second;

        b = load(first);
        second = show(b);
        assert_string_equal(first, second);
        assert_int_equal(a->n_profiles, b->n_profiles);
        for (size_t i = 0; i < a->n_profiles; i++) {
                const struct config_profile *p = &a->profiles[i], *q = &b->profiles[i];

                assert_memory_equal(p->recipe, q->recipe, CONFIG_RECIPE);
                for (size_t n = 0; p->env[n] || q->env[n]; n++)
                        assert_string_equal(p->env[n], q->env[n]);
        }
        free(first);
        free(second);
        config_free(a);
        config_free(b);
}

static void round_trip(void **state) {
        (void)state;
        check_round_trip("");
        check_round_trip(earlier);
        check_round_trip(
                "pool:\n"
                "  env:\n"
                "    A: \"line\\nnext\\ttab \\\"q\\\" \\\\ \\e \\x85 \\u2028 \\ufeff \\U0001F600 "
                "\\u00e4 \\x7f \"\n"
                "    B: \"# no comment: {a} [b] & * ! | > %\"\n"
                "    C: ' leading'\n"
                "    D: \"~\"\n"
                "    E: \"null\"\n"
                "    F: \"\\u202e\\uffff\\ue000\\u00ad\\u3042\"\n"
                "    G: |\n"
                "      block\n"
                "      text\n"
                "  tmpfs: {\"/home/sandbox\": 0, \"/a b#\\u00e4\\u202e\": 5000, \"/tmp\": 4097}\n"
                "  cpus: 0.123456789\n"
                "  cold_after: 1501ms\n"
                "  users: [0, \"7:8\"]\n"
                "  capabilities: [NET_BIND_SERVICE, FSETID]\n"
                "  allow_users: [\"~\", \"null\", 'a''b', \"true\"]\n"
                "  limits: {command_bytes: 17k, timeout_max: 0, timeout: 0}\n"
                "profiles:\n"
                "  \"true\": {tmpfs: {/tmp: 0, /home/sandbox: 4k}, env: {A: \"\"}}\n"
                "  \"1\": {read_only: false, user: \"3:4\", workdir: /}\n"
                "  \"null\": {ulimits: {core: 0, nofile: \"1:9223372036854775807\"}}\n"
                "waf_mode: off\n"
                "allowed_file_paths: [\"/a b\", /c/./d//]\n"
                "engine: {socket: \"unix:///x//y\"}\n");
        /* no writable place at all, and none in the pool to take away */
        check_round_trip(
                "pool: {memory_limit: 33m, tmpfs: {/tmp: 0, /home/sandbox: 0}}\nprofiles: {a: {}}\n");
}

static void recipe_of(const char *pool, uint8_t ret[CONFIG_RECIPE]) {
        char yaml[512];
        struct config *c;

        snprintf(yaml, sizeof(yaml), "profiles: {p: {%s}}\n", pool);
        c = load(yaml);
        memcpy(ret, c->profiles[1].recipe, CONFIG_RECIPE);
        config_free(c);
}

static void recipe_changes(void **state) {
        static const char *const changing[] = {
                "image: debian:trixie-slim",
                "memory_limit: 129m",
                "memory_reserve: 15m",
                "cpus: 0.999999999",
                "network: bridge",
                "read_only: false",
                "pids_limit: 255",
                "reconnect_grace: 1m",
                "tmpfs: {/tmp: 47m}",
                "tmpfs: {/tmp: 0}",
                "tmpfs: {/x: 4k}",
                "shm_size: 15m",
                "runtime: runsc",
                "user: 10001:10000",
                "user: 10000:10001",
                "user: 0",
                "users: [0]",
                "users: [\"1:2\"]",
                "users: [\"2:1\"]",
                "users: [\"1:2\", 3]",
                "capabilities: [CHOWN]",
                "capabilities: [FOWNER]",
                "workdir: /tmp",
                "home: /tmp",
                "env: {A: \"\"}",
                "env: {A: b}",
                "env: {A: b, C: d}",
                "ulimits: {core: 0}",
                "ulimits: {core: 1}",
                "ulimits: {nofile: 0}",
                "ulimits: {core: \"0:1\"}",
                "env: {A: \"b\\nC=d\"}",
        };
        static const char *const keeping[] = {
                "size: 4",
                "reuse: replace",
                "max_uses: 3",
                "max_age: 1h",
                "on_empty: wait",
                "cold_after: 1s",
                "max_sandboxes: 30",
                "queue_limit: 1",
                "queue_timeout: 1s",
                "session_ttl: 1s",
                "session_ttl_max: 2s",
                "allow_users: [a]",
                "allow_groups: [a]",
                "limits: {timeout: 1}",
                "memory_limit: 131072k",
                "cpus: \"1.0\"",
                "user: 10000",
                "workdir: /home//sandbox/",
                "users: []",
                "capabilities: []",
                "limits: {exec_rate: 5, command_bytes: 1, grace: 1, sessions: 1, execs: 1, queued: 1}",
        };
        enum { N = sizeof(changing) / sizeof(changing[0]) };
        uint8_t plain[CONFIG_RECIPE], seen[N][CONFIG_RECIPE], one[CONFIG_RECIPE];

        (void)state;
        recipe_of("", plain);
        for (size_t i = 0; i < N; i++) {
                recipe_of(changing[i], seen[i]);
                if (memcmp(seen[i], plain, CONFIG_RECIPE) == 0)
                        fail_msg("no change by %s", changing[i]);
                for (size_t j = 0; j < i; j++)
                        if (memcmp(seen[i], seen[j], CONFIG_RECIPE) == 0)
                                fail_msg("%s is the same as %s", changing[i], changing[j]);
        }
        for (size_t i = 0; i < sizeof(keeping) / sizeof(keeping[0]); i++) {
                recipe_of(keeping[i], one);
                if (memcmp(one, plain, CONFIG_RECIPE) != 0)
                        fail_msg("a change by %s", keeping[i]);
        }
}

/* Where a command can be root nothing is scrubbed, whatever is inherited. */
static void root_inside(void **state) {
        struct config *c = load(
                "pool: {users: [5, \"0:7\", \"5:5\", \"5:4\"], capabilities: [cap_chown, FOWNER]}\n"
                "profiles:\n"
                "  a: {users: []}\n"
                "  b: {user: 0, users: []}\n"
                "  c: {user: 1, users: [2], capabilities: [], reuse: scrub}\n");
        const struct config_profile *p = c->profiles;
        char *text = NULL;
        size_t len;
        FILE *f = open_memstream(&text, &len);

        (void)state;
        assert_int_equal(p[0].reuse, REUSE_REPLACE);
        assert_int_equal(p[0].n_users, 3);
        assert_int_equal(p[0].users[0].uid, 0);
        assert_int_equal(p[0].users[0].gid, 7);
        assert_int_equal(p[0].users[1].gid, 4);
        assert_int_equal(p[0].users[2].gid, 5);
        assert_true(p[0].capabilities == (1u << CAP_CHOWN | 1u << CAP_FOWNER));
        assert_int_equal(p[1].reuse, REUSE_SCRUB);
        assert_true(p[1].capabilities == p[0].capabilities);
        assert_int_equal(p[2].reuse, REUSE_REPLACE);
        assert_int_equal(p[2].uid + p[2].gid, 0);
        assert_int_equal(p[3].reuse, REUSE_SCRUB);
        assert_int_equal(config_show(c, f), 0);
        fclose(f);
        assert_non_null(strstr(text, "  users:\n    - \"0:7\"\n    - \"5:4\"\n    - \"5:5\"\n"
                                     "  capabilities:\n    - CHOWN\n    - FOWNER\n"));
        assert_non_null(strstr(text, "  reuse: replace\n"));
        free(text);
        config_free(c);
}

static void collect(void *userdata, const char *line) {
        char *text = userdata;

        strcat(strcat(text, line), "\n");
}

static void unenforced(void **state) {
        char text[2048] = "";
        struct config *c = load("waf_mode: off\n");

        (void)state;
        config_unenforced(c, collect, text);
        assert_string_equal(text, "");
        config_free(c);

        /* What a profile has from the pool is said there. */
        c = load("allowed_file_paths: [/a]\n"
                 "pool: {read_only: false}\n"
                 "limits: {exec_rate: 7}\n"
                 "profiles: {a: {}, b: {max_uses: 6, max_age: 1h}, c: {reuse: replace}}\n");
        config_unenforced(c, collect, text);
        assert_string_equal(text, "waf_mode: unenforced (no MCP server in this version)\n"
                                  "pool.reuse: unenforced (scrub needs read_only: true; each sandbox is "
                                  "replaced after one command)\n");
        config_free(c);

        text[0] = 0;
        c = load("waf_mode: off\n"
                 "profiles: {a: {}, b: {read_only: false}, c: {read_only: false, reuse: replace}}\n");
        config_unenforced(c, collect, text);
        assert_string_equal(text, "profiles.b.reuse: unenforced (scrub needs read_only: true; each "
                                  "sandbox is replaced after one command)\n");
        config_free(c);
}

static void show_says_when_it_cannot_write(void **state) {
        struct config *c = load("");
        FILE *f = fopen("/dev/full", "we");

        (void)state;
        assert_non_null(f);
        assert_true(config_show(c, f) < 0);
        fclose(f);
        config_free(c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(earlier_file),   cmocka_unit_test(defaults),
                cmocka_unit_test(inheritance),    cmocka_unit_test(round_trip),
                cmocka_unit_test(recipe_changes), cmocka_unit_test(root_inside),
                cmocka_unit_test(unenforced),     cmocka_unit_test(show_says_when_it_cannot_write),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
