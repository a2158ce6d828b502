#include "manager/tally.h"

#include <stdio.h>
#include <string.h>

size_t tally_words(const struct tally *t) {
        size_t n = 0;

        while (n < TALLY_MAX && t->of[n].word[0])
                n++;
        return n;
}

uint64_t tally_sum(const struct tally *t) {
        uint64_t sum = 0;

        for (size_t i = 0; i < TALLY_MAX; i++)
                sum += t->of[i].n;
        return sum;
}

uint64_t tally_get(const struct tally *t, const char *word) {
        for (size_t i = 0; i < TALLY_MAX; i++)
                if (strncmp(t->of[i].word, word, TALLY_WORD - 1) == 0)
                        return t->of[i].n;
        return 0;
}

void tally_add(struct tally *t, const char *word, uint64_t n) {
        size_t i;

        for (i = 0; i < TALLY_MAX - 1 && t->of[i].word[0]; i++)
                if (strncmp(t->of[i].word, word, TALLY_WORD - 1) == 0)
                        break;
        if (!t->of[i].word[0])
                snprintf(t->of[i].word, TALLY_WORD, "%.*s", TALLY_WORD - 1,
                         i == TALLY_MAX - 1 ? "other" : word);
        t->of[i].n += n;
}
