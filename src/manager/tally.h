/* How often each of a few words came: reasons of refusals and the like, which callers of ours choose and nobody else. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TALLY_MAX 32
#define TALLY_WORD 24

struct tally {
        struct {
                char word[TALLY_WORD];
                uint64_t n;
        } of[TALLY_MAX]; /* in the order of their first time; the rest is empty */
};

/* @n more of @word; what has more than TALLY_WORD - 1 bytes is cut. Once TALLY_MAX - 1 different words have come, new
 * ones are counted together, as "other". */
void tally_add(struct tally *t, const char *word, uint64_t n);
/* How many words there are, and how often all of them came. */
size_t tally_words(const struct tally *t);
uint64_t tally_sum(const struct tally *t);
/* How often @word came. */
uint64_t tally_get(const struct tally *t, const char *word);
