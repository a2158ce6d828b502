/*
 * The requests that run no command. Each is a row of the table: its name for a refusal, which fields it takes
 * beside json, and its handler, which answers in every case. What a row does not take must be empty.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"
#include "manager/top.h"

enum field { NAME = 1, LABELS = 2, ALL = 4, SIGNAL = 8, GRACE = 16 };

/* An allocated answer; NULL: out of memory. */
static void answer(struct client *c, char *text, size_t len) {
        _cleanup_free_ char *owned = text;

        if (!owned)
                abort();
        client_answer(c, FRAME_ANSWER, owned, len);
}

static void answer_done(struct client *c, const struct ask *a) {
        client_answer(c, FRAME_ANSWER, "{}\n", a->form == ANSWER_JSON ? 3 : 0);
}

/* --- sessions ----------------------------------------------------------------------------------- */

/* What is wrong with the request itself; false: it is refused. */
static bool may_open(struct client *c, const struct open_request *a, const struct pool *p) {
        const struct config_profile *profile = p->profile;

        if (!peer_profile_allowed(&c->peer, profile))
                request_not_allowed(c, "session open", a->name, p->name,
                                    "uid %u may not use profile \"%s\": its allow_users or allow_groups "
                                    "decides",
                                    (unsigned)c->peer.uid, p->name);
        else if (a->name[0] && !session_name_valid(a->name))
                client_reject(c, EXIT_USAGE,
                              "session open: \"%.64s\" cannot be a session's name: 1 to 64 letters, "
                              "digits, \"_\", \"-\" and \".\", the first none of the last two",
                              a->name);
        else if (a->name[0] && session_find(c->m, a->name))
                client_reject(c, EXIT_USAGE,
                              "session open: the name \"%s\" is taken: choose another, or close that "
                              "session",
                              a->name);
        else if (profile->session_ttl_max_ms && a->ttl_ms > profile->session_ttl_max_ms)
                client_reject(c, EXIT_USAGE,
                              "session open: a time to live of %llu s is over the limit of %llu s: ask "
                              "for less, or raise session_ttl_max",
                              (unsigned long long)a->ttl_ms / 1000,
                              (unsigned long long)profile->session_ttl_max_ms / 1000);
        else if (a->mounts && c->conn.passed < 0)
                client_reject(c, EXIT_USAGE, "session open: no descriptor came with the mounts");
        else if (a->mounts && !mounted_is_callers(c->conn.passed, c->peer.uid))
                request_not_allowed(
                        c, "session open", a->name, p->name,
                        "the mounts come on something else than uid %u's own pair of packet sockets",
                        (unsigned)c->peer.uid);
        else
                return true;
        return false;
}

static void open_session(struct client *c, const struct open_request *a) {
        const char *reason, *line;
        struct session *s;
        struct pool *p = pool_find(c->m, a->profile);

        if (!request_within_rate(c, p))
                return;
        if (c->m->refusing) {
                client_reject(c, EXIT_SANDBOX, "rejected: " STOPPING_LINE);
                return;
        }
        if (!p) {
                client_reject(c, EXIT_USAGE,
                              "session open: no profile \"%.64s\" in the config: see hermes-sandbox "
                              "config show",
                              a->profile);
                return;
        }
        if (!may_open(c, a, p))
                return;
        s = session_new(c, p, a->name, a->ttl_ms, a->labels, a->n_labels, &reason, &line);
        if (!s) {
                request_refused(c, "session open", a->name, p->name, reason);
                client_reject(c, EXIT_SANDBOX, "rejected: session open: %s", line);
                return;
        }
        s->mounts = a->mounts;
        if (a->mounts)
                s->mount_fd = take_fd(&c->conn.passed);
        s->opener = c;
        s->opener_json = a->form == ANSWER_JSON;
        c->opening = s;
        conn_pause(&c->conn, true);
        session_begin(s);
}

static void close_session(struct client *c, const struct ask *a) {
        struct session *s;
        struct audit_caller by = peer_caller(&c->peer);

        if (!request_within_rate(c, NULL))
                return;
        s = session_name_valid(a->name) ? session_find(c->m, a->name) : NULL;
        if (!s) {
                client_reject(c, EXIT_SANDBOX,
                              "session close: no session \"%.64s\": see hermes-sandbox session list",
                              a->name);
                return;
        }
        if (s->owner.uid != c->peer.uid && c->peer.uid != 0) {
                request_not_allowed(c, "session close", s->name, s->pool->name,
                                    "session \"%s\" is another user's", s->name);
                return;
        }
        session_close(s, "closed", &by, NULL);
        answer_done(c, a);
}

static void list_sessions(struct client *c, const struct ask *a) {
        size_t len;
        char *text = session_list(c->m, c->peer.uid, a->all, a->form == ANSWER_JSON, &len);

        answer(c, text, len);
}

/* --- what is there, and what was ---------------------------------------------------------------- */

static void tell_stats(struct client *c, const struct ask *a) {
        size_t len;
        char *text = stats_text(c->m, a->form == ANSWER_JSON, &len);

        answer(c, text, len);
}

