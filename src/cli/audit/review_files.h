/*
 * A log and its rotated files, oldest first, and their lines.
 *
 * All of them are opened before the first is read: whoever rotates meanwhile renames names, not what is
 * open here. A file's size at that moment is where reading ends, so a log that grows is read to a
 * definite point.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/errmsg.h"

struct review_file {
        char *path;
        int fd;
        uint64_t size;
};

struct review_files {
        struct review_file *v;
        size_t n;
};

/* Longest line that is handed out; a kernel record with its names takes some 20 KB at most. */
#define REVIEW_LINE_MAX 65536

/* Adds one file. 0, or -errno with a line in *e: -ENOTSUP where it is no regular file, -ELOOP where it is
 * a symbolic link and @follow is false. */
int review_files_add(struct review_files *f, const char *path, bool follow, struct errmsg *e);

/*
 * Adds @path.N … @path.1 (whatever numbers there are) and @path itself. No symbolic links. 0, or -errno
 * with a line in *e: -ENOENT where @path is missing (*f has the numbered ones then), -EAGAIN where it was
 * rotated each time that it was tried.
 */
int review_files_add_rotated(struct review_files *f, const char *path, struct errmsg *e);

/* Closes all; *f is empty after it. */
void review_files_done(struct review_files *f);

struct review_line {
        const char *p; /* the reader's, up to the next call; a newline stands behind it unless ->torn */
        size_t len;
        size_t file;     /* index of its file */
        uint64_t number; /* in its file, from 1 */
        bool torn;       /* the file ends without a newline behind it */
        bool too_long;   /* its rest was left out */
};

struct review_lines;

/* A reader over @f, which must stay as it is; review_lines_free()d. NULL: out of memory. */
struct review_lines *review_lines_new(const struct review_files *f);
void review_lines_free(struct review_lines *l);

/* 1 and the next line, 0 at the end of the last file, or -errno; the file of that error is
 * review_lines_path(). */
int review_lines_next(struct review_lines *l, struct review_line *ret);
const char *review_lines_path(const struct review_lines *l);
