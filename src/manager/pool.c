/*
 * A profile's sandboxes. How many creations are wanted is computed from the counters alone, each time one
 * of them changes: what shall be warm, plus who waits for a cold start, minus what is warm or on its way.
 * A failure backs off, and is told at once to those who wait when nothing more is on its way for them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "manager/manager.h"

#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 30000

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
        TAILQ_INIT(&p->queue);
        LIST_INSERT_HEAD(&m->pools, p, link);
        return p;
}

static struct pool *pool_of(struct manager *m, const char *name) {
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        if (strcmp(p->name, name) == 0)
                return p;
        return pool_new(m, name);
}

/* Idle sandboxes of another recipe, or more than are wanted, are of no use any more. */
static void drop_stale(struct pool *p) {
        struct sandbox *sb, *next;

        for (sb = TAILQ_FIRST(&p->sandboxes); sb; sb = next) {
                next = TAILQ_NEXT(sb, link);
                if (sb->state != SANDBOX_WARM && sb->state != SANDBOX_STARTING)
                        continue;
                if (!p->profile || memcmp(sb->recipe, p->recipe, sizeof(sb->recipe)) != 0)
                        sandbox_discard(sb, "its recipe has changed");
                else if (sb->state == SANDBOX_WARM && p->n_warm > p->profile->size)
                        sandbox_discard(sb, "the pool is smaller now");
        }
}

void pools_update(struct manager *m) {
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        p->profile = NULL;
        for (size_t i = 0; i < m->config->n_profiles; i++) {
                const struct config_profile *c = &m->config->profiles[i];

                p = pool_of(m, c->name);
                p->profile = c;
                config_recipe_with_agent(c, m->broker.agent_hash, p->recipe);
                p->image_ready = false;
                p->failures = 0;
                p->retry_ms = 0;
        }
        LIST_FOREACH(p, &m->pools, link) {
                struct exec *x;

                while (!p->profile && (x = TAILQ_FIRST(&p->queue)))
                        exec_refuse(x, "no_profile", "this profile has gone from the config");
                drop_stale(p);
        }
        pools_fill(m);
}

void pools_free(struct manager *m) {
        struct pool *p;

        while ((p = LIST_FIRST(&m->pools))) {
                LIST_REMOVE(p, link);
                free(p->name);
                free(p);
        }
}

void pool_failed(struct pool *p, const char *line) {
        struct exec *x;
        uint64_t wait = RETRY_MIN_MS << (p->failures < 5 ? p->failures : 5);

        if (strcmp(p->error, line) != 0)
                log_line(LOG_P_ERROR, "pool %s: %s", p->name, line);
        snprintf(p->error, sizeof(p->error), "%s", line);
        p->failures++;
        p->retry_ms = now_ms() + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
        while (p->n_creating + p->n_starting == 0 && (x = TAILQ_FIRST(&p->queue)))
                exec_refuse(x, "no_sandbox", p->error);
}

/* The recipe that was asked for: a reload may change the pool's own while the engine works. */
struct creation {
        struct pool *pool;
        uint8_t recipe[CONFIG_RECIPE];
};

static void created(void *userdata, const struct engine_msg *m, int fd) {
        _cleanup_free_ struct creation *asked = userdata;
        struct pool *p = asked->pool;

        p->n_creating--;
        p->m->n_creating--;
        if (m->type != ENGINE_CREATED) {
                close_fd(fd);
                if (m->type == ENGINE_FAILED && m->error == ENGINE_E_NO_IMAGE)
                        p->image_ready = false;
                if (m->type == ENGINE_FAILED && m->error == ENGINE_E_STALE)
                        broker_greet(&p->m->broker);
                pool_failed(p, m->type == ENGINE_FAILED ? m->text : "the broker answered nonsense");
                return;
        }
        if (p->m->stopping || !p->profile || fd < 0 ||
            !sandbox_new(p, m->container, asked->recipe, (pid_t)m->pid, fd)) {
                broker_ask(&p->m->broker,
                           &(struct engine_msg){ .type = ENGINE_REMOVE, .container = m->container },
                           broker_ignore, NULL);
                return;
        }
        pools_fill(p->m);
}

static void image_answer(void *userdata, const struct engine_msg *m, int fd) {
        struct pool *p = userdata;

        close_fd(fd);
        p->image_asked = false;
        if (m->type == ENGINE_IMAGE_READY) {
                p->image_ready = true;
                pool_fill(p);
        } else
                pool_failed(p, m->type == ENGINE_FAILED ? m->text : "the broker answered nonsense");
}

