/*
 * What is known of a thing, as a flat list of fields in the order in which JSON has them: "State.Status" is the field
 * Status of the object State, and the fields of an object stand together. Paths and strings stay the caller's. Which fields
 * there are the program says, not its input: more than DOC_FIELDS_MAX, or DOC_SCRATCH bytes, abort it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DOC_FIELDS_MAX 64
#define DOC_SCRATCH 4096

enum doc_type {
        DOC_STRING,
        DOC_BOOL,
        DOC_NUMBER,
        DOC_LIST,   /* of strings */
        DOC_LABELS, /* "KEY=VALUE" strings: an object */
        DOC_RAW,    /* JSON as it stands */
};

struct doc_field {
        const char *path;
        enum doc_type type;
        union {
                const char *s;
                uint64_t n;
        };
        const char *const *list; /* DOC_LIST, DOC_LABELS */
        uint32_t n_list;
};

struct doc {
        size_t n;
        struct doc_field of[DOC_FIELDS_MAX];
        size_t used; /* of scratch */
        char scratch[DOC_SCRATCH];
};

void doc_init(struct doc *d);
void doc_string(struct doc *d, const char *path, const char *s);
/* Formatted, and kept in the doc. */
__attribute__((format(printf, 3, 4))) void doc_stringf(struct doc *d, const char *path, const char *fmt,
                                                       ...);
void doc_bool(struct doc *d, const char *path, bool v);
void doc_number(struct doc *d, const char *path, uint64_t v);
void doc_list(struct doc *d, const char *path, const char *const *list, uint32_t n);
void doc_labels(struct doc *d, const char *path, const char *const *labels, uint32_t n);
void doc_raw(struct doc *d, const char *path, const char *json);
/* "2006-01-02T15:04:05Z"; docker's zero time for 0. */
void doc_time(struct doc *d, const char *path, uint64_t seconds);

/* The field of that path, or NULL. */
const struct doc_field *doc_find(const struct doc *d, const char *path, size_t len);
/* The value of the label @key, or NULL. */
const char *doc_label(const struct doc_field *f, const char *key, size_t len);
/* Is it an object, the path of fields? "" is all of it. */
bool doc_is_object(const struct doc *d, const char *path, size_t len);

/* As JSON: a field, or what doc_is_object(). @indent: 0 for one line, else spaces for each level, the first of them
 * being at level @level. */
void doc_json_field(const struct doc_field *f, FILE *out, unsigned indent, unsigned level);
void doc_json_object(const struct doc *d, const char *path, size_t len, FILE *out, unsigned indent,
                     unsigned level);
