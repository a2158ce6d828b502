/*
 * A question to the manager and its answer as records (proto_open.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cli/docker/docker.h"
#include "common/proto_open.h"
#include "common/proto_session.h"

#define DOCKER_ANSWER_MAX (16u << 20) /* bytes of one answer */

struct docker_answer {
        uint8_t *p; /* the records, whose strings live here */
        size_t len, cap;
        size_t at;           /* of the next one */
        uint8_t reason;      /* enum reject_reason, where it was refused */
        struct errmsg error; /* why there is none */
};

/* Each returns 0, or what the manager, or our own side, would end with (common/exitcode.h); docker_answer_done() frees
 * @ret in both cases. Name and profile of @a may be NULL, which is "". */
int docker_ask(const struct docker *d, const struct ask *a, struct docker_answer *ret);
/* @fd: an end of the mounts' sockets, or negative. */
int docker_ask_open(const struct docker *d, const struct open_request *q, int fd,
                    struct docker_answer *ret);
void docker_answer_done(struct docker_answer *a);

/* The next record. 1, 0 at the end, or -EPROTO and a line in a->error. */
int docker_answer_session(struct docker_answer *a, struct session_info *ret);
int docker_answer_image(struct docker_answer *a, struct image_info *ret);

/* The one session that @word names. As docker_ask(). */
int docker_ask_session(const struct docker *d, const char *word, struct docker_answer *a,
                       struct session_info *ret);
/* What is known of the profile @name, with @image of its image, too, at the price of a question to the engine. As
 * docker_ask(), with EXIT_CONFIG where there is no such profile for this caller. */
int docker_ask_profile(const struct docker *d, const char *name, bool image, struct docker_answer *a,
                       struct image_info *ret);

/* Has the manager record that the flag @flag was refused here. Nothing is said where it cannot be told. */
void docker_tell_refused(const struct docker *d, const char *flag);
