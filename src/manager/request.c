/*
 * A command is asked for. Everything that can be known of it beforehand is checked here, in one order: the rate,
 * before anything leaves a record; who asks, and for which session or profile; what the config bounds. What is
 * refused leaves one record and one line, what is not becomes an exec.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/wire.h"
#include "manager/exec.h"
#include "manager/gateway.h"
#include "manager/manager.h"
#include "manager/order.h"
#include "manager/session.h"

/* A request, while it is looked at. */
struct asked {
        struct client *c;
        struct exec_request r;
        struct audit_exec a;
        struct pool *pool;
        struct session *session; /* that it is for, where there is one already */
};

/* Refuses before there is an exec: one record, one line. */
__attribute__((format(printf, 5, 6))) static bool refuse(const struct asked *q, uint8_t exit_code,
                                                         const char *reason, uint64_t length,
                                                         const char *fmt, ...) {
        char line[PROTO_LINE_MAX];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(line, sizeof(line), fmt, ap);
        va_end(ap);
        audit_rejected(q->c->m->audit, &q->a, reason, length);
        client_refuse(q->c, exit_code, reason, "%s", line);
        return false;
}

void request_refused(struct client *c, const char *what, const char *session, const char *profile,
                     const char *reason) {
        uint8_t wire[64];
        struct wire_out o;
        struct audit_exec a = { .exec_id = "",
                                .profile = profile,
                                .session = session_name_valid(session) ? session : "",
                                .caller = peer_caller(&c->peer),
                                .args_wire = wire,
                                .n_args = 1,
                                .shell = true };

        wire_out_init(&o, wire, sizeof(wire));
        wire_put_str(&o, what);
        a.args_len = o.len;
        audit_rejected(c->m->audit, &a, reason, 0);
}

void request_not_allowed(struct client *c, const char *what, const char *session, const char *profile,
                         const char *fmt, ...) {
        char line[PROTO_LINE_MAX];
        va_list ap;

        if (!request_within_rate(c, NULL))
                return;
        va_start(ap, fmt);
        vsnprintf(line, sizeof(line), fmt, ap);
        va_end(ap);
        request_refused(c, what, session, profile, "not_allowed");
        client_reject(c, EXIT_NOT_ALLOWED, "%s: %s", what, line);
}

static bool may_use(const struct asked *q) {
        if (peer_allowed(&q->c->peer, &q->c->m->policy))
                return true;
        return refuse(q, EXIT_NOT_ALLOWED, "not_allowed", 0,
                      "exec: uid %u is not in group "
                      "hermes-sandbox: sudo usermod -aG hermes-sandbox USER, then log in again",
                      (unsigned)q->c->peer.uid);
}

/* The profile's name is the caller's text: only what looks like a name is shown again. */
static bool choose_pool(struct asked *q) {
        struct pool *p = pool_find(q->c->m, q->r.profile);

        if (!p)
                return refuse(q, EXIT_USAGE, "no_profile", 0,
                              "exec: no profile \"%.64s\" in the config: see "
                              "hermes-sandbox config show",
                              q->r.profile);
        q->pool = p;
        q->a.profile = p->name;
        return may_use(q);
}

/* By its name alone where it may be opened: what is meant then is a name. */
static uint8_t look_up(struct asked *q, struct session **ret) {
        struct session *s;
        uint8_t r;

        if (!q->r.open)
                return session_lookup(q->c->m, &q->c->peer, q->r.session, ret);
        s = session_find(q->c->m, q->r.session);
        r = s ? 0 : REJECT_NO_SESSION;
        *ret = s;
        return r;
}

