/*
 * A YAML file as a tree that remembers where each value stood, so that a complaint that is only found
 * after merging still names file, line and column.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum config_node_type { CONFIG_SCALAR, CONFIG_LIST, CONFIG_MAPPING };

/* A place in a file. @file is borrowed: it lives as long as the caller of tree_read() keeps it. */
struct config_mark {
        const char *file;
        unsigned line, column; /* from 1 */
};

struct config_node {
        enum config_node_type type;
        struct config_mark mark;

        char *text; /* scalar: no NUL inside */
        bool null;  /* scalar: plain and empty, ~ or null */

        struct config_pair *pairs;  /* mapping, in the file's order; no key twice */
        struct config_node **items; /* list */
        size_t n;                   /* of pairs or of items */
};

struct config_pair {
        char *key;
        struct config_mark mark;
        struct config_node *value;
};

struct config_node *config_node_new(enum config_node_type type, const struct config_mark *mark);
/* Frees the whole tree; NULL is allowed. */
void config_node_free(struct config_node *n);
void config_node_freep(struct config_node **n);

/* Appends; @n (a mapping or a list) owns @value then. @key is copied. */
void config_node_add_pair(struct config_node *n, const char *key, const struct config_mark *mark,
                          struct config_node *value);
void config_node_add_item(struct config_node *n, struct config_node *value);

/* The value of @key in @n, or NULL: none, or @n is NULL or no mapping. */
const struct config_node *config_node_get(const struct config_node *n, const char *key);

/* Merges the mapping @over into the mapping @base: mappings merge, all else replaces. Frees @over. */
void config_node_merge(struct config_node *base, struct config_node *over);
