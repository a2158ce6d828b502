/* An image, as the engine has it now: which it is, and whether it is what the config asks for. */
#pragma once

#include "engine/apijson.h"
#include "engine/requests.h"

/*
 * The answer, exactly one of three: @image, which is the one that was asked for (one that is pinned has been compared);
 * or NULL and @reply, whose error is set: no complete reply; or NULL, NULL and @why, one line for people, or "": it is
 * not there.
 */
typedef void image_found(void *userdata, const struct apijson_image *image,
                         const struct api_reply *reply, const char *why);

/* While it is looked for. Part of what asks, which outlives the call or cancels it. */
struct image_look {
        const char *name; /* as the config has it */
        image_found *found;
        void *userdata;
};

/* 0, -ENOMEM or -ESHUTDOWN: then @found is not called. *ret (may be NULL) is the call until then. */
int image_look_start(struct broker *b, struct image_look *look, struct api_call **ret);

/* What a person can do about an image that is not there: "docker pull x, or …". */
void image_mend(const char *name, char *ret, size_t cap);

/* ENGINE_IMAGE_LOOK. */
void image_look_request(struct broker *b, struct request *q, const struct engine_msg *m);
