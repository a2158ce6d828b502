/* A word is looked up in the command's table, and what is not there is refused. */
#include "cli/docker/docker_words.h"

#include <string.h>

void docker_words_init(struct docker_words *w, int argc, char **argv, bool any) {
        memset(w, 0, sizeof(*w));
        w->argc = argc;
        w->argv = argv;
        w->next = argc > 0 ? 1 : 0;
        w->any = any;
}

static const struct docker_flag *row(const void *table, size_t stride, int i) {
        return (const void *)((const char *)table + (size_t)i * stride);
}

/* strconv.ParseBool's words. -1: none of them. */
static int truth(const char *s) {
        static const char words[][6] = { "0", "f", "F", "false", "FALSE", "False",
                                         "1", "t", "T", "true",  "TRUE",  "True" };

        for (int i = 0; i < 12; i++)
                if (strcmp(words[i], s) == 0)
                        return i >= 6;
        return -1;
}

static int boolean(int i, const struct docker_flag *f, const char *value, const char **ret,
                   struct errmsg *e) {
        int is = truth(value);

        if (is < 0)
                return errmsg_set(e, DOCKER_WORDS_BAD,
                                  "invalid argument \"%.80s\" for \"--%s\" flag: expected true or false",
                                  value, f->name);
        *ret = is ? NULL : "false";
        return i;
}

static int next_short(struct docker_words *w, const void *table, size_t stride, const char **ret,
                      struct errmsg *e) {
        const char *all = w->cluster;
        char letter = *w->cluster++;
        const struct docker_flag *f;
        int i = 0;

        while ((f = row(table, stride, i))->name[0] && f->letter != letter)
                i++;
        if (!f->name[0])
                return errmsg_set(e, DOCKER_WORDS_BAD, "unknown shorthand flag: '%c' in -%.64s", letter,
                                  all);
        if (w->cluster[0] == '=' && w->cluster[1]) {
                *ret = w->cluster + 1;
                w->cluster = NULL;
                return f->value ? i : boolean(i, f, *ret, ret, e);
        }
        if (!f->value) {
                if (*w->cluster == '\0')
                        w->cluster = NULL;
                return i;
        }
        *ret = w->cluster;
        w->cluster = NULL;
        if (**ret == '\0') {
                if (w->next >= w->argc)
                        return errmsg_set(e, DOCKER_WORDS_BAD, "flag needs an argument: '%c' in -%.64s",
                                          letter, all);
                *ret = w->argv[w->next++];
        }
        return i;
}

static int next_long(struct docker_words *w, const char *word, const void *table, size_t stride,
                     const char **ret, struct errmsg *e) {
        size_t len = strcspn(word, "=");
        const struct docker_flag *f;
        int i = 0;

        while ((f = row(table, stride, i))->name[0] &&
               (strlen(f->name) != len || memcmp(f->name, word, len) != 0))
                i++;
        if (!f->name[0]) {
                if (strcmp(word, "help") == 0)
                        return DOCKER_WORDS_HELP;
                return errmsg_set(e, DOCKER_WORDS_BAD, "unknown flag: --%.*s",
                                  (int)(len > 64 ? 64 : len), word);
        }
        if (word[len] == '=') {
                *ret = word + len + 1;
                return f->value ? i : boolean(i, f, *ret, ret, e);
        }
        if (!f->value)
                return i;
        if (w->next >= w->argc)
                return errmsg_set(e, DOCKER_WORDS_BAD, "flag needs an argument: --%s", f->name);
        *ret = w->argv[w->next++];
        return i;
}

/* True: the next word is an operand, or there is none. */
static bool at_operand(struct docker_words *w) {
        const char *word;

        if (w->ended || w->next >= w->argc)
                return true;
        word = w->argv[w->next];
        if (strcmp(word, "--") == 0) {
                w->ended = true;
                w->next++;
                return true;
        }
        return word[0] != '-' || word[1] == '\0';
}

int docker_words_next(struct docker_words *w, const void *table, size_t stride, const char **ret,
                      struct errmsg *e) {
        const char *word;

        *ret = NULL;
        if (w->cluster)
                return next_short(w, table, stride, ret, e);
        while (at_operand(w)) {
                if (!w->any || w->next >= w->argc)
                        return DOCKER_WORDS_END;
                w->argv[1 + w->n_operands++] = w->argv[w->next++];
        }
        word = w->argv[w->next++];
        if (word[1] == '-')
                return next_long(w, word + 2, table, stride, ret, e);
        w->cluster = word + 1;
        return next_short(w, table, stride, ret, e);
}
