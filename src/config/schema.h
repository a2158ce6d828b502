/* The keys of sandbox.yaml, and the way from a tree to a struct config. */
#pragma once

#include "config/config.h"
#include "config/node.h"

#define CONFIG_PROFILES_MAX 64

/* The words of each enum of config.h, in its order, NULL-terminated. */
extern const char *const config_words_reuse[];
extern const char *const config_words_on_empty[];
extern const char *const config_words_tristate[];
extern const char *const config_words_log_level[];

/*
 * Reads the mapping @root into a new *ret: defaults, then the top-level limits:, then pool:, then each
 * profile as a copy of the pool with its own keys laid over. @root stays the caller's.
 *
 * Each value is checked on its own; what depends on two of them is config_check()'s. Returns 0, or
 * -EINVAL and a line in *e.
 */
int config_from_tree(const struct config_node *root, struct config **ret, struct errmsg *e);

/* What must hold between values (sizes in memory_limit, size in max_sandboxes, …), complaining at the
 * value that decides. @root is the tree that @c came from. Returns 0, or -EINVAL and a line in *e. */
int config_check(const struct config *c, const struct config_node *root, struct errmsg *e);
