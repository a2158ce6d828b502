/*
 * Options, taken from the front of a list of words. Short ones may stand together (-ie K), a value may
 * stand in the same word (-eK, --timeout=2s) or be the next one. The first word that is no option ends
 * them, and so does "--". Nothing is printed and nothing global is kept, unlike getopt(3).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/errmsg.h"

/* Without pointers: a table that needs no relocation is not touched by a command that does not use it. */
struct cli_opt {
        char name[16]; /* after "--"; "" ends a table */
        char letter;   /* after "-", 0: none */
        bool value;    /* it takes one */
        int id;        /* 0 or more */
};

struct cli_opts {
        int argc;
        char **argv;
        int next;            /* the word to look at next; after the end the first operand */
        const char *cluster; /* the rest of a word of short options, or NULL */
        bool dashdash;       /* "--" ended the options */
        int n_operands;      /* of cli_opts_any(): they stand at argv[1] and behind it */
};

#define CLI_OPTS_END (-1)

/* argv[0] is skipped. */
void cli_opts_init(struct cli_opts *o, int argc, char **argv);

/* The id of the next option, its value in *ret_value (NULL if it takes none); CLI_OPTS_END; or another
 * negative number and a line in *e. */
int cli_opts_next(struct cli_opts *o, const struct cli_opt *table, const char **ret_value,
                  struct errmsg *e);

/* The same where options may stand behind operands, too: these are gathered at the front of argv. "--" makes
 * operands of all that follows. */
int cli_opts_any(struct cli_opts *o, const struct cli_opt *table, const char **ret_value,
                 struct errmsg *e);

/* "500ms", "2s", "5m", "1h", "7d" or plain seconds, a whole number of 1 … 10 digits, into milliseconds.
 * Returns 0, -EINVAL for another form, -ERANGE for 0 and for more than a year. */
int cli_parse_duration(const char *s, uint64_t *ret_ms);
