/*
 * Is the image there? If not: pull it (without credentials), passing on what the engine says of its
 * progress, and look again. An error of a pull comes inside of a reply whose status is 200, as its last
 * line.
 */
#include "engine/pull.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "engine/apijson.h"

struct pull {
        struct broker *broker;
        struct request *request;
        char *image;
        bool pulled;
        char error[400];
};

static void pull_free(struct pull *p) {
        free(p->image);
        free(p);
}

static void cannot(struct pull *p, const char *words) {
        request_fail(p->request, ENGINE_E_NO_IMAGE,
                     "image \"%s\" is not there and cannot be pulled: %s: docker "
                     "pull %s, or docker load / docker import it",
                     p->image, words, p->image);
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

static void inspect(struct pull *p);

static void pull_line(void *userdata, const char *line, size_t len) {
        struct apijson_progress progress;
        struct pull *p = userdata;
        char text[512];

        if (apijson_progress(line, len, &progress) < 0)
                return;
        if (progress.error[0])
                memcpy(p->error, progress.error, sizeof(p->error));
        if (!progress.text[0])
                return;
        snprintf(text, sizeof(text), "pulling image %.150s: %s", p->image, progress.text);
        request_progress(p->request, text);
}

static void pull_done(void *userdata, const struct api_reply *reply) {
        struct pull *p = userdata;
        char words[400];

        p->pulled = true;
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
                inspect(p);
        }
}

static const struct api_handler pull_handler = { .on_line = pull_line, .on_done = pull_done };

static void start_pull(struct pull *p) {
        _cleanup_free_ char *name = NULL, *name_escaped = NULL, *tag_escaped = NULL, *path = NULL;
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
        if (api_start(p->broker->api, &q, &pull_handler, p, NULL) < 0)
                cannot(p, "out of memory");
}

static void inspect_done(void *userdata, const struct api_reply *reply) {
        struct engine_msg m = { .type = ENGINE_IMAGE_READY };
        char id[ENGINE_IMAGE_ID_MAX + 1], words[400];
        struct pull *p = userdata;
        struct errmsg e;

        if (reply->error) {
                request_fail_call(p->request, reply, "image");
        } else if (reply->status == 404 && !p->pulled) {
                start_pull(p);
                return;
        } else if (reply->status == 404) {
                cannot(p, "the engine does not have it after the pull");
                return;
        } else if (reply->status != 200) {
                apijson_message(reply->body, reply->len, words, sizeof(words));
                request_fail(p->request, ENGINE_E_REFUSED, "image \"%s\": the engine says: %s", p->image,
                             words);
        } else if (apijson_image_id(reply->body, reply->len, id, &e) < 0) {
                request_fail(p->request, ENGINE_E_REFUSED, "image \"%s\": %s", p->image, e.text);
        } else {
                m.image = id;
                request_answer(p->request, &m, -1);
        }
        pull_free(p);
}

static const struct api_handler inspect_handler = { .on_done = inspect_done };

static void inspect(struct pull *p) {
        _cleanup_free_ char *escaped = api_escape(p->image, "/:@"), *path = NULL;
        struct api_request q = { .method = "GET", .timeout_ms = API_CALL_MS };

        path = escaped ? api_path("/images/%s/json", escaped) : NULL;
        if (!path) {
                cannot(p, "out of memory");
                return;
        }
        q.path = path;
        if (api_start(p->broker->api, &q, &inspect_handler, p, NULL) < 0)
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
        inspect(p);
}
