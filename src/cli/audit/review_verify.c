/*
 * One pass over the lines. A break in the numbers opens a gap; what turns up later and fits a gap was
 * reordered, and what is left of the gaps at the end is missing. A line that is known to be wrong is
 * hashed as it stands, but the hash in the line behind it is then not held against anybody.
 */
#include "cli/audit/review_verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/sha2.h>

#include "cli/audit/review_line.h"
#include "cli/audit/review_time.h"

#define GAPS 256
#define FRESH_MS 60000 /* auditd writes a record long before that */

struct place {
        size_t file;
        uint64_t line;
};

struct gap {
        uint64_t first, last; /* numbers that are missing */
        struct place before;  /* the line in front of which they are */
        bool between_files;
};

/* Lines with one fault, one behind the other. */
struct run {
        const char *kind;
        struct place at;
        uint64_t first, last, n;
};

struct state {
        const struct review_verify *v;
        struct review_verdict out;
        uint8_t prev[SHA256_DIGEST_SIZE]; /* of the line before */
        bool have_prev;                   /* there is one */
        bool doubtful;                    /* and it is known to be wrong, or out of its place */
        bool confirmed;                   /* or the kernel's trail has its hash */
        struct place last;                /* the line before */
        uint64_t next;                    /* number of the next line; 0: none of ours yet */
        bool strange;                     /* the line before is not ours and not reported yet */
        uint64_t strange_len;
        struct gap gaps[GAPS];
        size_t n_gaps;
        struct run run;
        uint64_t fresh; /* newest lines whose record may still be on its way */
};

__attribute__((format(printf, 5, 6))) static void
say(struct state *s, const char *kind, const struct place *at, uint64_t seq, const char *fmt, ...) {
        struct review_finding f = { .kind = kind, .seq = seq };
        va_list ap;

        if (at) {
                f.file = s->v->files->v[at->file].path;
                f.line = at->line;
        }
        va_start(ap, fmt);
        vsnprintf(f.text, sizeof(f.text), fmt, ap);
        va_end(ap);
        if (strcmp(kind, "note") != 0)
                s->out.findings++;
        s->v->found(s->v->userdata, &f);
}

/* "line 7" or "lines 7-9" */
static const char *numbers(uint64_t first, uint64_t last, char buf[64]) {
        if (first == last)
                snprintf(buf, 64, "line %" PRIu64, first);
        else
                snprintf(buf, 64, "lines %" PRIu64 "-%" PRIu64, first, last);
        return buf;
}

static void end_run(struct state *s) {
        const struct run r = s->run;
        char buf[64];

        s->run = (struct run){ 0 };
        if (r.n == 0)
                return;
        numbers(r.first, r.last, buf);
        if (strcmp(r.kind, "changed") == 0)
                say(s, r.kind, &r.at, r.first, "%s: not what the kernel's trail has the hash of", buf);
        else
                say(s, r.kind, &r.at, r.first, "%s: the kernel's trail has no record of %s", buf,
                    r.n == 1 ? "it" : "them");
}

static void in_run(struct state *s, const char *kind, const struct place *at, uint64_t seq) {
        if (s->run.n > 0 && (s->run.kind != kind || seq < s->run.last))
                end_run(s);
        if (s->run.n++ == 0) {
                s->run.kind = kind;
                s->run.at = *at;
                s->run.first = seq;
        }
        s->run.last = seq;
}

static void say_gap(struct state *s, const struct gap *g) {
        char buf[64];

        numbers(g->first, g->last, buf);
        if (g->between_files)
                say(s, "rotation", &g->before, g->first,
                    "%s should stand before this file: a rotated file is gone, or was cut", buf);
        else
                say(s, "missing", &g->before, g->first, "%s should stand before this line", buf);
}

static void open_gap(struct state *s, uint64_t first, uint64_t last, const struct place *at) {
        struct gap g = { .first = first, .last = last, .before = *at };

        g.between_files = at->file != s->last.file && at->line == 1;
        if (s->n_gaps == GAPS)
                say_gap(s, &g);
        else
                s->gaps[s->n_gaps++] = g;
}

/* True: @seq was missing, and is no longer. */
static bool close_gap(struct state *s, uint64_t seq) {
        for (size_t i = 0; i < s->n_gaps; i++) {
                struct gap *g = &s->gaps[i];

                if (seq < g->first || seq > g->last)
                        continue;
                if (g->first == g->last) {
                        *g = s->gaps[--s->n_gaps];
                } else if (seq == g->first) {
                        g->first++;
                } else if (seq == g->last) {
                        g->last--;
                } else if (s->n_gaps < GAPS) {
                        struct gap rest = *g;

                        rest.first = seq + 1;
                        g->last = seq - 1;
                        s->gaps[s->n_gaps++] = rest;
                }
                return true;
        }
        return false;
}

