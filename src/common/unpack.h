/*
 * A stream (archive.h) into files, below one open folder and nowhere else, whoever made the stream.
 *
 *  - Every step opens one component below a folder that is open, with openat2(2)'s RESOLVE_BENEATH and
 *    RESOLVE_NO_SYMLINKS: no link is followed, however quickly somebody swaps one in.
 *  - A file is written without a name (O_TMPFILE), or under a temporary one where the file system has no such files,
 *    and gets its name when it is whole. What is half done never has its name and is gone at the end.
 *  - It may take the place of a file that was there before, never that of one that came in the same stream.
 *  - A folder that was there keeps its mode and times; one that is made gets them when all that is in it is there.
 *  - Of modes, links, names at the top, and amount, the caller's rules say what may be.
 *
 * What cannot be written gets one line and is left out, and the rest goes on; a full disk, a bound that is reached or
 * a bad stream ends it. Memory is constant, and so is the number of descriptors: one a level.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/archive.h"
#include "common/filepath.h"

/* Files and folders of this stream in folders that were there before it, by inode: at most three quarters of the
 * places are used. 8 MiB, of which only what is used is touched. */
#define UNPACK_SEEN (1u << 20)
struct unpack_seen {
        uint32_t n;
        uint64_t key[UNPACK_SEEN];
};

/* What each entry counts besides its data: an inode and its name take room, too. */
#define UNPACK_ENTRY_COST 4096

struct unpack_rules {
        bool links;         /* symbolic links are made; else each is left out, with a line */
        uint32_t mode_bits; /* that may be set */
        uint64_t
                budget; /* bytes of data, and UNPACK_ENTRY_COST for each entry (cp --max-size); 0: none */
        /* May the next entry at the top have this name ("": it is the folder itself)? NULL: any may. */
        bool (*expected)(void *userdata, const char *name);
        void (*progress)(void *userdata, const char *path, uint64_t bytes); /* NULL: none */
        filepath_say_fn *say;
        void *userdata;
        struct unpack_seen *seen; /* zeros; NULL: whoever sends the stream may overwrite his own files */
};

/* Where the entries at the top go. */
struct unpack_target {
        int dir;
        char name[ARCHIVE_NAME_MAX +
                  1]; /* "": each under its own name; else the one entry, under this name */
        bool folder;  /* ... which has to be a folder */
};

/* Finds it. A folder that is there: into it. Else the last component of @path is a name in the folder before it; with
 * @many that is refused. The last component is not followed when it is a symbolic link, unless a '/' stands behind
 * it. Returns 0 and an open ret->dir, which is the caller's, or -errno and the reason in *why. */
int unpack_target_open(const char *path, bool many, struct unpack_target *ret, const char **why);

struct unpack_level {
        int fd;
        bool made;  /* by us: gets mode and times at its end */
        bool fresh; /* all that is in it came in this stream */
        uint32_t mode;
        int64_t mtime_s;
        uint32_t mtime_ns;
        size_t path_len; /* of the path before it */
};

struct unpack {
        struct archive_in in;
        struct unpack_rules rules;
        const struct unpack_target *target;
        bool failed; /* something was left out */
        int stopped; /* -errno: why no more is taken */
        uint64_t bytes, spent;
        struct filepath path;
        unsigned skipped; /* folders within a folder that is left out, itself included */

        bool has_file; /* between FILE and CLOSE, and it is not left out */
        bool unnamed;
        int file_fd;
        uint64_t at;
        uint32_t mode;
        int64_t mtime_s;
        uint32_t mtime_ns;
        size_t file_path_len;
        char name[ARCHIVE_NAME_MAX + 1];

        unsigned depth;
        struct unpack_level levels[ARCHIVE_DEPTH_MAX + 1]; /* [0]: the target's folder */
};

/* @target and what @rules point to stay the caller's and outlive @u. @shown is how lines name the target. */
void unpack_init(struct unpack *u, const struct unpack_target *target, const char *shown,
                 const struct unpack_rules *rules);
/* Takes the next bytes. Returns 0, or why it stops, its line said: -EPROTO for a bad stream, -E2BIG at the budget,
 * -ENOSPC or -EDQUOT. Once stopped, it takes nothing more. */
int unpack_feed(struct unpack *u, const void *p, size_t len);
/* Also after a stop, and once: what is half done goes, folders get their modes. Returns 0 when the stream was whole and
 * all of it was written; 1 when something was left out; else as unpack_feed(), or -EPIPE and a line for a stream
 * that was cut. */
int unpack_done(struct unpack *u);

/* Removes what has a temporary name at this moment. Safe in a signal handler; for one that ends the process. */
void unpack_abandon(void);
