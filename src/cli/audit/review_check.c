/* The kernel's trail is opened before the readable one: a line is written before its record, so each
 * record that is seen has its line. */
#include "cli/audit/review_check.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/audit/review_sources.h"
#include "cli/audit/review_stamps.h"
#include "cli/audit/review_verify.h"
#include "common/escape.h"
#include "common/exitcode.h"
#include "common/jsonw.h"

struct check {
        const struct review_options *options;
        FILE *out, *err;
        struct review_files log, trail;
        struct review_stamps stamps;
        bool kernel;              /* there is a kernel trail */
        struct errmsg why_no_log; /* else */
};

static void found_json(FILE *out, const struct review_finding *f) {
        char text[8192];
        struct jsonw j;

        jsonw_init_buf(&j, text, sizeof(text));
        jsonw_object(&j);
        jsonw_key_str(&j, "finding", f->kind);
        jsonw_key_str(&j, "file", f->file);
        jsonw_key_uint(&j, "line", f->line > 0, f->line);
        jsonw_key_uint(&j, "seq", f->seq > 0, f->seq);
        jsonw_key_str(&j, "text", f->text);
        jsonw_object_end(&j);
        if (jsonw_done(&j) == 0)
                fprintf(out, "%s\n", text);
}

static void found(void *userdata, const struct review_finding *f) {
        struct check *c = userdata;
        char line[8192];
        struct text t;

        if (c->options->json) {
                found_json(c->out, f);
                return;
        }
        text_init(&t, line, sizeof(line));
        if (f->file) {
                text_add_shown(&t, f->file, strlen(f->file));
                text_addf(&t, ":%" PRIu64 ": ", f->line);
        }
        fprintf(c->out, "%-11s%s%s\n", f->kind, line, f->text);
}

static void conclude(struct check *c, const struct review_verdict *v) {
        const char *word = v->findings > 0 ? "FINDINGS" : "OK";

        fprintf(c->out, "%s %" PRIu64 " lines in %zu file%s", word, v->lines, c->trail.n,
                c->trail.n == 1 ? "" : "s");
        if (v->lines > 0)
                fprintf(c->out, ", numbers %" PRIu64 "-%" PRIu64, v->first, v->last);
        if (v->older_lines > 0)
                fprintf(c->out, ", behind %" PRIu64 " older lines without one", v->older_lines);
        if (!c->kernel)
                fprintf(c->out, "; consistency only: %s", c->why_no_log.text);
        else if (v->agreed > 0)
                fprintf(c->out,
                        "; the kernel's trail agrees with %" PRIu64 " of them, from line %" PRIu64 " on",
                        v->agreed, v->agreed_first);
        else
                fprintf(c->out, "; the kernel's trail has none of them");
        fputc('\n', c->out);
}

static void conclude_json(struct check *c, const struct review_verdict *v) {
        char text[1024];
        struct jsonw j;

        jsonw_init_buf(&j, text, sizeof(text));
        jsonw_object(&j);
        jsonw_key_str(&j, "verify", v->findings > 0 ? "findings" : "ok");
        jsonw_key_uint(&j, "findings", true, v->findings);
        jsonw_key_uint(&j, "files", true, c->trail.n);
        jsonw_key_uint(&j, "lines", true, v->lines);
        jsonw_key_uint(&j, "first_seq", v->lines > 0, v->first);
        jsonw_key_uint(&j, "last_seq", v->lines > 0, v->last);
        jsonw_key_uint(&j, "older_lines", true, v->older_lines);
        jsonw_key_str(&j, "checked", c->kernel ? "kernel" : "consistency only");
        jsonw_key_uint(&j, "agreed", c->kernel, v->agreed);
        jsonw_key_uint(&j, "agreed_from_seq", v->agreed > 0, v->agreed_first);
        jsonw_object_end(&j);
        if (jsonw_done(&j) == 0)
                fprintf(c->out, "%s\n", text);
}

/* 0, or -errno with a line in *e. */
static int read_stamps(struct check *c, const struct review_paths *p, struct errmsg *e) {
        struct review_record record;
        struct review_source source;
        struct review_log *log;
        int r = review_sources_whose(c->options, p, &source, e);

        if (r == 0)
                r = review_log_new(&c->log, &source, &log, e);
        if (r < 0)
                return r;
        while ((r = review_log_next(log, &record, e)) == 1) {
                if (record.time_ms < c->options->since_ms || record.time_ms > c->options->until_ms)
                        continue;
                r = review_stamps_add(&c->stamps, &record);
                if (r < 0) {
                        errmsg_set(e, r, "out of memory");
                        break;
                }
        }
        review_say_odd(c->err, log);
        review_log_free(log);
        return r;
}

static int run(struct check *c, const struct review_paths *p, int64_t now_ms, struct review_verdict *ret,
               struct errmsg *e) {
        struct review_verify v = { .files = &c->trail, .found = found, .userdata = c, .now_ms = now_ms };
        int r, missing;

        r = review_sources_log(c->options, p, &c->log, &c->why_no_log);
        if (r < 0) {
                *e = c->why_no_log;
                return r;
        }
        c->kernel = r == 0;
        missing = review_sources_trail(c->options, p, &c->trail, e);
        if (missing < 0)
                return missing;
        if (c->kernel) {
                r = read_stamps(c, p, e);
                if (r < 0)
                        return r;
                v.stamps = &c->stamps;
        }
        /* No trail, and nobody says that there was one. */
        if (missing && c->trail.n == 0 && c->stamps.n == 0 && c->stamps.n_rewinds == 0)
                return 1;
        if (missing)
                v.missing = c->options->trail ? c->options->trail : p->trail;
        return review_verify_run(&v, ret, e);
}

int review_check(const struct review_options *o, const struct review_paths *p, int64_t now_ms, FILE *out,
                 FILE *err) {
        struct check c = { .options = o, .out = out, .err = err };
        struct review_verdict v = { 0 };
        struct errmsg e = { "" };
        int r = run(&c, p, now_ms, &v, &e);

        if (r == 0) {
                if (o->json)
                        conclude_json(&c, &v);
                else
                        conclude(&c, &v);
                if (fflush(out) != 0 || ferror(out))
                        r = errmsg_set(&e, -EIO, "cannot write: %s", strerror(errno));
        }
        review_stamps_done(&c.stamps);
        review_files_done(&c.log);
        review_files_done(&c.trail);
        if (r != 0)
                return review_failed(err, r, &e);
        return v.findings > 0;
}
