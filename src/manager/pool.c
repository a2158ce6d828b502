/*
 * A profile's sandboxes. Whenever one of them, the queue or the config has changed, pools_settle() brings the three
 * together, in small steps that each leave everything in order: a sandbox to somebody who waits, one thrown
 * away that is in the way, and at the end as many creations as are wanted then.
 *
 * A sandbox that has run a command is its user's for good: what the proof of its scrub cannot see (the kernel's
 * own counters, say) passes at most from a user to himself. So another user may find warm sandboxes and none
 * for him; one is thrown away for him then, from whoever holds the most.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"

struct pool *pool_find(struct manager *m, const char *name) {
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        if (p->profile && strcmp(p->name, *name ? name : "default") == 0)
                return p;
        return NULL;
}

static struct pool *pool_new(struct manager *m, const char *name) {
        struct pool *p = calloc(1, sizeof(*p));

        if (!p || !(p->name = strdup(name)))
                abort();
        p->m = m;
        TAILQ_INIT(&p->sandboxes);
        TAILQ_INIT(&p->turns);
        LIST_INSERT_HEAD(&m->pools, p, link);
        return p;
}

struct pool *pool_of(struct manager *m, const char *name) {
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        if (strcmp(p->name, name) == 0)
                return p;
        return pool_new(m, name);
}

/* --- counting ----------------------------------------------------------------------------------- */

/* How many are @uid's, at work or idle. */
static unsigned held_by(const struct pool *p, uid_t uid) {
        const struct sandbox *sb;
        unsigned n = 0;

        TAILQ_FOREACH(sb, &p->sandboxes, link)
        n += (sb->uses > 0 || sb->state == SANDBOX_LEASED) && sb->owner == uid;
        return n;
}

bool pool_uid_full(const struct pool *p, uid_t uid) {
        const struct session *s;
        const struct sandbox *sb;
        const struct pool *q;
        unsigned n = 0;

        LIST_FOREACH(q, &p->m->pools, link)
        TAILQ_FOREACH(sb, &q->sandboxes, link)
        n += (sb->state == SANDBOX_BUSY || sb->state == SANDBOX_LEASED) && sb->owner == uid;
        TAILQ_FOREACH(s, &p->m->sessions, link)
        n += s->owner.uid == uid && !s->sandbox && (s->making || s->state == SESSION_ADOPTING);
        return n >= p->profile->max_sandboxes;
}

bool pool_execs_full(const struct pool *p, uid_t uid) {
        const struct exec *x;
        unsigned n = 0;

        if (p->m->n_running < p->profile->limits.execs)
                return false;
        LIST_FOREACH(x, &p->m->execs, link)
        n += x->state == EXEC_RUNNING && !x->attach && x->audit.caller.uid == uid;
        return n >= p->profile->limits.execs;
}

bool pool_returns_to(const struct pool *p, uid_t uid) {
        const struct sandbox *sb;

        TAILQ_FOREACH(sb, &p->sandboxes, link)
        if ((sb->state == SANDBOX_BUSY || sb->state == SANDBOX_SCRUBBING) && sb->returns &&
            sb->owner == uid)
                return true;
        return false;
}

/* --- config -------------------------------------------------------------------------------------- */

const char *pool_reuse(const struct pool *p, char *ret_why, size_t cap) {
        static const char key[] = "scrub=no: ";
        const char *why;

        ret_why[0] = '\0';
        if (!p->profile || p->profile->reuse == REUSE_REPLACE)
                return "replace";
        why = strstr(p->probe, key);
        if (!why)
                return "scrub";
        why += strlen(key);
        snprintf(ret_why, cap, "%.*s", (int)strcspn(why, "\n"), why);
        return "replace";
}

/* A profile that has gone, or a smaller pool: at once, the unfit first. */
static void drop_surplus(struct pool *p) {
        unsigned keep = p->profile ? p->profile->size : 0;
        uint64_t now = now_ms();

        for (int unfit_only = 1; unfit_only >= 0; unfit_only--) {
                struct sandbox *sb, *next;

                for (sb = TAILQ_FIRST(&p->sandboxes); sb && p->n_warm > keep; sb = next) {
                        next = TAILQ_NEXT(sb, link);
                        if (sb->state == SANDBOX_WARM && !(unfit_only && sandbox_fit(sb, now)))
                                sandbox_discard(sb, p->profile ? "the pool is smaller now"
                                                               : "its profile has gone");
                }
        }
}

/* One that is being started from an older config has nothing to offer. */
static void drop_starting(struct pool *p) {
        struct sandbox *sb, *next;

        for (sb = TAILQ_FIRST(&p->sandboxes); sb; sb = next) {
                next = TAILQ_NEXT(sb, link);
                if (sb->state == SANDBOX_STARTING && !sandbox_fit(sb, now_ms()))
                        sandbox_discard(sb, "its recipe has changed");
        }
}

void pools_update(struct manager *m) {
        uint8_t recipe[CONFIG_RECIPE];
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        p->profile = NULL;
        for (size_t i = 0; i < m->config->n_profiles; i++) {
                const struct config_profile *c = &m->config->profiles[i];

                p = pool_of(m, c->name);
                p->profile = c;
                config_recipe_with_agent(c, m->broker.agent_hash, recipe);
                if (memcmp(recipe, p->recipe, sizeof(recipe)) != 0)
                        p->image_id[0] = '\0'; /* it may name another one */
                memcpy(p->recipe, recipe, sizeof(recipe));
                p->image_ready = false;
                p->image_looked_ms = 0;
                p->failures = 0;
                p->retry_ms = 0;
        }
        LIST_FOREACH(p, &m->pools, link) {
                if (!p->profile)
                        queue_refuse(p, true, "no_profile", "this profile has gone from the config");
                drop_starting(p);
                drop_surplus(p);
                pool_changed(p);
        }
}

