/*
 * The messages of engine_proto.h as structs: one encoder and one decoder for all of them, and the two
 * calls that carry them over the socket. Strings and bytes that a decoded message points to live in the
 * buffer that was decoded.
 */
#pragma once

#include "common/engine_proto.h"
#include "common/narrow.h"

#define ENGINE_ID_LEN 64           /* hex digits of a container's id */
#define ENGINE_INSTALLATION_LEN 32 /* hex digits of the installation id */
#define ENGINE_PROFILE_MAX 64      /* bytes of a profile's name */
#define ENGINE_STATUS_MAX 32       /* bytes of a container's state: created, running, exited, … */
#define ENGINE_IMAGE_ID_MAX 128
#define ENGINE_DIGEST_MAX 384      /* bytes of NAME@sha256:… */
#define ENGINE_CREATED_MAX 40      /* bytes of a time as the engine says it */
#define ENGINE_ENTRYPOINT_MAX 1024 /* bytes of its JSON */
#define ENGINE_LAYER_MAX 32        /* bytes of a layer's short id */
#define ENGINE_TEXT_MAX 1024       /* bytes of FAILED, PROGRESS and STATE; a longer one is cut */
#define ENGINE_INFO_MAX 8000       /* bytes of INFO_IS */

/* An exit code that nobody has seen: the container was gone when the broker looked. */
#define ENGINE_EXIT_UNKNOWN UINT32_MAX

/* Who sent it: decides which types are allowed. */
enum engine_from { ENGINE_FROM_MANAGER, ENGINE_FROM_BROKER };

struct engine_listed {
        const char *container;
        const char *profile;
        const char *state;
};

struct engine_msg {
        uint32_t id;
        uint16_t type; /* enum engine_type; decides which fields below count */

        uint16_t version;         /* HELLO, WELCOME */
        const char *profile;      /* CREATE, CREATE_FOR, IMAGE, IMAGE_LOOK */
        const uint8_t *hash;      /* ENGINE_RECIPE bytes: CREATE…: the recipe, WELCOME: the agent's */
        const char *container;    /* REMOVE, INSPECT, LISTEN, CREATED, DIED; LIST: "after" */
        const char *installation; /* WELCOME */
        uint32_t pid;             /* CREATED, INSPECTED, LISTENING */
        const char *status;       /* INSPECTED: the container's state */
        uint32_t exit_code;       /* INSPECTED, DIED */
        bool oom_killed;          /* INSPECTED, DIED */
        const char *image;        /* IMAGE_READY, IMAGE_IS, and of what CREATED, LISTENING was made */
        bool pulled;              /* IMAGE_READY */
        bool present;             /* IMAGE_IS; where it is false nothing else is known */
        const char *digest;       /* IMAGE_IS: NAME@sha256:…, "" for one that no registry gave */
        uint64_t bytes;           /* IMAGE_IS */
        const char *created;      /* IMAGE_IS: RFC 3339, or "" */
        const char *entrypoint;   /* IMAGE_IS: a JSON array, or null */
        struct narrow narrow;     /* CREATE_FOR */
        bool mounts;              /* CREATE_FOR */
        const char *layer;        /* PROGRESS: which one's, or "" */
        uint64_t done, total;     /* PROGRESS: bytes; 0: unknown */
        uint16_t error;           /* FAILED: enum engine_error */
        uint8_t state;            /* STATE: enum engine_state */
        const char *text;         /* FAILED, PROGRESS, STATE, INFO_IS */

        /* LISTED */
        bool more;
        uint16_t n_listed;
        struct engine_listed listed[ENGINE_LIST_MAX];
};

/*
 * Writes @m into @buf. NULL strings are written as ""; @text is cut at its bound. LISTED holds as many
 * of the entries as fit, and says "more" if that is not all of them.
 * Returns the length, or -EMSGSIZE: it does not fit into @cap, or a field is longer than its bound.
 */
ssize_t engine_msg_encode(const struct engine_msg *m, void *buf, size_t cap);

/* Reads one message. Returns 0, or -EPROTO: unknown type, a type that @from may not send, a field out of
 * its bound, a wrong digit in an id, trailing bytes. *ret is set only on success. */
int engine_msg_decode(const void *buf, size_t len, enum engine_from from, struct engine_msg *ret);

/* A container id or another fixed number of lower-case hex digits. */
bool engine_is_hex(const char *s, size_t digits);

/* Are these ids of one image? "sha256:" in front means nothing, and "" is none. */
bool engine_same_image(const char *id, const char *other);

/* Sends one packet, with the descriptor @pass_fd where it is not -1 (the caller keeps its own). Never
 * blocks, never raises SIGPIPE. Returns 0 or -errno (-EAGAIN: the socket is full). */
int engine_msg_send(int sock, const void *buf, size_t len, int pass_fd);

/*
 * Receives one packet of at most @cap bytes. Returns its length, 0 at the peer's end, or -errno:
 * -EAGAIN: nothing there; -EPROTO: too long, or ancillary data that is not just one descriptor, or any
 * where @ret_fd is NULL. *ret_fd is the descriptor, born close-on-exec, which the caller closes; -1: none
 * came; -EMFILE: what came did not fit in this process's table and is lost.
 */
ssize_t engine_msg_recv(int sock, void *buf, size_t cap, int *ret_fd);
