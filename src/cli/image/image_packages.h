/* What an image is made of, by dpkg's own word. */
#pragma once

#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_HEX (2 * SHA256_DIGEST_SIZE + 1)

struct image_packages {
        char **lines; /* "NAME VERSION ARCH", sorted by bytes; of what is installed alone */
        size_t n;
};

/* Reads dpkg's status file (deb822(5)). 0, -ENOMEM, or -EPROTO: a stanza of what is installed lacks one of the three,
 * or nothing is installed. image_packages_done() in any case. */
int image_packages_parse(struct image_packages *p, const char *status, size_t len);
void image_packages_done(struct image_packages *p);

/* SHA-256 over the lines, each with a newline. */
void image_packages_hash(const struct image_packages *p, char ret[IMAGE_HEX]);

/* A digest in hexadecimal digits. */
void image_hex(const uint8_t digest[SHA256_DIGEST_SIZE], char ret[IMAGE_HEX]);
