/* Where an image is put together: a folder, a file for the layer, and the packages of earlier builds. */
#pragma once

#include <stdbool.h>

#include "cli/image/image_packages.h"
#include "common/errmsg.h"

struct image_place {
        const char *tmp;     /* the folder is in it, and so is the file */
        const char *cache;   /* what is kept is in it */
        char folder[1024];   /* mode 0700, with "work" in it; "": none */
        char archives[1024]; /* as apt's /var/cache/apt/archives */
        int layer_fd;        /* a file without a name, mode 0600 */
        int lock_fd;
};

#define IMAGE_PLACE_NONE ((struct image_place){ .layer_fd = -1, .lock_fd = -1 })

/* 0, or -errno and a line in *e: -EBUSY where another build runs. image_place_done() in any case. @tmp and @cache must live on. */
int image_place_init(struct image_place *p, const char *tmp, const char *cache, const char *suite,
                     struct errmsg *e);

/* Removes folder and file, and closes what is open. The packages stay. */
void image_place_done(struct image_place *p);

/* Removes the kept packages that have another version than @now has. */
void image_place_prune(const struct image_place *p, const struct image_packages *now);

/* True where FILE is "NAME_VERSION_ARCH.deb" and @now has that name and architecture in another version. */
bool image_place_outdated(const char *file, const struct image_packages *now);
