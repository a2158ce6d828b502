/* Complaints about a config: "FILE:LINE:COLUMN: KEY: found X, expected Y", one line each. */
#pragma once

#include <stddef.h>

#include "common/errmsg.h"
#include "config/node.h"

#define CONFIG_PATH_MAX 192

/* Where the reader is: the dotted path of keys, and where a complaint goes. */
struct config_reader {
        struct errmsg *e;
        char path[CONFIG_PATH_MAX];
        size_t path_len;
};

void config_reader_init(struct config_reader *r, struct errmsg *e);

/* Goes down into @key; returns what config_leave() takes to come back up. A path that grows too long is
 * cut; bytes outside printable ASCII show as '?'. */
size_t config_enter(struct config_reader *r, const char *key);
void config_leave(struct config_reader *r, size_t was);

/* Sets the message and returns -EINVAL. @found and @expected are words for a person. */
int config_bad(struct config_reader *r, const struct config_mark *m, const char *found,
               const char *expected);

/* The same, where @n is what was found: its text in quotes, "nothing", "a list" or "a mapping". */
int config_bad_node(struct config_reader *r, const struct config_node *n, const char *expected);

/* Writes @s in quotes into @buf, escaped to printable ASCII and cut to fit; returns @buf. */
char *config_quote(const char *s, char *buf, size_t size);
