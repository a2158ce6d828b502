/*
 * A text file that is only ever added to, whole lines at a time, and that is rotated: path.1 is the one before, path.2
 * the one before that, and so on. The readable trail and the log file are two of them.
 *
 * There is one writer, so the size is known and a line that was written in part can be taken back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Embedded; all but fd, which is -1 then, is 0 before rotate_init(). */
struct rotate {
        int fd; /* -1: not open */
        char *path;
        uint32_t backups;
        uint64_t max_bytes;
        uint64_t size;
        bool cut; /* the file ends in a part of a line that could not be taken back */
};

/* With @backups or @max_bytes 0 the file is never rotated. 0, -ENAMETOOLONG (path.N would be too long) or -ENOMEM.
 * Nothing is opened yet. */
int rotate_init(struct rotate *r, const char *path, uint32_t backups, uint64_t max_bytes);
void rotate_done(struct rotate *r);

/* Opens the file, or makes it (0640, whatever the umask says): regular and no symlink, else -ENOTSUP or -ELOOP. Sets
 * r->fd and r->size; one that was open is closed. 0 or -errno, with what was open left as it was. */
int rotate_open(struct rotate *r);
/* A file of it for reading, such as path.1; its size in *ret_size. The descriptor, or -errno as above. */
int rotate_open_read(const char *path, uint64_t *ret_size);

/* Would @len more bytes make it too large? */
bool rotate_due(const struct rotate *r, size_t len);
/* path.N goes, each of the others moves one up, and a new, empty file is open. 0, or -errno with the old one still
 * open and in its place: too large, which is better than no line. */
int rotate_now(struct rotate *r);

/* Adds all of @p or nothing. -errno (-ENOSPC, -EIO, …); where a part could not be taken back r->cut is set. */
int rotate_append(struct rotate *r, const void *p, size_t len);
