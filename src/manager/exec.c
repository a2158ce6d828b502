/*
 * A command: from the request to its result.
 *
 *     WAITING  in its pool's queue, or for its session
 *     RUNNING  its start is recorded, its order is with the agent
 *     ENDED    its end is recorded, its result is with the caller; the struct goes
 *
 * The manager passes the streams on and polices both ends: what a side sends beyond the credit that the
 * other has given is a protocol error of that side, so that what waits here is bounded by the credit.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/log.h"
#include "common/wire.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/order.h"
#include "manager/session.h"
#include "manager/verdict.h"

static const bool moves[3][3] = {
        [EXEC_WAITING] = { [EXEC_RUNNING] = true, [EXEC_ENDED] = true },
        [EXEC_RUNNING] = { [EXEC_ENDED] = true },
};

static void move(struct exec *x, enum exec_state to) {
        if (!moves[x->state][to])
                abort();
        x->state = to;
}

void exec_free(struct exec *x) {
        if (x->state != EXEC_ENDED && !x->attach)
                abort();
        LIST_REMOVE(x, link);
        free(x->open);
        free(x->payload);
        free(x);
}

/* --- the beginning ------------------------------------------------------------------------------ */

struct exec *exec_new(struct client *c, struct pool *p, uint8_t *payload, const struct exec_request *r,
                      const struct audit_exec *a) {
        struct exec *x = calloc(1, sizeof(*x));

        if (!x)
                abort();
        x->m = c->m;
        x->client = c;
        x->client_channel = c->channel;
        x->pool = p;
        x->payload = payload;
        x->request = *r;
        x->audit = *a;
        x->begun_us = now_us();
        x->output_limit = order_output_bytes(p->profile, r);
        x->credit[0] = x->credit[1] = x->stdin_credit = FRAME_CREDIT;
        audit_exec_id(x->id);
        snprintf(x->profile, sizeof(x->profile), "%s", p->name);
        x->args_len = a->args_len;
        x->audit.exec_id = x->id;
        x->audit.detached = r->detach;
        x->audit.begun_us = x->begun_us;
        x->audit.profile = x->profile;
        x->audit.container_id = x->container;
        LIST_INSERT_HEAD(&c->m->execs, x, link);
        c->exec = x;
        return x;
}

/* It waits no more, for whatever it was. */
static void leave(struct exec *x) {
        if (x->waiter.turn)
                queue_leave(&x->waiter);
        if (x->is_pending)
                session_exec_left(x->session, x);
}

void exec_refuse(struct exec *x, const char *reason, const char *line) {
        struct client *c = x->client;

        leave(x);
        move(x, EXEC_ENDED);
        audit_rejected(x->m->audit, &x->audit, reason, 0);
        if (c)
                client_refuse(c, EXIT_SANDBOX, reason, "rejected: %s", line);
        exec_free(x);
}

/* --- the start ---------------------------------------------------------------------------------- */

void exec_tell_started(struct exec *x) {
        struct started s = { x->id, x->container, x->profile, x->pool_hit };
        uint8_t buf[512];

        /* It goes with the first frame of output or with the result, one wake-up of the caller less; for a
         * command that stays silent it is left to client_announce(). */
        conn_queue(&x->client->conn, FRAME_STARTED, 0, x->client_channel, buf,
                   (size_t)started_encode(&s, buf, sizeof(buf)));
        x->client->since_ms = x->session ? now_ms() : x->sandbox->since_ms;
        client_announce_later(x->m);
}

/* Nobody waits for it: that it runs is all there is to tell. */
static void tell_detached(struct exec *x) {
        struct started s = { x->id, x->container, x->profile, x->pool_hit };
        struct client *c = x->client;
        uint8_t buf[512];

        x->client = NULL;
        client_finish(c, FRAME_STARTED, buf, (size_t)started_encode(&s, buf, sizeof(buf)));
}

static void end_by(struct exec *x, uint64_t ms) {
        if (x->due_ms == 0 || ms < x->due_ms)
                x->due_ms = ms;
}

/* It must not run: there would be no record of it. */
static void refuse_unrecorded(struct exec *x, int r) {
        char line[160];

        if (r == -ENOSPC || r == -EDQUOT)
                snprintf(line, sizeof(line),
                         "its audit record could not be written: %s: make room for audit.file and the "
                         "manager's --state-dir",
                         strerror(-r));
        else
                snprintf(line, sizeof(line),
                         "the kernel audit trail did not take the record, and audit.required is true: "
                         "see journalctl -u hermes-sandbox-pool, auditctl -s");
        exec_refuse(x, "audit", line);
}

/* Where it runs. False: the config has changed meanwhile, and it may not be that user any more. */
static bool place_of(const struct exec *x, struct order_place *ret) {
        const struct config_profile *p = x->pool->profile;
        const struct session *s = x->session;

        *ret = (struct order_place){ .workdir = p->workdir };
        if (s && s->workdir && s->workdir[0])
                ret->workdir = s->workdir;
        if (s) {
                ret->n_env = s->n_env;
                ret->env = s->env;
                ret->env_len = s->env_len;
        }
        return session_user(s, p, &x->request, &ret->user);
}

