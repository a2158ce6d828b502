/* This machine's own apt sources (sources.list(5)), as far as they are Debian's archive of one suite. */
#pragma once

#include <stddef.h>

#include "common/errmsg.h"

/*
 * Reads @apt_dir/sources.list and sources.list.d, and prints the stanzas (deb822) that give packages of @suite, with its
 * updates and its security archive, component main. What is signed by others than Debian's archive keys is left out.
 * Where the machine has none of that suite, those of its own, @codename ("" for none), are taken for it.
 * Returns 0 and a new *ret, or -errno and a line in *e: -ENOENT where there are none of either.
 */
int image_sources_read(const char *apt_dir, const char *codename, const char *suite, char **ret,
                       struct errmsg *e);

/* VERSION_CODENAME of an os-release(5) file into @ret, "" where there is none. */
void image_sources_codename(const char *os_release, char *ret, size_t cap);
