/* The answer to `hermes-sandbox stats`: the same numbers as text for people, within 80 columns, and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonw.h"
#include "manager/exec.h"
#include "manager/manager.h"

#define QUANTILES 3
static const struct {
        unsigned per_mille;
        const char *name;
} quantiles[QUANTILES] = { { 500, "p50" }, { 900, "p90" }, { 990, "p99" } };

/* All that both forms say. */
struct all {
        struct pool_stats sum;
        struct tally rejected;
        struct audit_counts audit;
        unsigned states[STATS_STATES];
        unsigned running, waiting;
        uint64_t up_s;
};

static void collect(const struct manager *m, struct all *a) {
        const struct exec *x;
        const struct pool *p;

        memset(a, 0, sizeof(*a));
        LIST_FOREACH(p, &m->pools, link) {
                unsigned states[STATS_STATES];

                stats_sum(&a->sum, &p->stats);
                stats_states(p, states);
                for (size_t i = 0; i < STATS_STATES; i++)
                        a->states[i] += states[i];
                a->waiting += p->n_queue;
        }
        LIST_FOREACH(x, &m->execs, link)
        a->running += x->state == EXEC_RUNNING && !x->attach;
        stats_rejected(m, &a->rejected);
        audit_counts(m->audit, &a->audit);
        a->up_s = (now_ms() - m->started_ms) / 1000;
}

static uint64_t ended(const struct pool_stats *s) {
        uint64_t n = 0;

        for (size_t i = 0; i < STATS_CAUSES; i++)
                n += s->ended[i];
        return n;
}

static uint64_t scrubs(const struct pool_stats *s) {
        uint64_t n = 0;

        for (size_t i = 0; i < SCRUB_CHECKS; i++)
                n += s->scrubs[i];
        return n;
}

/* --- text --------------------------------------------------------------------------------------- */

/* Words of a line that is folded before column 80. */
struct folded {
        FILE *f;
        size_t column;
};

static void put(struct folded *l, const char *name, uint64_t n) {
        char word[TALLY_WORD + 24];
        size_t len = (size_t)snprintf(word, sizeof(word), "%s %" PRIu64, name, n);

        if (l->column == 0 || l->column + 2 + len > 79) {
                fputs(l->column ? "\n    " : "    ", l->f);
                l->column = 4;
        } else {
                fputs(", ", l->f);
                l->column += 2;
        }
        fputs(word, l->f);
        l->column += len;
}

static void put_end(struct folded *l) {
        if (l->column)
                fputc('\n', l->f);
}

static void put_tally(FILE *f, const struct tally *t) {
        struct folded l = { f, 0 };

        for (size_t i = 0; i < tally_words(t); i++)
                put(&l, t->of[i].word, t->of[i].n);
        put_end(&l);
}

static void text_latency(FILE *f, const char *name, const struct stats_latency *l) {
        uint64_t n = stats_count(l);

        if (n == 0)
                return;
        fprintf(f, "  %-34s", name);
        for (size_t i = 0; i < QUANTILES; i++) {
                size_t b = stats_quantile(l, quantiles[i].per_mille);

                fprintf(f, " %s %s %-6s", quantiles[i].name, b < STATS_BOUNDS ? "<=" : "> ",
                        stats_bounds[b < STATS_BOUNDS ? b : STATS_BOUNDS - 1].shown);
        }
        fputc('\n', f);
}

static void text_commands(FILE *f, const struct all *a) {
        const struct pool_stats *s = &a->sum;
        struct folded l = { f, 0 };

        fprintf(f, "commands: %" PRIu64 " ended, %u running, %u waiting\n", ended(s), a->running,
                a->waiting);
        for (uint8_t i = 0; i < STATS_CAUSES; i++)
                if (s->ended[i])
                        put(&l, cause_name(i), s->ended[i]);
        put_end(&l);
        fprintf(f, "  started in a warm sandbox %" PRIu64 ", in a cold one %" PRIu64 "\n", s->warm,
                s->cold);
        fprintf(f, "  of these had waited in the queue: %" PRIu64, s->waited);
        if (s->waited)
                fprintf(f, ", %" PRIu64 " ms on average", s->waited_us / s->waited / 1000);
        fprintf(f, "\n  output: stdout %" PRIu64 " bytes, stderr %" PRIu64 " bytes\n", s->bytes[0],
                s->bytes[1]);
        text_latency(f, "from the request to the start:", &s->start);
        text_latency(f, "from the request to the result:", &s->wall);
}

static void text_sandboxes(FILE *f, const struct all *a) {
        const struct pool_stats *s = &a->sum;
        struct folded l = { f, 0 };

        fprintf(f, "sandboxes: %" PRIu64 " created, %" PRIu64 " failed to start; now\n", s->created,
                s->not_created);
        for (unsigned i = 0; i < STATS_STATES; i++)
                if (stats_state_name(i))
                        put(&l, stats_state_name(i), a->states[i]);
        put_end(&l);
        fprintf(f, "scrubs: %" PRIu64 ", of these not proved clean %" PRIu64 "\n", scrubs(s),
                scrubs(s) - s->scrubs[SCRUB_CLEAN]);
        l.column = 0;
        for (uint8_t i = 0; i < SCRUB_CHECKS; i++)
                if (i != SCRUB_CLEAN && s->scrubs[i])
                        put(&l, scrub_check_name(i), s->scrubs[i]);
        put_end(&l);
}

