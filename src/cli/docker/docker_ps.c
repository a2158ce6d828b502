/* docker ps: the caller's sessions, filtered here. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/docker/docker_ask.h"
#include "cli/docker/docker_list.h"
#include "cli/docker/docker_template.h"
#include "cli/docker/docker_words.h"

#define FILTERS_MAX 64
#define COLUMNS 7

enum { ALL, FILTER, FORMAT, NO_TRUNC, QUIET };

static const struct docker_flag flags[] = {
        { "all", 'a', false, ALL },     { "filter", 'f', true, FILTER },
        { "format", 0, true, FORMAT },  { "no-trunc", 0, false, NO_TRUNC },
        { "quiet", 'q', false, QUIET }, { .name = "" },
};

static const char ps_help[] =
        "\n"
        "  -a, --all          those that are stopped, too\n"
        "  -f, --filter F     label=K, label=K=V, status=running|exited|created, id=, name=\n"
        "  --format TEMPLATE  such as '{{.ID}}\\t{{.State}}\\t{{.Label \"task\"}}', or json;\n"
        "                     fields: ID Image Command CreatedAt RunningFor Ports State\n"
        "                     Status Names Networks Labels\n"
        "  --no-trunc         whole ids\n"
        "  -q, --quiet        ids alone\n";

struct listing {
        bool all, whole, quiet;
        const char *format; /* or NULL: the table */
        int n_filters;
        const char *filters[FILTERS_MAX];
};

static int take_filter(struct listing *l, const char *value, struct errmsg *e) {
        static const char *const known[] = { "label=", "status=", "id=", "name=" };

        if (l->n_filters == FILTERS_MAX)
                return errmsg_set(e, -1, "more than %d filters", FILTERS_MAX);
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (strncmp(value, known[i], strlen(known[i])) == 0) {
                        l->filters[l->n_filters++] = value;
                        return 0;
                }
        return errmsg_set(e, -1,
                          "Error response from daemon: invalid filter '%.80s': known are label, status, "
                          "id and name",
                          value);
}

static bool has_label(const struct session_info *s, const char *wanted) {
        size_t len = strlen(wanted), key = strcspn(wanted, "=");

        for (uint32_t i = 0; i < s->n_labels; i++)
                if (wanted[key] == '='
                            ? strcmp(s->labels[i], wanted) == 0
                            : strncmp(s->labels[i], wanted, len) == 0 && s->labels[i][len] == '=')
                        return true;
        return false;
}

/* docker takes a regular expression; what is taken of it are its anchors. */
static bool name_matches(const char *name, const char *wanted) {
        size_t len = strlen(wanted), have = strlen(name);
        bool begins = wanted[0] == '^', ends = len > 0 && wanted[len - 1] == '$';

        wanted += begins;
        len -= (size_t)begins;
        if (begins && wanted[0] == '/') {
                wanted++;
                len--;
        }
        len -= (size_t)ends;
        if (begins && ends)
                return have == len && memcmp(name, wanted, len) == 0;
        if (begins)
                return strncmp(name, wanted, len) == 0;
        if (ends)
                return have >= len && memcmp(name + have - len, wanted, len) == 0;
        return memmem(name, have, wanted, len) != NULL;
}

static bool one_matches(const struct session_info *s, const char *filter) {
        switch (filter[0]) {
        case 'l':
                return has_label(s, filter + 6);
        case 's':
                return strcmp(docker_state(s), filter + 7) == 0;
        case 'i':
                return strncmp(s->id, filter + 3, strlen(filter + 3)) == 0;
        default:
                return name_matches(s->name, filter + 5);
        }
}

/* All labels; of the others one of each kind. A state that is asked for is shown without --all. */
static bool matches(const struct listing *l, const struct session_info *s) {
        bool asked[128] = { 0 }, met[128] = { 0 };

        for (int i = 0; i < l->n_filters; i++) {
                unsigned kind = (unsigned char)l->filters[i][0] & 127;
                bool is = one_matches(s, l->filters[i]);

                met[kind] = kind == 'l' && asked[kind] ? met[kind] && is : met[kind] || is;
                asked[kind] = true;
        }
        for (int i = 0; i < 128; i++)
                if (asked[i] && !met[i])
                        return false;
        return l->all || asked['s'] || s->status == SESSION_IS_RUNNING;
}

/* --- the table ------------------------------------------------------------------------------------------ */

static const struct {
        const char *heading, *path;
} columns[COLUMNS] = {
        { "CONTAINER ID", "ID" },    { "IMAGE", "Image" },   { "COMMAND", "Command" },
        { "CREATED", "RunningFor" }, { "STATUS", "Status" }, { "PORTS", "Ports" },
        { "NAMES", "Names" },
};

static const char *cell(const struct doc *d, int column) {
        const struct doc_field *f = doc_find(d, columns[column].path, strlen(columns[column].path));

        return f ? f->s : "";
}

/* What is listed. */
struct rows {
        struct session_info *of;
        size_t n;
        uint64_t now;
};

/* The doc of one row, until the next one is asked for. */
static const struct doc *row(const struct listing *l, const struct rows *r, size_t i) {
        static struct doc d;

        docker_doc_row(&d, &r->of[i], l->whole, r->now);
        return &d;
}

