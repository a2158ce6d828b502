/* The drop-in as a tree, from its bytes to its bytes; nothing here touches a file. */
#pragma once

#include "cli/setup/setup.h"
#include "common/errmsg.h"
#include "config/node.h"

/* Reads what stands in the drop-in now; @data NULL: there is none. @name stands for it in messages and outlives
 * the tree. 0 and a new *ret (config_node_free()), or -EINVAL and a line in *e. */
int draft_read(const char *name, const char *data, size_t len, struct config_node **ret,
               struct errmsg *e);

/* @key of @profile ("default": pool:) is @value from now on. Returns whether that changed the tree. */
bool draft_set(struct config_node *root, const char *profile, const char *key, const char *value);

/* The tree as a file. A new string, of *ret_len bytes and with a NUL behind them. */
char *draft_write(const struct config_node *root, size_t *ret_len);
