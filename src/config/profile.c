/*
 * The defaults stand here and nowhere else. They are those of the earlier scripts' file where it had
 * the key, so that an empty file and that file mean the same pool.
 */
#include "config/profile.h"

#include <stdio.h>
#include <string.h>

#include "config/alloc.h"
#include "config/narrow.h"

static char **strv_new(void) {
        return config_calloc(1, sizeof(char *));
}

static size_t strv_len(char *const *v) {
        size_t n = 0;

        while (v[n])
                n++;
        return n;
}

static char **strv_copy(char *const *v) {
        size_t n = strv_len(v);
        char **out = config_calloc(n + 1, sizeof(*out));

        for (size_t i = 0; i < n; i++)
                out[i] = config_strdup(v[i]);
        return out;
}

void config_strv_free(char **v) {
        for (size_t i = 0; v && v[i]; i++)
                free(v[i]);
        free(v);
}

void config_profile_init(struct config_profile *p, const char *name) {
        *p = (struct config_profile){
                .name = config_strdup(name),
                .image = config_strdup("debian:bookworm-slim"),
                .memory_bytes = UINT64_C(128) << 20,
                .memory_reserve_bytes = UINT64_C(16) << 20,
                .cpu_nano = UINT64_C(1000000000),
                .network = config_strdup("none"),
                .read_only = true,
                .pids_limit = 256,
                .reconnect_grace_ms = 120000,
                .shm_bytes = UINT64_C(16) << 20,
                .runtime = config_strdup(""),
                .uid = 10000,
                .gid = 10000,
                .home = config_strdup("/home/sandbox"),
                .env = strv_new(),
                .size = 3,
                .reuse = REUSE_SCRUB,
                .max_uses = 10000,
                .max_age_ms = UINT64_C(86400000),
                .on_empty = ON_EMPTY_COLD,
                .cold_after_ms = 100,
                .queue_limit = 100,
                .queue_timeout_ms = 30000,
                .session_ttl_ms = UINT64_C(1800000),
                .session_ttl_max_ms = UINT64_C(86400000),
                .allow_users = strv_new(),
                .allow_groups = strv_new(),
                .limits = {
                        .command_bytes = 16384,
                        .timeout_ms = 180000,
                        .timeout_max_ms = 3600000,
                        .grace_ms = 2000,
                        .sessions = 16,
                        .execs = 512,
                },
        };
        config_profile_set_tmpfs(p, "/tmp", UINT64_C(48) << 20);
        config_profile_set_tmpfs(p, "/home/sandbox", UINT64_C(32) << 20);
}

void config_profile_copy(struct config_profile *dst, const struct config_profile *src,
                         const char *name) {
        *dst = *src;
        dst->name = config_strdup(name);
        dst->image = config_strdup(src->image);
        dst->network = config_strdup(src->network);
        dst->runtime = config_strdup(src->runtime);
        dst->workdir = src->workdir ? config_strdup(src->workdir) : NULL;
        dst->home = config_strdup(src->home);
        dst->env = strv_copy(src->env);
        dst->allow_users = strv_copy(src->allow_users);
        dst->allow_groups = strv_copy(src->allow_groups);
        dst->tmpfs = config_calloc(src->n_tmpfs, sizeof(*dst->tmpfs));
        for (size_t i = 0; i < src->n_tmpfs; i++)
                dst->tmpfs[i] = (struct config_tmpfs){ config_strdup(src->tmpfs[i].path),
                                                       src->tmpfs[i].bytes };
        dst->users = config_calloc(src->n_users, sizeof(*dst->users));
        for (size_t i = 0; i < src->n_users; i++)
                dst->users[i] = src->users[i];
        dst->ulimits = config_calloc(src->n_ulimits, sizeof(*dst->ulimits));
        for (size_t i = 0; i < src->n_ulimits; i++)
                dst->ulimits[i] = (struct config_ulimit){ config_strdup(src->ulimits[i].name),
                                                          src->ulimits[i].soft, src->ulimits[i].hard };
}

void config_profile_done(struct config_profile *p) {
        for (size_t i = 0; i < p->n_tmpfs; i++)
                free(p->tmpfs[i].path);
        for (size_t i = 0; i < p->n_ulimits; i++)
                free(p->ulimits[i].name);
        free(p->tmpfs);
        free(p->ulimits);
        free(p->users);
        free(p->name);
        free(p->image);
        free(p->network);
        free(p->runtime);
        free(p->workdir);
        free(p->home);
        config_strv_free(p->env);
        config_strv_free(p->allow_users);
        config_strv_free(p->allow_groups);
        *p = (struct config_profile){ 0 };
}

