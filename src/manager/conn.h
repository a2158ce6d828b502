/*
 * One framed, non-blocking connection: a caller's or an agent's. Reading goes through one buffer that
 * all connections share; only a frame that has not arrived whole is kept, so that an idle connection
 * costs no memory. What the peer does not take at once is queued, up to a bound.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "common/frame.h"

/* A peer that lets more than this wait does not play by the credit it was given: both windows of a
 * command in frames of one byte each stay below it. */
#define CONN_OUT_MAX (8u << 20)

struct conn {
        int fd;
        sd_event_source *source;
        enum frame_from peer;
        uint32_t events;

        bool paused;  /* nothing is parsed; what was read waits in @in */
        bool overrun; /* the queue has reached its bound */
        bool full;    /* the socket has refused what is queued: the loop sends it on */
        bool widened; /* its socket was made larger */
        bool passes;  /* one descriptor may come along */
        int passed;   /* which is this; -1: none has. Whoever takes it leaves -1 */
        uint8_t *in;
        size_t in_len;

        uint8_t *out;
        size_t out_start, out_len, out_cap;
        uint64_t
                out_joined; /* bytes that were ever queued: the first out_joined - out_len of them have left */
        size_t out_max;    /* the queue's bound: CONN_OUT_MAX, but where the owner has set another */
        size_t last_frame; /* offset in @out of the last queued frame's header, if it can still grow */
        bool last_grows;

        /* Called for each frame. Negative: the peer is wrong, and on_end is called with it. The handler
         * may not free the connection; it asks for its end by returning negative. */
        int (*on_frame)(void *userdata, const struct frame *f);
        /* The end: 0 or -ECONNRESET: the peer went away; -EPROTO: it broke the protocol; -ENOBUFS: it
         * does not read. The owner frees the connection here. */
        void (*on_end)(void *userdata, int r);
        /* The loop has sent on of what was queued. May be NULL; may not end the connection. */
        void (*on_sent)(void *userdata);
        void *userdata;
};

/* Takes over @fd (non-blocking). Returns 0 or -errno; on failure @fd is closed. */
int conn_init(struct conn *c, sd_event *event, int fd, enum frame_from peer,
              int (*on_frame)(void *, const struct frame *), void (*on_end)(void *, int),
              void *userdata);
void conn_done(struct conn *c);

/* As recv(), and keeps the first descriptor that comes along (conn_passed.c). */
ssize_t conn_receive_passed(struct conn *c, uint8_t *buf, size_t cap);
/* No descriptor may come along any more; one that came and was not taken is closed. */
void conn_pass_none(struct conn *c);

/* Sends or queues one frame. Errors show at the next turn of the loop, as on_end. */
void conn_send(struct conn *c, uint8_t type, uint8_t flags, uint32_t channel, const void *payload,
               size_t len);
/* Queues without sending: only the next conn_send() or conn_flush() takes it along. */
void conn_queue(struct conn *c, uint8_t type, uint8_t flags, uint32_t channel, const void *payload,
                size_t len);
void conn_flush(struct conn *c);
/* Passes on @f, which on_frame was given and which was not copied, under another channel and to another
 * connection: from the buffer that it came in, with a new header, together with the frames around it that
 * go the same way. The handler must not read @f's payload afterwards. It is on its way before the event is
 * over, and before any other frame to the same peer. */
void conn_pass(struct conn *c, const struct frame *f, uint32_t channel);
/* Queues the manager's HELLO, the first frame of every connection. */
void conn_greet(struct conn *c);

/* Stops and resumes reading. Resuming handles what was kept, and may end the connection (on_end). */
void conn_pause(struct conn *c, bool paused);

/* Reads once and handles what came, without waiting for the loop to say so. 0, or what on_end got: then
 * the connection is gone. */
int conn_poke(struct conn *c);
