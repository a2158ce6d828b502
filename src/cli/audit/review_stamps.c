/* 48 bytes a record. */
#include "cli/audit/review_stamps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint8_t digit(char c) {
        return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static int append(struct review_stamps *s, const struct review_stamp *x) {
        if (s->n == s->cap) {
                size_t cap = s->cap ? 2 * s->cap : 1024;
                struct review_stamp *more = reallocarray(s->v, cap, sizeof(*more));

                if (!more)
                        return -ENOMEM;
                s->v = more;
                s->cap = cap;
        }
        s->v[s->n++] = *x;
        return 0;
}

static int add_rewind(struct review_stamps *s, const struct review_rewind *w) {
        struct review_rewind *more = reallocarray(s->rewinds, s->n_rewinds + 1, sizeof(*more));

        if (!more)
                return -ENOMEM;
        s->rewinds = more;
        s->rewinds[s->n_rewinds++] = *w;
        return 0;
}

/* Drops the stamps behind @last, the last line that was there when @x was written. */
static int go_back(struct review_stamps *s, const struct review_stamp *x, uint64_t last, bool changed) {
        struct review_rewind w = {
                .time_ms = x->time_ms, .from = s->v[s->n - 1].seq, .to = last, .changed = changed
        };

        while (s->n > 0 && s->v[s->n - 1].seq > last)
                s->n--;
        return add_rewind(s, &w);
}

int review_stamps_add(struct review_stamps *s, const struct review_record *r) {
        struct review_stamp x = { .seq = r->seq, .time_ms = r->time_ms };
        bool tip = r->op == REVIEW_TRAIL_OPEN;
        const struct review_stamp *old;
        uint64_t last;
        int rc = 0;

        if (!r->stamped)
                return 0;
        if (r->seq == 0 && !tip) {
                s->unwritten++;
                return 0;
        }
        for (size_t i = 0; r->seq > 0 && i < sizeof(x.hash); i++)
                x.hash[i] = (uint8_t)(digit(r->hash[2 * i]) << 4 | digit(r->hash[2 * i + 1]));
        old = review_stamps_find(s, x.seq);
        if (old && memcmp(old->hash, x.hash, sizeof(x.hash)) == 0 && s->v[s->n - 1].seq == x.seq)
                return 0;
        /* A line that was just written cannot have a number that was given before. */
        last = tip ? x.seq : x.seq - 1;
        if (s->n > 0 && s->v[s->n - 1].seq > last)
                rc = go_back(s, &x, last, false);
        if (rc == 0 && s->n > 0 && s->v[s->n - 1].seq == x.seq) {
                if (memcmp(s->v[s->n - 1].hash, x.hash, sizeof(x.hash)) == 0)
                        return 0;
                rc = go_back(s, &x, x.seq - 1, true);
        }
        return rc == 0 && x.seq > 0 ? append(s, &x) : rc;
}

void review_stamps_done(struct review_stamps *s) {
        free(s->v);
        free(s->rewinds);
        *s = (struct review_stamps){ 0 };
}

const struct review_stamp *review_stamps_find(const struct review_stamps *s, uint64_t seq) {
        size_t low = 0, high = s->n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (s->v[mid].seq == seq)
                        return &s->v[mid];
                if (s->v[mid].seq < seq)
                        low = mid + 1;
                else
                        high = mid;
        }
        return NULL;
}
