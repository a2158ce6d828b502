/*
 * What the engine's replies say, as far as the broker wants to know. Each parser takes the JSON of one
 * reply or one line, checks type and form of every field that it takes, and returns 0 or -EPROTO (it is
 * not what the API promises; a line in *e where there is one).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/engine_msg.h"
#include "common/errmsg.h"

#define LABEL_INSTALLATION "hermes-sandbox.installation"
#define LABEL_PROFILE "hermes-sandbox.profile"
#define LABEL_RECIPE "hermes-sandbox.recipe"
#define LABEL_CALLER "hermes-sandbox.caller" /* the uid whose folders are in it, or "" */

#define APIJSON_NAME_MAX 128

/* A container, of a list or an inspection. */
struct apijson_container {
        char id[ENGINE_ID_LEN + 1];
        char name[APIJSON_NAME_MAX + 1]; /* without the "/"; "" if it has none or a longer one */
        char state[ENGINE_STATUS_MAX + 1];
        char installation[ENGINE_INSTALLATION_LEN + 1]; /* of our label; "" if it is not such an id */
        char profile[ENGINE_PROFILE_MAX + 1];           /* of our label, "" likewise */
        /* of an inspection only */
        bool running, oom_killed;
        uint32_t pid, exit_code;
        char image[ENGINE_IMAGE_ID_MAX +
                   1]; /* the id of what it was created from; "" if none was said */
};

enum apijson_event_kind { EVENT_OTHER, EVENT_DIE, EVENT_OOM, EVENT_DESTROY };

struct apijson_event {
        enum apijson_event_kind kind;
        char id[ENGINE_ID_LEN + 1];
        uint32_t exit_code; /* of EVENT_DIE; ENGINE_EXIT_UNKNOWN if it does not say */
};

struct apijson_image {
        char id[ENGINE_IMAGE_ID_MAX + 1];
        char digest[ENGINE_DIGEST_MAX +
                    1];  /* NAME@sha256:…, the first that was asked for or of that name */
        bool has_digest; /* one of them is the digest that was asked for */
        uint64_t bytes;
        char created[ENGINE_CREATED_MAX + 1];       /* "" where it is no time */
        char entrypoint[ENGINE_ENTRYPOINT_MAX + 1]; /* a compact JSON array, or null */
};

/* A line of a pull. */
struct apijson_progress {
        char layer[ENGINE_LAYER_MAX + 1]; /* 12 hex digits, or "": it is not about one */
        char text[256];                   /* "" if the line says nothing for people */
        uint64_t done, total;             /* bytes, 0: unknown */
        char error[400];                  /* "" unless the pull failed */
};

/* {"Id": …} of a create call. */
int apijson_created(const char *body, size_t len, char ret_id[ENGINE_ID_LEN + 1], struct errmsg *e);

/* The engine's own words of a failed call: "message" of the body, or the body's start if it is not JSON.
 * Always fills @ret, control characters as '?'. */
void apijson_message(const char *body, size_t len, char *ret, size_t cap);

int apijson_inspect(const char *body, size_t len, struct apijson_container *ret, struct errmsg *e);

/* *ret is a new array of *ret_n entries; free() it. */
int apijson_list(const char *body, size_t len, struct apijson_container **ret, size_t *ret_n,
                 struct errmsg *e);

/* An image's inspection. @name is what was asked for, which says which of several digests is meant. */
int apijson_image(const char *body, size_t len, const char *name, struct apijson_image *ret,
                  struct errmsg *e);
int apijson_event(const char *line, size_t len, struct apijson_event *ret);
int apijson_progress(const char *line, size_t len, struct apijson_progress *ret);

/* Of GET /info: whether the engine is on cgroup v2, and (@text not NULL) the lines of engine_info.h. Cut
 * at the end of a line where it does not fit into @cap. */
int apijson_info(const char *body, size_t len, const char *api_version, bool *ret_cgroup_v2, char *text,
                 size_t cap, struct errmsg *e);
