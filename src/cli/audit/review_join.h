/*
 * From records to events: a start and its end become one. What is not an exec passes through at once, an
 * exec when its end comes, and what has no end when the log is over.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/audit/review_log.h"

enum review_kind {
        REVIEW_EXEC,
        REVIEW_REFUSED,
        REVIEW_SUPPRESSED,
        REVIEW_SESSION, /* one was opened, stopped, started or closed */
        REVIEW_LOGIN,   /* by the ssh gateway */
        REVIEW_UNCLEAN, /* a sandbox that could not be proved clean */
        REVIEW_POOL,    /* start and stop of pool and trail */
        REVIEW_GRANT,   /* a use of the helper */
        REVIEW_UNKNOWN  /* of a later version of the manager */
};

struct review_event {
        enum review_kind kind;
        struct review_record record; /* of an exec: the end's, with what only the start says filled in */
        int64_t begin_ms, end_ms;    /* -1: that record is not there */
        bool failed;                 /* not exit 0, refused, or unknown */
};

struct review_join;

/* @event is called for each; what it points to is gone after the call. It returns 0, or -errno, which
 * ends everything. review_join_free()d; NULL: out of memory. */
struct review_join *review_join_new(int (*event)(void *userdata, const struct review_event *e),
                                    void *userdata);
void review_join_free(struct review_join *j);

/* 0, -ENOMEM, or what the callback returned. */
int review_join_put(struct review_join *j, const struct review_record *r);

/* Hands out what has no end, by the time of its start. Returns as above. */
int review_join_end(struct review_join *j);
