/*
 * Commands that nobody waits for. The agent keeps what they write and how they ended; here is kept of the last few
 * of each session how they ended, and the agent is told to forget the others.
 *
 * Who attaches to one is served by an exec that is no command: it has a channel of its own, credit as any, no
 * records, and a result that is the command's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exitcode.h"
#include "manager/audit_line.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"
#include "manager/verdict.h"

/* By then the agent has answered a ping that was sent behind the CANCEL: nothing of before that is on its way. */
#define LEFT_MS (PING_MS + PING_LOST_MS)
/* Who attaches and leaves, over and over. */
#define LEFT_MAX 256

/* --- ends ---------------------------------------------------------------------------------------- */

struct ended *session_ended(struct session *s, const char *exec_id) {
        struct ended *e;

        TAILQ_FOREACH(e, &s->ended, link)
        if (strcmp(e->id, exec_id) == 0)
                return e;
        return NULL;
}

static void drop(struct session *s, struct ended *e) {
        TAILQ_REMOVE(&s->ended, e, link);
        s->n_ended--;
        free(e);
}

void session_drop_ends(struct session *s) {
        while (!TAILQ_EMPTY(&s->ended))
                drop(s, TAILQ_FIRST(&s->ended));
}

void session_keep_end(struct session *s, const struct exec *x, const struct exited *exited) {
        struct ended *e = calloc(1, sizeof(*e));
        char message[PROTO_LINE_MAX];
        struct audit_open_exec o;

        if (!e)
                abort();
        audit_exec_shown(&x->audit, &o);
        memcpy(e->id, x->id, sizeof(e->id));
        e->channel = x->channel;
        e->exited = *exited;
        e->stopped = x->stopped;
        verdict(x, exited, &e->result, message, sizeof(message));
        e->begun_us = x->begun_us;
        e->command_len = o.command_len;
        e->command_total = o.command_total;
        memcpy(e->command, o.command, o.command_len);
        TAILQ_INSERT_TAIL(&s->ended, e, link);
        if (++s->n_ended <= SESSION_ENDED_MAX)
                return;
        e = TAILQ_FIRST(&s->ended);
        conn_send(&s->sandbox->conn, FRAME_FORGET, 0, e->channel, NULL, 0);
        drop(s, e);
}

/* --- attaching ----------------------------------------------------------------------------------- */

/* Which command, wherever it is: one that runs is *ret_x, one that has ended *ret_e, in session *ret_s. False: there is
 * none, or it is attached to its caller. */
static bool find(struct manager *m, const char *id, struct session **ret_s, struct exec **ret_x,
                 struct ended **ret_e) {
        struct session *s;
        struct exec *x;

        *ret_x = NULL;
        *ret_e = NULL;
        LIST_FOREACH(x, &m->execs, link)
        if (x->request.detach && x->state == EXEC_RUNNING && strcmp(x->id, id) == 0) {
                *ret_x = x;
                *ret_s = x->session;
                return true;
        }
        TAILQ_FOREACH(s, &m->sessions, link)
        if ((*ret_e = session_ended(s, id))) {
                *ret_s = s;
                return true;
        }
        return false;
}

static void begin(struct client *c, struct session *s, const struct attach *a, uint32_t target,
                  uint64_t begun_us) {
        struct exec *x = calloc(1, sizeof(*x));
        struct attach_order o = { target, a->output, { a->offset[0], a->offset[1] } };
        uint8_t buf[64];

        if (!x)
                abort();
        x->attach = true;
        x->output = a->output;
        x->m = c->m;
        x->state = EXEC_RUNNING;
        x->client = c;
        x->client_channel = c->channel;
        x->pool = s->pool;
        x->session = s;
        x->sandbox = s->sandbox;
        x->pool_hit = true;
        x->begun_us = begun_us;
        x->credit[0] = x->credit[1] = FRAME_CREDIT;
        x->request.workdir = "";
        memcpy(x->id, a->exec_id, sizeof(x->id));
        memcpy(x->container, s->container, sizeof(x->container));
        snprintf(x->profile, sizeof(x->profile), "%s", s->pool->name);
        x->audit.caller = peer_caller(&c->peer);
        x->channel = s->sandbox->next_channel++;
        LIST_INSERT_HEAD(&c->m->execs, x, link);
        c->exec = x;
        session_exec_begun(s, x);
        conn_send(&s->sandbox->conn, FRAME_ATTACH, 0, x->channel, buf,
                  (size_t)attach_order_encode(&o, buf, sizeof(buf)));
        exec_tell_started(x);
}

