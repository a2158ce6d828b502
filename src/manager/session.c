#include "manager/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/exitcode.h"
#include "common/log.h"

static const bool moves[SESSION_STATES][SESSION_STATES] = {
        [SESSION_OPENING] = { [SESSION_OPEN] = true, [SESSION_CLOSED] = true },
        [SESSION_ADOPTING] = { [SESSION_OPEN] = true,
                               [SESSION_STOPPING] = true,
                               [SESSION_CLOSED] = true },
        [SESSION_OPEN] = { [SESSION_STOPPING] = true, [SESSION_CLOSED] = true },
        [SESSION_STOPPING] = { [SESSION_STOPPED] = true, [SESSION_CLOSED] = true },
        [SESSION_STOPPED] = { [SESSION_OPEN] = true, [SESSION_CLOSED] = true },
};

void session_move(struct session *s, enum session_state to) {
        if (!moves[s->state][to])
                abort();
        s->state = to;
}

/* --- owners -------------------------------------------------------------------------------------- */

bool session_over_quota(const struct pool *p, uid_t uid) {
        const struct session *s;
        unsigned n = 0;

        TAILQ_FOREACH(s, &p->m->sessions, link)
        n += s->owner.uid == uid;
        return n >= p->profile->limits.sessions;
}

/* @s has no name yet, and is in the list already. */
static void make_up_name(struct session *s) {
        char name[16];
        uint32_t n;

        do {
                if (getrandom(&n, sizeof(n), 0) != sizeof(n))
                        abort();
                snprintf(name, sizeof(name), "s-%08x", n);
        } while (session_find(s->m, name));
        memcpy(s->name, name, sizeof(name));
}

/* --- the beginning ------------------------------------------------------------------------------ */

static struct session *make(struct manager *m, struct pool *p) {
        struct session *s = calloc(1, sizeof(*s));

        if (!s)
                abort();
        s->m = m;
        s->pool = p;
        s->waiter.session = true;
        s->mount_fd = -1;
        TAILQ_INIT(&s->pending);
        TAILQ_INIT(&s->ended);
        TAILQ_INSERT_TAIL(&m->sessions, s, link);
        return s;
}

struct session *session_known(struct manager *m, const char *name, const char *profile) {
        struct session *s = make(m, pool_of(m, profile));

        s->state = SESSION_ADOPTING;
        m->n_adopting++;
        snprintf(s->name, sizeof(s->name), "%s", name);
        return s;
}

static char *copy(const char *text) {
        char *s = strdup(text);

        if (!s)
                abort();
        return s;
}

static void copy_request(struct session *s, const struct open_request *r) {
        s->labels = calloc(r->n_labels + 1, sizeof(*s->labels));
        s->env = malloc(r->env_len + 1);
        if (!s->labels || !s->env)
                abort();
        for (; s->n_labels < r->n_labels; s->n_labels++)
                s->labels[s->n_labels] = copy(r->labels[s->n_labels]);
        if (r->env_len > 0)
                memcpy(s->env, r->env_wire, r->env_len);
        s->env_len = r->env_len;
        s->n_env = r->n_env;
        /* Who logs in is at home, as by any sshd: relative names of scp and sftp begin there. */
        s->workdir = copy(r->workdir[0] == '\0' && s->owner.fp[0] != '\0' ? s->pool->profile->home
                                                                          : r->workdir);
        narrow_copy(&r->narrow, &s->narrow, s->narrow_paths);
}

struct session *session_new(struct client *c, struct pool *p, const struct open_request *r,
                            const char **ret_reason, const char **ret_line) {
        struct manager *m = c->m;
        struct session *s;

        if (session_over_quota(p, c->peer.uid)) {
                *ret_reason = "quota";
                *ret_line = "you have as many sessions as limits.sessions allows: close one";
                return NULL;
        }
        s = make(m, p);
        s->owner = peer_caller(&c->peer);
        s->gid = c->peer.gid;
        s->ttl_ms = r->ttl_ms ? r->ttl_ms : p->profile->session_ttl_ms;
        if (r->name[0])
                snprintf(s->name, sizeof(s->name), "%s", r->name);
        else
                make_up_name(s);
        copy_request(s, r);
        return s;
}

static void session_free(struct session *s) {
        alone_give_up(s);
        session_drop_ends(s);
        TAILQ_REMOVE(&s->m->sessions, s, link);
        for (uint32_t i = 0; i < s->n_labels; i++)
                free(s->labels[i]);
        free(s->labels);
        free(s->workdir);
        free(s->env);
        free(s);
}