static bool same_hash(const uint8_t hash[SHA256_DIGEST_SIZE], const char *hex) {
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++)
                if (hex[2 * i] != digits[hash[i] >> 4] || hex[2 * i + 1] != digits[hash[i] & 15])
                        return false;
        return true;
}

static bool zeros(const char *hex) {
        return strspn(hex, "0") == 2 * SHA256_DIGEST_SIZE;
}

/* 1: the kernel's trail has this line; -1: it has another one of that number; 0: none. */
static int against_kernel(struct state *s, const struct review_trail_line *l,
                          const uint8_t hash[SHA256_DIGEST_SIZE], const struct place *at) {
        const struct review_stamps *k = s->v->stamps;
        const struct review_stamp *stamp;

        if (!k || k->n == 0 || l->seq < k->v[0].seq)
                return 0;
        stamp = review_stamps_find(k, l->seq);
        if (stamp && memcmp(stamp->hash, hash, SHA256_DIGEST_SIZE) == 0) {
                end_run(s);
                if (s->out.agreed++ == 0)
                        s->out.agreed_first = l->seq;
                return 1;
        }
        if (stamp)
                in_run(s, "changed", at, l->seq);
        else if (l->recorded && l->seq > k->v[k->n - 1].seq && l->time_ms + FRESH_MS > s->v->now_ms)
                s->fresh++;
        else if (l->recorded)
                in_run(s, "unrecorded", at, l->seq);
        return stamp ? -1 : 0;
}

/* The first line of ours: the anchor. */
static void first_line(struct state *s, const struct review_trail_line *l, const struct place *at) {
        bool ok = true;

        s->out.first = l->seq;
        if (s->have_prev)
                ok = same_hash(s->prev, l->prev);
        else if (l->seq == 1)
                ok = zeros(l->prev);
        if (!ok)
                say(s, "changed", at, l->seq,
                    s->have_prev ? "line %" PRIu64 " does not carry the hash of the line before it"
                                 : "line %" PRIu64
                                   " carries the hash of a line before it, which is missing",
                    l->seq);
}

/* Whether this line's number and hash follow from what stands before it. @kernel is the word of
 * against_kernel() on it. Returns false where it stands in a wrong place. */
static bool against_chain(struct state *s, const struct review_trail_line *l, const struct place *at,
                          int kernel) {
        if (l->seq < s->next) {
                if (close_gap(s, l->seq))
                        say(s, "reordered", at, l->seq, "line %" PRIu64 " stands behind line %" PRIu64,
                            l->seq, s->next - 1);
                else
                        say(s, "inserted", at, l->seq, "a line %" PRIu64 " stands here a second time",
                            l->seq);
                return false;
        }
        if (l->seq > s->next) {
                open_gap(s, s->next, l->seq - 1, at);
                return true;
        }
        if (s->doubtful || same_hash(s->prev, l->prev))
                return true;
        if (kernel < 0)
                return true; /* it is reported already */
        if (s->confirmed)
                say(s, "changed", at, l->seq,
                    "line %" PRIu64 " does not carry the hash of the line before it", l->seq);
        else
                say(s, "changed", &s->last, l->seq - 1,
                    "line %" PRIu64 " is not the one whose hash line %" PRIu64 " carries", l->seq - 1,
                    l->seq);
        return true;
}

/* The line before is none of ours: a torn one where this one says so, else somebody put it there. */
static void settle_strange(struct state *s, const struct review_trail_line *l) {
        if (!s->strange)
                return;
        s->strange = false;
        if (l && l->torn == s->strange_len && same_hash(s->prev, l->prev)) {
                say(s, "note", &s->last, 0,
                    "a line was torn by a crash; the manager noted it in line %" PRIu64, l->seq);
                return;
        }
        end_run(s);
        s->doubtful = true;
        if (l && l->seq == s->next + 1) {
                say(s, "changed", &s->last, s->next,
                    "what should be line %" PRIu64 " is no line of the trail", s->next);
                s->next++;
                return;
        }
        say(s, "inserted", &s->last, 0, "a line that is none of the trail's");
}

static void strange_line(struct state *s, const struct review_line *line, const struct place *at) {
        if (s->next == 0) {
                s->out.older_lines++;
                return;
        }
        settle_strange(s, NULL);
        if (line->torn) {
                say(s, "torn", at, 0, "the last line of this file is torn: %zu bytes without a newline",
                    line->len);
                s->doubtful = true;
                s->next++; /* whose record, if there is one, is no further finding */
                return;
        }
        s->strange = true;
        s->strange_len = line->len;
}