/* Who holds one key does not hear of the commands of another. */
static bool is_another_keys(const struct peer *p, const struct session *s) {
        return p->uid == s->owner.uid && !peer_is(p, &s->owner);
}

int attach_handle(struct client *c, const struct frame *f) {
        struct session *s;
        struct ended *e;
        struct exec *x;
        struct attach a;

        if (attach_decode(f->payload, f->len, &a) < 0)
                return -EPROTO;
        if (!peer_allowed(&c->peer, &c->m->policy))
                request_not_allowed(
                        c, "attach", "", "",
                        "uid %u is not in group hermes-sandbox: sudo usermod -aG hermes-sandbox "
                        "USER, then log in again",
                        (unsigned)c->peer.uid);
        else if (!find(c->m, a.exec_id, &s, &x, &e) || is_another_keys(&c->peer, s))
                client_reject(c, EXIT_SANDBOX, "attach: no detached command %s: see hermes-sandbox ps",
                              a.exec_id);
        else if (!peer_is(&c->peer, &s->owner))
                request_not_allowed(c, "attach", s->name, s->pool->name, "command %s is another user's",
                                    a.exec_id);
        else if (s->n_attached >= SESSION_ATTACHES_MAX || s->n_left >= LEFT_MAX)
                client_reject(
                        c, EXIT_SANDBOX,
                        "rejected: attach: %u are attached to commands of session \"%s\": wait for "
                        "one to leave",
                        SESSION_ATTACHES_MAX, s->name);
        else
                begin(c, s, &a, x ? x->channel : e->channel, x ? x->begun_us : e->begun_us);
        return 0;
}

/* The agent has forgotten it, as it has when it needed the room. */
static bool unknown_to_agent(const struct exited *e) {
        return e->cause == CAUSE_NOT_FOUND && e->code == START_PLUMBING && e->error == ENOENT;
}

void attach_end(struct exec *x, const struct exited *exited) {
        struct ended *e = session_ended(x->session, x->id);
        struct client *c = x->client;
        char message[PROTO_LINE_MAX];
        struct exited lost = { .cause = CAUSE_SANDBOX_LOST };
        struct result r;
        uint8_t buf[2048];

        if (unknown_to_agent(exited))
                exited = e ? &e->exited : &lost;
        /* Why, the agent does not say. */
        if (e && e->stopped) {
                exited = &e->exited;
                exec_stopped(x, 0);
        }
        /* EXITED counts what did not go over the command's own channel: that is all of it. */
        for (int i = 0; i < 2; i++)
                x->bytes[i] = x->lines[i] = 0;
        verdict(x, exited, &r, message, sizeof(message));
        if (e)
                r.wall_us = e->result.wall_us;
        if (c)
                client_finish(c, FRAME_RESULT, buf, (size_t)result_encode(&r, buf, sizeof(buf)));
        session_exec_ended(x->session, x);
        exec_free(x);
        if (c)
                client_leave(c);
}

static int on_attached(struct exec *x, const struct frame *f) {
        struct attached a;

        if (attached_decode(f->payload, f->len, &a) < 0 || !x->output)
                return -EPROTO;
        if (x->client)
                conn_send(&x->client->conn, FRAME_ATTACHED, 0, x->client_channel, f->payload, f->len);
        return 0;
}

int attach_agent_frame(struct exec *x, const struct frame *f) {
        struct exited e;

        switch (f->type) {
        case FRAME_ATTACHED:
                return on_attached(x, f);
        case FRAME_STDOUT:
        case FRAME_STDERR:
                return x->output ? exec_output(x, f, f->type == FRAME_STDERR) : -EPROTO;
        case FRAME_EXITED:
                if (exited_decode(f->payload, f->len, &e) < 0)
                        return -EPROTO;
                attach_end(x, &e);
                return 0;
        default:
                return -EPROTO;
        }
}

/* What the agent has sent meanwhile comes all the same, and is let go. */
void attach_hangup(struct exec *x) {
        x->hung_ms = now_ms();
        x->session->n_attached--;
        x->session->n_left++;
        conn_send(&x->sandbox->conn, FRAME_CANCEL, 0, x->channel, NULL, 0);
}

void attaches_check(struct session *s, uint64_t now) {
        struct exec *x, *next;

        for (int i = 0; s->n_left > 0 && i < SESSION_BUCKETS; i++)
                for (x = LIST_FIRST(&s->execs[i]); x; x = next) {
                        next = LIST_NEXT(x, in_session);
                        if (!x->attach || !x->hung_ms || now - x->hung_ms < LEFT_MS)
                                continue;
                        session_exec_ended(s, x);
                        exec_free(x);
                }
}
