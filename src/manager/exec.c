/*
 * A command: from the request to its result.
 *
 *     WAITING  in its pool's queue
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
#include "manager/manager.h"
#include "manager/order.h"
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

static void exec_free(struct exec *x) {
        if (x->state != EXEC_ENDED)
                abort();
        LIST_REMOVE(x, link);
        free(x->payload);
        free(x);
}

/* --- the request -------------------------------------------------------------------------------- */

/* Refuses before there is an exec: one record, one line. */
__attribute__((format(printf, 6, 7))) static void refuse(struct client *c, const struct audit_exec *a,
                                                         uint8_t exit_code, const char *reason,
                                                         uint64_t length, const char *fmt, ...) {
        char line[PROTO_LINE_MAX];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(line, sizeof(line), fmt, ap);
        va_end(ap);
        audit_rejected(c->m->audit, a, reason, length);
        client_reject(c, exit_code, "%s", line);
}

/* The profile's name is the caller's text: only what looks like a name is shown again. */
static struct pool *choose_pool(struct client *c, const struct exec_request *r, struct audit_exec *a) {
        struct pool *p = pool_find(c->m, r->profile);

        if (!p) {
                refuse(c, a, EXIT_USAGE, "no_profile", 0,
                       "exec: no profile \"%.64s\" in the config: see "
                       "hermes-sandbox config show",
                       r->profile);
                return NULL;
        }
        a->profile = p->name;
        if (!peer_allowed(&c->peer, &c->m->policy)) {
                refuse(c, a, EXIT_NOT_ALLOWED, "not_allowed", 0,
                       "exec: uid %u is not in group "
                       "hermes-sandbox: sudo usermod -aG hermes-sandbox USER, then log in again",
                       (unsigned)c->peer.uid);
                return NULL;
        }
        if (!peer_profile_allowed(&c->peer, p->profile)) {
                refuse(c, a, EXIT_NOT_ALLOWED, "not_allowed", 0,
                       "exec: uid %u may not use profile \"%s\": "
                       "its allow_users or allow_groups decides",
                       (unsigned)c->peer.uid, p->name);
                return NULL;
        }
        return p;
}

/* What the config bounds. */
static bool within_limits(struct client *c, const struct pool *p, const struct exec_request *r,
                          const struct audit_exec *a) {
        const struct config_limits *l = &p->profile->limits;
        uint64_t length = order_command_bytes(r);

        if (length > l->command_bytes) {
                refuse(c, a, EXIT_USAGE, "too_long", length,
                       "exec: the command has %llu bytes, the limit is "
                       "%llu: shorten it, or raise limits.command_bytes",
                       (unsigned long long)length, (unsigned long long)l->command_bytes);
                return false;
        }
        if (!order_fits(p->profile, r)) {
                refuse(c, a, EXIT_USAGE, "env_too_large", 0,
                       "exec: the environment is too large: at most %u "
                       "variables, and %u bytes with the command",
                       PROTO_ENV_MAX, PROTO_EXEC_MAX);
                return false;
        }
        if (l->timeout_max_ms && r->timeout_ms > l->timeout_max_ms) {
                refuse(c, a, EXIT_USAGE, "timeout_too_long", 0,
                       "exec: a time-out of %llu ms is over the limit "
                       "of %llu ms: ask for less, or raise limits.timeout_max",
                       (unsigned long long)r->timeout_ms, (unsigned long long)l->timeout_max_ms);
                return false;
        }
        return true;
}

/* Before anything leaves a record: nobody shall wash older ones away by sheer rate, refusals included. */
static bool within_rate(struct client *c, const struct exec_request *r) {
        const struct pool *p = pool_find(c->m, r->profile);
        uint32_t rate = (p ? p->profile : &c->m->config->profiles[0])->limits.exec_rate;

        if (rate_take(c->m->rate, c->peer.uid, rate, now_us()))
                return true;
        c->m->n_suppressed++;
        client_reject(
                c, EXIT_SANDBOX,
                "rejected: uid %u asks for more than %u commands a second: wait a moment, or raise "
                "limits.exec_rate",
                (unsigned)c->peer.uid, (unsigned)rate);
        return false;
}

