/*
 * Files as a stream: what `cp` sends into a sandbox and takes out of it, and what `ls` gets.
 *
 * A stream is records, each a type (u8), a length (u32, little-endian) and so many bytes, whose fields are those of
 * wire.h. What is between brackets may come any number of times:
 *
 *     HEAD [ DIR [ … ] UP | FILE [ DATA | HOLE ] CLOSE | LINK ] END          files
 *     HEAD [ ITEM ] END                                                     a listing
 *
 * Names are single components, never a path, so that a reader that knows its folder needs no other check; a folder's
 * entries stand between its DIR and its UP. Holes are told and not sent. END has the number of entries, and nothing
 * follows it: a stream that was cut is known. A stream that goes on for ever needs DATA or entries without end, as
 * no HOLE follows a HOLE and every UP and CLOSE has its opening: who bounds those two bounds all.
 *
 * Nobody holds more of a stream than one record, and of DATA not even that: memory is constant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARCHIVE_VERSION 1
#define ARCHIVE_HEADER 5
/* Linux' NAME_MAX, and PATH_MAX without its NUL. */
#define ARCHIVE_NAME_MAX 255
#define ARCHIVE_TARGET_MAX 4095
/* Folders within folders: each costs its reader and its writer a descriptor. */
#define ARCHIVE_DEPTH_MAX 256
/* Of one DATA record, at least 1. */
#define ARCHIVE_DATA_MAX 65536
/* Of any other record's bytes: an ITEM with a path and a target, each with its length and its NUL. */
#define ARCHIVE_RECORD_MAX 8448
/* A file whose size is not known before its end. */
#define ARCHIVE_SIZE_UNKNOWN UINT64_MAX
/* Linux' MAX_LFS_FILESIZE where long has 64 bits. */
#define ARCHIVE_SIZE_MAX INT64_MAX

/* The numbers are in the stream and in no case reused. */
enum archive_type {
        ARCHIVE_HEAD = 1, /* u32 'HSAR', u16 version */
        ARCHIVE_DIR =
                2, /* u32 mode, s64 mtime, u32 nanoseconds, name ("" at the top: the contents alone) */
        ARCHIVE_UP = 3,    /* the end of the folder */
        ARCHIVE_FILE = 4,  /* u32 mode, s64 mtime, u32 nanoseconds, u64 size, name */
        ARCHIVE_DATA = 5,  /* 1 … ARCHIVE_DATA_MAX bytes */
        ARCHIVE_HOLE = 6,  /* u64 bytes, at least 1; none behind another one */
        ARCHIVE_CLOSE = 7, /* u64 size, bool: all of the file was there; false: leave it out */
        ARCHIVE_LINK = 8,  /* u32 mode, s64 mtime, u32 nanoseconds, name, target */
        ARCHIVE_ITEM =
                9, /* u8 kind, u32 mode, s64 mtime, u32 nanoseconds, u64 size, u32 links, uid, gid, name, target */
        ARCHIVE_END = 10 /* u64 entries: DIR, FILE, LINK and ITEM */
};

struct archive_entry {
        uint32_t mode; /* the twelve permission bits */
        int64_t mtime_s;
        uint32_t mtime_ns;
        uint64_t size; /* FILE: or ARCHIVE_SIZE_UNKNOWN; ITEM */
        const char *name;
        const char *target; /* LINK, and an ITEM that is one; else "" */
        /* ITEM; its name may be a path, or "" (a heading: what follows is in the folder .target). */
        char kind; /* as ls -l shows it: one of "-dlbcps?" */
        uint32_t links, uid, gid;
};

/* --- writing ------------------------------------------------------------------------------------ */

/* Bytes on their way to a descriptor, many small records in one write. The first failure sticks, and what is put
 * afterwards goes nowhere. */
struct archive_out {
        int fd;
        int error; /* -errno */
        uint64_t entries;
        uint64_t sent; /* bytes written to fd */
        size_t len;
        uint8_t buf[2 * (ARCHIVE_HEADER + ARCHIVE_DATA_MAX)];
};

/* Begins a stream to @fd, which stays the caller's. */
void archive_out_init(struct archive_out *o, int fd);
/* @type: DIR, FILE, LINK or ITEM. Too long a name or target is -ENAMETOOLONG, nothing is put then and nothing sticks;
 * else 0. */
int archive_put_entry(struct archive_out *o, enum archive_type type, const struct archive_entry *e);
void archive_put_up(struct archive_out *o);
/* Room for the bytes of a DATA record, ARCHIVE_DATA_MAX of them, to be filled by the caller; archive_put_data() then
 * tells how many there are, 0: no record. Nothing else is put between the two. */
uint8_t *archive_data_room(struct archive_out *o);
void archive_put_data(struct archive_out *o, size_t len);
void archive_put_hole(struct archive_out *o, uint64_t len);
void archive_put_close(struct archive_out *o, uint64_t size, bool whole);
/* Writes what is left. Returns 0 or the error that sticks. */
int archive_flush(struct archive_out *o);
/* The end of the stream, and all of it written. */
int archive_out_end(struct archive_out *o);

/* --- reading ------------------------------------------------------------------------------------ */

enum archive_content { ARCHIVE_OF_FILES, ARCHIVE_OF_ITEMS };

struct archive_in {
        enum archive_content content;
        bool begun, ended, bad;
        bool in_file, after_hole;
        unsigned depth;
        uint64_t entries;
        uint64_t size, at;  /* of the file: as told, and as came */
        uint32_t data_left; /* of a DATA record */
        size_t len;         /* in buf: a record's header, and its bytes */
        const char *why;    /* what is wrong with a bad stream */
        uint8_t buf[ARCHIVE_HEADER + ARCHIVE_RECORD_MAX];
};

/* One step of a stream. Strings and bytes stay until the next call. */
struct archive_step {
        enum archive_type type;     /* never HEAD */
        struct archive_entry entry; /* DIR, FILE, LINK, ITEM */
        const uint8_t *data;        /* DATA, a part of a record may be one step */
        size_t len;
        uint64_t bytes; /* HOLE; CLOSE: the size; END: entries */
        bool whole;     /* CLOSE */
};

void archive_in_init(struct archive_in *in, enum archive_content content);
/*
 * Takes bytes from the front of @p[0..len), which both move on, until there is a step. Returns 1 and *ret, 0 when all
 * bytes are taken and more are needed, or -EPROTO for good: the stream is not one, and in->why says what is wrong.
 * What is given out is in order: names are single components (not "", ".", ".." nor with a '/'; but see DIR and
 * ITEM), modes have the twelve bits alone, no file is larger than was told, nothing is deeper than ARCHIVE_DEPTH_MAX.
 */
int archive_next(struct archive_in *in, const uint8_t **p, size_t *len, struct archive_step *ret);
/* True when END has come. */
bool archive_ended(const struct archive_in *in);

/* True for a name that can be an entry of a folder: 1 … 255 bytes, no '/', not "." or "..". */
bool archive_name_ok(const char *name);