void pools_free(struct manager *m) {
        struct pool *p;

        while ((p = LIST_FIRST(&m->pools))) {
                LIST_REMOVE(p, link);
                free(p->name);
                free(p);
        }
}

/* --- who gets which ------------------------------------------------------------------------------ */

struct sandbox *pool_claim(struct pool *p, uid_t uid) {
        struct sandbox *sb, *unused = NULL;
        uint64_t now = now_ms();

        TAILQ_FOREACH_REVERSE(sb, &p->sandboxes, sandboxes, link) {
                if (sb->state != SANDBOX_WARM || !sandbox_fit(sb, now))
                        continue;
                if (sb->uses > 0 && sb->owner == uid)
                        return sb;
                if (sb->uses == 0)
                        unused = sb;
        }
        return unused;
}

bool pool_scrubs(const struct pool *p, const struct sandbox *sb) {
        const struct config_profile *c = p->profile;

        return c && c->reuse == REUSE_SCRUB && sb->can_scrub &&
               (c->max_uses == 0 || sb->uses + 1 < c->max_uses);
}

void pool_used_by(struct pool *p, uid_t uid) {
        if (p->used && p->first_uid != uid)
                p->shared = true;
        if (!p->used)
                p->first_uid = uid;
        p->used = true;
}

/* The first in line cannot have any of the warm ones, and no more can be made: throws one away for him, of a
 * user who holds more than he would have with it. */
static bool make_way(struct pool *p, const struct turn *t) {
        const struct config_profile *c = p->profile;
        bool cold = c->on_empty == ON_EMPTY_COLD;
        unsigned mine = held_by(p, t->uid);
        bool hungry = cold ? t->n_cold > supply_coming(p) : mine + supply_coming(p) == 0;
        struct sandbox *sb;

        if (!hungry || supply_total(p) < (cold ? c->max_sandboxes : c->size))
                return false;
        mine += supply_coming(p);
        TAILQ_FOREACH(sb, &p->sandboxes, link) {
                if (sb->state != SANDBOX_WARM || sb->spent)
                        continue;
                if (sb->uses == 0 && sandbox_fit(sb, now_ms()))
                        continue;
                if (mine > 0 && sandbox_fit(sb, now_ms()) && held_by(p, sb->owner) <= mine + 1)
                        continue;
                sandbox_discard(sb, "another user waits for one");
                return true;
        }
        return false;
}

/* Of the unfit, one goes for each fit one that has come, or where nothing else leaves room for one. */
static bool drop_unfit(struct pool *p) {
        struct sandbox *sb;

        if (p->n_warm <= p->profile->size && supply_total(p) < p->profile->max_sandboxes)
                return false;
        TAILQ_FOREACH(sb, &p->sandboxes, link)
        if (sb->state == SANDBOX_WARM && !sandbox_fit(sb, now_ms())) {
                sandbox_discard(sb, "its recipe or its image has changed, or it is old");
                return true;
        }
        return false;
}

static bool step(struct pool *p) {
        struct turn *t;

        if (p->m->refusing || !p->profile)
                return false;
        TAILQ_FOREACH(t, &p->turns, link) {
                struct sandbox *sb;
                struct waiter *w;

                w = TAILQ_FIRST(&t->waiters);
                if (pool_uid_full(p, t->uid) || (!w->session && pool_execs_full(p, t->uid)))
                        continue;
                if (w->alone) {
                        if (waiter_make(w))
                                return true;
                        continue;
                }
                sb = pool_claim(p, t->uid);
                if (sb) {
                        waiter_assign(w, sb);
                        return true;
                }
                if (make_way(p, t))
                        return true;
        }
        return drop_unfit(p);
}

void pool_changed(struct pool *p) {
        p->changed = p->m->changed = true;
}

void pools_changed(struct manager *m) {
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        pool_changed(p);
}

int pools_settle(sd_event_source *s, void *userdata) {
        struct manager *m = userdata;
        struct pool *p;

        (void)s;
        while (m->changed) {
                m->changed = false;
                LIST_FOREACH(p, &m->pools, link) {
                        if (!p->changed)
                                continue;
                        while (step(p))
                                ;
                        p->changed = false;
                        supply_fill(p);
                }
        }
        return 0;
}

/* A source that never comes, for what is done before each wait: a turn of the loop for it alone would cost more
 * than it does. */
int pools_attach(struct manager *m) {
        int r = sd_event_add_time(m->event, &m->settle, CLOCK_MONOTONIC, UINT64_MAX, 0, NULL, m);

        return r < 0 ? r : sd_event_source_set_prepare(m->settle, pools_settle);
}

void pool_check(struct pool *p, uint64_t now) {
        struct sandbox *sb, *oldest = NULL;
        unsigned unused = 0;

        TAILQ_FOREACH(sb, &p->sandboxes, link) {
                if (sb->state != SANDBOX_WARM)
                        continue;
                unused += sb->uses == 0;
                if (!oldest && sandbox_fit(sb, now))
                        oldest = sb;
        }
        if (p->profile && oldest && now - oldest->since_ms >= SURPLUS_MS) {
                if (p->n_warm > p->profile->size)
                        sandbox_discard(oldest, NULL);
                else if (p->shared && unused == 0 && supply_coming(p) == 0 && p->profile->size > 1)
                        sandbox_discard(oldest, NULL); /* its successor is for any user */
        }
        pool_changed(p);
}
