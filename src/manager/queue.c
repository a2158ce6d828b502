/*
 * Who waits for a sandbox: commands, and sessions that are being opened. Each user has a turn with a queue of its own; turns go round, so that a user with a
 * thousand commands keeps nobody from being next. Within a turn it is first in, first out.
 *
 * One timer a turn serves both bounds of a wait: cold_after (what comes back is better than what must be made,
 * so a cold start begins only once nothing has come back for that long) and queue_timeout.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "manager/manager.h"
#include "manager/session.h"

/* A queue that moves, but slowly: after so many times cold_after a cold start begins all the same. */
#define COLD_AT_LATEST 10

static struct turn *turn_find(struct pool *p, uid_t uid) {
        struct turn *t;

        TAILQ_FOREACH(t, &p->turns, link)
        if (t->uid == uid)
                return t;
        return NULL;
}

static struct exec *exec_of(struct waiter *w) {
        return (struct exec *)(void *)((char *)w - offsetof(struct exec, waiter));
}

static struct session *session_of(struct waiter *w) {
        return (struct session *)(void *)((char *)w - offsetof(struct session, waiter));
}

void waiter_assign(struct waiter *w, struct sandbox *sb) {
        if (w->session)
                session_assign(session_of(w), sb);
        else
                exec_assign(exec_of(w), sb);
}

bool waiter_make(struct waiter *w) {
        return alone_step(w->turn->pool, session_of(w));
}

static void refuse(struct waiter *w, const char *reason, const char *line) {
        if (w->session)
                session_refuse(session_of(w), reason, line);
        else
                exec_refuse(exec_of(w), reason, line);
}

/* One that is made for its session alone is begun when its turn comes (pool.c). */
static void go_cold(struct waiter *w) {
        if (w->cold || w->alone)
                return;
        w->cold = true;
        w->turn->n_cold++;
}

/* When @w shall be given a cold start. */
static uint64_t cold_at(const struct waiter *w) {
        uint64_t after = w->turn->pool->profile->cold_after_ms;
        uint64_t quiet = w->turn->served_ms > w->queued_ms ? w->turn->served_ms : w->queued_ms;
        uint64_t latest = w->queued_ms + COLD_AT_LATEST * after;

        return quiet + after < latest ? quiet + after : latest;
}

static void arm(struct turn *t, uint64_t now) {
        const struct config_profile *c = t->pool->profile;
        const struct waiter *w = TAILQ_FIRST(&t->waiters);
        uint64_t at = w->queued_ms + c->queue_timeout_ms;

        if (c->on_empty == ON_EMPTY_COLD) {
                while (w && (w->cold || w->alone))
                        w = TAILQ_NEXT(w, link);
                if (w && cold_at(w) < at)
                        at = cold_at(w);
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
        struct waiter *w;

        (void)s;
        (void)usec;
        while ((w = TAILQ_FIRST(&t->waiters)) && now - w->queued_ms >= p->profile->queue_timeout_ms) {
                bool last = !TAILQ_NEXT(w, link);

                refuse(w, "queue_timeout", why_waited(p));
                if (last)
                        return 0; /* the turn went with it */
        }
        if (p->profile->on_empty == ON_EMPTY_COLD)
                TAILQ_FOREACH(w, &t->waiters, link)
        if (now >= cold_at(w))
                go_cold(w);
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
        TAILQ_INIT(&t->waiters);
        TAILQ_INSERT_TAIL(&p->turns, t, link);
        return t;
}

/* Over all pools, and those who wait for a session that is not there yet. */
bool queue_over_quota(const struct pool *p, uid_t uid) {
        const struct exec *x;
        const struct session *s;
        unsigned n = 0;

        if (p->m->n_waiting < p->profile->limits.queued)
                return false;
        LIST_FOREACH(x, &p->m->execs, link)
        n += (x->waiter.turn || x->is_pending) && x->audit.caller.uid == uid;
        /* One that commands open waits for them. */
        TAILQ_FOREACH(s, &p->m->sessions, link)
        n += s->waiter.turn && s->opener && s->owner.uid == uid;
        return n >= p->profile->limits.queued;
}

int queue_add(struct pool *p, uid_t uid, struct waiter *w) {
        struct turn *t = turn_find(p, uid);
        uint64_t now = now_ms();
        bool coming = supply_coming(p) > p->n_queue || pool_returns_to(p, uid);

        /* Nobody can fill it for all: a user who has none in it may always add one. */
        if (p->n_queue >= p->profile->queue_limit && (t || p->profile->queue_limit == 0))
                return -ENOSPC;
        if (queue_over_quota(p, uid))
                return -EDQUOT;
        if (!t)
                t = turn_new(p, uid, now);
        if (!t)
                return -ENOSPC;
        w->turn = t;
        w->queued_ms = now;
        TAILQ_INSERT_TAIL(&t->waiters, w, link);
        p->n_queue++;
        p->m->n_waiting++;
        /* Nothing is on its way: there is nothing to wait for first. */
        if (!coming && p->profile->on_empty == ON_EMPTY_COLD)
                go_cold(w);
        if (w == TAILQ_FIRST(&t->waiters))
                arm(t, now);
        return 0;
}

void queue_leave(struct waiter *w) {
        struct turn *t = w->turn;
        struct pool *p = t->pool;

        TAILQ_REMOVE(&t->waiters, w, link);
        p->n_queue--;
        p->m->n_waiting--;
        if (w->cold)
                t->n_cold--;
        w->cold = false;
        w->turn = NULL;
        if (!TAILQ_EMPTY(&t->waiters))
                return;
        TAILQ_REMOVE(&p->turns, t, link);
        sd_event_source_disable_unref(t->timer);
        free(t);
}

void queue_served(struct waiter *w) {
        struct turn *t = w->turn;
        struct pool *p = t->pool;

        if (TAILQ_NEXT(TAILQ_FIRST(&t->waiters), link)) {
                t->served_ms = now_ms();
                TAILQ_REMOVE(&p->turns, t, link);
                TAILQ_INSERT_TAIL(&p->turns, t, link);
        }
        queue_leave(w);
}

void queue_refuse(struct pool *p, bool all, const char *reason, const char *line) {
        struct turn *t, *next;

        for (t = TAILQ_FIRST(&p->turns); t; t = next) {
                bool last;

                next = TAILQ_NEXT(t, link);
                if (!all && pool_returns_to(p, t->uid))
                        continue;
                do {
                        struct waiter *w = TAILQ_FIRST(&t->waiters);

                        last = !TAILQ_NEXT(w, link);
                        refuse(w, reason, line);
                } while (!last);
        }
}