void session_unknow(struct session *s) {
        s->m->n_adopting--;
        session_free(s);
}

void session_begin(struct session *s) {
        struct pool *p = s->pool;
        struct manager *m = s->m;
        struct sandbox *sb = NULL;
        int r;

        if (!session_alone(s) && !pool_uid_full(p, s->owner.uid))
                sb = pool_claim(p, s->owner.uid);
        if (sb) {
                session_assign(s, sb);
                return;
        }
        if (m->broker.known && m->broker.state != ENGINE_UP && supply_coming(p) == 0 &&
            !pool_returns_to(p, s->owner.uid)) {
                session_refuse(s, "no_engine", m->broker.state_text);
                return;
        }
        s->waiter.alone = session_alone(s);
        r = queue_add(p, s->owner.uid, &s->waiter);
        if (r < 0) {
                session_refuse(s, r == -EDQUOT ? "quota" : "queue_full",
                               r == -EDQUOT ? "you have as many requests waiting as limits.queued allows"
                                            : "the queue is full: try again, or raise queue_limit");
                return;
        }
        supply_nudge(p);
        pool_changed(p);
}

static void discard_sandbox(struct session *s) {
        struct sandbox *sb = s->sandbox;

        s->sandbox = NULL;
        if (!sb)
                return;
        sb->session = NULL;
        sandbox_discard(sb, NULL);
}

/* It is not opened: everybody who waits for it hears why. */
void session_refuse(struct session *s, const char *reason, const char *line) {
        struct client *c = s->opener;
        struct exec *x;

        if (s->waiter.turn)
                queue_leave(&s->waiter);
        session_move(s, SESSION_CLOSED);
        discard_sandbox(s);
        if (c) {
                request_refused(c, "session open", s->name, s->pool->name, reason);
                client_refuse(c, strcmp(reason, "not_allowed") == 0 ? EXIT_NOT_ALLOWED : EXIT_SANDBOX,
                              reason, "rejected: session \"%s\": %s", s->name, line);
        }
        while ((x = TAILQ_FIRST(&s->pending)))
                exec_refuse(x, reason, line);
        session_free(s);
}

struct audit_session session_recorded(const struct session *s) {
        return (struct audit_session){ .name = s->name,
                                       .container_id = s->container,
                                       .profile = s->pool->name,
                                       .owner = s->owner };
}

/* Its file, then the trails: whichever of them fails, it is not opened. NULL, or why not. */
static const char *put_down(struct session *s, const char **ret_reason) {
        static char line[160];
        struct audit_session a = session_recorded(s);
        int r = session_state_write(s);

        if (r < 0) {
                snprintf(line, sizeof(line),
                         "its state file could not be written: %s: see the manager's --state-dir",
                         strerror(-r));
                *ret_reason = "state";
                return line;
        }
        if (audit_session_opened(s->m->audit, &a) == 0)
                return NULL;
        /* One of the two trails may have it. */
        (void)audit_session_closed(s->m->audit, &a, "refused", NULL);
        session_state_remove(s);
        *ret_reason = "audit";
        return "the audit trail did not take the record, and audit.required is true: see journalctl -u "
               "hermes-sandbox-pool, auditctl -s";
}

/* It has the sandbox with the id s->container, and is put down as open. False: that could not be done, and
 * s->fault_reason and s->fault say why. */
static bool opened(struct session *s) {
        s->opened = s->started = (uint64_t)time(NULL);
        s->fault = put_down(s, &s->fault_reason);
        if (s->fault)
                return false;
        s->idle_ms = now_ms();
        session_move(s, SESSION_OPEN);
        return true;
}

static void tell_opened(struct session *s) {
        if (s->opener)
                session_answer_opened(s, s->opener, s->opener_form);
        s->opener = NULL;
        session_exec_pending(s);
        s->pool_hit = true;
}

void session_assign(struct session *s, struct sandbox *sb) {
        /* Those who opened it by a command and had to wait for what was made for them. */
        s->pool_hit = !s->waiter.turn || sb->uses > 0;
        if (s->waiter.turn)
                queue_served(&s->waiter);
        memcpy(s->container, sb->id, sizeof(s->container));
        session_shape_guess(s);
        if (!opened(s)) {
                session_refuse(s, s->fault_reason, s->fault);
                return;
        }
        sandbox_lease(sb, s);
        s->sandbox = sb;
        pool_changed(s->pool);
        tell_opened(s);
}

static void adopted(struct manager *m) {
        if (--m->n_adopting == 0)
                clients_resume(m);
}