/* In a session the profile is the session's, and so is the user. */
static bool choose_session(struct asked *q) {
        const char *name = q->r.session;
        struct session *s = NULL;
        uint8_t r;

        if (!may_use(q))
                return false;
        if (!session_name_valid(name))
                return refuse(q, EXIT_USAGE, "bad_session", 0,
                              "exec: \"%.64s\" cannot be a session's name: 1 to 64 letters, digits, "
                              "\"_\", \"-\" and \".\", the first none of the last two",
                              name);
        r = look_up(q, &s);
        if (!s && q->r.open && gateway_name_is_kept(&q->c->peer, name))
                return refuse(q, EXIT_USAGE, "bad_session", 0,
                              "exec: \"%s\" is the name of an ssh key's session: choose another", name);
        if (!s && q->r.open)
                return choose_pool(q);
        if (r == REJECT_AMBIGUOUS)
                return refuse(q, EXIT_SANDBOX, "ambiguous", 0,
                              "exec: several sandboxes' ids begin with \"%s\": give more digits, or the "
                              "session's name",
                              name);
        if (!s)
                return refuse(q, EXIT_SANDBOX, "no_session", 0,
                              "exec: no session \"%s\": hermes-sandbox session open %s, or exec --open",
                              name, name);
        if (!peer_is(&q->c->peer, &s->owner))
                return refuse(q, EXIT_NOT_ALLOWED, "not_allowed", 0,
                              "exec: session \"%s\" is another user's: open one of your own", name);
        q->session = s;
        q->a.session = s->name;
        q->pool = s->pool;
        q->a.profile = s->pool->name;
        if (q->r.profile[0] && strcmp(q->r.profile, s->pool->name) != 0)
                return refuse(q, EXIT_USAGE, "other_profile", 0,
                              "exec: session \"%s\" is of profile \"%s\": leave --profile out, or open "
                              "another session",
                              name, s->pool->name);
        if (!s->pool->profile)
                return refuse(
                        q, EXIT_SANDBOX, "no_profile", 0,
                        "rejected: profile \"%s\" of session \"%s\" has gone from the config: close "
                        "the session",
                        s->pool->name, name);
        if (s->state == SESSION_STOPPING || s->state == SESSION_STOPPED)
                return refuse(q, EXIT_SANDBOX, "stopped", 0,
                              "exec: session \"%s\" is stopped: hermes-sandbox session start %s",
                              s->name, s->name);
        return true;
}

static bool may_use_profile(const struct asked *q) {
        if (peer_profile_allowed(&q->c->peer, q->pool->profile))
                return true;
        return refuse(q, EXIT_NOT_ALLOWED, "not_allowed", 0,
                      "exec: uid %u may not use profile \"%s\": "
                      "its allow_users or allow_groups decides",
                      (unsigned)q->c->peer.uid, q->pool->name);
}

/* As another user than the profile's, or the session's. */
static bool may_be_user(const struct asked *q) {
        struct config_user user;

        if (session_user(q->session, q->pool->profile, &q->r, &user))
                return true;
        return refuse(
                q, EXIT_NOT_ALLOWED, "no_user", 0,
                "exec: commands of profile \"%s\" may not run as uid %u%s: see user and users of the "
                "profile",
                q->pool->name, q->r.uid, q->r.gid == UINT32_MAX ? "" : " with that gid");
}

/* What the config bounds. */
static bool within_limits(const struct asked *q) {
        const struct config_limits *l = &q->pool->profile->limits;
        uint64_t length = order_command_bytes(&q->r);

        if (length > l->command_bytes)
                return refuse(q, EXIT_USAGE, "too_long", length,
                              "exec: the command has %llu bytes, the limit is "
                              "%llu: shorten it, or raise limits.command_bytes",
                              (unsigned long long)length, (unsigned long long)l->command_bytes);
        if (!order_fits(q->pool->profile, q->session ? q->session->n_env : 0,
                        q->session ? q->session->env_len : 0, &q->r))
                return refuse(q, EXIT_USAGE, "env_too_large", 0,
                              "exec: the environment is too large: at most %u "
                              "variables, and %u bytes with the command",
                              PROTO_ENV_MAX, PROTO_EXEC_MAX);
        if (l->timeout_max_ms && q->r.timeout_ms > l->timeout_max_ms)
                return refuse(q, EXIT_USAGE, "timeout_too_long", 0,
                              "exec: a time-out of %llu ms is over the limit "
                              "of %llu ms: ask for less, or raise limits.timeout_max",
                              (unsigned long long)q->r.timeout_ms,
                              (unsigned long long)l->timeout_max_ms);
        if (pool_execs_full(q->pool, q->c->peer.uid))
                return refuse(q, EXIT_SANDBOX, "quota", 0,
                              "rejected: uid %u has %u commands running: wait for some to end, or raise "
                              "limits.execs",
                              (unsigned)q->c->peer.uid, l->execs);
        return true;
}

