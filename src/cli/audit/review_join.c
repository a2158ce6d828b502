/*
 * What is kept: the starts that wait for their end, and the ids of the last ends. A manager that was
 * killed between an end's record and the freeing of its slot writes the end again at its next start, as
 * unknown; the first word is the right one.
 */
#include "cli/audit/review_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096
#define ENDED 1024

struct open_exec {
        struct open_exec *next;
        struct review_record record;
        uint64_t order;
        uint8_t text[];
};

struct review_join {
        int (*event)(void *userdata, const struct review_event *e);
        void *userdata;
        struct open_exec *buckets[BUCKETS];
        size_t n_open;
        uint64_t order;
        char ended[ENDED][sizeof(((struct review_record *)0)->exec)];
        size_t next_ended;
};

struct review_join *review_join_new(int (*event)(void *userdata, const struct review_event *e),
                                    void *userdata) {
        struct review_join *j = calloc(1, sizeof(*j));

        if (j) {
                j->event = event;
                j->userdata = userdata;
        }
        return j;
}

void review_join_free(struct review_join *j) {
        if (!j)
                return;
        for (size_t i = 0; i < BUCKETS; i++)
                while (j->buckets[i]) {
                        struct open_exec *x = j->buckets[i];

                        j->buckets[i] = x->next;
                        free(x);
                }
        free(j);
}

/* The link that points to the exec of that id, or to the NULL where it would be. */
static struct open_exec **find(struct review_join *j, const char *id) {
        struct open_exec **p;
        uint32_t h = 2166136261u; /* FNV-1a */

        for (const char *s = id; *s; s++)
                h = (h ^ (uint8_t)*s) * 16777619u;
        for (p = &j->buckets[h % BUCKETS]; *p; p = &(*p)->next)
                if (strcmp((*p)->record.exec, id) == 0)
                        break;
        return p;
}

static void keep(uint8_t **to, struct review_bytes *b) {
        if (b->len > 0)
                memcpy(*to, b->p, b->len);
        if (b->p)
                b->p = *to;
        *to += b->len;
}

static int add(struct review_join *j, const struct review_record *r) {
        size_t len = r->profile.len + r->session.len + r->fp.len + r->command.len;
        struct open_exec *x = malloc(sizeof(*x) + len), **p;
        uint8_t *to;

        if (!x)
                return -ENOMEM;
        x->record = *r;
        x->record.place = x->record.account = x->record.group = (struct review_bytes){ 0 };
        x->order = j->order++;
        to = x->text;
        keep(&to, &x->record.profile);
        keep(&to, &x->record.session);
        keep(&to, &x->record.fp);
        keep(&to, &x->record.command);
        p = find(j, r->exec);
        if (*p) { /* an id is never given twice; if it is, the newer start counts */
                x->next = (*p)->next;
                free(*p);
                j->n_open--;
        } else {
                x->next = NULL;
        }
        *p = x;
        j->n_open++;
        return 0;
}

static bool ended_before(const struct review_join *j, const char *id) {
        if (strcmp(id, "?") == 0)
                return false;
        for (size_t i = 0; i < ENDED; i++)
                if (strcmp(j->ended[i], id) == 0)
                        return true;
        return false;
}

static int end_exec(struct review_join *j, const struct review_record *r) {
        struct review_event e = { .kind = REVIEW_EXEC, .begin_ms = -1, .end_ms = r->time_ms };
        struct open_exec **p = find(j, r->exec), *x = *p;
        int rc;

        e.record = *r;
        e.failed = strcmp(r->res, "success") != 0;
        if (!x) {
                if (ended_before(j, r->exec))
                        return 0;
                return j->event(j->userdata, &e);
        }
        memcpy(j->ended[j->next_ended++ % ENDED], r->exec, sizeof(r->exec));
        e.begin_ms = x->record.time_ms;
        e.record.command = x->record.command;
        e.record.command_len = x->record.command_len;
        memcpy(e.record.sha256, x->record.sha256, sizeof(e.record.sha256));
        memcpy(e.record.pool, x->record.pool, sizeof(e.record.pool));
        *p = x->next;
        j->n_open--;
        rc = j->event(j->userdata, &e);
        free(x);
        return rc;
}

static enum review_kind kind_of(enum review_op op) {
        switch (op) {
        case REVIEW_EXEC_REJECTED:
                return REVIEW_REFUSED;
        case REVIEW_EXEC_SUPPRESSED:
                return REVIEW_SUPPRESSED;
        case REVIEW_SSH_LOGIN:
                return REVIEW_LOGIN;
        case REVIEW_SESSION_OPEN:
        case REVIEW_SESSION_STOP:
        case REVIEW_SESSION_START:
        case REVIEW_SESSION_CLOSE:
                return REVIEW_SESSION;
        case REVIEW_SCRUB_FAILED:
                return REVIEW_UNCLEAN;
        case REVIEW_TRAIL_OPEN:
        case REVIEW_POOL_START:
        case REVIEW_POOL_STOP:
                return REVIEW_POOL;
        case REVIEW_HELPER:
                return REVIEW_GRANT;
        default:
                return REVIEW_UNKNOWN;
        }
}

int review_join_put(struct review_join *j, const struct review_record *r) {
        struct review_event e = { .kind = kind_of(r->op), .begin_ms = r->time_ms, .end_ms = r->time_ms };

        if (r->op == REVIEW_EXEC_START)
                return add(j, r);
        if (r->op == REVIEW_EXEC_END)
                return end_exec(j, r);
        e.record = *r;
        e.failed = strcmp(r->res, "success") != 0;
        return j->event(j->userdata, &e);
}

static int by_order(const void *a, const void *b) {
        const struct open_exec *x = *(struct open_exec *const *)a, *y = *(struct open_exec *const *)b;

        return (x->order > y->order) - (x->order < y->order);
}

int review_join_end(struct review_join *j) {
        struct open_exec **all = calloc(j->n_open + 1, sizeof(struct open_exec *));
        size_t n = 0;
        int r = 0;

        if (!all)
                return -ENOMEM;
        for (size_t i = 0; i < BUCKETS; i++)
                for (struct open_exec *x = j->buckets[i]; x; x = x->next)
                        all[n++] = x;
        qsort(all, n, sizeof(struct open_exec *), by_order);
        for (size_t i = 0; i < n && r == 0; i++) {
                struct review_event e = { .kind = REVIEW_EXEC,
                                          .record = all[i]->record,
                                          .begin_ms = all[i]->record.time_ms,
                                          .end_ms = -1,
                                          .failed = true };

                strcpy(e.record.res, "unknown");
                r = j->event(j->userdata, &e);
        }
        free(all);
        return r;
}
