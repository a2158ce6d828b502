/*
 * Payloads, as in proto.h and with its rules: terminals, and what a client asks of sessions and of commands that
 * nobody is attached to.
 */
#pragma once

#include "common/proto.h"

/* RESIZE, client -> manager -> agent: of a command with a terminal; others ignore it. */
struct resize {
        uint16_t rows, cols;
};
#define RESIZE_SIZE 4
void resize_encode(const struct resize *r, uint8_t buf[RESIZE_SIZE]);
int resize_decode(const void *buf, size_t len, struct resize *ret);

/* What a client asks, other than to run a command. The numbers are on the wire and in no case reused. */
enum ask_op {
        /* 1 opened a session: now OPEN (proto_open.h) */
        ASK_SESSION_CLOSE = 2, /* name: as exec_request.session */
        ASK_SESSION_LIST = 3,  /* all */
        ASK_PS = 4,            /* name: a session, or "" for all of the caller's; all */
        ASK_KILL = 5,          /* name: the id of an exec; signal, 0: end the whole tree */
        ASK_STATS = 6,         /* what has happened since the start */
        ASK_METRICS = 7,       /* the same as OpenMetrics text */
        ASK_TOP = 8,           /* what each sandbox uses now; all */
        ASK_IMAGE_LIST = 9,    /* the images that the config names */
        /* labels: of which profiles ("profile=NAME"); none: of all that the caller may use and that keep
         * sandboxes warm */
        ASK_IMAGE_PULL = 10,
        ASK_IMAGE_VERIFY = 11,  /* labels: of which profiles; none: of all */
        ASK_SESSION_STOP = 12,  /* name; grace_ms, TERM to KILL: answered once nothing runs any more */
        ASK_SESSION_START = 13, /* name: one that is stopped, or that runs already */
        ASK_SESSION_INFO = 14,  /* name */
        ASK_REFUSED = 15, /* to be recorded: the client's docker shim refused the flag name; profile */
        /* what ASK_IMAGE_LIST answers in ANSWER_RECORDS, in every form, without what the engine would have to be asked
         * for: rejected where it is known to be down, else answered at once */
        ASK_PROFILES = 16,
};

/* What an answer is. The numbers are on the wire and in no case reused. */
enum answer_form {
        ANSWER_TEXT = 0, /* for people */
        ANSWER_JSON = 1,
        /* proto_open.h; of ASK_SESSION_LIST and _INFO, ASK_IMAGE_LIST, ASK_PROFILES, OPEN */
        ANSWER_RECORDS = 2,
        ANSWER_FORMS = 3,
};
#define PROTO_LABELS_MAX 32
#define PROTO_LABEL_MAX 256

/* ASK, client -> manager. */
struct ask {
        uint16_t op;         /* enum ask_op */
        uint8_t form;        /* enum answer_form */
        bool all;            /* of every user: root's alone */
        uint8_t signal;      /* 0 … 64 */
        const char *name;    /* at most PROTO_NAME_MAX bytes */
        const char *profile; /* "": the default */
        uint64_t grace_ms;
        uint32_t n_labels;                    /* at most PROTO_LABELS_MAX */
        const char *labels[PROTO_LABELS_MAX]; /* "KEY=VALUE", at most PROTO_LABEL_MAX bytes each */
};
ssize_t ask_encode(const struct ask *a, void *buf, size_t cap);
int ask_decode(const void *buf, size_t len, struct ask *ret);

/* An offset that means the end of what there is now. */
#define ATTACH_END UINT64_MAX

/* ATTACH, client -> manager: what a detached command has written and writes, then its RESULT. */
struct attach {
        const char *exec_id; /* PROTO_EXEC_ID hex digits */
        bool output;         /* false: only the end is waited for */
        uint64_t offset[2];  /* of stdout, stderr, in bytes from the command's start; ATTACH_END */
};
ssize_t attach_encode(const struct attach *a, void *buf, size_t cap);
int attach_decode(const void *buf, size_t len, struct attach *ret);

/* ATTACH, manager -> agent, on a channel of its own: ATTACHED, STDOUT and STDERR come on it, as far as credit
 * goes, and at last EXITED, that of the command. CANCEL ends it and not the command. */
struct attach_order {
        uint32_t target; /* the command's channel */
        bool output;
        uint64_t offset[2];
};
ssize_t attach_order_encode(const struct attach_order *a, void *buf, size_t cap);
int attach_order_decode(const void *buf, size_t len, struct attach_order *ret);

/* ATTACHED, agent -> manager -> client. */
struct attached {
        uint64_t from[2]; /* where the output begins: later than asked for where the agent has no more */
};
#define ATTACHED_SIZE 16
void attached_encode(const struct attached *a, uint8_t buf[ATTACHED_SIZE]);
int attached_decode(const void *buf, size_t len, struct attached *ret);

/* HELD, agent -> manager: right behind each HELLO. Of each one that has ended an EXITED follows, on its channel. */
#define PROTO_HELD_MAX 192
struct held {
        uint16_t n;
        struct {
                const char *exec_id;
                uint32_t channel;
                bool ended;
        } of[PROTO_HELD_MAX];
};
ssize_t held_encode(const struct held *h, void *buf, size_t cap);
int held_decode(const void *buf, size_t len, struct held *ret);
