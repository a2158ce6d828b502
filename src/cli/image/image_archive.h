/*
 * An image of one layer as `docker load` reads it: a tar of config.json, manifest.json and layer.tar. No time, host or
 * user is in it, so that the image's id, which is the SHA-256 of config.json, says what is in the image and no more.
 * (https://github.com/moby/docker-image-spec, v1.3)
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/image/image_options.h"
#include "cli/image/image_packages.h"
#include "cli/image/image_tar.h"

#define IMAGE_LABEL "hermes-sandbox.image."

/* What config.json says. */
struct image_facts {
        const char *architecture; /* "amd64", "arm64" */
        const struct image_suite *suite;
        const struct image_flavour *flavour;
        const char *const *extra; /* further packages that were asked for, sorted */
        size_t n_extra;
        char layer[IMAGE_HEX];    /* SHA-256 of layer.tar */
        char packages[IMAGE_HEX]; /* image_packages_hash() */
};

/* Returns a new string, or NULL: out of memory. */
char *image_archive_config(const struct image_facts *f);

struct image_archive {
        int layer_fd;
        uint64_t layer_size;
        uint64_t at, size; /* of all of it */
        size_t head_len;   /* what stands before the layer */
        uint8_t *head;
};

/* Over @layer_fd (read with pread(2), stays the caller's) and @config. No tags. 0, -ENOMEM, or -EFBIG (8 GiB).
 * image_archive_done() in any case. */
int image_archive_init(struct image_archive *a, const char *config, int layer_fd, uint64_t layer_size);
void image_archive_done(struct image_archive *a);

/* The next bytes, at most @cap: how many, 0 at the end, or -errno. */
ssize_t image_archive_read(struct image_archive *a, void *buf, size_t cap);
