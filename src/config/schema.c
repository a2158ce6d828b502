/*
 * The tables are the schema: a key that has no row is unknown, and a row says what may stand there.
 * The order of reading is that of inheritance (limits, pool, profiles), whatever the order in the file.
 */
#include "config/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/alloc.h"
#include "config/load.h"
#include "config/profile.h"
#include "config/readers.h"
#include "config/values.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define PIB (UINT64_C(1) << 50)
#define SECOND UINT64_C(1000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

const char *const config_words_reuse[] = { "replace", "scrub", NULL };
const char *const config_words_on_empty[] = { "cold", "wait", NULL };
const char *const config_words_tristate[] = { "auto", "true", "false", NULL };
const char *const config_words_log_level[] = { "DEBUG", "INFO", "WARNING", "ERROR", NULL };
static const char *const words_waf_mode[] = { "read-only", "read-write", "off", NULL };

#define LIMIT(key, how, f, ...)                                                                       \
        {                                                                                             \
                .name = #key, .read = config_read_##how, .offset = offsetof(struct config_limits, f), \
                __VA_ARGS__                                                                           \
        }

static const struct config_key limits_keys[] = {
        /* the frames carry 4 MiB: 3 leave room for the environment */
        LIMIT(command_bytes, size, command_bytes, .min = 1, .max = 3 * MIB),
        LIMIT(timeout, duration, timeout_ms, .max = 365 * DAY),
        LIMIT(timeout_max, duration, timeout_max_ms, .max = 365 * DAY),
        LIMIT(output_bytes, size, output_bytes, .max = PIB),
        LIMIT(grace, duration, grace_ms, .max = HOUR),
        LIMIT(exec_rate, u32, exec_rate, .max = 1000000),
        LIMIT(sessions, u32, sessions, .max = 10000),
        LIMIT(execs, u32, execs, .min = 1, .max = 100000),
        LIMIT(queued, u32, queued, .min = 1, .max = 100000),
        { .name = NULL },
};

#define PROFILE(key, how, f, ...)                                                                      \
        {                                                                                              \
                .name = #key, .read = config_read_##how, .offset = offsetof(struct config_profile, f), \
                __VA_ARGS__                                                                            \
        }
