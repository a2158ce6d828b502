/* The words of the command line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errmsg.h"

#define IMAGE_NAME_MAX 255
#define IMAGE_PACKAGES_MAX 64 /* --package */
#define IMAGE_MIRRORS_MAX 8   /* --mirror */

struct image_suite {
        const char *name;
        int64_t epoch;       /* its release: no file of an image is younger */
        const char *created; /* the same, as RFC 3339 has it */
};

struct image_flavour {
        const char *name;
        const char *packages; /* beside what Debian calls required, with commas between them; "": none */
};

enum image_verb { IMAGE_BUILD, IMAGE_REMOVE };

struct image_options {
        enum image_verb verb;
        bool help, verbose;
        const struct image_suite *suite;
        const struct image_flavour *flavour;
        char name[IMAGE_NAME_MAX + 1];            /* of build with its tag; of remove as it was given */
        const char *packages[IMAGE_PACKAGES_MAX]; /* sorted, each once */
        size_t n_packages;
        const char *mirrors[IMAGE_MIRRORS_MAX];
        size_t n_mirrors;
        const char *tmp, *cache, *engine_socket; /* NULL: not given */
};

extern const char image_help[];

/* Reads main()'s arguments. The strings stay argv's. 0, or -EINVAL with a line in *e. */
int image_options_parse(struct image_options *o, int argc, char **argv, struct errmsg *e);

/* True for REPOSITORY:TAG, and where @tag_needed is false for REPOSITORY or an id. All that is accepted may stand in
 * the path of an HTTP request as it is. (https://github.com/distribution/reference, reference.go; no digests.) */
bool image_name_ok(const char *name, bool tag_needed);
