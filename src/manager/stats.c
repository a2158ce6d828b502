#include "manager/stats.h"

#include <stdio.h>
#include <string.h>

#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"

_Static_assert(SANDBOX_STATES <= STATS_STATES, "each state has a place");

/* From a warm start, of tens of microseconds, to a command that runs for minutes. */
const struct stats_bound stats_bounds[STATS_BOUNDS] = {
        { 50, "5e-05", "50 us" },        { 100, "0.0001", "100 us" },     { 200, "0.0002", "200 us" },
        { 500, "0.0005", "500 us" },     { 1000, "0.001", "1 ms" },       { 2000, "0.002", "2 ms" },
        { 5000, "0.005", "5 ms" },       { 10000, "0.01", "10 ms" },      { 20000, "0.02", "20 ms" },
        { 50000, "0.05", "50 ms" },      { 100000, "0.1", "100 ms" },     { 200000, "0.2", "200 ms" },
        { 500000, "0.5", "500 ms" },     { 1000000, "1.0", "1 s" },       { 2000000, "2.0", "2 s" },
        { 5000000, "5.0", "5 s" },       { 10000000, "10.0", "10 s" },    { 30000000, "30.0", "30 s" },
        { 100000000, "100.0", "100 s" }, { 300000000, "300.0", "300 s" },
};

/* --- counting ----------------------------------------------------------------------------------- */

void stats_latency_add(struct stats_latency *l, uint64_t us) {
        size_t i = 0;

        while (i < STATS_BOUNDS && us > stats_bounds[i].us)
                i++;
        l->n[i]++;
        l->sum_us += us;
}

void stats_started(const struct exec *x, uint64_t now_us) {
        struct pool_stats *s = &x->pool->stats;

        if (x->pool_hit)
                s->warm++;
        else
                s->cold++;
        if (x->waiter.queued_ms) {
                uint64_t queued_us = x->waiter.queued_ms * 1000;

                s->waited++;
                s->waited_us += now_us > queued_us ? now_us - queued_us : 0;
        }
        stats_latency_add(&s->start, now_us - x->begun_us);
}

void stats_ended(const struct exec *x, const struct result *r) {
        struct pool_stats *s = &x->pool->stats;

        s->ended[r->cause < STATS_CAUSES ? r->cause : 0]++;
        s->bytes[0] += x->bytes[0];
        s->bytes[1] += x->bytes[1];
        stats_latency_add(&s->wall, r->wall_us);
}

void stats_created(struct pool *p, bool ok) {
        if (ok)
                p->stats.created++;
        else
                p->stats.not_created++;
}

void stats_scrubbed(struct pool *p, uint8_t check) {
        if (check < SCRUB_CHECKS)
                p->stats.scrubs[check]++;
}

/* --- looking up --------------------------------------------------------------------------------- */

uint64_t stats_count(const struct stats_latency *l) {
        uint64_t n = 0;

        for (size_t i = 0; i <= STATS_BOUNDS; i++)
                n += l->n[i];
        return n;
}

size_t stats_quantile(const struct stats_latency *l, unsigned per_mille) {
        uint64_t wanted = (stats_count(l) * per_mille + 999) / 1000, n = 0;
        size_t i = 0;

        while (i < STATS_BOUNDS && (n += l->n[i]) < wanted)
                i++;
        return i;
}

static void sum_latency(struct stats_latency *sum, const struct stats_latency *l) {
        for (size_t i = 0; i <= STATS_BOUNDS; i++)
                sum->n[i] += l->n[i];
        sum->sum_us += l->sum_us;
}

void stats_sum(struct pool_stats *sum, const struct pool_stats *p) {
        sum->warm += p->warm;
        sum->cold += p->cold;
        sum->waited += p->waited;
        sum->waited_us += p->waited_us;
        sum->created += p->created;
        sum->not_created += p->not_created;
        for (size_t i = 0; i < STATS_CAUSES; i++)
                sum->ended[i] += p->ended[i];
        for (size_t i = 0; i < SCRUB_CHECKS; i++)
                sum->scrubs[i] += p->scrubs[i];
        for (size_t i = 0; i < 2; i++)
                sum->bytes[i] += p->bytes[i];
        sum_latency(&sum->start, &p->start);
        sum_latency(&sum->wall, &p->wall);
}

void stats_rejected(const struct manager *m, struct tally *ret) {
        struct audit_counts counts;
        uint64_t sum;

        audit_counts(m->audit, &counts);
        *ret = counts.rejected;
        if (m->n_suppressed > 0)
                tally_add(ret, "exec_rate", m->n_suppressed);
        sum = tally_sum(ret);
        if (sum < m->n_rejected)
                tally_add(ret, "other", m->n_rejected - sum);
}

unsigned stats_sessions(const struct manager *m) {
        const struct session *s;
        unsigned n = 0;

        TAILQ_FOREACH(s, &m->sessions, link)
        n += s->state == SESSION_OPEN || s->state == SESSION_STOPPING || s->state == SESSION_STOPPED;
        return n;
}

void stats_states(const struct pool *p, unsigned ret[STATS_STATES]) {
        const struct sandbox *sb;

        memset(ret, 0, STATS_STATES * sizeof(ret[0]));
        ret[SANDBOX_STARTING] = p->n_creating + p->n_alone;
        TAILQ_FOREACH(sb, &p->sandboxes, link)
        if (stats_state_name(sb->state))
                ret[sb->state]++;
}

const char *stats_state_name(unsigned state) {
        switch (state) {
        case SANDBOX_STARTING:
                return "starting";
        case SANDBOX_WARM:
                return "warm";
        case SANDBOX_BUSY:
                return "busy";
        case SANDBOX_SCRUBBING:
                return "scrubbing";
        case SANDBOX_LEASED:
                return "leased";
        default:
                return NULL;
        }
}
