/*
 * libyaml writes what libyaml reads: each value that is not plainly a number or a truth value stands in double
 * quotes, so that no text of a caller can end its own value.
 */
#include "cli/setup/setup_draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/alloc.h"
#include "config/tree.h"

static const struct config_mark nowhere = { SETUP_DROPIN, 1, 1 };
static const char head[] =
        "# Written by hermes-sandbox setup, which keeps here what it was asked for. It takes over what else\n"
        "# stands here, but not comments: for changes of your own, another file in this folder is better.\n";

int draft_read(const char *name, const char *data, size_t len, struct config_node **ret,
               struct errmsg *e) {
        return config_tree_read(name, data ? data : "", data ? len : 0, ret, e);
}

/* The mapping @key in @n, made where it is not there or is no mapping. */
static struct config_node *mapping_of(struct config_node *n, const char *key) {
        for (size_t i = 0; i < n->n; i++) {
                if (strcmp(n->pairs[i].key, key) != 0)
                        continue;
                if (n->pairs[i].value->type != CONFIG_MAPPING) {
                        config_node_free(n->pairs[i].value);
                        n->pairs[i].value = config_node_new(CONFIG_MAPPING, &nowhere);
                }
                return n->pairs[i].value;
        }
        config_node_add_pair(n, key, &nowhere, config_node_new(CONFIG_MAPPING, &nowhere));
        return n->pairs[n->n - 1].value;
}

bool draft_set(struct config_node *root, const char *profile, const char *key, const char *value) {
        struct config_node *n, *scalar;

        if (strcmp(profile, "default") == 0)
                n = mapping_of(root, "pool");
        else
                n = mapping_of(mapping_of(root, "profiles"), profile);
        scalar = config_node_new(CONFIG_SCALAR, &nowhere);
        scalar->text = config_strdup(value);
        for (size_t i = 0; i < n->n; i++) {
                struct config_node *old = n->pairs[i].value;

                if (strcmp(n->pairs[i].key, key) != 0)
                        continue;
                if (old->type == CONFIG_SCALAR && !old->null && strcmp(old->text, value) == 0) {
                        config_node_free(scalar);
                        return false;
                }
                config_node_free(old);
                n->pairs[i].value = scalar;
                return true;
        }
        config_node_add_pair(n, key, &nowhere, scalar);
        return true;
}

/* Digits, then at most one unit, or true or false: no YAML takes them for anything else. */
static bool is_plain(const char *s) {
        size_t n = strspn(s, "0123456789.");

        if (strcmp(s, "true") == 0 || strcmp(s, "false") == 0)
                return true;
        return n > 0 && s[0] != '.' && (!s[n] || (strchr("bkmg", s[n]) && !s[n + 1]));
}

static int take(void *userdata, unsigned char *data, size_t len) {
        return fwrite(data, 1, len, userdata) == len;
}

/* libyaml fails only for want of memory, and for text that is no UTF-8. */
static void emit(yaml_emitter_t *em, yaml_event_t *ev) {
        if (!yaml_emitter_emit(em, ev))
                abort();
}

static void emit_scalar(yaml_emitter_t *em, const char *text, bool plain) {
        yaml_scalar_style_t style = plain ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
        yaml_event_t ev;

        if (!yaml_scalar_event_initialize(&ev, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text),
                                          1, 1, style))
                abort();
        emit(em, &ev);
}

static bool is_word(const char *s) {
        return s[0] >= 'a' && s[0] <= 'z' &&
               s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0' && strcmp(s, "null") != 0;
}

static void emit_node(yaml_emitter_t *em, const struct config_node *n) {
        yaml_event_t ev;

        if (n->type == CONFIG_SCALAR) {
                emit_scalar(em, n->null ? "null" : n->text, n->null || is_plain(n->text));
                return;
        }
        if (n->type == CONFIG_LIST) {
                yaml_sequence_start_event_initialize(&ev, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE);
                emit(em, &ev);
                for (size_t i = 0; i < n->n; i++)
                        emit_node(em, n->items[i]);
                yaml_sequence_end_event_initialize(&ev);
                emit(em, &ev);
                return;
        }
        yaml_mapping_start_event_initialize(&ev, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE);
        emit(em, &ev);
        for (size_t i = 0; i < n->n; i++) {
                emit_scalar(em, n->pairs[i].key, is_word(n->pairs[i].key));
                emit_node(em, n->pairs[i].value);
        }
        yaml_mapping_end_event_initialize(&ev);
        emit(em, &ev);
}

char *draft_write(const struct config_node *root, size_t *ret_len) {
        yaml_emitter_t em;
        yaml_event_t ev;
        char *text = NULL;
        FILE *f = open_memstream(&text, ret_len);

        if (!f || !yaml_emitter_initialize(&em))
                abort();
        fputs(head, f);
        yaml_emitter_set_output(&em, take, f);
        yaml_emitter_set_encoding(&em, YAML_UTF8_ENCODING);
        yaml_emitter_set_width(&em, -1);
        yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING);
        emit(&em, &ev);
        yaml_document_start_event_initialize(&ev, NULL, NULL, NULL, 1);
        emit(&em, &ev);
        emit_node(&em, root);
        yaml_document_end_event_initialize(&ev, 1);
        emit(&em, &ev);
        yaml_stream_end_event_initialize(&ev);
        emit(&em, &ev);
        yaml_emitter_delete(&em);
        if (fclose(f) != 0)
                abort();
        return text;
}
