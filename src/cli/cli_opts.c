/* The table is the whole grammar: a word is looked up in it, and what is not there is refused. */
#include "cli/cli_opts.h"

#include <errno.h>
#include <string.h>

#define BAD_OPTION (-2)
#define YEAR_MS (UINT64_C(365) * 24 * 3600 * 1000)

void cli_opts_init(struct cli_opts *o, int argc, char **argv) {
        memset(o, 0, sizeof(*o));
        o->argc = argc;
        o->argv = argv;
        o->next = argc > 0 ? 1 : 0;
}

static int next_short(struct cli_opts *o, const struct cli_opt *t, const char **ret_value,
                      struct errmsg *e) {
        char letter = *o->cluster++;

        while (t->name[0] && t->letter != letter)
                t++;
        if (!t->name[0])
                return errmsg_set(e, BAD_OPTION, "unknown option -%c", letter);
        if (t->value) {
                *ret_value = o->cluster;
                o->cluster = NULL;
                if (**ret_value == '\0') {
                        if (o->next >= o->argc)
                                return errmsg_set(e, BAD_OPTION, "option -%c needs a value", letter);
                        *ret_value = o->argv[o->next++];
                }
        } else if (*o->cluster == '\0')
                o->cluster = NULL;
        return t->id;
}

static int next_long(struct cli_opts *o, const char *word, const struct cli_opt *t,
                     const char **ret_value, struct errmsg *e) {
        size_t len = strcspn(word, "=");

        while (t->name[0] && (strlen(t->name) != len || memcmp(t->name, word, len) != 0))
                t++;
        if (!t->name[0])
                return errmsg_set(e, BAD_OPTION, "unknown option --%.*s", (int)(len > 64 ? 64 : len),
                                  word);
        if (!t->value) {
                if (word[len] == '=')
                        return errmsg_set(e, BAD_OPTION, "option --%s takes no value", t->name);
        } else if (word[len] == '=')
                *ret_value = word + len + 1;
        else if (o->next < o->argc)
                *ret_value = o->argv[o->next++];
        else
                return errmsg_set(e, BAD_OPTION, "option --%s needs a value", t->name);
        return t->id;
}

int cli_opts_next(struct cli_opts *o, const struct cli_opt *table, const char **ret_value,
                  struct errmsg *e) {
        const char *word;

        *ret_value = NULL;
        if (o->cluster)
                return next_short(o, table, ret_value, e);
        if (o->next >= o->argc)
                return CLI_OPTS_END;
        word = o->argv[o->next];
        if (word[0] != '-' || word[1] == '\0')
                return CLI_OPTS_END;
        o->next++;
        if (strcmp(word, "--") == 0) {
                o->dashdash = true;
                return CLI_OPTS_END;
        }
        if (word[1] == '-')
                return next_long(o, word + 2, table, ret_value, e);
        o->cluster = word + 1;
        return next_short(o, table, ret_value, e);
}

int cli_opts_any(struct cli_opts *o, const struct cli_opt *table, const char **ret_value,
                 struct errmsg *e) {
        for (;;) {
                int id = o->dashdash ? CLI_OPTS_END : cli_opts_next(o, table, ret_value, e);

                if (id != CLI_OPTS_END || o->next >= o->argc)
                        return id;
                if (!o->dashdash)
                        o->argv[1 + o->n_operands++] = o->argv[o->next++];
                while (o->dashdash && o->next < o->argc)
                        o->argv[1 + o->n_operands++] = o->argv[o->next++];
        }
}

int cli_parse_duration(const char *s, uint64_t *ret_ms) {
        static const struct {
                char unit[4];
                uint64_t ms;
        } units[] = { { "ms", 1 },    { "s", 1000 },    { "", 1000 },
                      { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };
        size_t digits = strspn(s, "0123456789");
        uint64_t v = 0;

        if (digits == 0 || digits > 10)
                return -EINVAL;
        for (size_t i = 0; i < digits; i++)
                v = v * 10 + (uint64_t)(s[i] - '0');
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
                if (strcmp(s + digits, units[i].unit) != 0)
                        continue;
                v *= units[i].ms;
                if (v == 0 || v > YEAR_MS)
                        return -ERANGE;
                *ret_ms = v;
                return 0;
        }
        return -EINVAL;
}
