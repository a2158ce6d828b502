/* An array of rows in the order of their first event; a log goes forward, so the row that is looked for
 * is mostly one of the last. */
#include "cli/audit/review_summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit/review_time.h"
#include "common/escape.h"
#include "common/jsonw.h"

#define DAY 10 /* "2026-11-29" */

struct row {
        char day[DAY + 1];
        uint32_t uid;
        char user[REVIEW_WORD];
        uint64_t commands, failures, refusals, suppressed, bursts;
};

struct review_summary {
        struct row *rows;
        size_t n, cap;
};

struct review_summary *review_summary_new(void) {
        return calloc(1, sizeof(struct review_summary));
}

void review_summary_free(struct review_summary *s) {
        if (!s)
                return;
        free(s->rows);
        free(s);
}

static struct row *row_of(struct review_summary *s, const char *day, uint32_t uid) {
        struct row *more;

        for (size_t i = s->n; i > 0; i--)
                if (s->rows[i - 1].uid == uid && strcmp(s->rows[i - 1].day, day) == 0)
                        return &s->rows[i - 1];
        if (s->n == s->cap) {
                s->cap = s->cap ? 2 * s->cap : 64;
                more = reallocarray(s->rows, s->cap, sizeof(*more));
                if (!more)
                        return NULL;
                s->rows = more;
        }
        more = &s->rows[s->n++];
        *more = (struct row){ .uid = uid };
        memcpy(more->day, day, DAY + 1);
        return more;
}

int review_summary_add(struct review_summary *s, const struct review_event *e) {
        char when[REVIEW_TIME_TEXT];
        struct row *r;

        if (e->kind != REVIEW_EXEC && e->kind != REVIEW_REFUSED && e->kind != REVIEW_SUPPRESSED)
                return 0;
        review_time_local(e->begin_ms >= 0 ? e->begin_ms : e->end_ms, when);
        when[DAY] = 0;
        r = row_of(s, when, e->record.uid);
        if (!r)
                return -ENOMEM;
        if (!r->user[0])
                memcpy(r->user, e->record.user, sizeof(r->user));
        switch (e->kind) {
        case REVIEW_EXEC:
                r->commands++;
                r->failures += e->failed;
                break;
        case REVIEW_REFUSED:
                r->refusals++;
                break;
        default:
                r->bursts++;
                r->suppressed += e->record.requests;
        }
        return 0;
}

static int by_day_and_uid(const void *a, const void *b) {
        const struct row *x = a, *y = b;
        int r = strcmp(x->day, y->day);

        return r ? r : (x->uid > y->uid) - (x->uid < y->uid);
}

static int print_json(const struct row *r, FILE *f, const char *name) {
        const struct {
                const char *key;
                uint64_t v;
        } counts[] = { { "commands", r->commands },
                       { "failures", r->failures },
                       { "refusals", r->refusals },
                       { "suppressed", r->suppressed },
                       { "bursts", r->bursts } };
        char text[1024];
        struct jsonw j;
        int rc;

        jsonw_init_buf(&j, text, sizeof(text));
        jsonw_object(&j);
        jsonw_key(&j, "day");
        jsonw_str(&j, r->day);
        jsonw_key(&j, "uid");
        if (r->uid != REVIEW_NO_ID)
                jsonw_uint(&j, r->uid);
        else
                jsonw_null(&j);
        jsonw_key(&j, "user");
        jsonw_str(&j, r->uid != REVIEW_NO_ID ? name : NULL);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                jsonw_key(&j, counts[i].key);
                jsonw_uint(&j, counts[i].v);
        }
        jsonw_object_end(&j);
        rc = jsonw_done(&j);
        return rc == 0 && fprintf(f, "%s\n", text) < 0 ? -EIO : rc;
}

int review_summary_print(struct review_summary *s, FILE *f, bool json, const struct review_names *n) {
        if (s->n > 0)
                qsort(s->rows, s->n, sizeof(*s->rows), by_day_and_uid);
        if (!json)
                fprintf(f, "%-10s %-16s %10s %10s %10s %10s %10s\n", "DAY", "USER", "COMMANDS",
                        "FAILURES", "REFUSALS", "SUPPRESSED", "BURSTS");
        for (size_t i = 0; i < s->n; i++) {
                const struct row *r = &s->rows[i];
                char name[REVIEW_NAME], shown[4 * REVIEW_NAME];
                struct text t;
                int rc = 0;

                review_name(n, r->uid, r->user, name);
                text_init(&t, shown, sizeof(shown));
                text_add_shown(&t, name, strlen(name));
                if (json)
                        rc = print_json(r, f, name);
                else if (fprintf(f,
                                 "%-10s %-16s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64
                                 " %10" PRIu64 "\n",
                                 r->day, shown, r->commands, r->failures, r->refusals, r->suppressed,
                                 r->bursts) < 0)
                        rc = -EIO;
                if (rc < 0)
                        return rc;
        }
        return 0;
}
