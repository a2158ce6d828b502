/*
 * A session that is stopped: its agent ends all that runs there and keeps every file, and no command is taken until it is
 * started again. Its sandbox stays, and costs what its files take.
 *
 * Its file says so before the agent is told: where this manager ends in between, the next one tells the agent again. The
 * records come when nothing runs any more, so of one stop there is one record, whoever saw its end.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/exitcode.h"
#include "common/log.h"
#include "common/wire.h"
#include "manager/session.h"

/* What a caller may ask for between TERM and KILL, in ms: what fits the frame. */
#define GRACE_MAX_MS UINT32_MAX

static void done(struct client *c) {
        client_answer(c, FRAME_ANSWER, "{}\n", c->form == ANSWER_JSON ? 3 : 0);
}

static void wait_for(struct session *s, struct client *c, bool starts) {
        c->stopping = s;
        c->starts = starts;
        LIST_INSERT_HEAD(&s->waiting, c, stop_link);
        conn_pause(&c->conn, true);
}

void session_stop_left(struct client *c) {
        LIST_REMOVE(c, stop_link);
        c->stopping = NULL;
}

void session_stop_given_up(struct session *s, const char *reason, const char *line) {
        struct client *c;

        while ((c = LIST_FIRST(&s->waiting)))
                client_refuse(c, EXIT_SANDBOX, reason, "session %s: session \"%s\": %s",
                              c->starts ? "start" : "stop", s->name, line);
}

/* Those that run end with it. */
static void mark(struct session *s, uint64_t due_ms) {
        struct exec *x;

        for (int i = 0; i < SESSION_BUCKETS; i++)
                LIST_FOREACH(x, &s->execs[i], in_session)
        exec_stopped(x, due_ms);
}

static void halt(struct session *s, uint32_t grace_ms) {
        uint64_t due = now_ms() + grace_ms + EXEC_LATE_MS;
        struct wire_out out;
        uint8_t buf[4];

        wire_out_init(&out, buf, sizeof(buf));
        wire_put_u32(&out, grace_ms);
        if (s->halt_due_ms == 0 || due < s->halt_due_ms)
                s->halt_due_ms = due;
        mark(s, s->halt_due_ms);
        s->halts++;
        conn_send(&s->sandbox->conn, FRAME_HALT, 0, 0, buf, sizeof(buf));
}

/* False: it goes on, and @c has been told why. */
static bool put_down(struct session *s, struct client *c) {
        int r;

        s->stopped = true;
        s->recorded = false;
        r = session_state_write(s);
        if (r == 0)
                return true;
        s->stopped = false;
        s->recorded = true;
        client_refuse(
                c, EXIT_SANDBOX, "state",
                "rejected: session stop: its state file could not be written: %s: see the manager's "
                "--state-dir",
                strerror(-r));
        return false;
}

/* @asked 0: the profile's, and none where that has gone. */
static uint32_t grace_of(const struct session *s, uint64_t asked) {
        const struct config_profile *p = s->pool->profile;
        uint64_t ms = asked || !p ? asked : p->limits.grace_ms;

        return ms < GRACE_MAX_MS ? (uint32_t)ms : GRACE_MAX_MS;
}

void session_stop(struct session *s, struct client *c, uint64_t grace_ms) {
        if (s->state == SESSION_STOPPED) {
                done(c);
                return;
        }
        if (s->state != SESSION_OPEN && s->state != SESSION_STOPPING) {
                client_refuse(c, EXIT_SANDBOX, "not_open",
                              "rejected: session stop: session \"%s\" is not open yet: ask again",
                              s->name);
                return;
        }
        if (s->state == SESSION_OPEN) {
                if (!put_down(s, c))
                        return;
                s->stopper = peer_caller(&c->peer);
                s->stop_asked = true;
                session_move(s, SESSION_STOPPING);
                session_exec_pending(s);
        }
        wait_for(s, c, false);
        halt(s, grace_of(s, grace_ms));
}