void config_profile_finish(struct config_profile *p) {
        if (!p->workdir)
                p->workdir = config_strdup(p->home);
        if (p->max_sandboxes == 0)
                p->max_sandboxes = p->size > 2 ? 4 * p->size : 8;
        if (p->limits.queued == 0)
                p->limits.queued = p->queue_limit > 0 ? p->queue_limit : 1;
        /* Whoever has been root in it may have changed what the proof looks at. */
        if (config_profile_has_user(p, 0, UINT32_MAX, NULL))
                p->reuse = REUSE_REPLACE;
        config_recipe(p);
}

static int compare_users(const void *a, const void *b) {
        const struct config_user *x = a, *y = b;

        if (x->uid != y->uid)
                return x->uid < y->uid ? -1 : 1;
        return (x->gid > y->gid) - (x->gid < y->gid);
}

void config_profile_add_user(struct config_profile *p, uint32_t uid, uint32_t gid) {
        for (size_t i = 0; i < p->n_users; i++)
                if (p->users[i].uid == uid && p->users[i].gid == gid)
                        return;
        p->users = config_grow(p->users, p->n_users + 1, sizeof(*p->users));
        p->users[p->n_users++] = (struct config_user){ uid, gid };
        qsort(p->users, p->n_users, sizeof(*p->users), compare_users);
}

void config_profile_set_tmpfs(struct config_profile *p, const char *path, uint64_t bytes) {
        size_t i = 0;

        while (i < p->n_tmpfs && strcmp(p->tmpfs[i].path, path) < 0)
                i++;
        if (i < p->n_tmpfs && strcmp(p->tmpfs[i].path, path) == 0) {
                p->tmpfs[i].bytes = bytes;
                if (bytes > 0)
                        return;
                free(p->tmpfs[i].path);
                p->n_tmpfs--;
                memmove(p->tmpfs + i, p->tmpfs + i + 1, (p->n_tmpfs - i) * sizeof(*p->tmpfs));
                return;
        }
        if (bytes == 0)
                return;
        p->tmpfs = config_grow(p->tmpfs, p->n_tmpfs + 1, sizeof(*p->tmpfs));
        memmove(p->tmpfs + i + 1, p->tmpfs + i, (p->n_tmpfs - i) * sizeof(*p->tmpfs));
        p->tmpfs[i] = (struct config_tmpfs){ config_strdup(path), bytes };
        p->n_tmpfs++;
}

uint64_t config_profile_tmpfs(const struct config_profile *p, const char *path) {
        for (size_t i = 0; i < p->n_tmpfs; i++)
                if (strcmp(p->tmpfs[i].path, path) == 0)
                        return p->tmpfs[i].bytes;
        return 0;
}

/* Keys are compared, not whole entries: "A=" sorts behind "A-" as bytes, and "A" before "AB" as a key.
 */
void config_profile_set_env(struct config_profile *p, const char *key, const char *value) {
        size_t n = strv_len(p->env), key_len = strlen(key), i = 0;
        char *entry = config_calloc(1, key_len + 1 + strlen(value) + 1);

        stpcpy(stpcpy(stpcpy(entry, key), "="), value);
        for (; i < n; i++) {
                size_t have = strcspn(p->env[i], "=");
                int c = strncmp(p->env[i], key, have < key_len ? have : key_len);

                if (c == 0 && have == key_len) {
                        free(p->env[i]);
                        p->env[i] = entry;
                        return;
                }
                if (c > 0 || (c == 0 && have > key_len))
                        break;
        }
        p->env = config_grow(p->env, n + 2, sizeof(*p->env));
        memmove(p->env + i + 1, p->env + i, (n - i + 1) * sizeof(*p->env));
        p->env[i] = entry;
}

void config_profile_set_ulimit(struct config_profile *p, const char *name, uint64_t soft,
                               uint64_t hard) {
        size_t i = 0;

        while (i < p->n_ulimits && strcmp(p->ulimits[i].name, name) < 0)
                i++;
        if (i == p->n_ulimits || strcmp(p->ulimits[i].name, name) != 0) {
                p->ulimits = config_grow(p->ulimits, p->n_ulimits + 1, sizeof(*p->ulimits));
                memmove(p->ulimits + i + 1, p->ulimits + i, (p->n_ulimits - i) * sizeof(*p->ulimits));
                p->ulimits[i].name = config_strdup(name);
                p->n_ulimits++;
        }
        p->ulimits[i].soft = soft;
        p->ulimits[i].hard = hard;
}
