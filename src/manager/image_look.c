/*
 * However many callers ask for the images at once, the broker has few questions to answer: of a profile's image one look
 * is under way, and one waits, for all who have come meanwhile. That one which has begun is not joined: its answer may be
 * older than what the caller has just done, such as a pull.
 */
#include "manager/image_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

static void begin(struct manager *m);

static void look_free(struct image_look *look) {
        TAILQ_REMOVE(&look->m->image_looks, look, link);
        free(look);
}

/* Until all are told it counts as under way: of this image nothing more begins before. */
static void tell(struct image_look *look, const struct engine_msg *m) {
        struct image_wait *w;

        while ((w = LIST_FIRST(&look->waits))) {
                LIST_REMOVE(w, link);
                w->look = NULL;
                w->found(w, m);
        }
        look_free(look);
}

static void looked(void *userdata, const struct engine_msg *m, int fd) {
        struct image_look *look = userdata;
        struct manager *manager = look->m;
        struct pool *p = pool_find(manager, look->profile);

        close_fd(fd);
        if (m->type == ENGINE_IMAGE_IS && m->present && p && p->profile &&
            strcmp(p->profile->image, look->image) == 0)
                image_is(p, m->image);
        tell(look, m);
        begin(manager);
}

static struct image_look *find(struct manager *m, const char *profile, const char *image, bool begun) {
        struct image_look *look;

        TAILQ_FOREACH(look, &m->image_looks, link)
        if (look->begun == begun && strcmp(look->profile, profile) == 0 &&
            strcmp(look->image, image) == 0)
                return look;
        return NULL;
}

/* The one that waits longest of those that can begin, where there is room for it. */
static struct image_look *next(struct manager *m) {
        struct image_look *look, *first = NULL;
        unsigned begun = 0;

        TAILQ_FOREACH(look, &m->image_looks, link) {
                begun += look->begun;
                if (!first && !look->begun && !find(m, look->profile, look->image, true))
                        first = look;
        }
        return begun < IMAGE_LOOKS_MAX ? first : NULL;
}

static void begin(struct manager *m) {
        struct image_look *look;

        while ((look = next(m))) {
                struct engine_msg ask = { .type = ENGINE_IMAGE_LOOK, .profile = look->profile };
                char why[128];
                int r;

                look->begun = true;
                r = broker_ask(&m->broker, &ask, looked, look);
                if (r == 0)
                        continue;
                snprintf(why, sizeof(why), "the engine broker takes no request: %s", strerror(-r));
                tell(look, &(struct engine_msg){
                                   .type = ENGINE_FAILED, .error = ENGINE_E_UNREACHABLE, .text = why });
        }
}

void image_look(struct manager *m, const char *profile, const char *image, struct image_wait *w) {
        struct image_look *look = find(m, profile, image, false);

        if (!look) {
                look = calloc(1, sizeof(*look));
                if (!look)
                        abort();
                look->m = m;
                snprintf(look->profile, sizeof(look->profile), "%s", profile);
                snprintf(look->image, sizeof(look->image), "%s", image);
                TAILQ_INSERT_TAIL(&m->image_looks, look, link);
        }
        LIST_INSERT_HEAD(&look->waits, w, link);
        w->look = look;
        begin(m);
}

void image_look_leave(struct image_wait *w) {
        struct image_look *look = w->look;

        if (!look)
                return;
        LIST_REMOVE(w, link);
        w->look = NULL;
        if (!look->begun && LIST_EMPTY(&look->waits))
                look_free(look);
}

void image_looks_free(struct manager *m) {
        while (!TAILQ_EMPTY(&m->image_looks))
                look_free(TAILQ_FIRST(&m->image_looks));
}
