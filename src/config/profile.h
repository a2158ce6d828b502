/* A profile as an object: its defaults, its copy (a profile starts as a copy of pool:), its sets. */
#pragma once

#include <stdbool.h>

#include "config/config.h"

/* An embedded profile with every default. While a file is being read, max_sandboxes 0 and workdir NULL
 * mean "not said": config_profile_finish() fills them in. */
void config_profile_init(struct config_profile *p, const char *name);
/* @dst becomes a deep copy of @src under another name. */
void config_profile_copy(struct config_profile *dst, const struct config_profile *src, const char *name);
void config_profile_done(struct config_profile *p);

/* What follows from other keys where the file does not say it, and the recipe's hash. */
void config_profile_finish(struct config_profile *p);

/* Adds one of the further users, keeping the order; none twice. */
void config_profile_add_user(struct config_profile *p, uint32_t uid, uint32_t gid);
/* Set one entry, keeping the order; @bytes 0 takes the tmpfs away. */
void config_profile_set_tmpfs(struct config_profile *p, const char *path, uint64_t bytes);
void config_profile_set_env(struct config_profile *p, const char *key, const char *value);
void config_profile_set_ulimit(struct config_profile *p, const char *name, uint64_t soft, uint64_t hard);
/* The size of the tmpfs at @path, 0: none there. */
uint64_t config_profile_tmpfs(const struct config_profile *p, const char *path);

/* Frees a NULL-terminated list of strings. */
void config_strv_free(char **v);

/* Fills p->recipe from the recipe's fields (recipe.c). */
void config_recipe(struct config_profile *p);