void exec_assign(struct exec *x, struct sandbox *sb) {
        struct order_place place;
        _cleanup_free_ uint8_t *order = NULL;
        size_t len, done = 0;
        uint64_t timeout_ms;
        bool scrub;
        int r;

        if (x->waiter.turn) {
                queue_served(&x->waiter);
                /* One that came back was there, and only had to be scrubbed. */
                x->pool_hit = x->audit.pool_hit = sb->uses > 0;
        }
        if (!place_of(x, &place)) {
                exec_refuse(x, "no_user", "the profile's users have changed meanwhile: ask again");
                return;
        }
        memcpy(x->container, sb->id, sizeof(x->container));
        r = audit_exec_start(x->m->audit, &x->audit);
        if (r < 0) {
                refuse_unrecorded(x, r);
                return;
        }
        /* The gateway's uid is of many keys: what one has used comes back to none. */
        scrub = !x->session && !x->audit.caller.fp[0] && pool_scrubs(x->pool, sb);
        order = order_encode(x->pool->profile, &place, &x->request, x->args_len, !x->session, scrub,
                             x->id, &len);
        stats_started(x, now_us());
        timeout_ms = order_timeout_ms(x->pool->profile, &x->request);
        if (timeout_ms > 0 && timeout_ms < UINT64_MAX / 4)
                end_by(x, now_ms() + timeout_ms + x->pool->profile->limits.grace_ms + EXEC_LATE_MS);
        x->sandbox = sb;
        x->channel = sb->next_channel++;
        sandbox_begin(sb, x, scrub);
        move(x, EXEC_RUNNING);
        x->m->n_running++;
        for (; len - done > FRAME_PAYLOAD_MAX; done += FRAME_PAYLOAD_MAX)
                conn_queue(&sb->conn, FRAME_EXEC, FRAME_MORE, x->channel, order + done,
                           FRAME_PAYLOAD_MAX);
        conn_send(&sb->conn, FRAME_EXEC, 0, x->channel, order + done, len - done);
        sandbox_took(sb, len);
        if (x->request.detach) {
                tell_detached(x);
                return;
        }
        exec_tell_started(x);
        /* Last: what the caller sent meanwhile is handled in here, and may end the exec. */
        conn_pause(&x->client->conn, false);
}

/* --- the streams -------------------------------------------------------------------------------- */

int exec_client_frame(struct exec *x, const struct frame *f) {
        struct window w;

        if (f->channel != x->client_channel || x->state != EXEC_RUNNING)
                return -EPROTO;
        if (x->attach && f->type != FRAME_WINDOW)
                return -EPROTO;
        switch (f->type) {
        case FRAME_STDIN:
                if (f->len > x->stdin_credit || !x->request.use_stdin || x->stdin_ended)
                        return -EPROTO;
                x->stdin_credit -= f->len;
                x->stdin_ended = f->flags & FRAME_EOF;
                break;
        case FRAME_WINDOW:
                if (window_decode(f->payload, f->len, &w) < 0 || w.stream == STREAM_STDIN ||
                    w.bytes > FRAME_CREDIT - x->credit[w.stream - 1])
                        return -EPROTO;
                x->credit[w.stream - 1] += w.bytes;
                break;
        case FRAME_SIGNAL:
                if (f->len != 1 || f->payload[0] == 0 || f->payload[0] > 64)
                        return -EPROTO;
                break;
        case FRAME_RESIZE:
                if (f->len != RESIZE_SIZE || !x->request.tty)
                        return -EPROTO;
                break;
        default:
                return -EPROTO;
        }
        conn_send(&x->sandbox->conn, f->type, f->flags, x->channel, f->payload, f->len);
        return 0;
}

int exec_output(struct exec *x, const struct frame *f, int i) {
        if (f->len > x->credit[i])
                return -EPROTO;
        x->credit[i] -= f->len;
        x->bytes[i] += f->len;
        if (x->output_limit && x->bytes[0] + x->bytes[1] > x->output_limit)
                return -EPROTO;
        for (const uint8_t *p = f->payload, *end = p + f->len; (p = memchr(p, '\n', (size_t)(end - p)));
             p++)
                x->lines[i]++;
        if (x->client) {
                conn_pass(&x->client->conn, f, x->client_channel);
        } else if (f->len > 0 && !x->attach) {
                /* The caller has gone: what still comes is taken and let go. */
                uint8_t buf[WINDOW_SIZE];

                window_encode(&(struct window){ (uint8_t)(i + 1), f->len }, buf);
                conn_send(&x->sandbox->conn, FRAME_WINDOW, 0, x->channel, buf, sizeof(buf));
                x->credit[i] += f->len;
        }
        return 0;
}

static int on_stdin_window(struct exec *x, const struct frame *f) {
        struct window w;

        if (window_decode(f->payload, f->len, &w) < 0 || w.stream != STREAM_STDIN ||
            w.bytes > FRAME_CREDIT - x->stdin_credit)
                return -EPROTO;
        x->stdin_credit += w.bytes;
        if (x->client)
                conn_send(&x->client->conn, FRAME_WINDOW, 0, x->client_channel, f->payload, f->len);
        return 0;
}

