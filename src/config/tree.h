/* From the bytes of one YAML file to a tree of nodes. */
#pragma once

#include <stddef.h>

#include "common/errmsg.h"
#include "config/node.h"

/* What a file may hold; more is refused. */
#define CONFIG_FILE_MAX (1u << 20)
#define CONFIG_DEPTH_MAX 16
#define CONFIG_NODES_MAX 10000
#define CONFIG_ENTRIES_MAX 1024 /* in one mapping or list */
#define CONFIG_KEY_MAX 255
#define CONFIG_SCALAR_MAX 65536

/*
 * Reads @data as one YAML document whose top is a mapping; a file without any document counts as an
 * empty one. @file is the name for messages and must outlive the tree.
 *
 * Returns 0 and a new *ret (config_node_free()), or -EINVAL and a line in *e: what is not YAML or not
 * UTF-8, a second document, an alias, anchor, tag or repeated key, and what passes the bounds above.
 */
int config_tree_read(const char *file, const void *data, size_t len, struct config_node **ret,
                     struct errmsg *e);
