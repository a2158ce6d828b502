/* Looks at what the engine has of an image. Those who wait for one that has not begun share it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "common/engine_msg.h"
#include "manager/manager.h"

/* Under way at once, of all profiles and callers. The broker serves 64 requests at a time, and has sandboxes to make. */
#define IMAGE_LOOKS_MAX 4

struct image_look {
        TAILQ_ENTRY(image_look) link;
        struct manager *m;
        char profile[ENGINE_PROFILE_MAX + 1];
        char image[256]; /* as the config names it */
        bool begun;
        LIST_HEAD(, image_wait) waits; /* none: they have gone */
};

/* Who waits: for one look at a time. Part of the caller's own struct, zeroed but for @found. */
struct image_wait {
        LIST_ENTRY(image_wait) link;
        struct image_look *look; /* NULL: it waits for none */
        /* The broker's answer, or ENGINE_FAILED. It may ask for the next one, and @w may go. */
        void (*found)(struct image_wait *w, const struct engine_msg *m);
};

/* @found is called once, for a look that begins after this: later, or before this returns where the broker takes no
 * request. */
void image_look(struct manager *m, const char *profile, const char *image, struct image_wait *w);
/* It waits no more. */
void image_look_leave(struct image_wait *w);
/* All go; nobody waits for one any more, and the broker's answers do not come. */
void image_looks_free(struct manager *m);