/* --- the end ------------------------------------------------------------------------------------ */

static void cancel(struct exec *x) {
        conn_send(&x->sandbox->conn, FRAME_CANCEL, 0, x->channel, NULL, 0);
        end_by(x, now_ms() + EXEC_LATE_MS);
}

/* A caller who reads slowly may have its last bytes later: then there is no credit, or some came meanwhile. */
bool exec_overdue(struct exec *x, uint64_t now) {
        uint64_t bytes = x->bytes[0] + x->bytes[1];

        if (x->attach || x->due_ms == 0 || now < x->due_ms)
                return false;
        if (x->client && (x->credit[0] == 0 || x->credit[1] == 0 || bytes != x->due_bytes)) {
                x->due_bytes = bytes;
                x->due_ms = now + EXEC_LATE_MS;
                return false;
        }
        return true;
}

static void end(struct exec *x, const struct exited *e) {
        struct sandbox *sb = x->sandbox;
        struct client *c = x->client;
        char message[PROTO_LINE_MAX] = "";
        struct audit_end ae;
        struct result r;
        uint8_t buf[2048];

        move(x, EXEC_ENDED);
        verdict(x, e, &r, message, sizeof(message));
        ae = (struct audit_end){ .cause = r.cause,
                                 .code = r.exit_code,
                                 .wall_us = r.wall_us,
                                 .lines = r.lines[0],
                                 .truncated = r.truncated };
        x->m->n_running--;
        x->m->n_done++;
        x->m->n_hits += x->pool_hit;
        stats_ended(x, &r);
        if (x->session)
                session_exec_ended(x->session, x);
        else
                sb->exec = NULL;
        /* First the caller, who waits; then the records, for which nobody does. The command has ended, and were
         * this process to end just here, the next one would find the open exec and close it. */
        if (c)
                client_finish(c, FRAME_RESULT, buf, (size_t)result_encode(&r, buf, sizeof(buf)));
        if (!x->unrecorded && audit_exec_end(x->m->audit, &x->audit, &ae) < 0)
                log_line(LOG_P_ERROR, "exec %s: its end could not be recorded", x->id);
        exec_free(x);
        if (c)
                client_leave(c);
}

/* The agent says how it ended; why, it need not know. What ends by itself in its time of grace has its own end. */
static void judge_stopped(struct exited *e) {
        if (e->cause == CAUSE_SIGNALED || e->cause == CAUSE_CANCELLED)
                e->cause = e->signaled ? CAUSE_CANCELLED : CAUSE_EXITED;
}

void exec_stopped(struct exec *x, uint64_t due_ms) {
        x->stopped = true;
        if (!x->cancelled)
                x->cancelled = "as its session was stopped";
        if (!x->attach)
                end_by(x, due_ms);
}

int exec_agent_frame(struct exec *x, const struct frame *f) {
        struct exited e;

        if (x->attach)
                return attach_agent_frame(x, f);
        switch (f->type) {
        case FRAME_STDOUT:
                return exec_output(x, f, 0);
        case FRAME_STDERR:
                return exec_output(x, f, 1);
        case FRAME_WINDOW:
                return on_stdin_window(x, f);
        case FRAME_EXITED:
                if (exited_decode(f->payload, f->len, &e) < 0)
                        return -EPROTO;
                if (x->stopped)
                        judge_stopped(&e);
                if (x->request.detach)
                        session_keep_end(x->session, x, &e);
                end(x, &e);
                return 0;
        default:
                return -EPROTO;
        }
}

void exec_lost(struct exec *x, const char *why) {
        bool left = !x->client && !x->request.detach;
        struct exited e = { .cause = CAUSE_SANDBOX_LOST };

        if (x->m->stopping && !x->cancelled)
                x->cancelled = "as hermes-sandboxd is stopping";
        if (left || x->cancelled)
                e.cause = CAUSE_CANCELLED;
        if (!x->attach)
                log_line(LOG_P_WARNING, "exec %s: sandbox %.12s is lost: %s", x->id, x->container,
                         x->cancelled ? x->cancelled : why);
        if (x->attach)
                attach_end(x, &e);
        else
                end(x, &e);
}

void exec_hangup(struct exec *x) {
        struct session *s = x->session;

        x->client = NULL;
        if (x->attach)
                attach_hangup(x);
        else if (x->state == EXEC_WAITING) {
                leave(x);
                move(x, EXEC_ENDED);
                exec_free(x);
                if (s)
                        session_unwanted(s);
        } else
                cancel(x);
}

void exec_leave(struct exec *x) {
        if (!x->request.detach) {
                exec_lost(x, "the manager is stopping");
                return;
        }
        move(x, EXEC_ENDED);
        x->m->n_running--;
        session_exec_ended(x->session, x);
        exec_free(x);
}

void exec_kill(struct exec *x, uint8_t signal) {
        if (signal > 0) {
                conn_send(&x->sandbox->conn, FRAME_SIGNAL, 0, x->channel, &signal, 1);
                return;
        }
        x->cancelled = "by hermes-sandbox kill";
        cancel(x);
}
