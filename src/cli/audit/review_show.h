/* Events for people, one line each, and as JSON lines. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "cli/audit/review_join.h"

/* Names of uids: what auditd wrote behind the record, else this machine's, where the log is its own. */
struct review_names {
        bool local;
};

#define REVIEW_NAME 64

/* "hermes", "1000", or "-" where @uid is REVIEW_NO_ID. @enriched may be "". Returns @buf. */
const char *review_name(const struct review_names *n, uint32_t uid, const char *enriched,
                        char buf[REVIEW_NAME]);

/*
 * One line, with the column heads before the first (*began false, which is then set). Text from records
 * is escaped. @width > 0 cuts the line after so many characters, by an ellipsis. 0, or -errno of a
 * failed write.
 */
int review_show_line(FILE *f, const struct review_event *e, const struct review_names *n, unsigned width,
                     bool *began);

/* One object and a newline. 0 or -errno. */
int review_show_json(FILE *f, const struct review_event *e, const struct review_names *n);