static struct exec *exec_new(struct client *c, struct pool *p, uint8_t *payload,
                             const struct exec_request *r, const struct audit_exec *a) {
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
        x->output_limit = p->profile->limits.output_bytes;
        x->credit[0] = x->credit[1] = x->stdin_credit = FRAME_CREDIT;
        audit_exec_id(x->id);
        snprintf(x->profile, sizeof(x->profile), "%s", p->name);
        x->audit.exec_id = x->id;
        x->audit.profile = x->profile;
        x->audit.container_id = x->container;
        LIST_INSERT_HEAD(&c->m->execs, x, link);
        c->exec = x;
        return x;
}

void exec_request(struct client *c, uint8_t *payload, size_t len) {
        _cleanup_free_ uint8_t *owned = payload;
        struct exec_request r;
        struct audit_exec a = { .profile = "", .caller = peer_caller(&c->peer), .exec_id = "" };
        struct sandbox *sb;
        struct pool *p;
        struct exec *x;

        if (exec_request_decode(payload, len, &r) < 0) {
                client_reject(c, EXIT_USAGE, "exec: the request is malformed");
                return;
        }
        a.args_wire = r.args_wire;
        a.args_len = order_args_len(&r);
        a.n_args = r.n_args;
        a.shell = r.shell;
        if (!within_rate(c, &r))
                return;
        if (c->m->refusing) {
                refuse(c, &a, EXIT_SANDBOX, "stopping", 0, "rejected: " STOPPING_LINE);
                return;
        }
        p = choose_pool(c, &r, &a);
        if (!p || !within_limits(c, p, &r, &a))
                return;
        x = exec_new(c, p, owned, &r, &a);
        owned = NULL;
        x->args_len = a.args_len;
        sb = pool_uid_full(p, c->peer.uid) ? NULL : pool_claim(p, c->peer.uid);
        if (sb) {
                x->pool_hit = true;
                x->audit.pool_hit = true;
                exec_assign(x, sb);
                return;
        }
        conn_pause(&c->conn, true);
        if (x->m->broker.known && x->m->broker.state != ENGINE_UP && supply_coming(p) == 0 &&
            !pool_returns_to(p, c->peer.uid)) {
                exec_refuse(x, "no_engine", x->m->broker.state_text);
                return;
        }
        if (queue_add(p, x) < 0) {
                exec_refuse(x, "queue_full", "the queue is full: try again, or raise queue_limit");
                return;
        }
        supply_nudge(p);
        pool_changed(p);
}

void exec_refuse(struct exec *x, const char *reason, const char *line) {
        struct client *c = x->client;

        if (x->turn)
                queue_leave(x);
        move(x, EXEC_ENDED);
        audit_rejected(x->m->audit, &x->audit, reason, 0);
        if (c)
                client_reject(c, EXIT_SANDBOX, "rejected: %s", line);
        exec_free(x);
}

/* --- the start ---------------------------------------------------------------------------------- */

static void tell_started(struct exec *x) {
        struct started s = { x->id, x->container, x->profile, x->pool_hit };
        uint8_t buf[512];

        /* It goes with the first frame of output or with the result, one wake-up of the caller less; for a
         * command that stays silent it is left to client_announce(). */
        conn_queue(&x->client->conn, FRAME_STARTED, 0, x->client_channel, buf,
                   (size_t)started_encode(&s, buf, sizeof(buf)));
        x->client->since_ms = x->sandbox->since_ms;
        client_announce_later(x->m);
}

