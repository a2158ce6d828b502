/*
 * Each line is looked at for its type alone; one that can be ours goes through libauparse, by itself, so
 * that what another line holds cannot change how it is read. The values are decoded here: libauparse
 * chooses by name and type of a field whether it interprets it, and ends a value at a NUL.
 */
#include "cli/audit/review_log.h"

#include <auparse.h>
#include <errno.h>
#include <libaudit.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit/review_fields.h"

struct review_log {
        const struct review_source *source;
        struct review_lines *lines;
        auparse_state_t *au;
        struct review_record *out; /* where the callback writes */
        int verdict;               /* of the last line: 1 a record, 0 none of ours */
        struct review_log_counts counts;
        struct review_arena arena;
};

/* What stands in front of op= was written by the kernel: the first uid= and auid= there. */
struct header {
        uint32_t uid, auid;
        unsigned uids;
};

static void read_header(struct header *h, const char *name, const char *value) {
        if (strcmp(name, "uid") == 0) {
                if (!review_fields_u32(value, &h->uid))
                        h->uid = REVIEW_NO_ID;
                h->uids++;
        } else if (strcmp(name, "auid") == 0 && !review_fields_u32(value, &h->auid)) {
                h->auid = REVIEW_NO_ID;
        }
}

/* auditd's own name for the caller, where the log is enriched. */
static void read_name(auparse_state_t *au, const char *value, struct review_record *r) {
        const char *name = auparse_interpret_field(au);
        size_t len = name ? strlen(name) : 0;

        if (len > 0 && len < sizeof(r->user) && strcmp(name, value) != 0 && strcmp(name, "unset") != 0 &&
            strncmp(name, "unknown(", 8) != 0)
                memcpy(r->user, name, len + 1);
}

/* All fields of the record at the cursor. False: not in the form of ours. */
static bool read_fields(struct review_log *l, auparse_state_t *au, struct header *h,
                        struct review_bytes *exe) {
        struct review_fields f;
        bool in_msg = false;

        review_fields_init(&f, &l->arena, l->out, exe);
        if (auparse_first_field(au) <= 0)
                return false;
        do {
                const char *name = auparse_get_field_name(au), *value = auparse_get_field_str(au);

                if (!name || !value)
                        return false;
                if (strcmp(name, "op") == 0)
                        in_msg = true;
                if (!in_msg)
                        read_header(h, name, value);
                else if (!review_fields_put(&f, name, value))
                        f.bad = true;
                else if (strcmp(name, "id") == 0)
                        read_name(au, value, l->out);
        } while (auparse_next_field(au) > 0);
        return in_msg && h->uids == 1 && !f.bad;
}

static bool is(const struct review_bytes *b, const char *s) {
        return b->p && b->len == strlen(s) && memcmp(b->p, s, b->len) == 0;
}

static int judge(struct review_log *l, int type, bool good, const struct header *h,
                 const struct review_bytes *exe) {
        bool helper = type == AUDIT_GRP_MGMT;

        if (!is(exe, helper ? l->source->helper : l->source->manager))
                return 0;
        if (h->uids != 1 || h->uid != (helper ? 0 : l->source->account)) {
                l->counts.foreign++;
                return 0;
        }
        if (helper) {
                l->out->op = REVIEW_HELPER;
                l->out->loginuid = h->auid;
        }
        if (!good || !review_fields_complete(l->out)) {
                l->counts.broken++;
                return 0;
        }
        return 1;
}

static void on_event(auparse_state_t *au, auparse_cb_event_t event, void *userdata) {
        struct header h = { .uid = REVIEW_NO_ID, .auid = REVIEW_NO_ID };
        struct review_bytes exe = { 0 };
        struct review_log *l = userdata;
        const au_event_t *when;
        bool good;
        int type;

        if (event != AUPARSE_CB_EVENT_READY || auparse_first_record(au) <= 0)
                return;
        type = auparse_get_type(au);
        when = auparse_get_timestamp(au);
        if (!when)
                return;
        review_fields_clear(l->out);
        l->out->time_ms = (int64_t)when->sec * 1000 + when->milli;
        good = read_fields(l, au, &h, &exe);
        l->verdict = judge(l, type, good, &h, &exe);
}

/* Whether libauparse needs to see it: "type=USER_CMD …", or the same behind "node=… ". */
static bool interesting(const char *p, size_t len) {
        static const char *const types[] = { "type=USER_CMD ", "type=TRUSTED_APP ", "type=GRP_MGMT " };
        const char *end = p + len;

        if (len > 5 && memcmp(p, "node=", 5) == 0) {
                p = memchr(p, ' ', len);
                if (!p)
                        return false;
                p++;
        }
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                size_t n = strlen(types[i]);

                if ((size_t)(end - p) > n && memcmp(p, types[i], n) == 0)
                        return !memchr(p, 0, (size_t)(end - p));
        }
        return false;
}

int review_log_new(const struct review_files *f, const struct review_source *s, struct review_log **ret,
                   struct errmsg *e) {
        struct review_log *l = calloc(1, sizeof(*l));

        if (l) {
                l->source = s;
                l->lines = review_lines_new(f);
                l->au = auparse_init(AUSOURCE_FEED, NULL);
        }
        if (!l || !l->lines || !l->au) {
                review_log_free(l);
                return errmsg_set(e, -ENOMEM, "out of memory");
        }
        auparse_set_escape_mode(l->au, AUPARSE_ESC_RAW);
        auparse_add_callback(l->au, on_event, l, NULL);
        *ret = l;
        return 0;
}

void review_log_free(struct review_log *l) {
        if (!l)
                return;
        if (l->au)
                auparse_destroy(l->au);
        review_lines_free(l->lines);
        free(l);
}

int review_log_next(struct review_log *l, struct review_record *ret, struct errmsg *e) {
        struct review_line line;
        int r;

        while ((r = review_lines_next(l->lines, &line)) == 1) {
                /* auditd is writing it, or its disk was full. */
                if (line.torn || line.too_long || !interesting(line.p, line.len))
                        continue;
                l->out = ret;
                l->verdict = 0;
                /* A type that is a record by itself is an event as soon as its line is there. */
                if (auparse_feed(l->au, line.p, line.len + 1) != 0)
                        return errmsg_set(e, -ENOMEM, "out of memory");
                if (l->verdict == 1) {
                        l->counts.records++;
                        return 1;
                }
        }
        if (r < 0)
                return errmsg_set(e, r, "cannot read %s: %s", review_lines_path(l->lines), strerror(-r));
        return 0;
}

void review_log_counts(const struct review_log *l, struct review_log_counts *ret) {
        *ret = l->counts;
}
