/*
 * Members of a tar: read as GNU tar writes them (POSIX.1-2001: ustar headers, and pax headers before them), and
 * written in the one form that this program gives them. So what comes out does not depend on the tar that made it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_TAR_BLOCK 512
#define IMAGE_TAR_PATH 4096     /* with its NUL */
#define IMAGE_TAR_CAPABILITY 32 /* vfs_ns_cap_data has 24 bytes */
/* What image_tar_put_header() writes, at most: a pax header, its records, and the member's own header. */
#define IMAGE_TAR_HEADER_MAX 10240
/* ustar's size has eleven octal digits. */
#define IMAGE_TAR_SIZE_MAX ((UINT64_C(1) << 33) - 1)

enum image_tar_type {
        IMAGE_TAR_FILE = '0',
        IMAGE_TAR_HARD_LINK = '1',
        IMAGE_TAR_SYMLINK = '2',
        IMAGE_TAR_CHAR = '3',
        IMAGE_TAR_BLOCK_DEVICE = '4',
        IMAGE_TAR_FOLDER = '5',
        IMAGE_TAR_FIFO = '6'
};

struct image_tar_entry {
        enum image_tar_type type;
        char name
                [IMAGE_TAR_PATH]; /* relative, without "./" in front and "/" at the end; "" is the top */
        char link[IMAGE_TAR_PATH]; /* of links; that of a hard link is such a name */
        uint32_t mode;             /* the twelve permission bits */
        uint32_t uid, gid;
        int64_t mtime;
        uint64_t size; /* of IMAGE_TAR_FILE */
        size_t capability_len;
        uint8_t capability
                [IMAGE_TAR_CAPABILITY]; /* security.capability; other extended attributes are left out */
};

/* --- reading ------------------------------------------------------------------------------------ */

struct image_tar_in {
        enum {
                IMAGE_TAR_AT_HEADER,
                IMAGE_TAR_IN_PAX,
                IMAGE_TAR_IN_DATA,
                IMAGE_TAR_IN_PADDING,
                IMAGE_TAR_ENDED
        } state;
        bool global; /* the pax header is for no member of its own */
        uint64_t left;
        size_t padding;
        size_t len; /* in block, or in pax */
        uint8_t block[IMAGE_TAR_BLOCK];
        char pax[16384];
        size_t pax_len;  /* records of the next member */
        const char *why; /* what is wrong with a tar that is none */
        struct image_tar_entry entry;
};

enum image_tar_step { IMAGE_TAR_ENTRY, IMAGE_TAR_DATA, IMAGE_TAR_CLOSE };

void image_tar_in_init(struct image_tar_in *in);

/*
 * Takes bytes from the front of @p[0..len), which both move on, until there is a step. Returns 1 and *ret, 0 when all
 * bytes are taken, or -EPROTO for good (in->why). ENTRY: in->entry is the member, up to its CLOSE. DATA: a part of it,
 * *ret_data[0..*ret_len), in the caller's bytes.
 */
int image_tar_next(struct image_tar_in *in, const uint8_t **p, size_t *len, enum image_tar_step *ret,
                   const uint8_t **ret_data, size_t *ret_len);

/* --- writing ------------------------------------------------------------------------------------ */

/* All that stands before the member's bytes into @buf. Returns how many, or -EFBIG (a number has no room). */
int image_tar_put_header(const struct image_tar_entry *e, uint8_t buf[IMAGE_TAR_HEADER_MAX]);

/* Zeros behind a member of @size bytes. */
size_t image_tar_padding(uint64_t size);

/* Zeros at the end of a tar. */
#define IMAGE_TAR_END (2 * IMAGE_TAR_BLOCK)
