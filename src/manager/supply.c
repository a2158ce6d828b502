/*
 * How many sandboxes a pool shall have, and their making. What is wanted is computed from what is there, each
 * time that has changed: what shall be warm, or what waits for a cold start, whichever is more.
 *
 * A failure backs off, and is told at once to those who wait when nothing more is on its way for them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "manager/manager.h"
#include "manager/session.h"

#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 30000

/* Sandboxes of an earlier life that are still to be found again. */
static unsigned to_adopt(const struct pool *p) {
        const struct session *s;
        unsigned n = 0;

        if (p->m->n_adopting > 0)
                TAILQ_FOREACH(s, &p->m->sessions, link)
        n += s->pool == p && s->state == SESSION_ADOPTING && !s->sandbox;
        return n;
}

unsigned supply_total(const struct pool *p) {
        return to_adopt(p) + p->n_warm + p->n_creating + p->n_starting + p->n_busy + p->n_scrubbing +
               p->n_leased + p->n_alone;
}

unsigned supply_coming(const struct pool *p) {
        return p->n_creating + p->n_starting;
}

/* What stands against the pool's size: what can be handed out, is being made, or will be back soon. */
static unsigned supply(const struct pool *p, uint64_t now, unsigned *ret_unfit) {
        unsigned n = supply_coming(p) + p->n_scrubbing;
        const struct sandbox *sb;

        *ret_unfit = 0;
        TAILQ_FOREACH(sb, &p->sandboxes, link) {
                if (sb->state == SANDBOX_WARM && !sandbox_fit(sb, now))
                        (*ret_unfit)++;
                else if (sb->state == SANDBOX_WARM)
                        n++;
                else if (sb->state == SANDBOX_BUSY && sb->returns && now - sb->since_ms < BUSY_LONG_MS)
                        n++;
        }
        return n;
}

/* For how many of those who wait one shall be made: a user who has all that he may have could not take it. */
static unsigned cold_starts(const struct pool *p) {
        const struct turn *t;
        unsigned n = 0;

        TAILQ_FOREACH(t, &p->turns, link)
        if (t->n_cold > 0 && !pool_uid_full(p, t->uid))
                n += t->n_cold;
        return n;
}

/* Creations to begin now. While unfit sandboxes are replaced it is one at a time, unless somebody waits. */
static unsigned wanted(const struct pool *p) {
        unsigned unfit, n = supply(p, now_ms(), &unfit), on_way = supply_coming(p), want, room;
        unsigned cold = cold_starts(p);

        want = n < p->profile->size ? p->profile->size - n : 0;
        if (unfit > 0 && want > 0)
                want = on_way == 0;
        cold = cold > on_way ? cold - on_way : 0;
        want = cold > want ? cold : want;
        room = supply_total(p) < p->profile->max_sandboxes ? p->profile->max_sandboxes - supply_total(p)
                                                           : 0;
        return want < room ? want : room;
}

void supply_failed(struct pool *p, const char *line) {
        uint64_t wait = RETRY_MIN_MS << (p->failures < 5 ? p->failures : 5);

        if (strcmp(p->error, line) != 0)
                log_line(LOG_P_ERROR, "pool %s: %s", p->name, line);
        snprintf(p->error, sizeof(p->error), "%s", line);
        p->failures++;
        p->retry_ms = now_ms() + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
        if (supply_coming(p) == 0)
                queue_refuse(p, false, "no_sandbox", p->error);
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
        stats_created(p, m->type == ENGINE_CREATED);
        if (m->type != ENGINE_CREATED) {
                close_fd(fd);
                if (m->type == ENGINE_FAILED && m->error == ENGINE_E_NO_IMAGE)
                        p->image_ready = false;
                if (m->type == ENGINE_FAILED && m->error == ENGINE_E_STALE)
                        broker_greet(&p->m->broker);
                supply_failed(p, m->type == ENGINE_FAILED ? m->text : "the broker answered nonsense");
                return;
        }
        image_seen(p, m->image);
        if (fd < 0)
                supply_failed(
                        p,
                        "no descriptor is left for a new sandbox: raise LimitNOFILE of hermes-sandboxd");
        if (p->m->draining || !p->profile || fd < 0 ||
            !sandbox_new(p, m->container, asked->recipe, m->image, (pid_t)m->pid, fd, NULL)) {
                broker_ask(&p->m->broker,
                           &(struct engine_msg){ .type = ENGINE_REMOVE, .container = m->container },
                           broker_ignore, NULL);
                return;
        }
        /* How many may be under way is counted over all pools. */
        pools_changed(p->m);
}

static void image_answer(void *userdata, const struct engine_msg *m, int fd) {
        struct pool *p = userdata;

        close_fd(fd);
        p->image_asked = false;
        if (m->type == ENGINE_IMAGE_READY) {
                p->image_ready = true;
                image_is(p, m->image);
                pool_changed(p);
        } else
                supply_failed(p, m->type == ENGINE_FAILED ? m->text : "the broker answered nonsense");
}

bool supply_ready(struct pool *p) {
        struct manager *m = p->m;
        struct broker *b = &m->broker;
        bool ready = !m->draining && p->profile && b->welcomed && m->swept && b->state == ENGINE_UP;
        struct engine_msg ask = { .type = ENGINE_IMAGE, .profile = p->name };

        if (!ready || now_ms() < p->retry_ms)
                return false;
        if (!p->image_ready && !p->image_asked)
                p->image_asked = broker_ask(b, &ask, image_answer, p) == 0;
        return p->image_ready;
}

void supply_fill(struct pool *p) {
        struct manager *m = p->m;
        struct broker *b = &m->broker;

        if (!p->profile || wanted(p) == 0 || !supply_ready(p))
                return;
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

void supply_nudge(struct pool *p) {
        uint64_t soon = now_ms() + RETRY_MIN_MS;

        if (p->retry_ms > soon)
                p->retry_ms = soon;
}
