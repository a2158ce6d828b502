/* The commands in a session: those that wait until it is open, and those that run, which are found by their channels. */
#include <string.h>

#include "manager/exec.h"
#include "manager/session.h"

/* True: it cannot begin now, but will. */
static bool must_wait(const struct session *s, const struct exec *x) {
        if (s->state == SESSION_OPEN)
                return !sandbox_takes(s->sandbox, x->payload_len + s->env_len);
        return s->state == SESSION_OPENING || s->state == SESSION_ADOPTING;
}

static void begin(struct session *s, struct exec *x) {
        if (s->state == SESSION_STOPPING || s->state == SESSION_STOPPED) {
                exec_refuse(x, "stopped", "the session is stopped: hermes-sandbox session start");
                return;
        }
        if (!s->pool->profile) {
                exec_refuse(x, "no_profile", "this profile has gone from the config: close the session");
                return;
        }
        if (s->n_running >= SESSION_EXECS_MAX) {
                exec_refuse(x, "session_full",
                            "as many commands run in this session as may: wait for some to end");
                return;
        }
        x->pool_hit = x->audit.pool_hit = s->pool_hit;
        exec_assign(x, s->sandbox);
}

void session_exec(struct session *s, struct exec *x) {
        x->session = s;
        x->audit.session = s->name;
        if (!must_wait(s, x) && TAILQ_EMPTY(&s->pending)) {
                begin(s, x);
                return;
        }
        if (queue_over_quota(s->pool, x->audit.caller.uid)) {
                exec_refuse(x, "quota", "you have as many requests waiting as limits.queued allows");
                return;
        }
        conn_pause(&x->client->conn, true);
        TAILQ_INSERT_TAIL(&s->pending, x, pending);
        x->is_pending = true;
        x->waiter.queued_ms = now_ms();
        s->m->n_waiting++;
}

void session_exec_pending(struct session *s) {
        struct exec *x;

        while ((x = TAILQ_FIRST(&s->pending)) && !must_wait(s, x)) {
                session_exec_left(s, x);
                begin(s, x);
        }
}

void session_exec_left(struct session *s, struct exec *x) {
        TAILQ_REMOVE(&s->pending, x, pending);
        x->is_pending = false;
        s->m->n_waiting--;
}

bool session_has(const struct session *s, const char *exec_id) {
        const struct exec *x;

        for (int i = 0; i < SESSION_BUCKETS; i++)
                LIST_FOREACH(x, &s->execs[i], in_session)
        if (!x->attach && strcmp(x->id, exec_id) == 0)
                return true;
        return false;
}

bool session_overdue(struct session *s, uint64_t now) {
        struct exec *x;

        if (s->state == SESSION_STOPPING && now >= s->halt_due_ms)
                return true;
        for (int i = 0; i < SESSION_BUCKETS; i++)
                LIST_FOREACH(x, &s->execs[i], in_session)
        if (exec_overdue(x, now))
                return true;
        return false;
}

struct exec *session_exec_at(struct session *s, uint32_t channel) {
        struct exec *x;

        LIST_FOREACH(x, &s->execs[channel % SESSION_BUCKETS], in_session)
        if (x->channel == channel)
                return x;
        return NULL;
}

void session_exec_begun(struct session *s, struct exec *x) {
        LIST_INSERT_HEAD(&s->execs[x->channel % SESSION_BUCKETS], x, in_session);
        s->n_running += !x->attach;
        s->n_attached += x->attach;
}

void session_exec_ended(struct session *s, struct exec *x) {
        LIST_REMOVE(x, in_session);
        s->n_running -= !x->attach;
        s->n_attached -= x->attach && !x->hung_ms;
        s->n_left -= x->attach && x->hung_ms;
        s->idle_ms = now_ms();
}

/* Who waits for one that is being opened waits in the pool's queue, where this is seen to. */
void session_refuse_late(struct session *s, uint64_t now) {
        struct exec *x;

        while (s->state != SESSION_OPENING && (x = TAILQ_FIRST(&s->pending)) && s->pool->profile &&
               now - x->waiter.queued_ms >= s->pool->profile->queue_timeout_ms)
                exec_refuse(x, "queue_timeout",
                            "the session's sandbox has not answered within queue_timeout: try again");
}
