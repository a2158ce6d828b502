/*
 * Is the image there? If not: pull it (without credentials), passing on what the engine says of its
 * progress, and look again. An error of a pull comes inside of a reply whose status is 200, as its last
 * line. An image that is there stays what it is, whatever a registry has under its name by now.
 */
#include "engine/pull.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "engine/image.h"

/* Of a pull's layers, those whose progress is passed on, and how often. What comes in between is put together. */
#define LAYERS 64
#define LAYERS_MS 250

struct layer {
        char id[ENGINE_LAYER_MAX + 1];
        char text[256];
        uint64_t done, total;
        bool news; /* not said yet */
};

struct pull {
        struct broker *broker;
        struct request *request;
        struct image_look look;
        char *image;
        bool pulled;
        char error[400];
        uint64_t said_ms;
        size_t n_layers;
        struct layer layers[LAYERS];
};

static void pull_free(struct pull *p) {
        free(p->image);
        free(p);
}

static void cannot(struct pull *p, const char *words) {
        char mend[400];

        image_mend(p->image, mend, sizeof(mend));
        request_fail(p->request, ENGINE_E_NO_IMAGE,
                     "image \"%s\" is not there and cannot be pulled: %s: %s", p->image, words, mend);
        pull_free(p);
}

int pull_split(const char *image, char **ret_name, const char **ret_tag) {
        const char *at = strchr(image, '@'), *slash = strrchr(image, '/'), *colon;

        if (at) {
                *ret_tag = at + 1;
        } else {
                colon = strrchr(slash ? slash : image, ':');
                at = colon ? colon : image + strlen(image);
                *ret_tag = colon ? colon + 1 : "latest";
        }
        if (at == image || !**ret_tag || strncmp(image, "sha256:", 7) == 0)
                return -EINVAL;
        *ret_name = strndup(image, (size_t)(at - image));
        return *ret_name ? 0 : -ENOMEM;
}

/* --- progress
 * ---------------------------------------------------------------------------------------- */

/* The row of that layer; NULL: there are too many. */
static struct layer *find_layer(struct pull *p, const char *id) {
        for (size_t i = 0; i < p->n_layers; i++)
                if (strcmp(p->layers[i].id, id) == 0)
                        return &p->layers[i];
        if (p->n_layers == LAYERS)
                return NULL;
        memcpy(p->layers[p->n_layers].id, id, sizeof(p->layers[0].id));
        return &p->layers[p->n_layers++];
}

static void say_layers(struct pull *p) {
        for (size_t i = 0; i < p->n_layers; i++) {
                struct layer *l = &p->layers[i];
                struct engine_msg m = {
                        .layer = l->id, .text = l->text, .done = l->done, .total = l->total
                };

                if (l->news)
                        request_progress(p->request, &m);
                l->news = false;
        }
}

static void pull_line(void *userdata, const char *line, size_t len) {
        struct apijson_progress progress;
        struct pull *p = userdata;
        struct layer *l;
        uint64_t now = records_now_ms();

        if (apijson_progress(line, len, &progress) < 0)
                return;
        if (progress.error[0])
                memcpy(p->error, progress.error, sizeof(p->error));
        l = progress.text[0] && progress.layer[0] ? find_layer(p, progress.layer) : NULL;
        if (!l)
                return;
        memcpy(l->text, progress.text, sizeof(l->text));
        l->done = progress.done;
        l->total = progress.total;
        l->news = true;
        if (now - p->said_ms < LAYERS_MS)
                return;
        p->said_ms = now;
        say_layers(p);
}

/* --- the pull
 * ---------------------------------------------------------------------------------------- */

static void look(struct pull *p);

static void pull_done(void *userdata, const struct api_reply *reply) {
        struct pull *p = userdata;
        char words[400];

        p->pulled = true;
        say_layers(p);
        if (reply->error == -ETIMEDOUT) {
                cannot(p, "nothing came for 60 s");
        } else if (reply->error) {
                request_fail_call(p->request, reply, "pull");
                pull_free(p);
        } else if (reply->status != 200) {
                apijson_message(reply->body, reply->len, words, sizeof(words));
                cannot(p, words);
        } else if (p->error[0]) {
                cannot(p, p->error);
        } else {
                look(p);
        }
}

static const struct api_handler pull_handler = { .on_line = pull_line, .on_done = pull_done };

static void start_pull(struct pull *p) {
        _cleanup_free_ char *name = NULL, *name_escaped = NULL, *tag_escaped = NULL, *path = NULL,
                            *text = NULL;
        struct api_request q = { .method = "POST" };
        const char *tag;

        if (pull_split(p->image, &name, &tag) < 0) {
                cannot(p, "it is an id, not a name");
                return;
        }
        name_escaped = api_escape(name, "");
        tag_escaped = api_escape(tag, "");
        if (name_escaped && tag_escaped)
                path = api_path("/images/create?fromImage=%s&tag=%s", name_escaped, tag_escaped);
        if (!path) {
                cannot(p, "out of memory");
                return;
        }
        q.path = path;
        text = api_path("pulling image %s", p->image);
        if (text)
                request_progress(p->request, &(struct engine_msg){ .text = text });
        if (api_start(p->broker->api, &q, &pull_handler, p, NULL) < 0)
                cannot(p, "out of memory");
}

static void found(void *userdata, const struct apijson_image *image, const struct api_reply *reply,
                  const char *why) {
        struct engine_msg m = { .type = ENGINE_IMAGE_READY };
        struct pull *p = userdata;

        if (reply) {
                request_fail_call(p->request, reply, "image");
        } else if (image) {
                m.image = image->id;
                m.pulled = p->pulled;
                request_answer(p->request, &m, -1);
        } else if (why[0]) {
                request_fail(p->request, ENGINE_E_REFUSED, "%s", why);
        } else if (p->pulled) {
                cannot(p, "the engine does not have it after the pull");
                return;
        } else {
                start_pull(p);
                return;
        }
        pull_free(p);
}

static void look(struct pull *p) {
        if (image_look_start(p->broker, &p->look, NULL) < 0)
                cannot(p, "out of memory");
}

void pull_request(struct broker *b, struct request *q, const struct engine_msg *m) {
        const struct config_profile *profile = config_profile_find(b->config, m->profile);
        struct pull *p;

        if (!profile) {
                request_fail(q, ENGINE_E_NO_PROFILE,
                             "image: no profile \"%.64s\" in %s: add it under profiles:", m->profile,
                             b->options.config_path);
                return;
        }
        p = calloc(1, sizeof(*p));
        if (p)
                p->image = strdup(profile->image);
        if (!p || !p->image) {
                free(p);
                request_fail(q, ENGINE_E_REFUSED, "image: out of memory");
                return;
        }
        p->broker = b;
        p->request = q;
        p->look = (struct image_look){ p->image, found, p };
        look(p);
}
