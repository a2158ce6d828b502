/* exec --script FILE: a command that is longer than one argument of a Linux program may be (128 KiB). */
#pragma once

#include "common/errmsg.h"

/*
 * Reads the whole of @path ("-": stdin) as a line for the shell. *ret is static, NUL-terminated, and good
 * until the next call. Returns 0, or -errno and a line in *e: it cannot be read, holds a NUL byte
 * (-EINVAL), or is longer than a request can be (-EFBIG).
 */
int cli_script_read(const char *path, const char **ret, struct errmsg *e);
