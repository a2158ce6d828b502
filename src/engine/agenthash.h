/* The hash that ties a sandbox to the agent binary that it was created from. */
#pragma once

#include <stdint.h>

#include "common/errmsg.h"
#include "config/config.h"

/* SHA-256 of the regular file at @path (not through a symlink at its end). Returns 0 or -errno and a
 * line in *e; -EINVAL: not a regular file. */
int agenthash_file(const char *path, uint8_t ret[CONFIG_RECIPE], struct errmsg *e);
