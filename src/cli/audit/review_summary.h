/* Counts for each day and user. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "cli/audit/review_join.h"
#include "cli/audit/review_show.h"

struct review_summary;

/* review_summary_free()d; NULL: out of memory. */
struct review_summary *review_summary_new(void);
void review_summary_free(struct review_summary *s);

/* Counts an event of somebody's; what is nobody's (pool start and stop) is passed over. The day is the
 * local one of its start. 0 or -ENOMEM. */
int review_summary_add(struct review_summary *s, const struct review_event *e);

/* A table, or JSON lines, by day and uid. 0 or -errno of a failed write. */
int review_summary_print(struct review_summary *s, FILE *f, bool json, const struct review_names *n);
