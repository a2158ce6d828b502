/*
 * The end of the manager, in three steps.
 *
 *     draining  nobody new is taken in, no sandbox is made
 *     refusing  no command is taken, what waits is refused, what is idle goes; commands that run may end
 *     stopping  what still runs is cancelled, every sandbox goes, POOL-STOP closes the trail
 *
 * Sessions outlive it: the next manager has them again. Only SIGINT, which is the end of everything, closes them.
 *
 * Where systemd holds the socket, callers wait in it for the next manager, and those who came in before are served: so
 * a restart refuses nobody. A socket of our own stays open, as a caller who is told is better off than one who finds
 * nothing, and refuses at once.
 */
#include <systemd/sd-daemon.h>

#include "common/log.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"

/* How long the removal of the sandboxes may take: a stopping engine must not hold a machine's shutdown. */
#define REMOVAL_MS 20000

static unsigned count_sandboxes(const struct manager *m) {
        const struct pool *p;
        unsigned n = 0;

        LIST_FOREACH(p, &m->pools, link)
        n += supply_total(p) - p->n_creating - p->n_leased;
        return n;
}

static void discard(struct manager *m, bool busy_too) {
        struct sandbox *sb, *next;
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        for (sb = TAILQ_FIRST(&p->sandboxes); sb; sb = next) {
                next = TAILQ_NEXT(sb, link);
                if (busy_too || sb->state == SANDBOX_WARM || sb->state == SANDBOX_STARTING)
                        sandbox_discard(sb, NULL);
        }
}

static void refuse_all(struct manager *m) {
        struct exec *x, *next;

        m->refusing = true;
        for (x = LIST_FIRST(&m->execs); x; x = next) {
                next = LIST_NEXT(x, link);
                if (x->state == EXEC_WAITING)
                        exec_refuse(x, "stopping", STOPPING_LINE);
        }
        image_refuse_all(m);
        discard(m, false);
}

/* Somebody who came in before has not asked yet, or waits for a sandbox. */
static bool owes_an_answer(const struct manager *m) {
        const struct client *c;

        LIST_FOREACH(c, &m->clients, link)
        if (!c->answered && (!c->exec || c->exec->state == EXEC_WAITING))
                return true;
        return false;
}

static bool ending_with_us(const struct manager *m) {
        const struct exec *x;

        LIST_FOREACH(x, &m->execs, link)
        if (!x->request.detach && !x->attach)
                return true;
        return false;
}

static void drain(struct manager *m) {
        m->draining = true;
        m->stop_at_ms = now_ms() + m->options.drain_ms;
        m->stop_count = count_sandboxes(m);
        sd_notify(0, "STOPPING=1");
        if (!m->own_socket)
                m->listen_source = sd_event_source_disable_unref(m->listen_source);
        if (m->own_socket || !owes_an_answer(m))
                refuse_all(m);
        if (ending_with_us(m))
                log_line(LOG_P_INFO, "stopping: what still runs may go on for %llu s",
                         (unsigned long long)m->options.drain_ms / 1000);
}

/* The line that closes this life is the last one: before it comes what the others still have to report. */
static void stop(struct manager *m) {
        struct session *s;

        if (!m->refusing)
                refuse_all(m);
        m->stopping = true;
        while (m->closing && (s = TAILQ_FIRST(&m->sessions)))
                session_close(s, "stopped", NULL, NULL);
        sessions_leave(m);
        m->stop_at_ms = now_ms() + REMOVAL_MS;
        m->listen_source = sd_event_source_disable_unref(m->listen_source);
        discard(m, true);
        rate_check(m->rate, now_us() + 2 * 1000 * RATE_REPORT_MS); /* every burst is over */
        if (audit_pool(m->audit, false, m->stop_count) < 0)
                log_line(LOG_P_ERROR, "the pool's stop could not be recorded");
}

int stop_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        struct manager *m = userdata;
        bool again = m->draining;

        (void)s;
        m->closing |= si->ssi_signo == SIGINT;
        if (!again)
                drain(m);
        if (!m->stopping && (again || si->ssi_signo == SIGINT))
                stop(m);
        return 0;
}

/* No command runs that would end with us, and no caller has yet to fetch what one wrote. */
static bool drained(const struct manager *m) {
        const struct client *c;

        if (ending_with_us(m))
                return false;
        LIST_FOREACH(c, &m->clients, link)
        if (c->conn.out_len > 0)
                return false;
        return true;
}

bool stop_over(struct manager *m) {
        bool late;

        if (!m->draining)
                return false;
        late = now_ms() >= m->stop_at_ms;
        if (!m->refusing && !owes_an_answer(m))
                refuse_all(m);
        if (!m->stopping && (late || (m->refusing && drained(m)))) {
                stop(m);
                late = false;
        }
        if (!m->stopping)
                return false;
        if (count_sandboxes(m) == 0 && m->n_creating == 0 && broker_idle(&m->broker))
                return true;
        if (late)
                log_line(LOG_P_WARNING,
                         "some sandboxes could not be removed in time: the next start does it");
        return late;
}
