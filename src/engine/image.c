/*
 * The engine resolves a tag anew each time, and whoever may talk to it can move a tag. So what a sandbox is made from
 * is looked up once, compared with what the config pins, and from there on known by its id alone.
 */
#include "engine/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "config/values.h"

void image_mend(const char *name, char *ret, size_t cap) {
        if (config_image_pin(name) == IMAGE_PIN_ID)
                snprintf(ret, cap,
                         "docker load the image with that id, or name another in sandbox.yaml");
        else if (strcmp(name, "debian:bookworm-slim") == 0 || strcmp(name, "debian:trixie-slim") == 0)
                snprintf(
                        ret, cap,
                        "docker pull %s, or without a registry sudo hermes-sandbox image build --suite %.*s "
                        "--name %s",
                        name, (int)(strlen(name) - strlen("debian:-slim")), name + strlen("debian:"),
                        name);
        else
                snprintf(ret, cap, "docker pull %s, or docker load / docker import it", name);
}

/* An engine may take anything that it knows by another name: what is pinned is compared. */
static bool is_as_pinned(const char *name, const struct apijson_image *image) {
        switch (config_image_pin(name)) {
        case IMAGE_PIN_ID:
                return engine_same_image(image->id, name);
        case IMAGE_PIN_DIGEST:
                return image->has_digest;
        default:
                return true;
        }
}

static void looked(void *userdata, const struct api_reply *reply) {
        const struct image_look *l = userdata;
        struct apijson_image image;
        char words[400], why[ENGINE_TEXT_MAX];
        struct errmsg e;

        why[0] = '\0';
        if (reply->error) {
                l->found(l->userdata, NULL, reply, NULL);
                return;
        }
        if (reply->status == 200 && apijson_image(reply->body, reply->len, l->name, &image, &e) < 0) {
                snprintf(why, sizeof(why), "image \"%s\": %s", l->name, e.text);
        } else if (reply->status == 200 && is_as_pinned(l->name, &image)) {
                l->found(l->userdata, &image, NULL, NULL);
                return;
        } else if (reply->status == 200) {
                snprintf(why, sizeof(why),
                         "image \"%s\": the engine has %.80s under that name, which is another one",
                         l->name, image.id);
        } else if (reply->status != 404) {
                apijson_message(reply->body, reply->len, words, sizeof(words));
                snprintf(why, sizeof(why), "image \"%s\": the engine says: %s", l->name, words);
        }
        l->found(l->userdata, NULL, NULL, why);
}

static const struct api_handler look_handler = { .on_done = looked };

/* A tag beside a digest says nothing more, and not every engine looks behind it. */
static char *reference(const char *name) {
        char *s = strdup(name), *at, *colon;

        at = s ? strchr(s, '@') : NULL;
        if (!at)
                return s;
        colon = memrchr(s, ':', (size_t)(at - s));
        if (colon && !memchr(colon, '/', (size_t)(at - colon)))
                memmove(colon, at, strlen(at) + 1);
        return s;
}

int image_look_start(struct broker *b, struct image_look *look, struct api_call **ret) {
        _cleanup_free_ char *name = reference(look->name), *escaped = NULL, *path = NULL;
        struct api_request q = { .method = "GET", .timeout_ms = API_CALL_MS };

        escaped = name ? api_escape(name, "/:@") : NULL;
        path = escaped ? api_path("/images/%s/json", escaped) : NULL;
        if (!path)
                return -ENOMEM;
        q.path = path;
        return api_start(b->api, &q, &look_handler, look, ret);
}

/* --- ENGINE_IMAGE_LOOK
 * ------------------------------------------------------------------------------- */

struct asked {
        struct request *request;
        struct image_look look;
        char *image;
};

static void asked_free(struct asked *a) {
        free(a->image);
        free(a);
}

static void found(void *userdata, const struct apijson_image *image, const struct api_reply *reply,
                  const char *why) {
        struct engine_msg m = { .type = ENGINE_IMAGE_IS };
        struct asked *a = userdata;

        if (image) {
                m.present = true;
                m.image = image->id;
                m.digest = image->digest;
                m.bytes = image->bytes;
                m.created = image->created;
                m.entrypoint = image->entrypoint;
        }
        if (reply)
                request_fail_call(a->request, reply, "image");
        else if (!image && why[0])
                request_fail(a->request, ENGINE_E_REFUSED, "%s", why);
        else
                request_answer(a->request, &m, -1);
        asked_free(a);
}

void image_look_request(struct broker *b, struct request *q, const struct engine_msg *m) {
        const struct config_profile *profile = config_profile_find(b->config, m->profile);
        struct asked *a;

        if (!profile) {
                request_fail(q, ENGINE_E_NO_PROFILE,
                             "image: no profile \"%.64s\" in %s: add it under profiles:", m->profile,
                             b->options.config_path);
                return;
        }
        a = calloc(1, sizeof(*a));
        if (a) {
                a->request = q;
                a->image = strdup(profile->image);
                a->look = (struct image_look){ a->image, found, a };
        }
        if (a && a->image && image_look_start(b, &a->look, NULL) == 0)
                return;
        if (a)
                asked_free(a);
        request_fail(q, ENGINE_E_REFUSED, "image: out of memory");
}
