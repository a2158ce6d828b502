/* One pass over the log, one line or object an event as it comes. */
#include "cli/audit/review.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/audit/review_check.h"
#include "cli/audit/review_join.h"
#include "cli/audit/review_options.h"
#include "cli/audit/review_show.h"
#include "cli/audit/review_sources.h"
#include "cli/audit/review_summary.h"
#include "common/exitcode.h"

struct review {
        struct review_options options;
        struct review_names names;
        struct review_summary *summary;
        FILE *out;
        unsigned width;
        bool began;
};

static int complain(FILE *err, int code, const char *what) {
        fprintf(err, "hermes-sandbox: audit: %s\n", what);
        return code;
}

int review_failed(FILE *err, int r, const struct errmsg *e) {
        switch (r) {
        case 1:
        case -ENOENT:
                return complain(err, EXIT_NO_MANAGER, e->text);
        case -EACCES:
        case -EPERM:
                return complain(err, EXIT_NOT_ALLOWED, e->text);
        default:
                return complain(err, EXIT_OS, e->text);
        }
}

static int on_event(void *userdata, const struct review_event *e) {
        struct review *v = userdata;

        if (!review_options_match(&v->options, e))
                return 0;
        if (v->summary)
                return review_summary_add(v->summary, e);
        if (v->options.json)
                return review_show_json(v->out, e, &v->names);
        return review_show_line(v->out, e, &v->names, v->width, &v->began);
}

/* All records of @log into the join, and what is left at its end. */
static int read_all(struct review_log *log, struct review_join *join, struct errmsg *e) {
        struct review_record record;
        int r;

        while ((r = review_log_next(log, &record, e)) == 1) {
                r = review_join_put(join, &record);
                if (r < 0)
                        return errmsg_set(e, r, "cannot go on: %s", strerror(-r));
        }
        if (r == 0) {
                r = review_join_end(join);
                if (r < 0)
                        errmsg_set(e, r, "cannot go on: %s", strerror(-r));
        }
        return r;
}

void review_say_odd(FILE *err, const struct review_log *log) {
        struct review_log_counts c;

        review_log_counts(log, &c);
        if (c.foreign > 0)
                fprintf(err,
                        "hermes-sandbox: audit: %" PRIu64
                        " records name our programs and were written by another account: not counted\n",
                        c.foreign);
        if (c.broken > 0)
                fprintf(err,
                        "hermes-sandbox: audit: %" PRIu64
                        " records of ours are not in the form that we write: not counted\n",
                        c.broken);
}

static int run(struct review *v, const struct review_paths *p, FILE *err) {
        struct review_files files = { 0 };
        struct review_source source;
        struct review_join *join = NULL;
        struct review_log *log = NULL;
        struct errmsg e = { "out of memory" };
        int r = review_sources_whose(&v->options, p, &source, &e);

        if (r == 0)
                r = review_sources_log(&v->options, p, &files, &e);
        if (r == 0)
                r = review_log_new(&files, &source, &log, &e);
        if (r == 0) {
                join = review_join_new(on_event, v);
                r = join ? read_all(log, join, &e) : -ENOMEM;
        }
        if (r == 0 && v->summary)
                r = review_summary_print(v->summary, v->out, v->options.json, &v->names);
        if (r == 0 && (fflush(v->out) != 0 || ferror(v->out)))
                r = errmsg_set(&e, -EIO, "cannot write: %s", strerror(errno));
        if (log)
                review_say_odd(err, log);
        review_join_free(join);
        review_log_free(log);
        review_files_done(&files);
        return r == 0 ? 0 : review_failed(err, r, &e);
}

static unsigned terminal_width(FILE *out) {
        struct winsize w;

        if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &w) < 0)
                return 0;
        return w.ws_col;
}

static int dispatch(struct review *v, const struct review_paths *p, int64_t now_ms, FILE *err) {
        if (v->options.help) {
                fputs(review_help, v->out);
                return fflush(v->out) != 0 ? EXIT_OS : 0;
        }
        if (v->options.verify)
                return review_check(&v->options, p, now_ms, v->out, err);
        v->names.local = v->options.n_logs == 0;
        v->width = v->options.full ? 0 : terminal_width(v->out);
        if (v->options.summary) {
                v->summary = review_summary_new();
                if (!v->summary)
                        return complain(err, EXIT_OS, "out of memory");
        }
        return run(v, p, err);
}

int review_command(const struct review_paths *p, int argc, char **argv, FILE *out, FILE *err) {
        struct review v = { .out = out };
        struct timespec now;
        struct errmsg e;
        int64_t now_ms;
        int rc;

        clock_gettime(CLOCK_REALTIME, &now);
        now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
        if (review_options_parse(&v.options, argc, argv, now_ms, &e) < 0) {
                fprintf(err, "hermes-sandbox: audit: %s: see hermes-sandbox audit --help\n", e.text);
                rc = EXIT_USAGE;
        } else {
                rc = dispatch(&v, p, now_ms, err);
        }
        review_summary_free(v.summary);
        review_options_done(&v.options);
        return rc;
}
