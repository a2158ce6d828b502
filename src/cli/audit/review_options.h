/* The command line of hermes-sandbox-audit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/audit/review.h"
#include "cli/audit/review_join.h"
#include "common/errmsg.h"

struct review_options {
        int64_t since_ms, until_ms; /* INT64_MIN, INT64_MAX: no bound */
        bool has_user;
        uint32_t user;
        const char *session, *key, *exec; /* NULL: any */
        bool failed, json, verify, summary, full, help;
        const char **logs; /* n_logs of them, in the order given; the array is free()d by done */
        size_t n_logs;
        const char *trail, *manager, *account; /* NULL: this system's */
};

extern const char review_help[];

/* Fills *o from main()'s arguments. 0, or -EINVAL with a line in *e; review_options_done() in any
 * case. */
int review_options_parse(struct review_options *o, int argc, char **argv, int64_t now_ms,
                         struct errmsg *e);
void review_options_done(struct review_options *o);

/* Whether an event is among those that were asked for. */
bool review_options_match(const struct review_options *o, const struct review_event *e);

/* The uid of an account by name or number. 0 or -ENOENT. */
int review_uid(const char *s, uint32_t *ret);