static void text(FILE *f, const struct manager *m, const struct all *a) {
        const struct pool *p;

        fprintf(f, "since the start, %" PRIu64 " s ago\n", a->up_s);
        text_commands(f, a);
        fprintf(f, "refused: %" PRIu64 "\n", tally_sum(&a->rejected));
        put_tally(f, &a->rejected);
        text_sandboxes(f, a);
        fprintf(f, "sessions: %" PRIu64 " opened, %" PRIu64 " closed, %u open now\n", a->audit.opened,
                tally_sum(&a->audit.closed), stats_sessions(m));
        put_tally(f, &a->audit.closed);
        fprintf(f, "audit: %" PRIu64 " kernel records, %" PRIu64 " lines, %" PRIu64 " failures\n",
                a->audit.kernel_records, a->audit.trail_lines, a->audit.failures);
        LIST_FOREACH(p, &m->pools, link)
        if (ended(&p->stats) || p->stats.created)
                fprintf(f, "profile %.24s: %" PRIu64 " commands, %" PRIu64 " warm, %" PRIu64 " cold\n",
                        p->name, ended(&p->stats), p->stats.warm, p->stats.cold);
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void json_tally(struct jsonw *j, const char *key, const struct tally *t) {
        jsonw_key(j, key);
        jsonw_object(j);
        for (size_t i = 0; i < tally_words(t); i++)
                jsonw_key_count(j, t->of[i].word, t->of[i].n);
        jsonw_object_end(j);
}

static void json_latency(struct jsonw *j, const char *key, const struct stats_latency *l) {
        jsonw_key(j, key);
        jsonw_object(j);
        jsonw_key_count(j, "count", stats_count(l));
        jsonw_key_count(j, "sum_us", l->sum_us);
        jsonw_key(j, "buckets");
        jsonw_array(j);
        for (size_t i = 0; i <= STATS_BOUNDS; i++) {
                jsonw_object(j);
                jsonw_key_uint(j, "at_most_us", i < STATS_BOUNDS, stats_bounds[i % STATS_BOUNDS].us);
                jsonw_key_count(j, "count", l->n[i]);
                jsonw_object_end(j);
        }
        jsonw_array_end(j);
        jsonw_object_end(j);
}

static void json_states(struct jsonw *j, const unsigned states[STATS_STATES]) {
        jsonw_key(j, "sandboxes");
        jsonw_object(j);
        for (unsigned i = 0; i < STATS_STATES; i++)
                if (stats_state_name(i))
                        jsonw_key_count(j, stats_state_name(i), states[i]);
        jsonw_object_end(j);
}

/* The numbers that are there for each profile and for all. */
static void json_counts(struct jsonw *j, const struct pool_stats *s) {
        jsonw_key(j, "ended");
        jsonw_object(j);
        for (uint8_t i = 1; i < STATS_CAUSES; i++)
                if (i != CAUSE_REJECTED)
                        jsonw_key_count(j, cause_name(i), s->ended[i]);
        jsonw_object_end(j);
        jsonw_key_count(j, "warm", s->warm);
        jsonw_key_count(j, "cold", s->cold);
        jsonw_key_count(j, "waited", s->waited);
        jsonw_key_count(j, "waited_us", s->waited_us);
        jsonw_key_count(j, "stdout_bytes", s->bytes[0]);
        jsonw_key_count(j, "stderr_bytes", s->bytes[1]);
        jsonw_key_count(j, "created", s->created);
        jsonw_key_count(j, "not_created", s->not_created);
        jsonw_key(j, "scrubs");
        jsonw_object(j);
        for (uint8_t i = 0; i < SCRUB_CHECKS; i++)
                jsonw_key_count(j, scrub_check_name(i), s->scrubs[i]);
        jsonw_object_end(j);
        json_latency(j, "start", &s->start);
        json_latency(j, "wall", &s->wall);
}

static void as_json(struct jsonw *j, const struct manager *m, const struct all *a) {
        unsigned states[STATS_STATES];
        const struct pool *p;

        jsonw_object(j);
        jsonw_key_count(j, "uptime_seconds", a->up_s);
        jsonw_key_count(j, "running", a->running);
        jsonw_key_count(j, "waiting", a->waiting);
        json_states(j, a->states);
        json_counts(j, &a->sum);
        json_tally(j, "refused", &a->rejected);
        jsonw_key(j, "sessions");
        jsonw_object(j);
        jsonw_key_count(j, "open", stats_sessions(m));
        jsonw_key_count(j, "opened", a->audit.opened);
        json_tally(j, "closed", &a->audit.closed);
        jsonw_object_end(j);
        jsonw_key(j, "audit");
        jsonw_object(j);
        jsonw_key_count(j, "kernel_records", a->audit.kernel_records);
        jsonw_key_count(j, "trail_lines", a->audit.trail_lines);
        jsonw_key_count(j, "failures", a->audit.failures);
        jsonw_key_count(j, "suppressed", m->n_suppressed);
        jsonw_object_end(j);
        jsonw_key(j, "profiles");
        jsonw_object(j);
        LIST_FOREACH(p, &m->pools, link) {
                jsonw_key(j, p->name);
                jsonw_object(j);
                stats_states(p, states);
                json_states(j, states);
                jsonw_key_count(j, "waiting", p->n_queue);
                json_counts(j, &p->stats);
                jsonw_object_end(j);
        }
        jsonw_object_end(j);
        jsonw_object_end(j);
        jsonw_done(j);
}

char *stats_text(struct manager *m, bool json, size_t *ret_len) {
        char *buf = NULL;
        struct jsonw j;
        struct all a;
        FILE *f = open_memstream(&buf, ret_len);

        if (!f)
                return NULL;
        collect(m, &a);
        if (json) {
                jsonw_init_file(&j, f);
                as_json(&j, m, &a);
                fputc('\n', f);
        } else
                text(f, m, &a);
        if (fclose(f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}
