/* Names of images, and when two of them mean the same one: asked by the manager and by the docker shim. */
#pragma once

#include <stdbool.h>

/* The parts of a name as the engine's own clients read it: "docker.io/library/debian" is "debian", and without a tag or a
 * digest it is ":latest". All point into the name, or are literals. */
struct image_name {
        const char *repository, *tag; /* not terminated; tag "" beside a digest alone */
        int repository_len, tag_len;
        const char *digest; /* "sha256:…", or "" */
};

void image_name_parse(const char *name, struct image_name *ret);

/* Does @asked mean the image that the config calls @ours? Where the config pins a digest, its tag alone means that one,
 * too: the config decides, not who moves the tag. */
bool image_name_means(const char *asked, const char *ours);
