/* Versions of Debian packages. */
#pragma once

#include <stddef.h>

#include "cli/doctor/doctor.h"

/* < 0, 0 or > 0 as @a is older than @b, the same, or newer: [EPOCH:]UPSTREAM[-REVISION], by the rules of Debian Policy
 * 5.6.12. */
int debver_compare(const char *a, const char *b);

/* The length of the part before the revision. */
size_t debver_upstream(const char *version);

/* The version of the package @name that is installed below the root, as dpkg's status file has it. 0, -ENOENT: it is not
 * installed, or the errno of open(2). */
int debver_installed(const struct doctor *d, const char *name, char *buf, size_t cap);
