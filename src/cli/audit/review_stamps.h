/*
 * What the kernel's trail knows of the readable one: number and hash of each line that a record names.
 *
 * A trail that is cut off, or deleted and begun anew, goes back in its numbers, and the kernel's records
 * show it: a record then names a number that was there before, with another hash, or (trail-open) a last
 * line before the last one that was recorded. From there on the newer records are what the files must
 * agree with, so the older ones of those numbers are dropped, and the event is reported.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/audit/review_log.h"

struct review_stamp {
        uint64_t seq;
        int64_t time_ms;
        uint8_t hash[32];
};

/* A step back of the numbers. */
struct review_rewind {
        int64_t time_ms;
        uint64_t from, to; /* the last line that was recorded; the last one that was there after it */
        bool changed;      /* the same number with another hash */
};

struct review_stamps {
        struct review_stamp *v; /* by seq, each once */
        size_t n, cap;
        struct review_rewind *rewinds;
        size_t n_rewinds;
        uint64_t unwritten; /* records of lines that could not be written */
};

/* Takes what @r says of the readable trail, if it does. 0 or -ENOMEM. */
int review_stamps_add(struct review_stamps *s, const struct review_record *r);
void review_stamps_done(struct review_stamps *s);

/* The one of that number, or NULL. */
const struct review_stamp *review_stamps_find(const struct review_stamps *s, uint64_t seq);
