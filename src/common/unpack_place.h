/* What unpack.c does by name: each call touches one component below a folder of its stack. All return 0 or -errno;
 * -EEXIST: it came in this stream already; -EISDIR: a folder is in the way. */
#pragma once

#include "common/unpack.h"

/* Makes the folder, or takes the one that is there, and opens it: fd, made and fresh of @ret. */
int place_folder(struct unpack *u, const struct unpack_level *dir, const char *name,
                 struct unpack_level *ret);
/* Of an open file or folder. */
int place_attributes(int fd, uint32_t mode, int64_t mtime_s, uint32_t mtime_ns);
/* Opens a file for u->name, without that name. */
int place_begin(struct unpack *u, const struct unpack_level *dir);
/* It is whole: gives it size u->at, attributes and name, and closes it. What fails leaves nothing behind. */
int place_end(struct unpack *u, const struct unpack_level *dir);
/* It is not to be. */
void place_drop(struct unpack *u, const struct unpack_level *dir);
int place_link(struct unpack *u, const struct unpack_level *dir, const char *name,
               const struct archive_entry *e);
