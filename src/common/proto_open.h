/*
 * Payloads, as in proto.h and with its rules: how a session is opened, and what is told of sessions and images to a
 * program (ask.form, ANSWER_RECORDS).
 */
#pragma once

#include "common/narrow.h"
#include "common/proto_session.h"

#define PROTO_IMAGE_MAX 384       /* bytes of an image's name, with a digest or without */
#define PROTO_ENTRYPOINT_MAX 1024 /* bytes of JSON */

/* OPEN, client -> manager: a session. Answered by ANSWER, in the form asked for (ANSWER_RECORDS: one session_info), or by
 * REJECT. One descriptor comes with the frame where mounts is set (mount_proto.h). */
struct open_request {
        uint8_t form; /* enum answer_form */
        bool mounts;
        const char *name;    /* "": one is made up */
        const char *profile; /* "": the default */
        const char *image;   /* "": the profile's, whichever that is; else it must be the profile's */
        const char *workdir; /* of commands that name none; "": the profile's; else absolute */
        uint64_t ttl_ms;     /* 0: the profile's */
        struct narrow narrow;
        uint32_t n_labels;                    /* at most PROTO_LABELS_MAX */
        const char *labels[PROTO_LABELS_MAX]; /* "KEY=VALUE", at most PROTO_LABEL_MAX bytes each */
        uint32_t n_env;                       /* variables of every command in it */
        const char **env;                     /* for encode: "KEY=VALUE" */
        const uint8_t *env_wire;              /* after decode: n_env strings */
        size_t env_len;
};
#define PROTO_OPEN_ENV_MAX 256     /* variables */
#define PROTO_OPEN_ENV_BYTES 32768 /* of all of them, as strings on the wire */
ssize_t open_request_encode(const struct open_request *r, void *buf, size_t cap);
int open_request_decode(const void *buf, size_t len, struct open_request *ret);

/* The numbers are on the wire and in no case reused. */
enum session_status {
        SESSION_IS_OPENING = 1, /* it waits for its sandbox, or for that of an earlier life */
        SESSION_IS_RUNNING = 2,
        SESSION_IS_STOPPED = 3, /* nothing runs in it until it is started again; its files are kept */
};

/* A record of ANSWER_RECORDS to ASK_SESSION_LIST, _INFO and to OPEN. */
struct session_info {
        const char *id; /* PROTO_CONTAINER_ID hex digits of its sandbox; "" while it is opening */
        const char *name;
        const char *profile;
        const char *image; /* the profile's name of it, as it was when the sandbox was made */
        const char *network;
        const char *workdir;
        uint8_t status;    /* enum session_status */
        uint64_t created;  /* seconds since 1970; 0 while it is opening */
        uint64_t started;  /* when it was last started */
        uint64_t finished; /* when it was last stopped; 0: never */
        uint64_t ttl_ms;   /* 0: for ever */
        uint32_t uid, gid; /* of its commands */
        uint64_t memory_bytes, cpu_nano, shm_bytes;
        uint32_t pids_limit;
        uint32_t running; /* commands, and who is attached to them */
        bool mounts;
        uint32_t n_labels;
        const char *labels[PROTO_LABELS_MAX];
};
ssize_t session_info_encode(const struct session_info *s, void *buf, size_t cap);
int session_info_decode(const void *buf, size_t len, struct session_info *ret);

/* A record of ANSWER_RECORDS to ASK_IMAGE_LIST and ASK_PROFILES: the image of one profile that the caller may use. */
struct image_info {
        const char *profile;
        const char *name; /* as the config has it */
        bool present; /* where it is not, or ASK_PROFILES asks, nothing of the image is known: "" and 0 */
        const char *id; /* sha256:… */
        const char *digest;
        uint64_t bytes;
        const char *created;    /* RFC 3339, or "" */
        const char *entrypoint; /* the image's own, which no sandbox runs: a JSON array, or null */
        /* of the profile: */
        const char *network;
        uint32_t uid, gid;
        uint64_t memory_bytes, cpu_nano, shm_bytes;
        uint32_t pids_limit;
        uint64_t capabilities; /* of commands as uid 0: bits CAP_X */
        const char *workdir;   /* absolute */
        bool read_only;        /* the root file system is */
        uint8_t n_tmpfs;       /* at most NARROW_TMPFS_MAX: no more of them can be narrowed */
        struct {
                const char *path;
                uint64_t bytes;
        } tmpfs[NARROW_TMPFS_MAX];
};
ssize_t image_info_encode(const struct image_info *i, void *buf, size_t cap);
int image_info_decode(const void *buf, size_t len, struct image_info *ret);

/* Records in an answer: each is a u32 length and that many bytes. Returns 1, 0 at the end, or -EPROTO. */
int record_next(const uint8_t **p, size_t *left, const uint8_t **ret, size_t *ret_len);