void exec_assign(struct exec *x, struct sandbox *sb) {
        _cleanup_free_ uint8_t *order = NULL;
        size_t len, done = 0;
        bool scrub;
        int r;

        if (x->turn) {
                queue_served(x);
                /* One that came back was there, and only had to be scrubbed. */
                x->pool_hit = x->audit.pool_hit = sb->uses > 0;
        }
        memcpy(x->container, sb->id, sizeof(x->container));
        r = audit_exec_start(x->m->audit, &x->audit);
        if (r < 0) {
                exec_refuse(x, "audit",
                            "the kernel audit trail did not take the record, and audit.required "
                            "is true: see journalctl -u hermes-sandbox-pool, auditctl -s");
                return;
        }
        scrub = pool_scrubs(x->pool, sb);
        order = order_encode(x->pool->profile, &x->request, x->args_len, scrub, x->id, &len);
        sandbox_begin(sb, x, scrub);
        x->sandbox = sb;
        x->channel = sb->next_channel++;
        move(x, EXEC_RUNNING);
        for (; len - done > FRAME_PAYLOAD_MAX; done += FRAME_PAYLOAD_MAX)
                conn_queue(&sb->conn, FRAME_EXEC, FRAME_MORE, x->channel, order + done,
                           FRAME_PAYLOAD_MAX);
        conn_send(&sb->conn, FRAME_EXEC, 0, x->channel, order + done, len - done);
        tell_started(x);
        /* Last: what the caller sent meanwhile is handled in here, and may end the exec. */
        conn_pause(&x->client->conn, false);
}

/* --- the streams -------------------------------------------------------------------------------- */

int exec_client_frame(struct exec *x, const struct frame *f) {
        struct window w;

        if (f->channel != x->client_channel || x->state != EXEC_RUNNING)
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
        default:
                return -EPROTO;
        }
        conn_send(&x->sandbox->conn, f->type, f->flags, x->channel, f->payload, f->len);
        return 0;
}

static int on_output(struct exec *x, const struct frame *f, int i) {
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
        } else if (f->len > 0) {
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
        x->m->n_done++;
        x->m->n_hits += x->pool_hit;
        sb->exec = NULL;
        /* First the caller, who waits; then the records, for which nobody does. The command has ended, and were
         * this process to end just here, the next one would find the open exec and close it. */
        if (c)
                client_finish(c, FRAME_RESULT, buf, (size_t)result_encode(&r, buf, sizeof(buf)));
        if (audit_exec_end(x->m->audit, &x->audit, &ae) < 0)
                log_line(LOG_P_ERROR, "exec %s: its end could not be recorded", x->id);
        exec_free(x);
        if (c)
                client_leave(c);
}

int exec_agent_frame(struct exec *x, const struct frame *f) {
        struct exited e;

        switch (f->type) {
        case FRAME_STDOUT:
                return on_output(x, f, 0);
        case FRAME_STDERR:
                return on_output(x, f, 1);
        case FRAME_WINDOW:
                return on_stdin_window(x, f);
        case FRAME_EXITED:
                if (exited_decode(f->payload, f->len, &e) < 0)
                        return -EPROTO;
                end(x, &e);
                return 0;
        default:
                return -EPROTO;
        }
}

void exec_lost(struct exec *x, const char *why) {
        bool cancelled = !x->client || x->m->stopping;
        struct exited e = { .cause = cancelled ? CAUSE_CANCELLED : CAUSE_SANDBOX_LOST };

        log_line(LOG_P_WARNING, "exec %s: sandbox %.12s is lost: %s", x->id, x->container,
                 x->m->stopping ? "the manager is stopping" : why);
        end(x, &e);
}

void exec_hangup(struct exec *x) {
        x->client = NULL;
        if (x->state == EXEC_WAITING) {
                if (x->turn)
                        queue_leave(x);
                move(x, EXEC_ENDED);
                exec_free(x);
        } else
                conn_send(&x->sandbox->conn, FRAME_CANCEL, 0, x->channel, NULL, 0);
}