/* Before anything leaves a record: nobody shall wash older ones away by sheer rate, refusals included. */
bool request_within_rate(struct client *c, const struct pool *p) {
        const struct config_profile *of = p && p->profile ? p->profile : &c->m->config->profiles[0];
        uint32_t rate = of->limits.exec_rate;

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

/* In a sandbox of its own: one that is warm, or the queue. */
static void one_shot(struct exec *x) {
        struct client *c = x->client;
        struct pool *p = x->pool;
        struct sandbox *sb = pool_uid_full(p, c->peer.uid) ? NULL : pool_claim(p, c->peer.uid);
        int r;

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
        r = queue_add(p, c->peer.uid, &x->waiter);
        if (r < 0) {
                exec_refuse(x, r == -EDQUOT ? "quota" : "queue_full",
                            r == -EDQUOT ? "you have as many requests waiting as limits.queued allows"
                                         : "the queue is full: try again, or raise queue_limit");
                return;
        }
        supply_nudge(p);
        pool_changed(p);
}

static void in_session(const struct asked *q, struct exec *x) {
        const struct open_request open = { .name = q->r.session, .workdir = "" };
        struct session *s = q->session;
        const char *reason, *line;

        if (!s)
                s = session_new(q->c, q->pool, &open, &reason, &line);
        if (!s) {
                exec_refuse(x, reason, line);
                return;
        }
        session_exec(s, x);
        if (q->session)
                return;
        if (TAILQ_EMPTY(&s->pending))
                session_unwanted(s); /* the command was refused */
        else
                session_begin(s);
}

void exec_request(struct client *c, uint8_t *payload, size_t len) {
        _cleanup_free_ uint8_t *owned = payload;
        struct asked q = { .c = c,
                           .a = { .profile = "", .caller = peer_caller(&c->peer), .exec_id = "" } };
        struct session *s = NULL;
        struct exec *x;

        if (exec_request_decode(payload, len, &q.r) < 0) {
                client_reject(c, EXIT_USAGE, "exec: the request is malformed");
                return;
        }
        q.r.login = q.a.caller.fp[0] != '\0';
        q.a.session = q.r.session;
        q.a.args_wire = q.r.args_wire;
        q.a.args_len = order_args_len(&q.r);
        q.a.n_args = q.r.n_args;
        q.a.shell = q.r.shell;
        q.a.files = q.r.files;
        s = q.r.session[0] && look_up(&q, &s) == 0 ? s : NULL;
        if (!request_within_rate(c, s ? s->pool : pool_find(c->m, q.r.profile)))
                return;
        if (c->m->refusing) {
                refuse(&q, EXIT_SANDBOX, "stopping", 0, "rejected: " STOPPING_LINE);
                return;
        }
        if (!(q.r.session[0] ? choose_session(&q) : choose_pool(&q)) || !may_use_profile(&q) ||
            !may_be_user(&q) || !within_limits(&q))
                return;
        x = exec_new(c, q.pool, owned, &q.r, &q.a);
        x->payload_len = len;
        owned = NULL;
        if (q.r.session[0])
                in_session(&q, x);
        else
                one_shot(x);
}
