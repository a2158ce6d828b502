/*
 * The tree of a YAML file. Nodes own what hangs below them; merging moves values from one tree into
 * another and never copies them, so that each keeps the mark of the file it came from.
 */
#include "config/node.h"

#include <string.h>

#include "config/alloc.h"

struct config_node *config_node_new(enum config_node_type type, const struct config_mark *mark) {
        struct config_node *n = config_calloc(1, sizeof(*n));

        n->type = type;
        n->mark = *mark;
        return n;
}

void config_node_free(struct config_node *n) {
        if (!n)
                return;
        for (size_t i = 0; i < n->n; i++) {
                if (n->type == CONFIG_MAPPING) {
                        free(n->pairs[i].key);
                        config_node_free(n->pairs[i].value);
                } else {
                        config_node_free(n->items[i]);
                }
        }
        free(n->pairs);
        free(n->items);
        free(n->text);
        free(n);
}

void config_node_freep(struct config_node **n) {
        config_node_free(*n);
}

void config_node_add_pair(struct config_node *n, const char *key, const struct config_mark *mark,
                          struct config_node *value) {
        n->pairs = config_grow(n->pairs, n->n + 1, sizeof(*n->pairs));
        n->pairs[n->n++] = (struct config_pair){
                .key = config_strdup(key),
                .mark = *mark,
                .value = value,
        };
}

void config_node_add_item(struct config_node *n, struct config_node *value) {
        n->items = config_grow(n->items, n->n + 1, sizeof(*n->items));
        n->items[n->n++] = value;
}

static struct config_pair *find_pair(const struct config_node *n, const char *key) {
        if (!n || n->type != CONFIG_MAPPING)
                return NULL;
        for (size_t i = 0; i < n->n; i++)
                if (strcmp(n->pairs[i].key, key) == 0)
                        return &n->pairs[i];
        return NULL;
}

const struct config_node *config_node_get(const struct config_node *n, const char *key) {
        const struct config_pair *p = find_pair(n, key);

        return p ? p->value : NULL;
}

void config_node_merge(struct config_node *base, struct config_node *over) {
        for (size_t i = 0; i < over->n; i++) {
                struct config_pair *new = &over->pairs[i], *old = find_pair(base, new->key);

                if (!old) {
                        config_node_add_pair(base, new->key, &new->mark, new->value);
                } else if (old->value->type == CONFIG_MAPPING && new->value->type == CONFIG_MAPPING) {
                        config_node_merge(old->value, new->value);
                } else {
                        config_node_free(old->value);
                        old->value = new->value;
                        old->mark = new->mark;
                }
                new->value = NULL;
        }
        config_node_free(over);
}
