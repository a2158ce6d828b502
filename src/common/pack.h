/*
 * Files into a stream (archive.h). Folders are walked to their ends, symbolic links are told and never followed,
 * holes stay holes, and of hard links each name is a file. Memory is constant: one buffer of entries a level.
 *
 * What cannot be read (or is no file, folder or link) gets one line and is left out; the rest is sent all the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/archive.h"
#include "common/filepath.h"
#include "common/walk.h"

struct pack_level {
        int fd;
        dev_t dev;
        size_t path_len; /* of the path before it */
        struct walk_names names;
};

struct pack {
        struct archive_out out;
        filepath_say_fn *say;
        void (*progress)(void *userdata, const char *path, uint64_t bytes); /* NULL: none */
        void *userdata;
        bool failed;    /* something was left out */
        uint64_t bytes; /* of files, so far */
        struct filepath path;
        unsigned depth;
        struct pack_level levels[ARCHIVE_DEPTH_MAX]; /* last: what is not used is not touched */
};

/* Begins a stream to @fd. Both functions get @userdata. */
void pack_init(struct pack *p, int fd, filepath_say_fn *say, void *userdata);
/* The name that @path has in a folder that it is copied into: its last component, or "" where that is no name (".",
 * "..", "/"): its contents are meant. Returns a pointer into @ret, or NULL when it is too long for a name. */
const char *pack_name(const char *path, char ret[ARCHIVE_NAME_MAX + 1]);
/* All of @path, under that name. Returns 0, also when something was left out, or -errno: the stream cannot be written. */
int pack_path(struct pack *p, const char *path);
/* What can be read from @fd, up to its end, as a file @name. The same. */
int pack_stream(struct pack *p, int fd, const char *name, uint32_t mode);
/* The end. The same. */
int pack_end(struct pack *p);