static unsigned wanted(const struct pool *p) {
        unsigned coming = p->n_warm + p->n_starting + p->n_creating;
        unsigned all = coming + p->n_busy;
        unsigned want = p->profile->size + p->n_cold;

        want = want > coming ? want - coming : 0;
        if (all >= p->profile->max_sandboxes)
                return 0;
        return want < p->profile->max_sandboxes - all ? want : p->profile->max_sandboxes - all;
}

void pool_fill(struct pool *p) {
        struct manager *m = p->m;
        struct broker *b = &m->broker;
        bool ready = !m->stopping && p->profile && b->welcomed && m->swept && b->state == ENGINE_UP;

        if (!ready || now_ms() < p->retry_ms || wanted(p) == 0)
                return;
        if (!p->image_ready) {
                struct engine_msg ask = { .type = ENGINE_IMAGE, .profile = p->name };

                if (!p->image_asked && broker_ask(b, &ask, image_answer, p) == 0)
                        p->image_asked = true;
                return;
        }
        for (unsigned n = wanted(p); n > 0 && m->n_creating < CREATING_MAX; n--) {
                struct engine_msg ask = { .type = ENGINE_CREATE, .profile = p->name, .hash = p->recipe };
                struct creation *asked = calloc(1, sizeof(*asked));

                if (!asked)
                        abort();
                asked->pool = p;
                memcpy(asked->recipe, p->recipe, sizeof(asked->recipe));
                if (broker_ask(b, &ask, created, asked) < 0) {
                        free(asked);
                        return;
                }
                p->n_creating++;
                m->n_creating++;
        }
}

void pools_fill(struct manager *m) {
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        pool_fill(p);
}

struct sandbox *pool_claim(struct pool *p) {
        struct sandbox *sb;

        TAILQ_FOREACH(sb, &p->sandboxes, link)
        if (sb->state == SANDBOX_WARM)
                return sb;
        return NULL;
}

void pool_offer(struct pool *p, struct sandbox *sb) {
        struct exec *x = TAILQ_FIRST(&p->queue);

        if (x)
                exec_assign(x, sb);
}

static int on_waited(sd_event_source *s, uint64_t usec, void *userdata) {
        struct exec *x = userdata;
        const struct config_profile *c = x->pool->profile;
        uint64_t waited = now_ms() - x->queued_ms;

        (void)s;
        (void)usec;
        if (waited >= c->queue_timeout_ms) {
                exec_refuse(
                        x, "queue_timeout",
                        x->pool->error[0]
                                ? x->pool->error
                                : "no sandbox became free within queue_timeout: try again, or raise size or max_sandboxes");
                return 0;
        }
        if (!x->cold && c->on_empty == ON_EMPTY_COLD) {
                x->cold = true;
                x->pool->n_cold++;
                pool_fill(x->pool);
        }
        sd_event_source_set_time_relative(x->timer, (c->queue_timeout_ms - waited) * 1000);
        sd_event_source_set_enabled(x->timer, SD_EVENT_ONESHOT);
        return 0;
}

int pool_wait(struct pool *p, struct exec *x) {
        const struct config_profile *c = p->profile;
        uint64_t first = c->on_empty == ON_EMPTY_COLD && c->cold_after_ms < c->queue_timeout_ms
                                 ? c->cold_after_ms
                                 : c->queue_timeout_ms;

        if (p->n_queue >= c->queue_limit)
                return -ENOSPC;
        x->queued_ms = now_ms();
        /* Whatever failed may be mended by now, and else the caller wants to hear of it: nobody sits out a
         * long back-off. */
        if (p->retry_ms > x->queued_ms + RETRY_MIN_MS)
                p->retry_ms = x->queued_ms + RETRY_MIN_MS;
        if (sd_event_add_time_relative(p->m->event, &x->timer, CLOCK_MONOTONIC, first * 1000, 1000,
                                       on_waited, x) < 0)
                return -ENOSPC;
        TAILQ_INSERT_TAIL(&p->queue, x, queue_link);
        p->n_queue++;
        return 0;
}

void pool_leave(struct pool *p, struct exec *x) {
        x->timer = sd_event_source_disable_unref(x->timer);
        TAILQ_REMOVE(&p->queue, x, queue_link);
        p->n_queue--;
        if (x->cold)
                p->n_cold--;
        x->cold = false;
}
