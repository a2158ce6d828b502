/*
 * The hash that tells a stale sandbox from a fresh one, and a broker with an older config from one with
 * the same. Only what the create call or a command's surroundings are built from is in it: a change of
 * policy (size, queue, limits of time) replaces no sandbox.
 *
 * Each field is fed as its length and its bytes, each list as its count first: no two recipes give the
 * same bytes.
 */
#include <nettle/sha2.h>
#include <string.h>

#include "config/profile.h"

static void put_bytes(struct sha256_ctx *h, const void *p, size_t len) {
        uint8_t prefix[4] = { (uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16),
                              (uint8_t)(len >> 24) };

        sha256_update(h, sizeof(prefix), prefix);
        sha256_update(h, len, p);
}

static void put_str(struct sha256_ctx *h, const char *s) {
        put_bytes(h, s, strlen(s));
}

static void put_u64(struct sha256_ctx *h, uint64_t v) {
        uint8_t b[8];

        for (unsigned i = 0; i < sizeof(b); i++)
                b[i] = (uint8_t)(v >> (8 * i));
        put_bytes(h, b, sizeof(b));
}

void config_recipe(struct config_profile *p) {
        struct sha256_ctx h;
        size_t n_env = 0;

        while (p->env[n_env])
                n_env++;
        sha256_init(&h);
        put_str(&h, "hermes-sandbox recipe 2");
        put_str(&h, p->image);
        put_u64(&h, p->memory_bytes);
        put_u64(&h, p->memory_reserve_bytes);
        put_u64(&h, p->cpu_nano);
        put_str(&h, p->network);
        put_u64(&h, p->read_only);
        put_u64(&h, p->pids_limit);
        put_u64(&h, p->reconnect_grace_ms);
        put_u64(&h, p->n_tmpfs);
        for (size_t i = 0; i < p->n_tmpfs; i++) {
                put_str(&h, p->tmpfs[i].path);
                put_u64(&h, p->tmpfs[i].bytes);
        }
        put_u64(&h, p->shm_bytes);
        put_str(&h, p->runtime);
        put_u64(&h, p->uid);
        put_u64(&h, p->gid);
        put_u64(&h, p->n_users);
        for (size_t i = 0; i < p->n_users; i++) {
                put_u64(&h, p->users[i].uid);
                put_u64(&h, p->users[i].gid);
        }
        put_u64(&h, p->capabilities);
        put_str(&h, p->workdir);
        put_str(&h, p->home);
        put_u64(&h, n_env);
        for (size_t i = 0; i < n_env; i++)
                put_str(&h, p->env[i]);
        put_u64(&h, p->n_ulimits);
        for (size_t i = 0; i < p->n_ulimits; i++) {
                put_str(&h, p->ulimits[i].name);
                put_u64(&h, p->ulimits[i].soft);
                put_u64(&h, p->ulimits[i].hard);
        }
        sha256_digest(&h, CONFIG_RECIPE, p->recipe);
}

void config_recipe_with_agent(const struct config_profile *p, const uint8_t agent[CONFIG_RECIPE],
                              uint8_t ret[CONFIG_RECIPE]) {
        struct sha256_ctx h;

        sha256_init(&h);
        sha256_update(&h, CONFIG_RECIPE, p->recipe);
        sha256_update(&h, CONFIG_RECIPE, agent);
        sha256_digest(&h, CONFIG_RECIPE, ret);
}
