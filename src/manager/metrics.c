/*
 * The answer to `hermes-sandbox metrics`: OpenMetrics text 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/).
 * All samples of a family stand together, each counter ends in _total, a unit ends the family's name, and "# EOF" ends
 * the text, so that a cut one shows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "manager/exec.h"
#include "manager/manager.h"

#define PREFIX "hermes_sandbox_"

static void family(FILE *f, const char *name, const char *type, const char *unit, const char *help) {
        fprintf(f, "# TYPE " PREFIX "%s %s\n", name, type);
        if (unit)
                fprintf(f, "# UNIT " PREFIX "%s %s\n", name, unit);
        fprintf(f, "# HELP " PREFIX "%s %s\n", name, help);
}

static void seconds(FILE *f, uint64_t us) {
        fprintf(f, "%" PRIu64 ".%06" PRIu64 "\n", us / 1000000, us % 1000000);
}

static void gauge(FILE *f, const char *name, const char *help, uint64_t v) {
        family(f, name, "gauge", NULL, help);
        fprintf(f, PREFIX "%s %" PRIu64 "\n", name, v);
}

static void counter(FILE *f, const char *name, const char *help, uint64_t v) {
        family(f, name, "counter", NULL, help);
        fprintf(f, PREFIX "%s_total %" PRIu64 "\n", name, v);
}

/* Names of profiles hold letters, digits, "_", "-" and "." alone, and so do the words of a tally: nothing is to be
 * escaped in a label. */
static void sample(FILE *f, const char *name, const struct pool *p, const char *label, const char *value,
                   uint64_t v) {
        fprintf(f, PREFIX "%s{profile=\"%s\",%s=\"%s\"} %" PRIu64 "\n", name, p->name, label, value, v);
}

static void tally(FILE *f, const char *name, const char *help, const struct tally *t) {
        family(f, name, "counter", NULL, help);
        for (size_t i = 0; i < tally_words(t); i++)
                fprintf(f, PREFIX "%s_total{reason=\"%s\"} %" PRIu64 "\n", name, t->of[i].word,
                        t->of[i].n);
}

static void latency_of(FILE *f, const char *name, const struct pool *p, const struct stats_latency *l) {
        uint64_t n = 0;

        for (size_t i = 0; i <= STATS_BOUNDS; i++) {
                n += l->n[i];
                fprintf(f, PREFIX "%s_bucket{profile=\"%s\",le=\"%s\"} %" PRIu64 "\n", name, p->name,
                        i < STATS_BOUNDS ? stats_bounds[i].seconds : "+Inf", n);
        }
        fprintf(f, PREFIX "%s_count{profile=\"%s\"} %" PRIu64 "\n", name, p->name, n);
        fprintf(f, PREFIX "%s_sum{profile=\"%s\"} ", name, p->name);
        seconds(f, l->sum_us);
}

static void execs(FILE *f, const struct manager *m) {
        const struct exec *x;
        const struct pool *p;
        uint64_t running = 0;

        family(f, "execs", "counter", NULL, "Commands that have ended, by cause.");
        LIST_FOREACH(p, &m->pools, link)
        for (uint8_t i = 1; i < STATS_CAUSES; i++)
                if (i != CAUSE_REJECTED)
                        sample(f, "execs_total", p, "cause", cause_name(i), p->stats.ended[i]);
        family(f, "exec_starts", "counter", NULL,
               "Commands that have begun, by what they found: a warm sandbox, or a cold start.");
        LIST_FOREACH(p, &m->pools, link) {
                sample(f, "exec_starts_total", p, "sandbox", "warm", p->stats.warm);
                sample(f, "exec_starts_total", p, "sandbox", "cold", p->stats.cold);
        }
        LIST_FOREACH(x, &m->execs, link)
        running += x->state == EXEC_RUNNING && !x->attach;
        gauge(f, "execs_running", "Commands that run now.", running);
        family(f, "exec_start_latency_seconds", "histogram", "seconds",
               "From the request to the order to the sandbox.");
        LIST_FOREACH(p, &m->pools, link)
        latency_of(f, "exec_start_latency_seconds", p, &p->stats.start);
        family(f, "exec_duration_seconds", "histogram", "seconds", "From the request to the result.");
        LIST_FOREACH(p, &m->pools, link)
        latency_of(f, "exec_duration_seconds", p, &p->stats.wall);
        family(f, "output_bytes", "counter", "bytes",
               "Output of commands that came from their sandboxes.");
        LIST_FOREACH(p, &m->pools, link) {
                sample(f, "output_bytes_total", p, "stream", "stdout", p->stats.bytes[0]);
                sample(f, "output_bytes_total", p, "stream", "stderr", p->stats.bytes[1]);
        }
}