static void our_line(struct state *s, const struct review_trail_line *l, const struct place *at,
                     const uint8_t hash[SHA256_DIGEST_SIZE]) {
        bool in_place = true;
        int kernel;

        settle_strange(s, l);
        kernel = against_kernel(s, l, hash, at);
        if (s->next == 0)
                first_line(s, l, at);
        else
                in_place = against_chain(s, l, at, kernel);
        if (l->lost)
                say(s, "note", at, l->seq, "%" PRIu64 " lines before it could not be written", l->lost);
        s->out.lines++;
        s->doubtful = !in_place || kernel < 0;
        s->confirmed = kernel > 0;
        if (in_place)
                s->next = l->seq + 1;
        s->out.last = s->next - 1;
}

static void take_line(struct state *s, const struct review_line *line) {
        const struct place at = { .file = line->file, .line = line->number };
        uint8_t hash[SHA256_DIGEST_SIZE];
        struct review_trail_line l;
        struct sha256_ctx ctx;

        sha256_init(&ctx);
        sha256_update(&ctx, line->len, (const uint8_t *)line->p);
        sha256_digest(&ctx, sizeof(hash), hash);
        if (!line->torn && !line->too_long && review_line_parse(line->p, line->len, &l) == 0)
                our_line(s, &l, &at, hash);
        else
                strange_line(s, line, &at);
        memcpy(s->prev, hash, sizeof(hash));
        s->have_prev = true;
        s->last = at;
}

/* What the kernel's trail has and the files do not: lines behind the last, or all of them. */
static void against_end(struct state *s) {
        const struct review_stamps *k = s->v->stamps;
        char when[REVIEW_TIME_TEXT], buf[64];

        if (s->v->missing)
                say(s, "gone", NULL, 0, "%s is missing", s->v->missing);
        if (!k)
                return;
        for (size_t i = 0; i < k->n_rewinds; i++) {
                const struct review_rewind *w = &k->rewinds[i];

                review_time_local(w->time_ms, when);
                if (w->changed)
                        say(s, "changed", NULL, w->from,
                            "at %s line %" PRIu64
                            " was not the one that was recorded before: torn, or replaced",
                            when, w->from);
                else if (w->to == 0)
                        say(s, "anew", NULL, 1,
                            "at %s the trail was begun anew: lines up to %" PRIu64 " were gone", when,
                            w->from);
                else
                        say(s, "anew", NULL, w->to,
                            "at %s the trail ended at line %" PRIu64
                            ": %s gone (cut off, or lost in a crash)",
                            when, w->to, numbers(w->to + 1, w->from, buf));
        }
        if (k->unwritten > 0)
                say(s, "note", NULL, 0, "%" PRIu64 " records say that their line could not be written",
                    k->unwritten);
        if (k->n == 0)
                return;
        review_time_local(k->v[k->n - 1].time_ms, when);
        if (s->next == 0)
                say(s, "gone", NULL, 0,
                    "the whole trail: the kernel's has records of it up to line %" PRIu64 ", %s",
                    k->v[k->n - 1].seq, when);
        else if (k->v[k->n - 1].seq >= s->next)
                say(s, "tail", &s->last, s->next, "%s should stand behind this line: recorded up to %s",
                    numbers(s->next, k->v[k->n - 1].seq, buf), when);
}

int review_verify_run(const struct review_verify *v, struct review_verdict *ret, struct errmsg *e) {
        struct state *s = calloc(1, sizeof(*s));
        struct review_lines *lines = review_lines_new(v->files);
        struct review_line line;
        int r = -ENOMEM;

        if (s && lines) {
                s->v = v;
                while ((r = review_lines_next(lines, &line)) == 1)
                        take_line(s, &line);
        }
        if (r < 0) {
                errmsg_set(e, r, "cannot read %s: %s", lines ? review_lines_path(lines) : "the trail",
                           strerror(-r));
        } else {
                settle_strange(s, NULL);
                end_run(s);
                for (size_t i = 0; i < s->n_gaps; i++)
                        say_gap(s, &s->gaps[i]);
                against_end(s);
                if (s->fresh > 0)
                        say(s, "note", NULL, 0,
                            "the records of the newest %" PRIu64 " lines are not in the log yet",
                            s->fresh);
                *ret = s->out;
        }
        review_lines_free(lines);
        free(s);
        return r;
}
