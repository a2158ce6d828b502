/*
 * Builds the tree from libyaml's events. The document API of libyaml would resolve aliases and forget
 * which key stood twice; the events show both, and a bound on depth and number is checked before a
 * node is made. Recursion goes as deep as the depth bound and no deeper.
 */
#include "config/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "common/cleanup.h"
#include "config/alloc.h"
#include "config/report.h"
#include "config/utf8.h"

struct tree {
        yaml_parser_t parser;
        struct config_reader reader;
        const char *file;
        size_t n_nodes;
};

static struct config_mark mark_of(const struct tree *t, const yaml_mark_t *m) {
        return (struct config_mark){ t->file, (unsigned)m->line + 1, (unsigned)m->column + 1 };
}

static int next_event(struct tree *t, yaml_event_t *ret) {
        char found[160];

        if (yaml_parser_parse(&t->parser, ret))
                return 0;
        snprintf(found, sizeof(found), "bad YAML (%s%s%s)", t->parser.context ? t->parser.context : "",
                 t->parser.context ? ": " : "",
                 t->parser.problem ? t->parser.problem : "cannot be read");
        return config_bad(&t->reader,
                          &(struct config_mark){ t->file, (unsigned)t->parser.problem_mark.line + 1,
                                                 (unsigned)t->parser.problem_mark.column + 1 },
                          found, "well-formed YAML");
}

static int read_node(struct tree *t, yaml_event_t *ev, unsigned depth, struct config_node **ret);

static int refuse_at(struct tree *t, const yaml_event_t *ev, const char *found, const char *expected) {
        struct config_mark m = mark_of(t, &ev->start_mark);

        return config_bad(&t->reader, &m, found, expected);
}

/* What may stand at no node: an alias, an anchor, a tag, too much of anything. */
static int check_event(struct tree *t, const yaml_event_t *ev, unsigned depth) {
        const yaml_char_t *anchor = NULL, *tag = NULL;

        switch (ev->type) {
        case YAML_ALIAS_EVENT:
                return refuse_at(t, ev, "an alias", "the value itself");
        case YAML_SCALAR_EVENT:
                anchor = ev->data.scalar.anchor;
                tag = ev->data.scalar.tag;
                if (ev->data.scalar.length > CONFIG_SCALAR_MAX)
                        return refuse_at(t, ev, "a value too long", "at most 65536 bytes");
                if (memchr(ev->data.scalar.value, 0, ev->data.scalar.length))
                        return refuse_at(t, ev, "a NUL byte", "text without it");
                break;
        case YAML_SEQUENCE_START_EVENT:
                anchor = ev->data.sequence_start.anchor;
                tag = ev->data.sequence_start.tag;
                break;
        case YAML_MAPPING_START_EVENT:
                anchor = ev->data.mapping_start.anchor;
                tag = ev->data.mapping_start.tag;
                break;
        default:
                break;
        }
        if (anchor)
                return refuse_at(t, ev, "an anchor", "the value alone");
        if (tag)
                return refuse_at(t, ev, "a tag", "the value alone");
        if (depth > CONFIG_DEPTH_MAX)
                return refuse_at(t, ev, "too deep a nesting", "at most 16 levels");
        if (++t->n_nodes > CONFIG_NODES_MAX)
                return refuse_at(t, ev, "too many values", "at most 10000 in a file");
        return 0;
}

static struct config_node *make_scalar(const struct tree *t, const yaml_event_t *ev) {
        struct config_mark m = mark_of(t, &ev->start_mark);
        struct config_node *n = config_node_new(CONFIG_SCALAR, &m);
        const char *s = (const char *)ev->data.scalar.value;

        n->text = config_strndup(s, ev->data.scalar.length);
        n->null = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                  (!*s || strcmp(s, "~") == 0 || strcmp(s, "null") == 0 || strcmp(s, "Null") == 0 ||
                   strcmp(s, "NULL") == 0);
        return n;
}

/* One "key: value" of @n; @ev is the key's event. */
static int read_pair(struct tree *t, yaml_event_t *ev, unsigned depth, struct config_node *n) {
        _cleanup_(config_node_freep) struct config_node *key = NULL, *value = NULL;
        yaml_event_t next;
        size_t was;
        int r = check_event(t, ev, depth);

        if (r < 0)
                return r;
        if (ev->type != YAML_SCALAR_EVENT)
                return refuse_at(t, ev, ev->type == YAML_MAPPING_START_EVENT ? "a mapping" : "a list",
                                 "a name as the key");
        key = make_scalar(t, ev);
        if (strlen(key->text) > CONFIG_KEY_MAX)
                return refuse_at(t, ev, "a key too long", "at most 255 bytes");

        was = config_enter(&t->reader, key->text);
        if (config_node_get(n, key->text))
                return refuse_at(t, ev, "a repeated key", "each key once");
        r = next_event(t, &next);
        if (r < 0)
                return r;
        r = read_node(t, &next, depth, &value);
        yaml_event_delete(&next);
        if (r < 0)
                return r;
        config_leave(&t->reader, was);

        config_node_add_pair(n, key->text, &key->mark, value);
        value = NULL;
        return 0;
}

