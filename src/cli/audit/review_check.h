/* --verify: what it reads and what it says. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "cli/audit/review.h"
#include "cli/audit/review_log.h"
#include "cli/audit/review_options.h"

/* Returns the exit code: 0 clean, 1 findings, others as review_command(). */
int review_check(const struct review_options *o, const struct review_paths *p, int64_t now_ms, FILE *out,
                 FILE *err);

/* Prints *e for a failure @r of review_sources_*() and the like; returns the exit code. (review.c) */
int review_failed(FILE *err, int r, const struct errmsg *e);

/* A line on @err where the log has records that pretend to be ours. (review.c) */
void review_say_odd(FILE *err, const struct review_log *log);
