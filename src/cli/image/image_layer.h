/*
 * The one layer of an image: mmdebstrap's tar, without what differs from one build to the next or is of no use in a
 * sandbox, into a file.
 */
#pragma once

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/image/image_tar.h"
#include "common/errmsg.h"

/* Of dpkg's status file. */
#define IMAGE_STATUS_MAX (64u << 20)

struct image_layer {
        int fd;
        int64_t epoch;
        struct sha256_ctx sha256;
        uint64_t size;
        char *status; /* dpkg's status file, free()d by image_layer_done() */
        size_t status_len, status_cap;
        bool keep, is_status;
        struct image_tar_in in;
        size_t len; /* in buf */
        uint8_t buf[131072];
};

/* The layer goes to @fd, which stays the caller's. What is younger than @epoch (seconds) becomes as old. */
void image_layer_init(struct image_layer *l, int fd, int64_t epoch);
void image_layer_done(struct image_layer *l);

/* More of the tar. 0, or -errno and a line in *e: -EPROTO (it is none), -ENOSPC and others (no write), -ENOMEM. */
int image_layer_put(struct image_layer *l, const uint8_t *p, size_t len, struct errmsg *e);

/* The end of it. ->size and @ret are the layer's then. Errors as above; -EPROTO, too, where dpkg's status is missing. */
int image_layer_end(struct image_layer *l, uint8_t ret_sha256[SHA256_DIGEST_SIZE], struct errmsg *e);

/* True for a name (as in struct image_tar_entry) that has no place in a layer. */
bool image_layer_leaves_out(const char *name, enum image_tar_type type);
