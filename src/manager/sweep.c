/*
 * What the broker tells, and what an earlier life has left behind: when the broker answers, every container that is in
 * its records and neither in this process nor a session's is removed, and only then the pools fill.
 */
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"

/* --- what an earlier life left behind ------------------------------------------------------------ */

static bool is_mine(struct manager *m, const char *id) {
        struct session *s;
        struct sandbox *sb;
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        TAILQ_FOREACH(sb, &p->sandboxes, link)
        if (strcmp(sb->id, id) == 0)
                return true;
        TAILQ_FOREACH(s, &m->sessions, link)
        if (strcmp(s->container, id) == 0)
                return true;
        return false;
}

static void sweep_from(struct manager *m, const char *after);

static void listed(void *userdata, const struct engine_msg *answer, int fd) {
        struct manager *m = userdata;

        close_fd(fd);
        if (answer->type != ENGINE_LISTED)
                return; /* the engine is down: the sweep starts again when it is up */
        for (uint16_t i = 0; i < answer->n_listed; i++) {
                const char *id = answer->listed[i].container;

                if (is_mine(m, id))
                        continue;
                log_line(LOG_P_INFO, "sandbox %.12s is left from an earlier life: removed", id);
                broker_ask(&m->broker, &(struct engine_msg){ .type = ENGINE_REMOVE, .container = id },
                           broker_ignore, NULL);
        }
        if (answer->more && answer->n_listed > 0)
                sweep_from(m, answer->listed[answer->n_listed - 1].container);
        else {
                m->swept = true;
                pools_changed(m);
        }
}

static void sweep_from(struct manager *m, const char *after) {
        broker_ask(&m->broker, &(struct engine_msg){ .type = ENGINE_LIST, .container = after }, listed,
                   m);
}

static void engine_is_up(struct manager *m) {
        adopt_ask(m);
        sweep_from(m, "");
}

/* --- the broker's events ------------------------------------------------------------------------- */

static void on_connected(void *userdata) {
        struct manager *m = userdata;

        m->swept = false;
        pools_update(m);
        /* A second greeting of the same broker: the engine's state does not change with it. */
        if (m->broker.state == ENGINE_UP)
                engine_is_up(m);
}

static void on_gone(void *userdata) {
        struct manager *m = userdata;

        m->swept = false;
}

static void on_state(void *userdata) {
        struct manager *m = userdata;
        struct pool *p;

        if (m->broker.state == ENGINE_UP) {
                log_line(LOG_P_INFO, "the engine is up");
                LIST_FOREACH(p, &m->pools, link)
                p->retry_ms = 0;
                if (!m->swept)
                        engine_is_up(m);
                return;
        }
        log_line(LOG_P_WARNING, "%s", m->broker.state_text);
        m->swept = false;
        /* Who waits gets a clear answer now, unless a sandbox is on its way already. */
        LIST_FOREACH(p, &m->pools, link)
        if (supply_coming(p) == 0)
                queue_refuse(p, false, "no_engine", m->broker.state_text);
}

static void on_died(void *userdata, const char *container) {
        struct manager *m = userdata;
        struct sandbox *sb;
        struct pool *p;

        LIST_FOREACH(p, &m->pools, link)
        TAILQ_FOREACH(sb, &p->sandboxes, link)
        if (strcmp(sb->id, container) == 0) {
                bool starting = sb->state == SANDBOX_STARTING;

                /* What it sent before its end is still in the socket: that end is seen there. */
                if (sb->connected)
                        return;
                sandbox_discard(sb, "its container ended");
                if (starting)
                        supply_failed(p,
                                      "a sandbox ended before its agent answered: see the engine's log");
                return;
        }
}

const struct broker_events sweep_broker_events = { on_connected, on_gone, on_state, on_died };
