/*
 * Calls of the Engine API: HTTP over the engine's Unix socket, many at once, driven by the event loop.
 * (The API itself: https://docs.docker.com/reference/api/engine/ , version 1.41 and later.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#define API_REPLY_MAX (1u << 20) /* bytes of one reply, or of one line of a stream */
#define API_IN_FLIGHT 16         /* calls at the engine at once; further ones wait their turn */
#define API_CONNECT_MS 5000
#define API_CALL_MS 30000
#define API_START_MS 60000 /* create and start */
#define API_QUIET_S 60     /* a pull may say nothing for so long */
#define API_VERSION_LEN 16

struct api;
struct api_call;

struct api_reply {
        int error;        /* 0, or -errno: no complete reply. -ETIMEDOUT, -EMSGSIZE (over the bound),
                             -ECONNREFUSED (nobody there), -ECONNRESET (it went away meanwhile) */
        long status;      /* of HTTP; 0 where error is set */
        const char *body; /* NUL-terminated; of a stream only what came with a status of 400 or more */
        size_t len;
        const char *why;         /* what went wrong, for people; "" where error is 0 */
        const char *api_version; /* the reply's Api-Version, or "" */
};

struct api_request {
        const char *method;  /* GET, POST, DELETE */
        const char *path;    /* from "/" on, already encoded, without the version */
        const char *body;    /* JSON, or NULL */
        bool unversioned;    /* the path goes out as it stands */
        bool endless;        /* no time limit and not counted as in flight: the event stream */
        bool urgent;         /* not counted as in flight either: asks whether the engine still answers */
        uint32_t timeout_ms; /* 0: none, but API_QUIET_S */
};

/* Any of them may call back into api_*. */
struct api_handler {
        void (*on_open)(void *userdata);                               /* NULL: not wanted */
        void (*on_line)(void *userdata, const char *line, size_t len); /* NULL: not a stream */
        void (*on_done)(void *userdata,
                        const struct api_reply *reply); /* exactly once, if not cancelled */
};

/* @event and @socket_path are copied or referenced. Returns 0 or -errno. */
int api_new(sd_event *event, const char *socket_path, struct api **ret);
/* Ends every call with the error -ECANCELED; from now on no call can be started (-ESHUTDOWN). */
void api_shutdown(struct api *a);
/* Drops what is left without calling back. */
void api_free(struct api *a);

/* Calls started from now on go to this socket. */
int api_set_socket(struct api *a, const char *socket_path);
const char *api_socket(const struct api *a);

/* "1.41": stands in front of every versioned path. */
void api_set_version(struct api *a, const char *version);
const char *api_version(const struct api *a);

/*
 * Starts a call; strings in @request are copied, @handler must outlive it. Never calls back before it
 * returns. *ret (may be NULL) is valid until on_done. Returns 0, -ENOMEM or -ESHUTDOWN.
 */
int api_start(struct api *a, const struct api_request *request, const struct api_handler *handler,
              void *userdata, struct api_call **ret);

/* Ends a call without calling back. NULL is allowed. */
void api_cancel(struct api_call *c);

/* The part of an image's name or a query that goes into a path: all but unreserved characters and those
 * of @keep percent-encoded. Returns a new string or NULL. */
char *api_escape(const char *s, const char *keep);
/* A path from its format: a new string or NULL. */
__attribute__((format(printf, 1, 2))) char *api_path(const char *fmt, ...);

/*
 * The version to speak with an engine that says @engine_max ("1.41"): the lower of it and 1.47. Returns
 * 0 and fills @ret, -EPROTO (not a version) or -EPROTONOSUPPORT (older than 1.40).
 */
int api_choose_version(const char *engine_max, char ret[API_VERSION_LEN]);
