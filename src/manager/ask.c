/*
 * The requests that run no command. Each is a row of the table: its name for a refusal, which fields it takes
 * beside the form, and its handler, which answers in every case. What a row does not take must be empty.
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

enum field { NAME = 1, LABELS = 2, ALL = 4, SIGNAL = 8, GRACE = 16, RECORDS = 32, PROFILE = 64 };

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

/* Each is its asker's own, or anybody's for root. */
static void close_session(struct client *c, const struct ask *a) {
        struct audit_caller by = peer_caller(&c->peer);
        struct session *s;

        if (!request_within_rate(c, NULL))
                return;
        s = session_for(c, "session close", a->name);
        if (!s)
                return;
        session_close(s, "closed", &by, NULL);
        answer_done(c, a);
}

static void stop_session(struct client *c, const struct ask *a) {
        struct session *s;

        if (!request_within_rate(c, NULL))
                return;
        s = session_for(c, "session stop", a->name);
        c->form = a->form;
        if (s)
                session_stop(s, c, a->grace_ms);
}

static void start_session(struct client *c, const struct ask *a) {
        struct session *s;

        if (!request_within_rate(c, NULL))
                return;
        s = session_for(c, "session start", a->name);
        c->form = a->form;
        if (s)
                session_start(s, c);
}

static void tell_session(struct client *c, const struct ask *a) {
        const struct session *s = session_for(c, "session inspect", a->name);

        if (s)
                session_answer_info(s, c, a->form);
}

static void list_sessions(struct client *c, const struct ask *a) {
        size_t len;
        char *text = session_list(c->m, &c->peer, a->all, a->form, &len);

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
        char *text = top_text(c->m, &c->peer, a->all, a->form == ANSWER_JSON, &len);

        answer(c, text, len);
}

/* --- commands ----------------------------------------------------------------------------------- */

static void ps(struct client *c, const struct ask *a) {
        struct session *s = NULL;
        size_t len;
        char *text;

        if (a->name[0]) {
                s = session_for(c, "ps", a->name);
                if (!s)
                        return;
        }
        text = ps_text(c->m, &c->peer, a->all || (s && c->peer.uid == 0), s, a->form == ANSWER_JSON,
                       &len);
        answer(c, text, len);
}

static void kill_exec(struct client *c, const struct ask *a) {
        struct exec *x;

        LIST_FOREACH(x, &c->m->execs, link)
        if (x->state == EXEC_RUNNING && !x->attach && strcmp(x->id, a->name) == 0)
                break;
        if (!x || (x->audit.caller.uid == c->peer.uid && c->peer.uid != 0 &&
                   !peer_is(&c->peer, &x->audit.caller))) {
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

/* --- the docker shim ---------------------------------------------------------------------------- */

/* It has refused a flag by itself, of those that ask for more than any sandbox gets. */
static void record_refused(struct client *c, const struct ask *a) {
        const struct pool *p = pool_find(c->m, a->profile);
        char what[48];

        if (!request_within_rate(c, NULL))
                return;
        snprintf(what, sizeof(what), "docker %.32s", a->name);
        request_refused(c, what, "", p ? p->name : "", "not_allowed");
        answer_done(c, a);
}

/* --- the table ---------------------------------------------------------------------------------- */

static const struct {
        const char *name;
        unsigned fields;
        void (*handler)(struct client *c, const struct ask *a);
} ops[] = {
        [ASK_SESSION_CLOSE] = { "session close", NAME, close_session },
        [ASK_SESSION_LIST] = { "session list", ALL | RECORDS, list_sessions },
        [ASK_SESSION_STOP] = { "session stop", NAME | GRACE, stop_session },
        [ASK_SESSION_START] = { "session start", NAME, start_session },
        [ASK_SESSION_INFO] = { "session inspect", NAME | RECORDS, tell_session },
        [ASK_PS] = { "ps", NAME | ALL, ps },
        [ASK_KILL] = { "kill", NAME | SIGNAL, kill_exec },
        [ASK_STATS] = { "stats", 0, tell_stats },
        [ASK_METRICS] = { "metrics", 0, tell_metrics },
        [ASK_TOP] = { "top", ALL, tell_top },
        [ASK_IMAGE_LIST] = { "image list", RECORDS, image_ask },
        [ASK_IMAGE_PULL] = { "image pull", LABELS, image_ask },
        [ASK_IMAGE_VERIFY] = { "image verify", LABELS, image_ask },
        [ASK_REFUSED] = { "docker", NAME | PROFILE, record_refused },
        [ASK_PROFILES] = { "profiles", RECORDS, image_ask },
};

static unsigned fields_of(const struct ask *a) {
        return (a->name[0] ? NAME : 0) | (a->profile[0] ? PROFILE : 0) | (a->n_labels ? LABELS : 0) |
               (a->all ? ALL : 0) | (a->signal ? SIGNAL : 0) | (a->grace_ms ? GRACE : 0) |
               (a->form == ANSWER_RECORDS ? RECORDS : 0);
}

bool ask_needs_sessions(const struct frame *f) {
        struct ask a;

        if (ask_decode(f->payload, f->len, &a) < 0)
                return false;
        switch (a.op) {
        case ASK_PS:
        case ASK_KILL:
        case ASK_SESSION_STOP:
        case ASK_SESSION_START:
        case ASK_SESSION_INFO:
                return true;
        case ASK_SESSION_LIST: /* for people "adopting" is an answer */
                return a.form == ANSWER_RECORDS;
        default:
                return false;
        }
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
