/*
 * Calls of the Engine API, one after the other, over the engine's Unix socket.
 * (https://docs.docker.com/reference/api/engine/ , version 1.41 and later.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/image/image_archive.h"
#include "common/errmsg.h"

#define IMAGE_ID_MAX 71 /* "sha256:" and 64 digits */

struct image_engine;

struct image_found {
        char id[IMAGE_ID_MAX + 1];
        size_t n_tags;
        uint64_t size; /* bytes */
};

/* How a call ended, if it did not with 0 or -errno. */
enum { IMAGE_E_MISSING = 1, IMAGE_E_IN_USE, IMAGE_E_REFUSED };

/*
 * Asks the engine for its version. @signal_fd: of signalfd(2), whatever is pending there ends a call with -EINTR.
 * Returns 0 and a new *ret, or -errno and a line in *e: -ECONNREFUSED (nobody answers), -EPROTO (it is no engine).
 */
int image_engine_open(const char *socket, int signal_fd, struct image_engine **ret, struct errmsg *e);
void image_engine_close(struct image_engine *g);

/*
 * All of these return 0; IMAGE_E_MISSING, IMAGE_E_IN_USE or IMAGE_E_REFUSED with the engine's own words in *e; or -errno
 * and a line in *e, as above; -EINTR is a signal. Names are as image_name_ok() accepts them.
 */
int image_engine_inspect(struct image_engine *g, const char *name, struct image_found *ret,
                         struct errmsg *e);
/* *ret_id is what the engine says that it loaded, or "". A signal that comes when all is sent is left pending. */
int image_engine_load(struct image_engine *g, struct image_archive *a, char ret_id[IMAGE_ID_MAX + 1],
                      struct errmsg *e);
/* Moves a tag that exists. */
int image_engine_tag(struct image_engine *g, const char *id, const char *name, struct errmsg *e);
/* @said is called for each thing that the engine removed; NULL: not wanted. */
int image_engine_remove(struct image_engine *g, const char *name,
                        void (*said)(void *userdata, const char *what), void *userdata,
                        struct errmsg *e);
/* How many containers, running or not, are of that image, and the name of one of them. */
int image_engine_users(struct image_engine *g, const char *id, size_t *ret_n, char *ret_name, size_t cap,
                       struct errmsg *e);

/* --- what the engine says (image_reply.c) --- */

/* "message" of a failed call, else the start of the text; one line. */
void image_reply_message(const char *body, size_t len, char *ret, size_t cap);
int image_reply_found(const char *body, size_t len, struct image_found *ret);
/* The stream of a load: 0 and *ret_id, or IMAGE_E_REFUSED with the engine's words in @ret_why. */
int image_reply_loaded(const char *body, size_t len, char ret_id[IMAGE_ID_MAX + 1], char *ret_why,
                       size_t cap);
int image_reply_removed(const char *body, size_t len, void (*said)(void *userdata, const char *what),
                        void *userdata);
int image_reply_users(const char *body, size_t len, const char *id, size_t *ret_n, char *ret_name,
                      size_t cap);
/* The version to speak (as "1.41") with an engine whose answer to /version this is. 0 or -EPROTO. */
int image_reply_version(const char *body, size_t len, char ret[16]);