int session_held(struct session *s, const struct held *h) {
        if (s->state == SESSION_OPENING) {
                if (h->n > 0)
                        return -EPROTO;
                if (!opened(s))
                        return -ECANCELED;
                tell_opened(s);
                return 0;
        }
        if (s->state != SESSION_ADOPTING || adopt_held(s, h) < 0)
                return -EPROTO;
        s->idle_ms = now_ms();
        s->sandbox->uses = 1;
        s->pool_hit = true;
        session_shape_guess(s);
        if (s->stopped)
                session_stop_again(s);
        else
                session_move(s, SESSION_OPEN);
        session_exec_pending(s);
        adopted(s->m);
        return 0;
}

void session_unwanted(struct session *s) {
        if (s->state == SESSION_OPENING && !s->opener && TAILQ_EMPTY(&s->pending))
                session_refuse(s, "", "");
}

void session_hangup(struct session *s) {
        s->opener = NULL;
        session_unwanted(s);
}

/* --- the end ------------------------------------------------------------------------------------ */

static void end_execs(struct session *s, const char *why, const char *cancelled) {
        struct exec *x;

        for (int i = 0; i < SESSION_BUCKETS; i++)
                while ((x = LIST_FIRST(&s->execs[i]))) {
                        if (!x->cancelled)
                                x->cancelled = cancelled;
                        exec_lost(x, why);
                }
        while ((x = TAILQ_FIRST(&s->pending)))
                exec_refuse(x, "session_lost", why ? why : cancelled);
}

/* The record of its end before its file goes, and that before the sandbox: wherever this process ends, the next
 * finds what is left to do. */
void session_close(struct session *s, const char *reason, const struct audit_caller *by,
                   const char *why) {
        struct audit_session a = session_recorded(s);
        struct manager *m = s->m;
        bool adopting = s->state == SESSION_ADOPTING;

        if (s->state == SESSION_OPENING) {
                if (!s->fault) {
                        s->fault_reason = reason;
                        s->fault = why ? why : "it was closed before it was open";
                }
                session_refuse(s, s->fault_reason, s->fault);
                return;
        }
        log_line(LOG_P_INFO, "session %s of uid %u: %s%s%s", s->name, (unsigned)s->owner.uid, reason,
                 why ? ": " : "", why ? why : "");
        session_stop_given_up(s, "no_session", why ? why : "it was closed meanwhile");
        end_execs(s, why, why ? NULL : "as its session was closed");
        if (adopting)
                adopt_forget(s);
        session_move(s, SESSION_CLOSED);
        if (audit_session_closed(m->audit, &a, reason, by) < 0)
                log_line(LOG_P_ERROR, "session %s: its end could not be recorded", s->name);
        session_state_remove(s);
        if (!s->sandbox)
                broker_ask(&m->broker,
                           &(struct engine_msg){ .type = ENGINE_REMOVE, .container = s->container },
                           broker_ignore, NULL);
        discard_sandbox(s);
        session_free(s);
        if (adopting)
                adopted(m);
}

void sessions_leave(struct manager *m) {
        struct session *s;

        while ((s = TAILQ_FIRST(&m->sessions))) {
                struct exec *x;

                if (s->state == SESSION_OPENING) {
                        session_refuse(s, "stopping", STOPPING_LINE);
                        continue;
                }
                for (int i = 0; i < SESSION_BUCKETS; i++)
                        while ((x = LIST_FIRST(&s->execs[i])))
                                exec_leave(x);
                while ((x = TAILQ_FIRST(&s->pending)))
                        exec_refuse(x, "stopping", STOPPING_LINE);
                session_stop_given_up(s, "stopping", STOPPING_LINE);
                if (s->sandbox)
                        sandbox_release(s->sandbox);
                m->n_adopting -= s->state == SESSION_ADOPTING;
                session_free(s);
        }
}

void sessions_check(struct manager *m, uint64_t now) {
        struct session *s, *next;

        for (s = TAILQ_FIRST(&m->sessions); s; s = next) {
                next = TAILQ_NEXT(s, link);
                session_refuse_late(s, now);
                attaches_check(s, now);
                if ((s->state == SESSION_OPEN || s->state == SESSION_STOPPED) && s->ttl_ms &&
                    s->n_running + s->n_attached == 0 && now - s->idle_ms >= s->ttl_ms)
                        session_close(s, "idle", NULL, NULL);
        }
}

void sessions_free(struct manager *m) {
        while (!TAILQ_EMPTY(&m->sessions))
                session_free(TAILQ_FIRST(&m->sessions));
}
