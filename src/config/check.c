/*
 * What must hold between two values. Each complaint stands at the value that decides: the first of the
 * keys concerned that this profile itself says. A profile that says none of them has the pool's values,
 * which were checked before; the defaults fit each other.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/narrow.h"
#include "config/report.h"
#include "config/schema.h"
#include "config/units.h"

#define ENV_MAX (UINT64_C(128) << 10)
#define LOG_DIR "/var/log/hermes-sandbox/"

struct check {
        struct config_reader reader;
        const struct config_node *root;
        const struct config_node *own; /* pool: or the profile's mapping; NULL: none */
};

/* Complains at the first of the NULL-terminated @keys that stands in @in, else at the file's top. */
static int complain(struct check *c, const struct config_node *in, const char *const *keys,
                    const char *found, const char *expected) {
        for (; *keys; keys++) {
                const struct config_node *n = config_node_get(in, *keys);

                if (n) {
                        config_enter(&c->reader, *keys);
                        return config_bad(&c->reader, &n->mark, found, expected);
                }
        }
        return config_bad(&c->reader, &c->root->mark, found, expected);
}

static int check_memory(struct check *c, const struct config_profile *p) {
        char limit[CONFIG_UNIT_TEXT], a[CONFIG_UNIT_TEXT], b[CONFIG_UNIT_TEXT];
        char found[160], expected[128];
        uint64_t tmpfs = 0, room = p->memory_bytes - CONFIG_HEADROOM;

        config_format_size(p->memory_bytes, limit);
        if (p->memory_reserve_bytes > p->memory_bytes) {
                snprintf(found, sizeof(found), "memory_reserve %s with memory_limit %s",
                         config_format_size(p->memory_reserve_bytes, a), limit);
                return complain(c, c->own, (const char *[]){ "memory_reserve", "memory_limit", NULL },
                                found, "a memory_reserve of at most memory_limit");
        }
        for (size_t i = 0; i < p->n_tmpfs; i++)
                tmpfs += p->tmpfs[i].bytes;
        if (tmpfs + p->shm_bytes <= room)
                return 0;
        snprintf(found, sizeof(found), "tmpfs %s and shm_size %s with memory_limit %s",
                 config_format_size(tmpfs, a), config_format_size(p->shm_bytes, b), limit);
        snprintf(expected, sizeof(expected),
                 "at most %s for tmpfs and shm_size together (memory_limit less 16m)",
                 config_format_size(room, a));
        return complain(c, c->own, (const char *[]){ "memory_limit", "tmpfs", "shm_size", NULL }, found,
                        expected);
}

static int check_pool(struct check *c, const struct config_profile *p) {
        char found[96];
        uint64_t env = 0;

        if (p->size > p->max_sandboxes) {
                snprintf(found, sizeof(found), "size %" PRIu32 " with max_sandboxes %" PRIu32, p->size,
                         p->max_sandboxes);
                return complain(c, c->own, (const char *[]){ "size", "max_sandboxes", NULL }, found,
                                "a size of at most max_sandboxes");
        }
        for (size_t i = 0; p->env[i]; i++)
                env += strlen(p->env[i]) + 1;
        if (env > ENV_MAX) {
                snprintf(found, sizeof(found), "%" PRIu64 " bytes", env);
                return complain(c, c->own, (const char *[]){ "env", NULL }, found,
                                "at most 131072 bytes in all");
        }
        return 0;
}

/* Inherited it means nothing, said in the same place it is a mistake. */
static int check_root(struct check *c, const struct config_profile *p) {
        const struct config_node *reuse = config_node_get(c->own, "reuse");

        if (!reuse || strcmp(reuse->text, config_words_reuse[REUSE_SCRUB]) != 0 ||
            !config_profile_has_user(p, 0, UINT32_MAX, NULL))
                return 0;
        return complain(
                c, c->own, (const char *[]){ "reuse", NULL }, "scrub where user or users has uid 0",
                "replace (whoever was root in a sandbox may have changed what the proof looks at)");
}

static int check_limits(struct check *c, const struct config_profile *p, bool is_pool) {
        static const char *const keys[] = { "timeout", "timeout_max", NULL };
        const struct config_node *own = config_node_get(c->own, "limits");
        const struct config_limits *l = &p->limits;
        char a[CONFIG_UNIT_TEXT], b[CONFIG_UNIT_TEXT], found[96];

        if (l->timeout_max_ms == 0 || (l->timeout_ms > 0 && l->timeout_ms <= l->timeout_max_ms))
                return 0;
        snprintf(found, sizeof(found), "timeout %s%s with timeout_max %s",
                 config_format_duration(l->timeout_ms, a), l->timeout_ms ? "" : " (none)",
                 config_format_duration(l->timeout_max_ms, b));
        if (is_pool && !config_node_get(own, "timeout") && !config_node_get(own, "timeout_max")) {
                config_leave(&c->reader, 0);
                own = config_node_get(c->root, "limits");
        }
        config_enter(&c->reader, "limits");
        return complain(c, own, keys, found,
                        "a timeout of at most timeout_max (timeout_max 0: no bound)");
}

static int check_profile(struct check *c, const struct config *config, size_t i) {
        const struct config_profile *p = &config->profiles[i];
        int r;

        config_leave(&c->reader, 0);
        if (i == 0) {
                c->own = config_node_get(c->root, "pool");
                config_enter(&c->reader, "pool");
        } else {
                c->own = config_node_get(config_node_get(c->root, "profiles"), p->name);
                config_enter(&c->reader, "profiles");
                config_enter(&c->reader, p->name);
        }
        r = check_memory(c, p);
        if (r == 0)
                r = check_pool(c, p);
        if (r == 0)
                r = check_root(c, p);
        if (r == 0)
                r = check_limits(c, p, i == 0);
        return r;
}

int config_check(const struct config *config, const struct config_node *root, struct errmsg *e) {
        struct check c = { .root = root };

        config_reader_init(&c.reader, e);
        for (size_t i = 0; i < config->n_profiles; i++) {
                int r = check_profile(&c, config, i);

                if (r < 0)
                        return r;
        }
        config_leave(&c.reader, 0);
        if (config->log_file[0] && strncmp(config->audit_file, LOG_DIR, strlen(LOG_DIR)) == 0 &&
            strcmp(config->audit_file + strlen(LOG_DIR), config->log_file) == 0) {
                config_enter(&c.reader, "logging");
                return complain(&c, config_node_get(root, "logging"), (const char *[]){ "file", NULL },
                                "the name of audit.file", "a file of its own");
        }
        return 0;
}
