/* The fields of a record's msg='…', each in the one form that the manager writes it (docs/audit.md). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/audit/review_files.h"
#include "cli/audit/review_log.h"

/* Room for what the text fields of one record decode to, which is never longer than its line. */
struct review_arena {
        size_t len;
        uint8_t bytes[REVIEW_LINE_MAX];
};

struct review_fields {
        struct review_record *record;
        struct review_bytes *exe;
        struct review_arena *arena;
        uint64_t seen; /* a bit for each row of the table */
        bool bad;
};

/* *r as it is before its first field. */
void review_fields_clear(struct review_record *r);

/* Fields go into @r, their text into @a, exe= into @exe. */
void review_fields_init(struct review_fields *f, struct review_arena *a, struct review_record *r,
                        struct review_bytes *exe);

/* One field, value as it stands in the log. False: a second one of that name, or not in its form. A name
 * that is not in the table is passed over. */
bool review_fields_put(struct review_fields *f, const char *name, const char *value);

/* After the last field: whether the record has what its op must have. */
bool review_fields_complete(const struct review_record *r);

/* A decimal number without sign, all of @s. */
bool review_fields_u32(const char *s, uint32_t *ret);