/* Columns are three blanks apart, and at least ten wide with them. */
static void write_table(const struct listing *l, const struct rows *r, FILE *out) {
        size_t width[COLUMNS];

        for (int c = 0; c < COLUMNS; c++) {
                width[c] = strlen(columns[c].heading);
                for (size_t i = 0; i < r->n; i++) {
                        size_t len = strlen(cell(row(l, r, i), c));

                        width[c] = len > width[c] ? len : width[c];
                }
                width[c] = width[c] + 3 > 10 ? width[c] + 3 : 10;
        }
        for (int c = 0; c < COLUMNS; c++)
                fprintf(out, "%-*s", c < COLUMNS - 1 ? (int)width[c] : 0, columns[c].heading);
        for (size_t i = 0; i < r->n; i++)
                for (int c = 0; c < COLUMNS; c++)
                        fprintf(out, "%s%-*s", c == 0 ? "\n" : "", c < COLUMNS - 1 ? (int)width[c] : 0,
                                cell(row(l, r, i), c));
        fputc('\n', out);
}

/* What is wrong with a format is wrong also where there is nothing to be shown. */
static int try_format(const struct listing *l, const char *format, struct errmsg *e) {
        struct session_info nobody = { .id = "", .name = "", .image = "", .network = "" };
        const struct rows r = { &nobody, 1, 1 };
        char *text = NULL;
        size_t len;
        FILE *f = open_memstream(&text, &len);
        int code;

        if (!f)
                abort();
        code = docker_template(format, row(l, &r, 0), f, e);
        fclose(f);
        free(text);
        return code;
}

static int write_rows(const struct listing *l, const struct rows *r, FILE *out) {
        char *format = docker_template_of_list(l->quiet                         ? "{{.ID}}"
                                               : strcmp(l->format, "json") == 0 ? "{{json .}}"
                                                                                : l->format);
        struct errmsg e;
        int code = try_format(l, format, &e);

        for (size_t i = 0; i < r->n && code == 0; i++) {
                code = docker_template(format, row(l, r, i), out, &e);
                fputc('\n', out);
        }
        free(format);
        if (code < 0)
                cli_line("%s", e.text);
        return code < 0 ? DOCKER_FAILED : 0;
}

/* The strings stay in @a. 0, or a line in a->error. */
static int gather(const struct docker *d, const struct listing *l, struct docker_answer *a,
                  struct rows *ret) {
        const struct ask q = { .op = ASK_SESSION_LIST, .form = ANSWER_RECORDS };
        struct session_info s;
        int r = docker_ask(d, &q, a);

        while (r == 0 && (r = docker_answer_session(a, &s)) > 0) {
                r = 0;
                if (!matches(l, &s))
                        continue;
                ret->of = reallocarray(ret->of, ret->n + 1, sizeof(*ret->of));
                if (!ret->of)
                        abort();
                ret->of[ret->n++] = s;
        }
        return r;
}

static int list(const struct docker *d, const struct listing *l) {
        struct rows rows = { .now = (uint64_t)time(NULL) };
        struct docker_answer a;
        struct docker_out out;
        int code = 0, r;

        if (gather(d, l, &a, &rows) != 0) {
                cli_error("%s", a.error.text);
                docker_answer_done(&a);
                free(rows.of);
                return DOCKER_FAILED;
        }
        docker_out_init(&out);
        if (l->format || l->quiet)
                code = write_rows(l, &rows, out.f);
        else
                write_table(l, &rows, out.f);
        r = docker_out_done(&out);
        docker_answer_done(&a);
        free(rows.of);
        return code != 0 ? code : r;
}

int docker_ps(const struct docker *d, int argc, char **argv) {
        struct listing l = { 0 };
        struct docker_words w;
        struct errmsg e;
        const char *value;
        int i;

        docker_words_init(&w, argc, argv, true);
        while ((i = docker_words_next(&w, flags, sizeof(flags[0]), &value, &e)) >= 0)
                switch (flags[i].id) {
                case ALL:
                        l.all = value == NULL;
                        break;
                case QUIET:
                        l.quiet = value == NULL;
                        break;
                case NO_TRUNC:
                        l.whole = value == NULL;
                        break;
                case FORMAT:
                        if (strncmp(value, "table ", 6) == 0) {
                                cli_line(
                                        "--format: a table has the columns of docker ps without --format here: "
                                        "leave \"table\" out for one of your own without a heading");
                                return DOCKER_FAILED;
                        }
                        l.format = value[0] && strcmp(value, "table") != 0 ? value : NULL;
                        break;
                default:
                        if (take_filter(&l, value, &e) == 0)
                                break;
                        cli_line("%s", e.text);
                        return DOCKER_FAILED;
                }
        if (i == DOCKER_WORDS_HELP)
                return docker_help("ps", ps_help);
        if (i == DOCKER_WORDS_BAD)
                return docker_bad_words("ps", &e);
        if (w.n_operands > 0) {
                cli_line("\"docker ps\" accepts no arguments.");
                return DOCKER_FAILED;
        }
        return list(d, &l);
}
