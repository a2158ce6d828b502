/*
 * The readable trail: a text file of lines, each with a time, a body, a sequence number and the hash of
 * the line before, so that a missing, changed or reordered line shows.
 *
 *     2026-06-08T05:02:59Z BODY seq=N prev=HEX
 *
 * HEX is the SHA-256 of the whole line before, without its newline (64 zeros before the first line
 * ever). Numbers and hashes go on over rotations and restarts. The file may begin with lines of another
 * origin, such as those of the earlier scripts: the first line of ours is then number 1 and has the hash
 * of the last of those.
 *
 * Lines that the trail writes by itself (BODY):
 *
 *     TORN bytes=N   the line before is the torn start of one, N bytes, left by a crash
 *     LOST lines=N   N lines before this one could not be written (file system full, …)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errmsg.h"

#define TRAIL_HASH 64 /* hex digits */
#define TRAIL_LINE_MAX 4096

struct trail;

/* Which line: what the kernel trail says of it. */
struct trail_stamp {
        uint64_t seq; /* 0: no line */
        char hash[TRAIL_HASH + 1];
};

/*
 * Opens @path, makes it (0640) where it is missing, and finds the end of the chain. It must be a regular
 * file that is no symlink. @backups files path.1 … path.N are kept, each of about @max_bytes; with
 * @backups or @max_bytes 0 the file is never rotated.
 *
 * *ret is trail_free()d. -errno with one line in *e: it cannot be opened, read or written, or it is no
 * trail (-EBADMSG: no line end within the last 64 KiB).
 */
int trail_open(const char *path, uint32_t backups, uint64_t max_bytes, struct trail **ret,
               struct errmsg *e);
void trail_free(struct trail *t);

/*
 * Adds one line with one write(). @body is one line of text without newline. *ret_stamp is set in any
 * case: to the line's number and hash, or to seq 0 where it could not be written. Then -errno (-ENOSPC,
 * -EIO, …); the file has no part of the line, and the next line that succeeds is preceded by a LOST
 * line.
 */
int trail_write(struct trail *t, const char *body, struct trail_stamp *ret_stamp);

/* 0 where lines can be written as far as is known: after a failure it tries to write the LOST line, and
 * returns -errno as long as that fails too. */
int trail_ready(struct trail *t);

/* The last line: seq 0 and 64 zeros where there is none. */
void trail_tip(const struct trail *t, struct trail_stamp *ret);

/* Lines written since the open, TORN and LOST lines included. */
uint64_t trail_lines(const struct trail *t);
