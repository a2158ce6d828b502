/*
 * Who waits for a sandbox. Each user has a turn with a queue of its own; turns go round, so that a user with a
 * thousand commands keeps nobody from being next. Within a turn it is first in, first out.
 *
 * One timer a turn serves both bounds of a wait: cold_after (what comes back is better than what must be made,
 * so a cold start begins only once nothing has come back for that long) and queue_timeout.
 */
#include <errno.h>
#include <stdlib.h>

#include "manager/manager.h"

/* A queue that moves, but slowly: after so many times cold_after a cold start begins all the same. */
#define COLD_AT_LATEST 10

static struct turn *turn_find(struct pool *p, uid_t uid) {
        struct turn *t;

        TAILQ_FOREACH(t, &p->turns, link)
        if (t->uid == uid)
                return t;
        return NULL;
}

static void go_cold(struct exec *x) {
        if (x->cold)
                return;
        x->cold = true;
        x->turn->n_cold++;
}

/* When @x shall be given a cold start. */
static uint64_t cold_at(const struct exec *x) {
        uint64_t after = x->pool->profile->cold_after_ms;
        uint64_t quiet = x->turn->served_ms > x->queued_ms ? x->turn->served_ms : x->queued_ms;
        uint64_t latest = x->queued_ms + COLD_AT_LATEST * after;

        return quiet + after < latest ? quiet + after : latest;
}

static void arm(struct turn *t, uint64_t now) {
        const struct config_profile *c = t->pool->profile;
        const struct exec *x = TAILQ_FIRST(&t->execs);
        uint64_t at = x->queued_ms + c->queue_timeout_ms;

        if (c->on_empty == ON_EMPTY_COLD) {
                while (x && x->cold)
                        x = TAILQ_NEXT(x, queue_link);
                if (x && cold_at(x) < at)
                        at = cold_at(x);
        }
        sd_event_source_set_time_relative(t->timer, (at > now ? at - now : 1) * 1000);
        sd_event_source_set_enabled(t->timer, SD_EVENT_ONESHOT);
}

/* What kept a sandbox from whoever waited in vain. */
static const char *why_waited(const struct pool *p) {
        if (p->m->broker.state != ENGINE_UP)
                return p->m->broker.state_text;
        if (p->error[0])
                return p->error;
        return "no sandbox became free within queue_timeout: try again, or raise size or max_sandboxes";
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        struct turn *t = userdata;
        struct pool *p = t->pool;
        uint64_t now = now_ms();
        struct exec *x;

        (void)s;
        (void)usec;
        while ((x = TAILQ_FIRST(&t->execs)) && now - x->queued_ms >= p->profile->queue_timeout_ms) {
                bool last = !TAILQ_NEXT(x, queue_link);

                exec_refuse(x, "queue_timeout", why_waited(p));
                if (last)
                        return 0; /* the turn went with it */
        }
        if (p->profile->on_empty == ON_EMPTY_COLD)
                TAILQ_FOREACH(x, &t->execs, queue_link)
        if (now >= cold_at(x))
                go_cold(x);
        arm(t, now);
        pool_changed(p);
        return 0;
}

static struct turn *turn_new(struct pool *p, uid_t uid, uint64_t now) {
        struct turn *t = calloc(1, sizeof(*t));

        if (!t || sd_event_add_time_relative(p->m->event, &t->timer, CLOCK_MONOTONIC, 0, 1000, on_timer,
                                             t) < 0) {
                free(t);
                return NULL;
        }
        t->pool = p;
        t->uid = uid;
        t->served_ms = now;
        TAILQ_INIT(&t->execs);
        TAILQ_INSERT_TAIL(&p->turns, t, link);
        return t;
}

int queue_add(struct pool *p, struct exec *x) {
        uid_t uid = x->audit.caller.uid;
        struct turn *t = turn_find(p, uid);
        uint64_t now = now_ms();
        bool coming = supply_coming(p) > p->n_queue || pool_returns_to(p, uid);

        /* Nobody can fill it for all: a user who has none in it may always add one. */
        if (p->n_queue >= p->profile->queue_limit && (t || p->profile->queue_limit == 0))
                return -ENOSPC;
        if (!t)
                t = turn_new(p, uid, now);
        if (!t)
                return -ENOSPC;
        x->turn = t;
        x->queued_ms = now;
        TAILQ_INSERT_TAIL(&t->execs, x, queue_link);
        p->n_queue++;
        /* Nothing is on its way: there is nothing to wait for first. */
        if (!coming && p->profile->on_empty == ON_EMPTY_COLD)
                go_cold(x);
        if (x == TAILQ_FIRST(&t->execs))
                arm(t, now);
        return 0;
}

void queue_leave(struct exec *x) {
        struct turn *t = x->turn;
        struct pool *p = x->pool;

        TAILQ_REMOVE(&t->execs, x, queue_link);
        p->n_queue--;
        if (x->cold)
                t->n_cold--;
        x->cold = false;
        x->turn = NULL;
        if (!TAILQ_EMPTY(&t->execs))
                return;
        TAILQ_REMOVE(&p->turns, t, link);
        sd_event_source_disable_unref(t->timer);
        free(t);
}

void queue_served(struct exec *x) {
        struct turn *t = x->turn;
        struct pool *p = x->pool;

        if (TAILQ_NEXT(TAILQ_FIRST(&t->execs), queue_link)) {
                t->served_ms = now_ms();
                TAILQ_REMOVE(&p->turns, t, link);
                TAILQ_INSERT_TAIL(&p->turns, t, link);
        }
        queue_leave(x);
}

void queue_refuse(struct pool *p, bool all, const char *reason, const char *line) {
        struct turn *t, *next;

        for (t = TAILQ_FIRST(&p->turns); t; t = next) {
                bool last;

                next = TAILQ_NEXT(t, link);
                if (!all && pool_returns_to(p, t->uid))
                        continue;
                do {
                        struct exec *x = TAILQ_FIRST(&t->execs);

                        last = !TAILQ_NEXT(x, queue_link);
                        exec_refuse(x, reason, line);
                } while (!last);
        }
}
