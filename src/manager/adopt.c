/*
 * The sessions of an earlier life. Its files say which there are; the broker is asked for a new socket in the folder
 * of each one's sandbox, and the agent there, which has looked for one since, connects and says which detached
 * commands it holds.
 *
 * What is held and stands open in the state file of the audit trail is that command again, with its records still to
 * be completed. What stands open there and is not held has its end recorded as one that nobody saw. What is held and
 * stands nowhere has an end that was recorded: it is shown, or, where it runs all the same, ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "manager/audit_state.h"
#include "manager/exec.h"
#include "manager/session.h"

/* A channel that an agent may hold: so that there is room for all that come. */
#define CHANNEL_MAX (UINT32_MAX / 2)

/* --- which commands are whose -------------------------------------------------------------------- */

static bool is_of(const struct session *s, const struct audit_open_exec *o) {
        return s->state == SESSION_ADOPTING && o->detached && strcmp(s->name, o->session) == 0 &&
               strncmp(s->container, o->container_id, AUDIT_STATE_CID) == 0;
}

static bool may_be_held(void *userdata, const struct audit_open_exec *o) {
        struct manager *m = userdata;
        const struct session *s = session_find(m, o->session);

        return s && is_of(s, o);
}

int adopt_begin(struct manager *m, struct errmsg *e) {
        int r = session_state_load(m);

        if (r < 0)
                return errmsg_set(e, r, "the sessions of an earlier life in %s/sessions: %s",
                                  m->options.state_dir, strerror(-r));
        r = audit_recover(m->audit, may_be_held, m);
        if (r < 0)
                return errmsg_set(e, r,
                                  "the audit records of an earlier life could not be completed: %s",
                                  strerror(-r));
        return 0;
}

void adopt_forget(struct session *s) {
        struct audit_open_exec o;

        for (size_t i = 0; audit_open_next(s->m->audit, &i, &o); i++)
                if (is_of(s, &o) && !session_has(s, o.exec_id) &&
                    audit_exec_unknown(s->m->audit, &o) < 0)
                        log_line(LOG_P_ERROR, "exec %s: its end could not be recorded", o.exec_id);
}

/* --- the sandboxes ------------------------------------------------------------------------------- */

/* A request's session, by what it is about: it may be closed meanwhile. */
struct asked {
        struct manager *m;
        char container[ENGINE_ID_LEN + 1];
};

static struct session *find(const struct asked *asked) {
        struct session *s;

        TAILQ_FOREACH(s, &asked->m->sessions, link)
        if (s->state == SESSION_ADOPTING && strcmp(s->container, asked->container) == 0)
                return s;
        return NULL;
}

static void listening(void *userdata, const struct engine_msg *m, int fd) {
        static const uint8_t no_recipe[CONFIG_RECIPE];
        _cleanup_free_ struct asked *asked = userdata;
        _cleanup_fd_ int passed = fd;
        struct session *s = find(asked);

        if (!s)
                return;
        s->asked = false;
        /* Its recipe is of no interest: nobody but this session will have it. */
        if (m->type == ENGINE_LISTENING && passed >= 0)
                s->sandbox = sandbox_new(s->pool, s->container, no_recipe, m->image, (pid_t)m->pid,
                                         take_fd(&passed), s);
        else if (m->type == ENGINE_FAILED && m->error == ENGINE_E_NOT_OURS)
                session_close(s, "lost", NULL, m->text);
        else if (m->type == ENGINE_FAILED && m->error != ENGINE_E_UNREACHABLE)
                log_line(LOG_P_WARNING, "session %s cannot be had yet: %s", s->name, m->text);
        /* Without a sandbox it is asked again. Whatever the engine or the broker lacks, the sandbox is there until
         * they say that it is not: it ends itself when that takes too long. */
}

void adopt_ask(struct manager *m) {
        struct session *s;

        TAILQ_FOREACH(s, &m->sessions, link) {
                struct engine_msg ask = { .type = ENGINE_LISTEN, .container = s->container };
                struct asked *asked;

                if (s->state != SESSION_ADOPTING || s->sandbox || s->asked)
                        continue;
                asked = calloc(1, sizeof(*asked));
                if (!asked)
                        abort();
                asked->m = m;
                memcpy(asked->container, s->container, sizeof(asked->container));
                s->asked = broker_ask(&m->broker, &ask, listening, asked) == 0;
                if (!s->asked)
                        free(asked);
        }
}