static void tell_metrics(struct client *c, const struct ask *a) {
        size_t len;
        char *text = metrics_text(c->m, &len);

        (void)a;
        answer(c, text, len);
}

static void tell_top(struct client *c, const struct ask *a) {
        size_t len;
        char *text = top_text(c->m, c->peer.uid, a->all, a->form == ANSWER_JSON, &len);

        answer(c, text, len);
}

/* --- commands ----------------------------------------------------------------------------------- */

static void ps(struct client *c, const struct ask *a) {
        struct session *s = session_find(c->m, a->name);
        bool all = a->all || (s && c->peer.uid == 0);
        size_t len;
        char *text;

        if (a->name[0] && !s) {
                client_reject(c, EXIT_SANDBOX,
                              "ps: no session \"%.64s\": see hermes-sandbox session list", a->name);
                return;
        }
        if (s && s->owner.uid != c->peer.uid && c->peer.uid != 0) {
                request_not_allowed(c, "ps", s->name, s->pool->name, "session \"%s\" is another user's",
                                    s->name);
                return;
        }
        text = ps_text(c->m, c->peer.uid, all, a->name, a->form == ANSWER_JSON, &len);
        answer(c, text, len);
}

static void kill_exec(struct client *c, const struct ask *a) {
        struct exec *x;

        LIST_FOREACH(x, &c->m->execs, link)
        if (x->state == EXEC_RUNNING && !x->attach && strcmp(x->id, a->name) == 0)
                break;
        if (!x) {
                client_reject(c, EXIT_SANDBOX, "kill: no command \"%.64s\" runs: see hermes-sandbox ps",
                              a->name);
                return;
        }
        if (x->audit.caller.uid != c->peer.uid && c->peer.uid != 0) {
                request_not_allowed(c, "kill", x->session ? x->session->name : "", x->pool->name,
                                    "command %s is another user's", x->id);
                return;
        }
        exec_kill(x, a->signal);
        answer_done(c, a);
}

/* --- the table ---------------------------------------------------------------------------------- */

static const struct {
        const char *name;
        unsigned fields;
        void (*handler)(struct client *c, const struct ask *a);
} ops[] = {
        [ASK_SESSION_CLOSE] = { "session close", NAME, close_session },
        [ASK_SESSION_LIST] = { "session list", ALL, list_sessions },
        [ASK_PS] = { "ps", NAME | ALL, ps },
        [ASK_KILL] = { "kill", NAME | SIGNAL, kill_exec },
        [ASK_STATS] = { "stats", 0, tell_stats },
        [ASK_METRICS] = { "metrics", 0, tell_metrics },
        [ASK_TOP] = { "top", ALL, tell_top },
        [ASK_IMAGE_LIST] = { "image list", 0, image_ask },
        [ASK_IMAGE_PULL] = { "image pull", LABELS, image_ask },
        [ASK_IMAGE_VERIFY] = { "image verify", LABELS, image_ask },
};

static unsigned fields_of(const struct ask *a) {
        return (a->name[0] ? NAME : 0) | (a->n_labels ? LABELS : 0) | (a->all ? ALL : 0) |
               (a->signal ? SIGNAL : 0) | (a->grace_ms ? GRACE : 0);
}

bool ask_needs_sessions(const struct frame *f) {
        struct ask a;

        return ask_decode(f->payload, f->len, &a) == 0 && (a.op == ASK_PS || a.op == ASK_KILL);
}

int open_handle(struct client *c, const struct frame *f) {
        struct open_request r;

        if (open_request_decode(f->payload, f->len, &r) < 0)
                return -EPROTO;
        if (!peer_allowed(&c->peer, &c->m->policy))
                request_not_allowed(
                        c, "session open", r.name, "",
                        "uid %u is not in group hermes-sandbox: sudo usermod -aG hermes-sandbox "
                        "USER, then log in again",
                        (unsigned)c->peer.uid);
        else
                open_session(c, &r);
        return 0;
}

int ask_handle(struct client *c, const struct frame *f) {
        struct ask a;

        if (ask_decode(f->payload, f->len, &a) < 0)
                return -EPROTO;
        if (a.op >= sizeof(ops) / sizeof(ops[0]) || !ops[a.op].handler) {
                client_reject(c, EXIT_SANDBOX,
                              "hermes-sandboxd " VERSION " does not know request %u: install the same "
                              "version of client and manager, and start it anew",
                              a.op);
                return 0;
        }
        if (fields_of(&a) & ~ops[a.op].fields)
                return -EPROTO;
        if (!peer_allowed(&c->peer, &c->m->policy))
                request_not_allowed(
                        c, ops[a.op].name, a.name, "",
                        "uid %u is not in group hermes-sandbox: sudo usermod -aG hermes-sandbox "
                        "USER, then log in again",
                        (unsigned)c->peer.uid);
        else if (a.all && c->peer.uid != 0)
                request_not_allowed(c, ops[a.op].name, "", "", "only root may ask for every user's");
        else
                ops[a.op].handler(c, &a);
        return 0;
}
