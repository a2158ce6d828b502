/*
 * Less than the profile, never more: each number is the smaller of two, and what the profile has not is an error. What
 * comes out keeps the rules that check.c holds a profile to: tmpfs and shm leave CONFIG_HEADROOM of the memory limit
 * free, and the reserve is no more than the limit.
 */
#include "config/narrow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/escape.h"
#include "config/alloc.h"
#include "config/profile.h"
#include "config/units.h"
#include "config/values.h"

/* A place that is made smaller keeps this much. */
#define SCALED_MIN (UINT64_C(64) << 10)
#define PAGE UINT64_C(4096)

bool config_profile_has_user(const struct config_profile *p, uint32_t uid, uint32_t gid,
                             uint32_t *ret_gid) {
        const struct config_user own = { p->uid, p->gid };

        for (size_t i = 0; i <= p->n_users; i++) {
                const struct config_user *u = i == 0 ? &own : &p->users[i - 1];

                if (u->uid != uid || (gid != UINT32_MAX && u->gid != gid))
                        continue;
                if (ret_gid)
                        *ret_gid = u->gid;
                return true;
        }
        return false;
}

bool config_narrow_changes_nothing(const struct config_profile *p, const struct narrow *n) {
        if ((n->memory_bytes && n->memory_bytes < p->memory_bytes) ||
            (n->cpu_nano && n->cpu_nano < p->cpu_nano) ||
            (n->pids_limit && n->pids_limit < p->pids_limit) ||
            (n->shm_bytes && n->shm_bytes < p->shm_bytes) ||
            (n->no_network && strcmp(p->network, "none") != 0) ||
            (n->user && (n->uid != p->uid || n->gid != p->gid)))
                return false;
        for (uint8_t i = 0; i < n->n_tmpfs; i++) {
                uint64_t have = config_profile_tmpfs(p, n->tmpfs[i].path);

                if (have == 0 || n->tmpfs[i].bytes < have)
                        return false;
        }
        return true;
}

/* --- numbers ------------------------------------------------------------------------------------- */

static int too_small(struct errmsg *e, const char *flag, const char *value, const char *key,
                     const char *min) {
        return errmsg_set(e, -EINVAL, "%s %s: the smallest %s is %s", flag, value, key, min);
}

/* @v 0: not asked for. */
static int narrow_size(uint64_t *have, uint64_t v, uint64_t min, const char *flag, const char *key,
                       struct errmsg *e) {
        char a[CONFIG_UNIT_TEXT], b[CONFIG_UNIT_TEXT];

        if (v == 0 || v >= *have)
                return 0;
        if (v < min)
                return too_small(e, flag, config_format_size(v, a), key, config_format_size(min, b));
        *have = v;
        return 0;
}

static int narrow_cpus(struct config_profile *p, uint64_t v, struct errmsg *e) {
        char a[CONFIG_UNIT_TEXT], b[CONFIG_UNIT_TEXT];

        if (v == 0 || v >= p->cpu_nano)
                return 0;
        if (v < CONFIG_CPU_MIN)
                return too_small(e, "--cpus", config_format_cpus(v, a), "cpus",
                                 config_format_cpus(CONFIG_CPU_MIN, b));
        p->cpu_nano = v;
        return 0;
}

static int narrow_pids(struct config_profile *p, uint32_t v, struct errmsg *e) {
        char a[CONFIG_UNIT_TEXT], b[CONFIG_UNIT_TEXT];

        if (v == 0 || v >= p->pids_limit)
                return 0;
        if (v < CONFIG_PIDS_MIN) {
                snprintf(a, sizeof(a), "%" PRIu32, v);
                snprintf(b, sizeof(b), "%u", CONFIG_PIDS_MIN);
                return too_small(e, "--pids-limit", a, "pids_limit", b);
        }
        p->pids_limit = v;
        return 0;
}

static int narrow_tmpfs(struct config_profile *p, const char *path, uint64_t bytes, struct errmsg *e) {
        char shown[160], a[CONFIG_UNIT_TEXT];
        uint64_t have = config_profile_tmpfs(p, path);
        struct text t;

        text_init(&t, shown, sizeof(shown));
        text_add_shown(&t, path, strnlen(path, 60));
        if (have == 0)
                return errmsg_set(
                        e, -EINVAL,
                        "--tmpfs %s: profile \"%s\" has none there: the administrator can add it to "
                        "its tmpfs, in sandbox.yaml",
                        shown, p->name);
        if (bytes < CONFIG_TMPFS_MIN)
                return errmsg_set(e, -EINVAL, "--tmpfs %s:size=%s: the smallest size of a tmpfs is 4k",
                                  shown, config_format_size(bytes, a));
        if (bytes < have)
                config_profile_set_tmpfs(p, path, bytes);
        return 0;
}

