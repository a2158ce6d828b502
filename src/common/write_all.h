#pragma once

#include <stddef.h>

/* Writes all of it to @fd, a file or something else that makes nobody wait. 0, or -errno: then part of it may be there. */
int write_all(int fd, const void *p, size_t len);
