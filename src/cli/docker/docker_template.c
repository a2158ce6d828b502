/* Text up to "{{", a word or two up to "}}", and on. */
#include "cli/docker/docker_template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN "known are {{.A.B}}, {{json .A.B}}, {{.Label \"k\"}} and {{index .A.B \"k\"}}"

/* What stands between the braces, being taken apart. */
struct action {
        const char *p, *end;
        struct errmsg *e;
};

static int wrong(struct action *a, const char *what, const char *s, size_t len) {
        return errmsg_set(a->e, -EINVAL, "template parsing error: %s {{%.*s}}: " KNOWN, what,
                          (int)(len < 80 ? len : 80), s);
}

static void skip_blanks(struct action *a) {
        while (a->p < a->end && (*a->p == ' ' || *a->p == '\t'))
                a->p++;
}

/* The next word, up to a blank. */
static const char *word(struct action *a, size_t *ret_len) {
        const char *s;

        skip_blanks(a);
        s = a->p;
        while (a->p < a->end && *a->p != ' ' && *a->p != '\t')
                a->p++;
        *ret_len = (size_t)(a->p - s);
        return s;
}

/* The next word in quotes, without them, or NULL. Nothing is escaped in it. */
static const char *quoted(struct action *a, size_t *ret_len) {
        const char *s, *end;

        skip_blanks(a);
        if (a->p == a->end || (*a->p != '"' && *a->p != '`'))
                return NULL;
        s = a->p + 1;
        end = memchr(s, *a->p, (size_t)(a->end - s));
        if (!end || memchr(s, '\\', (size_t)(end - s)))
                return NULL;
        a->p = end + 1;
        *ret_len = (size_t)(end - s);
        return s;
}

static bool is(const char *s, size_t len, const char *word) {
        return strlen(word) == len && memcmp(s, word, len) == 0;
}

static int unknown(struct action *a, const char *path, size_t len) {
        return errmsg_set(a->e, -EINVAL,
                          "template parsing error: <.%.*s>: hermes-sandbox knows no such field",
                          (int)(len < 80 ? len : 80), path);
}

/* As Go prints it. */
static int put(struct action *a, const struct doc_field *f, FILE *out) {
        switch (f->type) {
        case DOC_STRING:
                fputs(f->s, out);
                return 0;
        case DOC_LIST:
        case DOC_LABELS:
                fputs(f->type == DOC_LIST ? "[" : "map[", out);
                for (uint32_t i = 0; i < f->n_list; i++) {
                        size_t key = f->type == DOC_LABELS ? strcspn(f->list[i], "=") : 0;

                        fprintf(out, "%s%.*s%s%s", i > 0 ? " " : "", (int)key, f->list[i],
                                key > 0 ? ":" : "", f->list[i] + key + (key > 0));
                }
                fputc(']', out);
                return 0;
        case DOC_RAW:
                return errmsg_set(a->e, -EINVAL,
                                  "template parsing error: <.%s> is no plain value: {{json .%s}}",
                                  f->path, f->path);
        default:
                doc_json_field(f, out, 0, 0);
                return 0;
        }
}

static int put_label(struct action *a, const struct doc *d, const char *path, size_t len, FILE *out) {
        const struct doc_field *f = doc_find(d, path, len);
        size_t key_len;
        const char *key = quoted(a, &key_len), *value;

        if (!key)
                return wrong(a, "a label's name in quotes has to come last in", path, len);
        if (!f)
                return unknown(a, path, len);
        if (f->type != DOC_LABELS)
                return errmsg_set(a->e, -EINVAL, "template parsing error: <.%s> holds no labels",
                                  f->path);
        value = doc_label(f, key, key_len);
        fputs(value ? value : "", out);
        return 0;
}

static int put_json(struct action *a, const struct doc *d, FILE *out) {
        size_t len;
        const char *path = word(a, &len);
        const struct doc_field *f;

        if (len == 0 || path[0] != '.')
                return wrong(a, "a field has to follow json in", path, len);
        f = doc_find(d, path + 1, len - 1);
        if (f)
                doc_json_field(f, out, 0, 0);
        else if (doc_is_object(d, path + 1, len - 1))
                doc_json_object(d, path + 1, len - 1, out, 0, 0);
        else
                return unknown(a, path + 1, len - 1);
        return 0;
}

static int put_path(struct action *a, const struct doc *d, const char *path, size_t len, FILE *out) {
        const struct doc_field *f = doc_find(d, path, len);

        if (f)
                return put(a, f, out);
        if (doc_is_object(d, path, len))
                return errmsg_set(a->e, -EINVAL,
                                  "template parsing error: <.%.*s> is an object: {{json .%.*s}}",
                                  (int)len, path, (int)len, path);
        return unknown(a, path, len);
}

static int act(const char *begin, const char *end, const struct doc *d, FILE *out, struct errmsg *e) {
        struct action a = { begin, end, e };
        size_t len;
        const char *first = word(&a, &len);
        int r;

        if (is(first, len, "json"))
                r = put_json(&a, d, out);
        else if (is(first, len, ".Label"))
                r = put_label(&a, d, "Labels", 6, out);
        else if (is(first, len, "index")) {
                const char *path = word(&a, &len);

                if (len < 2 || path[0] != '.')
                        return wrong(&a, "a field has to follow index in", begin, (size_t)(end - begin));
                r = put_label(&a, d, path + 1, len - 1, out);
        } else if (len > 0 && first[0] == '.')
                r = put_path(&a, d, first + 1, len - 1, out);
        else
                return wrong(&a, "not taken here:", begin, (size_t)(end - begin));
        if (r < 0)
                return r;
        skip_blanks(&a);
        return a.p == a.end ? 0 : wrong(&a, "too many words in", begin, (size_t)(end - begin));
}

int docker_template(const char *format, const struct doc *d, FILE *out, struct errmsg *e) {
        for (const char *p = format; *p;) {
                const char *open = strstr(p, "{{"), *end;
                int r;

                if (!open) {
                        fputs(p, out);
                        return 0;
                }
                fwrite(p, 1, (size_t)(open - p), out);
                end = strstr(open, "}}");
                if (!end)
                        return errmsg_set(e, -EINVAL, "template parsing error: unclosed action: %.80s",
                                          open);
                r = act(open + 2, end, d, out, e);
                if (r < 0)
                        return r;
                p = end + 2;
        }
        return 0;
}

const char *docker_template_of(const char *word) {
        return strcmp(word, "json") == 0 ? "{{json .}}" : word[0] ? word : NULL;
}

char *docker_template_of_list(const char *format) {
        size_t len = strlen(format);
        char *ret, *to;

        while (len > 0 && *format == ' ') {
                format++;
                len--;
        }
        while (len > 0 && format[len - 1] == ' ')
                len--;
        to = ret = malloc(len + 1);
        if (!ret)
                abort();
        for (size_t i = 0; i < len; i++) {
                bool escape = format[i] == '\\' && i + 1 < len &&
                              (format[i + 1] == 't' || format[i + 1] == 'n');

                *to++ = !escape ? format[i] : format[++i] == 't' ? '\t' : '\n';
        }
        *to = '\0';
        return ret;
}