/* The inside of a mapping or a list up to its end. */
static int read_entries(struct tree *t, unsigned depth, struct config_node *n) {
        yaml_event_type_t end = n->type == CONFIG_MAPPING ? YAML_MAPPING_END_EVENT
                                                          : YAML_SEQUENCE_END_EVENT;

        for (;;) {
                yaml_event_t ev;
                struct config_node *item = NULL;
                bool done;
                int r = next_event(t, &ev);

                if (r < 0)
                        return r;
                done = ev.type == end;
                if (!done && n->n >= CONFIG_ENTRIES_MAX)
                        r = refuse_at(t, &ev, "too many entries", "at most 1024 in one place");
                else if (!done && n->type == CONFIG_MAPPING)
                        r = read_pair(t, &ev, depth, n);
                else if (!done)
                        r = read_node(t, &ev, depth, &item);
                yaml_event_delete(&ev);
                if (r < 0)
                        return r;
                if (done)
                        return 0;
                if (item)
                        config_node_add_item(n, item);
        }
}

static int read_node(struct tree *t, yaml_event_t *ev, unsigned depth, struct config_node **ret) {
        _cleanup_(config_node_freep) struct config_node *n = NULL;
        struct config_mark m = mark_of(t, &ev->start_mark);
        int r = check_event(t, ev, depth);

        if (r < 0)
                return r;
        if (ev->type == YAML_SCALAR_EVENT) {
                *ret = make_scalar(t, ev);
                return 0;
        }
        n = config_node_new(ev->type == YAML_MAPPING_START_EVENT ? CONFIG_MAPPING : CONFIG_LIST, &m);
        r = read_entries(t, depth + 1, n);
        if (r < 0)
                return r;
        *ret = n;
        n = NULL;
        return 0;
}

/* Skips to the first event of the document; *ret_empty when the stream has none. */
static int open_document(struct tree *t, bool *ret_empty) {
        yaml_event_t ev;
        int r;

        do {
                r = next_event(t, &ev);
                if (r < 0)
                        return r;
                *ret_empty = ev.type == YAML_STREAM_END_EVENT;
                if (ev.type == YAML_DOCUMENT_START_EVENT) {
                        bool tags = ev.data.document_start.tag_directives.start !=
                                    ev.data.document_start.tag_directives.end;

                        if (tags)
                                r = refuse_at(t, &ev, "a tag directive", "a file without tags");
                        yaml_event_delete(&ev);
                        return r;
                }
                yaml_event_delete(&ev);
        } while (!*ret_empty);
        return 0;
}

/* The document has ended: nothing may follow it. */
static int close_document(struct tree *t) {
        yaml_event_t ev;
        yaml_event_type_t type;
        int r;

        do {
                r = next_event(t, &ev);
                if (r < 0)
                        return r;
                type = ev.type;
                if (type == YAML_DOCUMENT_START_EVENT)
                        r = refuse_at(t, &ev, "a second document", "one document in a file");
                yaml_event_delete(&ev);
        } while (r == 0 && type != YAML_STREAM_END_EVENT);
        return r;
}

static int read_document(struct tree *t, struct config_node **ret) {
        _cleanup_(config_node_freep) struct config_node *n = NULL;
        yaml_event_t ev;
        bool empty;
        int r = open_document(t, &empty);

        if (r < 0)
                return r;
        if (empty) {
                *ret = config_node_new(CONFIG_MAPPING, &(struct config_mark){ t->file, 1, 1 });
                return 0;
        }
        r = next_event(t, &ev);
        if (r < 0)
                return r;
        r = read_node(t, &ev, 0, &n);
        yaml_event_delete(&ev);
        if (r < 0)
                return r;
        if (n->type != CONFIG_MAPPING)
                return config_bad_node(&t->reader, n, "keys such as \"pool:\"");
        r = close_document(t);
        if (r < 0)
                return r;
        *ret = n;
        n = NULL;
        return 0;
}

int config_tree_read(const char *file, const void *data, size_t len, struct config_node **ret,
                     struct errmsg *e) {
        struct tree t = { .file = file };
        struct config_mark m = { file, 1, 1 };
        const char *problem;
        int r;

        config_reader_init(&t.reader, e);
        if (len > CONFIG_FILE_MAX)
                return config_bad(&t.reader, &m, "more than 1 MiB", "a smaller file");
        problem = config_utf8_problem(data, len, &m.line, &m.column);
        if (problem)
                return config_bad(&t.reader, &m, problem, "UTF-8 text");

        if (!yaml_parser_initialize(&t.parser))
                abort();
        yaml_parser_set_encoding(&t.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&t.parser, data, len);
        r = read_document(&t, ret);
        yaml_parser_delete(&t.parser);
        return r;
}