static void queue(FILE *f, const struct manager *m) {
        struct tally rejected;
        const struct pool *p;

        family(f, "queue_wait_seconds", "summary", "seconds",
               "How long commands that have begun had waited for a sandbox.");
        LIST_FOREACH(p, &m->pools, link) {
                fprintf(f, PREFIX "queue_wait_seconds_count{profile=\"%s\"} %" PRIu64 "\n", p->name,
                        p->stats.waited);
                fprintf(f, PREFIX "queue_wait_seconds_sum{profile=\"%s\"} ", p->name);
                seconds(f, p->stats.waited_us);
        }
        family(f, "queue_length", "gauge", NULL, "Commands that wait for a sandbox now.");
        LIST_FOREACH(p, &m->pools, link)
        fprintf(f, PREFIX "queue_length{profile=\"%s\"} %u\n", p->name, p->n_queue);
        stats_rejected(m, &rejected);
        tally(f, "rejections", "Requests that were refused, by reason.", &rejected);
}

static void sandboxes(FILE *f, const struct manager *m) {
        const struct pool *p;

        family(f, "sandboxes", "gauge", NULL, "Sandboxes by state.");
        LIST_FOREACH(p, &m->pools, link) {
                unsigned states[STATS_STATES];

                stats_states(p, states);
                for (unsigned i = 0; i < STATS_STATES; i++)
                        if (stats_state_name(i))
                                sample(f, "sandboxes", p, "state", stats_state_name(i), states[i]);
        }
        family(f, "sandbox_creations", "counter", NULL,
               "What came of attempts to create a sandbox, by result.");
        LIST_FOREACH(p, &m->pools, link) {
                sample(f, "sandbox_creations_total", p, "result", "ok", p->stats.created);
                sample(f, "sandbox_creations_total", p, "result", "failed", p->stats.not_created);
        }
        family(f, "scrubs", "counter", NULL,
               "Scrubs by what the proof said: clean, or the check that failed.");
        LIST_FOREACH(p, &m->pools, link)
        for (uint8_t i = 0; i < SCRUB_CHECKS; i++)
                sample(f, "scrubs_total", p, "check", scrub_check_name(i), p->stats.scrubs[i]);
}

static void the_rest(FILE *f, const struct manager *m) {
        struct audit_counts audit;

        audit_counts(m->audit, &audit);
        gauge(f, "sessions_open", "Sessions that are open now.", stats_sessions(m));
        counter(f, "sessions_opened", "Sessions that have been opened.", audit.opened);
        tally(f, "sessions_closed", "Sessions that have ended, by reason.", &audit.closed);
        counter(f, "audit_failures", "Audit records or lines that could not be written.",
                audit.failures);
        counter(f, "audit_kernel_records", "Records that the kernel's audit trail has taken.",
                audit.kernel_records);
        counter(f, "audit_lines", "Lines of the readable trail.", audit.trail_lines);
        gauge(f, "callers", "Connections of callers now.", m->n_clients);
        gauge(f, "engine_up", "1 while the container engine answers.", m->broker.state == ENGINE_UP);
        family(f, "uptime_seconds", "gauge", "seconds", "How long the manager has been running.");
        fprintf(f, PREFIX "uptime_seconds ");
        seconds(f, (now_ms() - m->started_ms) * 1000);
        family(f, "build", "info", NULL, "The manager's version.");
        fprintf(f, PREFIX "build_info{version=\"%s\"} 1\n", VERSION);
}

char *metrics_text(struct manager *m, size_t *ret_len) {
        char *buf = NULL;
        FILE *f = open_memstream(&buf, ret_len);

        if (!f)
                return NULL;
        execs(f, m);
        queue(f, m);
        sandboxes(f, m);
        the_rest(f, m);
        fputs("# EOF\n", f);
        if (fclose(f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}