/* Ids that the config would not take are nobody's here. With another user than its own none of the profile's is left. */
static int narrow_user(struct config_profile *p, uint32_t uid, uint32_t gid, struct errmsg *e) {
        if (!config_user_ok(uid, gid))
                return errmsg_set(e, -EINVAL,
                                  "--user %" PRIu32 ":%" PRIu32
                                  ": no command may run as these (see user in sandbox.yaml(5))",
                                  uid, gid);
        if (uid == 0 && !config_profile_has_user(p, uid, gid, NULL))
                return errmsg_set(e, -EINVAL,
                                  "--user %" PRIu32 ":%" PRIu32
                                  ": neither user nor users of profile \"%s\" has it, in sandbox.yaml",
                                  uid, gid, p->name);
        if (uid == p->uid && gid == p->gid)
                return 0;
        p->uid = uid;
        p->gid = gid;
        p->n_users = 0;
        return 0;
}

/* --- what is in memory --------------------------------------------------------------------------- */

/* The sizes that are scaled: each tmpfs, and shm. */
static uint64_t *size_at(struct config_profile *p, size_t i) {
        return i < p->n_tmpfs ? &p->tmpfs[i].bytes : &p->shm_bytes;
}

static uint64_t least(uint64_t bytes) {
        return bytes < SCALED_MIN ? bytes : SCALED_MIN;
}

static uint64_t share(uint64_t bytes, uint64_t room, uint64_t total) {
        return (uint64_t)((unsigned __int128)bytes * room / total) & ~(PAGE - 1);
}

/* Takes out of @room and @total what must stay at its least, as its share would be less: as often as that makes another
 * one's share too small. False: there is no room even for that. */
static bool set_least(struct config_profile *p, bool *is_least, uint64_t *room, uint64_t *total) {
        bool more = true;

        while (more) {
                more = false;
                for (size_t i = 0; i <= p->n_tmpfs; i++) {
                        uint64_t bytes = *size_at(p, i);

                        if (is_least[i] || share(bytes, *room, *total) >= least(bytes))
                                continue;
                        if (least(bytes) > *room)
                                return false;
                        is_least[i] = more = true;
                        *room -= least(bytes);
                        *total -= bytes;
                }
        }
        return true;
}

/* In proportion, in whole pages, so that they fit below the memory limit. */
static int fit(struct config_profile *p, struct errmsg *e) {
        uint64_t room = p->memory_bytes - CONFIG_HEADROOM, total = 0;
        char limit[CONFIG_UNIT_TEXT];
        bool *is_least;

        for (size_t i = 0; i <= p->n_tmpfs; i++)
                total += *size_at(p, i);
        if (total <= room)
                return 0;
        is_least = config_calloc(p->n_tmpfs + 1, sizeof(*is_least));
        if (!set_least(p, is_least, &room, &total)) {
                free(is_least);
                return errmsg_set(
                        e, -EINVAL,
                        "--memory %s: less than 16m and 64k for each of the %zu places of tmpfs and "
                        "shm_size that profile \"%s\" has in memory",
                        config_format_size(p->memory_bytes, limit), p->n_tmpfs + 1, p->name);
        }
        for (size_t i = 0; i <= p->n_tmpfs; i++) {
                uint64_t *bytes = size_at(p, i);

                *bytes = is_least[i] ? least(*bytes) : share(*bytes, room, total);
        }
        free(is_least);
        return 0;
}

int config_narrow(const struct config_profile *p, const struct narrow *n, struct config_profile *ret,
                  struct errmsg *e) {
        struct config_profile c;
        int r;

        config_profile_copy(&c, p, p->name);
        r = narrow_size(&c.memory_bytes, n->memory_bytes, CONFIG_MEMORY_MIN, "--memory", "memory_limit",
                        e);
        if (r == 0)
                r = narrow_cpus(&c, n->cpu_nano, e);
        if (r == 0)
                r = narrow_pids(&c, n->pids_limit, e);
        if (r == 0)
                r = narrow_size(&c.shm_bytes, n->shm_bytes, CONFIG_SHM_MIN, "--shm-size", "shm_size", e);
        for (uint8_t i = 0; r == 0 && i < n->n_tmpfs; i++)
                r = narrow_tmpfs(&c, n->tmpfs[i].path, n->tmpfs[i].bytes, e);
        if (r == 0 && n->user)
                r = narrow_user(&c, n->uid, n->gid, e);
        if (r == 0)
                r = fit(&c, e);
        if (r < 0) {
                config_profile_done(&c);
                return r;
        }
        if (c.memory_reserve_bytes > c.memory_bytes)
                c.memory_reserve_bytes = c.memory_bytes;
        if (n->no_network) {
                free(c.network);
                c.network = config_strdup("none");
        }
        *ret = c;
        return 0;
}
