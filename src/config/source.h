/* Reading the files themselves, and whether they may be believed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/errmsg.h"

/* More drop-ins than this in one folder are refused. */
#define CONFIG_DROPINS_MAX 256

/*
 * All bytes of @name below @dirfd (AT_FDCWD: @name is a path) into a new *ret_data (free()). It reads
 * one byte more than a config may have and no further, so that the parser sees what is too long. @shown
 * is the path for messages. Returns 0, -EPERM (not trusted: load.h), or the errno of open(2) or read(2).
 */
int config_source_read(int dirfd, const char *name, const char *shown, bool trusted, char **ret_data,
                       size_t *ret_len, struct errmsg *e);

/*
 * Opens the folder of drop-ins and lists its *.yaml files, those without a dot in front, in the order of
 * their bytes, into a new NULL-terminated *ret_names (config_strv_free()). A folder that is not there
 * gives an empty list and *ret_fd -1. Returns 0, -EPERM, -E2BIG, or the errno of open(2) or readdir(3).
 */
int config_source_list(const char *dir, bool trusted, int *ret_fd, char ***ret_names, struct errmsg *e);
