/* JSON of the fields: what shares the first part of its path is one object. */
#include "cli/docker/docker_doc.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/jsonw.h"

void doc_init(struct doc *d) {
        d->n = d->used = 0;
}

static struct doc_field *add(struct doc *d, const char *path, enum doc_type type) {
        struct doc_field *f;

        if (d->n == DOC_FIELDS_MAX)
                abort();
        f = &d->of[d->n++];
        memset(f, 0, sizeof(*f));
        f->path = path;
        f->type = type;
        return f;
}

void doc_string(struct doc *d, const char *path, const char *s) {
        add(d, path, DOC_STRING)->s = s;
}

void doc_stringf(struct doc *d, const char *path, const char *fmt, ...) {
        char *s = d->scratch + d->used;
        size_t cap = sizeof(d->scratch) - d->used;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(s, cap, fmt, ap);
        va_end(ap);
        if (n < 0 || (size_t)n >= cap)
                abort();
        d->used += (size_t)n + 1;
        doc_string(d, path, s);
}

void doc_bool(struct doc *d, const char *path, bool v) {
        add(d, path, DOC_BOOL)->n = v;
}

void doc_number(struct doc *d, const char *path, uint64_t v) {
        add(d, path, DOC_NUMBER)->n = v;
}

static void add_list(struct doc *d, const char *path, enum doc_type type, const char *const *list,
                     uint32_t n) {
        struct doc_field *f = add(d, path, type);

        f->list = list;
        f->n_list = n;
}

void doc_list(struct doc *d, const char *path, const char *const *list, uint32_t n) {
        add_list(d, path, DOC_LIST, list, n);
}

void doc_labels(struct doc *d, const char *path, const char *const *labels, uint32_t n) {
        add_list(d, path, DOC_LABELS, labels, n);
}

void doc_raw(struct doc *d, const char *path, const char *json) {
        add(d, path, DOC_RAW)->s = json;
}

void doc_time(struct doc *d, const char *path, uint64_t seconds) {
        time_t t = (time_t)seconds;
        char s[40];
        struct tm tm;

        if (seconds == 0)
                doc_string(d, path, "0001-01-01T00:00:00Z");
        else if (gmtime_r(&t, &tm) && strftime(s, sizeof(s), "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
                doc_stringf(d, path, "%s", s);
        else
                doc_string(d, path, "");
}

const struct doc_field *doc_find(const struct doc *d, const char *path, size_t len) {
        for (size_t i = 0; i < d->n; i++)
                if (strlen(d->of[i].path) == len && memcmp(d->of[i].path, path, len) == 0)
                        return &d->of[i];
        return NULL;
}

const char *doc_label(const struct doc_field *f, const char *key, size_t len) {
        for (uint32_t i = 0; i < f->n_list; i++)
                if (strncmp(f->list[i], key, len) == 0 && f->list[i][len] == '=')
                        return f->list[i] + len + 1;
        return NULL;
}

/* Is the field @i below the object @path? Where its path goes on from there. */
static const char *below(const struct doc *d, size_t i, const char *path, size_t len) {
        const char *p = d->of[i].path;

        if (len == 0)
                return p;
        return strncmp(p, path, len) == 0 && p[len] == '.' ? p + len + 1 : NULL;
}

bool doc_is_object(const struct doc *d, const char *path, size_t len) {
        for (size_t i = 0; i < d->n; i++)
                if (below(d, i, path, len))
                        return true;
        return false;
}

/* --- JSON ------------------------------------------------------------------------------------------ */

static void put_string(FILE *out, const char *s, size_t len) {
        char *buf = malloc(6 * len + 8);
        struct jsonw j;

        if (!buf)
                abort();
        jsonw_init_buf(&j, buf, 6 * len + 8);
        jsonw_strn(&j, s, len);
        fputs(buf, out);
        free(buf);
}

/* Between two members, and before the first and after the last one. */
static void put_break(FILE *out, unsigned indent, unsigned level) {
        if (indent > 0)
                fprintf(out, "\n%*s", (int)(indent * level), "");
}

static void put_key(FILE *out, const char *key, size_t len, unsigned indent) {
        put_string(out, key, len);
        fputs(indent > 0 ? ": " : ":", out);
}

static int by_key(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void put_list(const struct doc_field *f, FILE *out, unsigned indent, unsigned level) {
        const char **sorted = calloc(f->n_list + 1, sizeof(*sorted));
        bool labels = f->type == DOC_LABELS;

        if (!sorted)
                abort();
        for (uint32_t i = 0; i < f->n_list; i++)
                sorted[i] = f->list[i];
        if (labels)
                qsort(sorted, f->n_list, sizeof(*sorted), by_key);
        fputc(labels ? '{' : '[', out);
        for (uint32_t i = 0; i < f->n_list; i++) {
                size_t key = labels ? strcspn(sorted[i], "=") : 0;

                if (i > 0)
                        fputc(',', out);
                put_break(out, indent, level + 1);
                if (labels)
                        put_key(out, sorted[i], key, indent);
                put_string(out, sorted[i] + key + labels, strlen(sorted[i] + key + labels));
        }
        if (f->n_list > 0)
                put_break(out, indent, level);
        fputc(labels ? '}' : ']', out);
        free(sorted);
}

void doc_json_field(const struct doc_field *f, FILE *out, unsigned indent, unsigned level) {
        switch (f->type) {
        case DOC_STRING:
                put_string(out, f->s, strlen(f->s));
                return;
        case DOC_BOOL:
                fputs(f->n ? "true" : "false", out);
                return;
        case DOC_NUMBER:
                fprintf(out, "%llu", (unsigned long long)f->n);
                return;
        case DOC_RAW:
                fputs(f->s, out);
                return;
        case DOC_LIST:
        case DOC_LABELS:
                put_list(f, out, indent, level);
        }
}

void doc_json_object(const struct doc *d, const char *path, size_t len, FILE *out, unsigned indent,
                     unsigned level) {
        const char *last = "";
        size_t last_len = 0;
        bool first = true;

        fputc('{', out);
        for (size_t i = 0; i < d->n; i++) {
                const char *name = below(d, i, path, len);
                size_t name_len = name ? strcspn(name, ".") : 0;

                if (!name || (name_len == last_len && memcmp(name, last, name_len) == 0))
                        continue;
                last = name;
                last_len = name_len;
                if (!first)
                        fputc(',', out);
                first = false;
                put_break(out, indent, level + 1);
                put_key(out, name, name_len, indent);
                if (name[name_len] == '.')
                        doc_json_object(d, d->of[i].path, (size_t)(name + name_len - d->of[i].path), out,
                                        indent, level + 1);
                else
                        doc_json_field(&d->of[i], out, indent, level + 1);
        }
        if (!first)
                put_break(out, indent, level);
        fputc('}', out);
}