void session_stop_again(struct session *s) {
        session_move(s, SESSION_STOPPING);
        halt(s, grace_of(s, 0));
}

/* It takes commands again: 0, or -errno and a word for it; then it is as before. */
static int go_on(struct session *s, const struct client *c, const char **ret_word) {
        struct audit_session a = session_recorded(s);
        struct audit_caller by = peer_caller(&c->peer);
        uint64_t before = s->started;
        int r;

        s->stopped = false;
        s->started = (uint64_t)time(NULL);
        *ret_word = "state";
        r = session_state_write(s);
        if (r == 0) {
                *ret_word = "audit";
                r = audit_session_started(s->m->audit, &a, &by);
        }
        if (r == 0) {
                s->idle_ms = now_ms();
                s->halt_due_ms = 0;
                session_move(s, SESSION_OPEN);
                return 0;
        }
        s->stopped = true;
        s->started = before;
        if (session_state_write(s) < 0)
                log_line(LOG_P_ERROR, "session %s: its file does not say that it is stopped", s->name);
        return r;
}

void session_start(struct session *s, struct client *c) {
        const char *word;
        int r;

        if (s->state == SESSION_STOPPING) {
                wait_for(s, c, true);
                return;
        }
        if (s->state == SESSION_OPENING || s->state == SESSION_ADOPTING) {
                client_refuse(c, EXIT_SANDBOX, "not_open",
                              "rejected: session start: session \"%s\" is not open yet: ask again",
                              s->name);
                return;
        }
        r = s->state == SESSION_STOPPED ? go_on(s, c, &word) : 0;
        if (r == 0)
                done(c);
        else if (strcmp(word, "state") == 0)
                client_refuse(
                        c, EXIT_SANDBOX, word,
                        "rejected: session start: its state file could not be written: %s: see the "
                        "manager's --state-dir",
                        strerror(-r));
        else
                client_refuse(
                        c, EXIT_SANDBOX, word,
                        "rejected: session start: the audit trail did not take the record, and "
                        "audit.required is true: see journalctl -u hermes-sandbox-pool, auditctl -s");
}

static void record(struct session *s, uint32_t processes) {
        struct audit_session a = session_recorded(s);

        if (audit_session_stopped(s->m->audit, &a, processes, s->stop_asked ? &s->stopper : NULL) < 0)
                log_line(LOG_P_ERROR, "session %s: its stop could not be recorded", s->name);
        s->recorded = true;
        s->finished = (uint64_t)time(NULL);
        if (session_state_write(s) < 0)
                log_line(LOG_P_ERROR, "session %s: its file does not say when it was stopped", s->name);
}

int session_halted(struct session *s, const struct frame *f) {
        LIST_HEAD(, client) starters = LIST_HEAD_INITIALIZER(starters);
        struct wire_in in;
        uint32_t processes;
        struct client *c;

        wire_in_init(&in, f->payload, f->len);
        processes = wire_get_u32(&in);
        if (s->state != SESSION_STOPPING || s->halts == 0 || f->channel != 0 || !wire_in_done(&in))
                return -EPROTO;
        /* Another may have crossed with this one, and no command may come before its answer. */
        if (--s->halts > 0)
                return 0;
        session_move(s, SESSION_STOPPED);
        s->halt_due_ms = 0;
        s->idle_ms = now_ms();
        /* What an earlier life has recorded is only made sure of. */
        if (!s->recorded)
                record(s, processes);
        log_line(LOG_P_INFO, "session %s of uid %u is stopped, %u processes ended", s->name,
                 (unsigned)s->owner.uid, processes);
        while ((c = LIST_FIRST(&s->waiting))) {
                bool starts = c->starts;

                session_stop_left(c);
                if (starts)
                        LIST_INSERT_HEAD(&starters, c, stop_link);
                else
                        done(c);
        }
        while ((c = LIST_FIRST(&starters))) {
                LIST_REMOVE(c, stop_link);
                session_start(s, c);
        }
        return 0;
}
