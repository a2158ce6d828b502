/*
 * The words behind a subcommand, by docker's rules (pflag's): --name VALUE, --name=VALUE, -n VALUE, -nVALUE, -n=VALUE,
 * -ab; a flag that takes no value may be given one, --name=false; "--" ends the flags. Nothing is printed and nothing
 * global is kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/errmsg.h"

/* Without pointers: a table that needs no relocation is not touched by a command that does not use it. */
struct docker_flag {
        char name[24]; /* "" ends a table */
        char letter;   /* 0: none */
        bool value;    /* it takes one; else it is true or false */
        unsigned char id;
};

struct docker_words {
        int argc;
        char **argv;
        int next;            /* the word to look at next; after the end the first operand */
        const char *cluster; /* the rest of a word of short flags, or NULL */
        bool ended;          /* by "--" */
        bool any;       /* flags may stand behind operands, too: these are gathered from argv[1] on */
        int n_operands; /* with any */
};

#define DOCKER_WORDS_END (-1)
#define DOCKER_WORDS_BAD (-2)
#define DOCKER_WORDS_HELP (-3) /* --help */

/* argv[0] is skipped. */
void docker_words_init(struct docker_words *w, int argc, char **argv, bool any);

/* The index in @table of the next flag; @stride is the size of a row, which begins with a struct docker_flag. *ret is
 * its value, of one that takes none NULL for true and "false". Or one of the three above, with a line in *e for
 * DOCKER_WORDS_BAD, as docker words it. */
int docker_words_next(struct docker_words *w, const void *table, size_t stride, const char **ret,
                      struct errmsg *e);
