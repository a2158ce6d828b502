/* What image.c finds out and image_text.c puts into words: one row for each profile that was asked for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/config.h"
#include "config/values.h"
#include "manager/manager.h"

struct image_row {
        char profile[ENGINE_PROFILE_MAX + 1];
        char image[256]; /* as the config names it */
        enum image_pin pin;
        bool needed; /* it was asked for by name, or sandboxes of it are kept warm */
        /* as the engine has it */
        bool present;
        char id[ENGINE_IMAGE_ID_MAX + 1];
        char digest[ENGINE_DIGEST_MAX + 1];
        char created[ENGINE_CREATED_MAX + 1];
        char entrypoint[PROTO_ENTRYPOINT_MAX + 1]; /* JSON */
        uint64_t bytes;
};

/* An image's name for people: of a digest or an id 12 digits. */
#define IMAGE_SHORT 256
const char *image_short(const char *name, char buf[IMAGE_SHORT]);

/* Allocated texts; NULL when out of memory. The first has one row for each image. */
char *image_list_text(const struct image_row *rows, size_t n, bool json, size_t *ret_len);
/* One record for each row (proto_open.h). */
char *image_list_records(struct manager *m, const struct image_row *rows, size_t n, size_t *ret_len);
/* Compares with the sandboxes that there are. @who is told the names of his own sessions (root: of all). *ret_bad is
 * how many profiles are not as they should be. */
char *image_verify_text(struct manager *m, const struct image_row *rows, size_t n,
                        const struct audit_caller *who, bool json, size_t *ret_len, size_t *ret_bad);