/* --- the commands in them ------------------------------------------------------------------------ */

static bool slot_of(struct session *s, const char *exec_id, struct audit_open_exec *ret) {
        for (size_t i = 0; audit_open_next(s->m->audit, &i, ret); i++)
                if (is_of(s, ret) && strcmp(ret->exec_id, exec_id) == 0)
                        return true;
        return false;
}

/* An agent that says that it holds what stands elsewhere lies: the one there would be taken for this one. */
static bool is_anothers(struct session *s, const char *exec_id) {
        struct audit_open_exec o;
        struct session *other;

        TAILQ_FOREACH(other, &s->m->sessions, link)
        if (other != s && session_has(other, exec_id))
                return true;
        for (size_t i = 0; audit_open_next(s->m->audit, &i, &o); i++)
                if (strcmp(o.exec_id, exec_id) == 0)
                        return !is_of(s, &o);
        return false;
}

/* Goes on in @s, under @channel. Takes over @open. */
static struct exec *go_on(struct session *s, struct audit_open_exec *open, uint32_t channel) {
        struct exec *x = calloc(1, sizeof(*x));
        uint64_t now = now_us();

        if (!x)
                abort();
        x->m = s->m;
        x->state = EXEC_RUNNING;
        x->pool = s->pool;
        x->session = s;
        x->sandbox = s->sandbox;
        x->open = open;
        x->audit = (struct audit_exec){ .open = open,
                                        .exec_id = x->id,
                                        .container_id = x->container,
                                        .profile = x->profile,
                                        .session = s->name,
                                        .caller = open->caller };
        x->request = (struct exec_request){ .detach = true, .workdir = "" };
        x->pool_hit = open->pool_hit;
        x->begun_us = open->begun_us < now ? open->begun_us : now;
        x->credit[0] = x->credit[1] = FRAME_CREDIT;
        memcpy(x->id, open->exec_id, sizeof(x->id));
        memcpy(x->container, s->container, sizeof(x->container));
        snprintf(x->profile, sizeof(x->profile), "%s", s->pool->name);
        x->channel = channel;
        LIST_INSERT_HEAD(&x->m->execs, x, link);
        x->m->n_running++;
        session_exec_begun(s, x);
        return x;
}

static void take(struct session *s, const char *exec_id, uint32_t channel, bool ended) {
        struct audit_open_exec *o = calloc(1, sizeof(*o));
        struct exec *x;
        bool known;

        if (!o)
                abort();
        known = slot_of(s, exec_id, o);
        if (!known) {
                *o = (struct audit_open_exec){ .caller = s->owner, .begun_us = now_us() };
                memcpy(o->exec_id, exec_id, sizeof(o->exec_id));
                snprintf(o->session, sizeof(o->session), "%s", s->name);
                snprintf(o->profile, sizeof(o->profile), "%s", s->pool->name);
                o->command[0] = '?';
                o->command_len = 1;
                o->command_total = 1;
        }
        x = go_on(s, o, channel);
        x->unrecorded = !known;
        if (known || ended)
                return;
        log_line(LOG_P_WARNING, "session %s: command %s runs, and nothing is known of it: ended",
                 s->name, exec_id);
        exec_kill(x, 0);
}

int adopt_held(struct session *s, const struct held *h) {
        uint32_t highest = 0;

        for (uint16_t i = 0; i < h->n; i++) {
                uint32_t channel = h->of[i].channel;

                if (channel == 0 || channel > CHANNEL_MAX || session_exec_at(s, channel) ||
                    session_has(s, h->of[i].exec_id) || is_anothers(s, h->of[i].exec_id))
                        return -EPROTO;
                highest = channel > highest ? channel : highest;
                take(s, h->of[i].exec_id, channel, h->of[i].ended);
        }
        s->sandbox->next_channel = highest + 1;
        adopt_forget(s);
        log_line(LOG_P_INFO, "session %s of uid %u is back, with %u commands", s->name,
                 (unsigned)s->owner.uid, (unsigned)h->n);
        return 0;
}