/* For a reader that takes the whole profile. */
#define WHOLE(key) \
        { .name = #key, .read = config_read_##key }

static const struct config_key profile_keys[] = {
        PROFILE(size, u32, size, .max = 1000),
        PROFILE(image, image, image),
        PROFILE(memory_limit, size, memory_bytes, .min = CONFIG_MEMORY_MIN, .max = PIB),
        PROFILE(memory_reserve, reserve, memory_reserve_bytes),
        /* the engine's largest is the machine's number of CPUs */
        PROFILE(cpus, cpus, cpu_nano, .min = CONFIG_CPU_MIN, .max = UINT64_C(1024000000000)),
        PROFILE(network, network, network),
        PROFILE(read_only, bool, read_only),
        PROFILE(pids_limit, u32, pids_limit, .min = CONFIG_PIDS_MIN, .max = 4194304),
        WHOLE(tmpfs),
        PROFILE(shm_size, size, shm_bytes, .min = CONFIG_SHM_MIN, .max = PIB),
        PROFILE(reuse, word, reuse, .words = config_words_reuse),
        PROFILE(max_uses, u32, max_uses, .max = 1000000000),
        PROFILE(max_age, duration, max_age_ms, .max = 365 * DAY),
        PROFILE(on_empty, word, on_empty, .words = config_words_on_empty),
        PROFILE(cold_after, duration, cold_after_ms, .max = 60 * SECOND),
        PROFILE(max_sandboxes, u32, max_sandboxes, .min = 1, .max = 10000),
        PROFILE(queue_limit, u32, queue_limit, .max = 100000),
        PROFILE(queue_timeout, duration, queue_timeout_ms, .max = HOUR),
        PROFILE(session_ttl, duration, session_ttl_ms, .max = 365 * DAY),
        PROFILE(session_ttl_max, duration, session_ttl_max_ms, .max = 365 * DAY),
        PROFILE(reconnect_grace, duration, reconnect_grace_ms, .min = SECOND, .max = DAY),
        PROFILE(runtime, runtime, runtime),
        WHOLE(user),
        WHOLE(users),
        WHOLE(capabilities),
        PROFILE(workdir, path, workdir, .max = 4095),
        PROFILE(home, path, home, .max = 4095),
        WHOLE(env),
        WHOLE(ulimits),
        PROFILE(allow_users, accounts, allow_users),
        PROFILE(allow_groups, accounts, allow_groups),
        PROFILE(limits, table, limits, .table = limits_keys),
        { .name = NULL },
};

#define TOP(key, how, f, ...) \
        { .name = #key, .read = config_read_##how, .offset = offsetof(struct config, f), __VA_ARGS__ }

static const struct config_key logging_keys[] = {
        TOP(level, word, log_level, .words = config_words_log_level),
        TOP(backup_count, u32, log_backup_count, .max = 100),
        TOP(max_size_mb, megabytes, log_max_bytes, .min = 1, .max = 1024),
        TOP(file, file_name, log_file),
        { .name = NULL },
};

static const struct config_key audit_keys[] = {
        TOP(required, word, audit_required, .words = config_words_tristate),
        TOP(file, path, audit_file, .min = 2, .max = 4095),
        { .name = NULL },
};

static const struct config_key engine_keys[] = {
        TOP(socket, socket, engine_socket),
        { .name = NULL },
};

static CONFIG_READER(later) {
        (void)k;
        (void)object;
        return n->type == CONFIG_MAPPING ? 0 : config_bad_node(r, n, "a mapping");
}

static const struct config_key top_keys[] = {
        { .name = "pool", .read = config_read_later },
        { .name = "profiles", .read = config_read_later },
        { .name = "limits", .read = config_read_later },
        TOP(waf_mode, word_text, waf_mode, .words = words_waf_mode),
        TOP(allowed_file_paths, paths, allowed_file_paths),
        { .name = "tool_overrides", .read = config_read_overrides },
        { .name = "logging", .read = config_read_table, .table = logging_keys },
        { .name = "audit", .read = config_read_table, .table = audit_keys },
        { .name = "engine", .read = config_read_table, .table = engine_keys },
        { .name = NULL },
};

static int unknown_key(struct config_reader *r, const struct config_pair *pair,
                       const struct config_key *table) {
        char expected[416] = "one of: ";
        size_t len = strlen(expected);

        for (const struct config_key *k = table; k->name && len < sizeof(expected); k++)
                len += (size_t)snprintf(expected + len, sizeof(expected) - len, "%s%s",
                                        k == table ? "" : ", ", k->name);
        return config_bad(r, &pair->mark, "an unknown key", expected);
}

int config_read_mapping(struct config_reader *r, const struct config_node *n,
                        const struct config_key *table, void *object) {
        if (n->type != CONFIG_MAPPING)
                return config_bad_node(r, n, "a mapping");
        for (size_t i = 0; i < n->n; i++) {
                const struct config_pair *pair = &n->pairs[i];
                const struct config_key *k = table;
                size_t was = config_enter(r, pair->key);
                int q;

                while (k->name && strcmp(k->name, pair->key) != 0)
                        k++;
                if (!k->name)
                        return unknown_key(r, pair, table);
                q = k->read(r, pair->value, k, object);
                if (q < 0)
                        return q;
                config_leave(r, was);
        }
        return 0;
}

static int compare_profiles(const void *a, const void *b) {
        return strcmp(((const struct config_profile *)a)->name,
                      ((const struct config_profile *)b)->name);
}

static int read_profile(struct config_reader *r, const struct config_pair *pair, struct config *c) {
        size_t was = config_enter(r, pair->key);
        struct config_profile *p;
        char found[64];
        int q;

        if (strcmp(pair->key, "default") == 0)
                return config_bad(r, &pair->mark, "\"default\"",
                                  "another name (the default profile is pool:)");
        if (!config_profile_name_ok(pair->key))
                return config_bad(r, &pair->mark, config_quote(pair->key, found, sizeof(found)),
                                  "a name of a-z, 0-9, _ and -, at most 32 bytes, _ or - not in front");
        if (c->n_profiles > CONFIG_PROFILES_MAX)
                return config_bad(r, &pair->mark, "too many profiles", "at most 64");
        c->profiles = config_grow(c->profiles, c->n_profiles + 1, sizeof(*c->profiles));
        p = &c->profiles[c->n_profiles++];
        config_profile_copy(p, &c->profiles[0], pair->key);
        q = config_read_mapping(r, pair->value, profile_keys, p);
        config_leave(r, was);
        return q;
}

static int read_profiles(struct config_reader *r, const struct config_node *root, struct config *c) {
        const struct config_node *limits = config_node_get(root, "limits"),
                                 *pool = config_node_get(root, "pool"),
                                 *profiles = config_node_get(root, "profiles");
        int q = 0;

        config_enter(r, "limits");
        if (limits)
                q = config_read_mapping(r, limits, limits_keys, &c->profiles[0].limits);
        if (q < 0)
                return q;
        config_leave(r, 0);
        config_enter(r, "pool");
        if (pool)
                q = config_read_mapping(r, pool, profile_keys, &c->profiles[0]);
        if (q < 0)
                return q;
        config_leave(r, 0);
        config_enter(r, "profiles");
        for (size_t i = 0; profiles && i < profiles->n; i++) {
                q = read_profile(r, &profiles->pairs[i], c);
                if (q < 0)
                        return q;
        }
        config_leave(r, 0);
        qsort(c->profiles + 1, c->n_profiles - 1, sizeof(*c->profiles), compare_profiles);
        for (size_t i = 0; i < c->n_profiles; i++)
                config_profile_finish(&c->profiles[i]);
        return 0;
}

static const char *default_engine_socket = "/run/docker.sock",
                  *default_audit_file = "/var/log/hermes-sandbox/sandbox-audit.log";

void config_set_defaults(const char *engine_socket, const char *audit_file) {
        default_engine_socket = engine_socket;
        default_audit_file = audit_file;
}

static struct config *config_defaults(void) {
        struct config *c = config_calloc(1, sizeof(*c));

        *c = (struct config){
                .profiles = config_calloc(1, sizeof(*c->profiles)),
                .n_profiles = 1,
                .waf_mode = config_strdup("read-only"),
                .allowed_file_paths = config_calloc(1, sizeof(char *)),
                .log_level = LOG_LEVEL_INFO,
                .log_backup_count = 3,
                .log_max_bytes = 5 * MIB,
                .log_file = config_strdup(""),
                .audit_required = TRI_AUTO,
                .audit_file = config_strdup(default_audit_file),
                .engine_socket = config_strdup(default_engine_socket),
        };
        config_profile_init(&c->profiles[0], "default");
        return c;
}

int config_from_tree(const struct config_node *root, struct config **ret, struct errmsg *e) {
        struct config *c = config_defaults();
        struct config_reader r;
        int q;

        config_reader_init(&r, e);
        q = config_read_mapping(&r, root, top_keys, c);
        if (q == 0)
                q = read_profiles(&r, root, c);
        if (q < 0) {
                config_free(c);
                return q;
        }
        *ret = c;
        return 0;
}
