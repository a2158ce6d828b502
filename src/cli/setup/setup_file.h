/* The drop-in on disk: whoever changes it holds its lock, and it is there as it was or as it shall be. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/errmsg.h"

struct setup_file {
        int dirfd;
        int new_fd;      /* the file that will take the place, locked; -1: it is not being changed */
        const char *dir; /* for messages */
};

/* Opens the folder of drop-ins at @dir, a string that outlives *ret. Not @change: only to read, and a folder that is not
 * there is an empty one. Else it is made, and the lock is taken. 0, -EBUSY (another one holds it), or -errno, and a
 * line in *e. */
int setup_file_open(struct setup_file *ret, const char *dir, bool change, struct errmsg *e);
/* Gives the lock back and leaves nothing behind. */
void setup_file_done(struct setup_file *f);

/* What the drop-in holds. 0 with a new *ret_data, NULL where there is no such file; -errno and a line in *e. */
int setup_file_read(const struct setup_file *f, char **ret_data, size_t *ret_len, struct errmsg *e);

/* The drop-in is these bytes from now on, for root and everybody to read: on disk, and at once. @data NULL: there is
 * none from now on. The lock is kept. 0, or -errno and a line in *e; then it is as it was. */
int setup_file_replace(struct setup_file *f, const char *data, size_t len, struct errmsg *e);
