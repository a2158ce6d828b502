/*
 * The same bytes once in one piece through frame_parse(), and once over a socket, in pieces, through
 * the reader of the program that gets them: both must see the same frames and the same end.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "agent/agent.h"
#include "cli/cli_conn.h"
#include "fuzz/decoders.h"
#include "manager/conn.h"

#define PIECES 8

struct seen {
        uint64_t hash; /* FNV-1a over the frames, in their order */
        unsigned frames;
        int end; /* 0: the bytes were all right; else what the reader said */
        bool ended;
        unsigned pause_at; /* conn: reading stops at this frame; 0: never */
        bool later;        /* link: this frame was put off once */
        struct conn conn;
};

static inline void see_bytes(struct seen *s, const void *p, size_t len) {
        for (size_t i = 0; i < len; i++)
                s->hash = (s->hash ^ ((const uint8_t *)p)[i]) * UINT64_C(0x100000001b3);
}

static inline int see(void *userdata, const struct frame *f) {
        struct seen *s = userdata;

        s->frames++;
        see_bytes(s, &(uint8_t[]){ f->type, f->flags }, 2);
        see_bytes(s, &f->channel, sizeof(f->channel));
        see_bytes(s, &f->len, sizeof(f->len));
        see_bytes(s, f->payload, f->len);
        decode(f);
        return 0;
}

static inline void see_all(struct seen *s, const uint8_t *data, size_t size, enum frame_from from) {
        while (size > 0 && s->end == 0) {
                struct frame f;
                size_t used;
                int r = frame_parse(data, size, from, &f, &used);

                if (r < 0)
                        s->end = r;
                if (r <= 0)
                        return;
                see(s, &f);
                data += used;
                size -= used;
        }
}

static inline void same(const struct seen *a, const struct seen *b) {
        check(a->hash == b->hash && a->frames == b->frames && a->end == b->end);
}

/* Where the pieces end follows from the bytes, so that an input means the same each time: anywhere,
 * behind a whole frame, or at the end. */
static inline size_t piece(const uint8_t *data, size_t left, uint32_t *seed) {
        uint32_t len;

        *seed = *seed * 1664525 + 1013904223 + data[0];
        if (*seed >> 28 < 6 && left >= FRAME_HEADER) {
                memcpy(&len, data, sizeof(len));
                if (len <= left - FRAME_HEADER)
                        return FRAME_HEADER + len;
        }
        return *seed >> 28 == 15 ? left : 1 + (*seed >> 8) % (left / 2 + 1);
}

static inline void pair(int fd[2]) {
        int size = 1 << 20; /* a whole input, one small packet after the other */

        check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) == 0);
        setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

/* --- the manager ------------------------------------------------------------------------------- */

static inline int see_and_pause(void *userdata, const struct frame *f) {
        struct seen *s = userdata;

        see(s, f);
        if (s->frames == s->pause_at)
                conn_pause(&s->conn, true);
        return 0;
}

static inline void see_end(void *userdata, int r) {
        struct seen *s = userdata;

        check(!s->ended);
        s->ended = true;
        s->end = r;
        conn_done(&s->conn);
}

static inline void turn(sd_event *event) {
        while (sd_event_run(event, 0) > 0)
                ;
}

static inline void through_conn(const uint8_t *data, size_t size, enum frame_from from) {
        struct seen want = { 0 }, got = { .pause_at = size % 5 };
        uint32_t seed = (uint32_t)size;
        sd_event *event;
        int fd[2];

        see_all(&want, data, size, from);
        check(sd_event_new(&event) >= 0);
        pair(fd);
        check(conn_init(&got.conn, event, fd[0], from, see_and_pause, see_end, &got) == 0);
        for (unsigned i = 0; size > 0 && !got.ended; i++) {
                size_t n = i < PIECES ? piece(data, size, &seed) : size;
                ssize_t sent = send(fd[1], data, n, MSG_NOSIGNAL);

                check(sent > 0 || errno == EAGAIN);
                data += sent > 0 ? (size_t)sent : 0;
                size -= sent > 0 ? (size_t)sent : 0;
                turn(event);
                if (!got.ended && got.conn.paused && (i % 2 == 1 || size == 0 || sent < 0))
                        conn_pause(&got.conn, false);
                if (!got.ended)
                        turn(event);
        }
        close(fd[1]);
        if (!got.ended)
                turn(event);
        check(got.ended);
        if (want.end == 0)
                want.end = -ECONNRESET;
        same(&want, &got);
        sd_event_unref(event);
}

/* --- the agent ---------------------------------------------------------------------------------- */

/* Every third frame is not taken when it is offered first. */
static inline int see_or_put_off(void *userdata, const struct frame *f) {
        struct seen *s = userdata;

        s->later = !s->later && s->frames % 3 == 2;
        return s->later ? LINK_LATER : see(s, f);
}

static inline void through_link(const uint8_t *data, size_t size) {
        static struct link l;
        struct seen want = { 0 }, got = { 0 };
        uint32_t seed = (uint32_t)size;
        int fd[2];

        see_all(&want, data, size, FRAME_FROM_MANAGER);
        pair(fd);
        link_init(&l);
        l.fd = fd[0];
        for (unsigned i = 0; size > 0 && got.end == 0; i++) {
                size_t n = i < PIECES ? piece(data, size, &seed) : size;
                ssize_t sent = send(fd[1], data, n, MSG_NOSIGNAL);

                check(sent > 0);
                data += sent;
                size -= (size_t)sent;
                do
                        got.end = link_receive(&l, see_or_put_off, &got);
                while (got.end > 0);
        }
        close(fd[1]);
        if (got.end == 0)
                check(link_receive(&l, see_or_put_off, &got) == -ECONNRESET);
        link_close(&l);
        same(&want, &got);
}

/* --- the command line ---------------------------------------------------------------------------- */

/* It swallows the manager's HELLO, and takes nothing before it. */
static inline void through_cli(const uint8_t *data, size_t size) {
        static struct cli_conn conn;
        struct seen want = { 0 }, got = { 0 };
        uint32_t seed = (uint32_t)size;
        struct hello h;
        struct errmsg e;
        struct frame f;
        size_t used;
        int fd[2], n = 1;

        if (frame_parse(data, size, FRAME_FROM_MANAGER, &f, &used) == 1) {
                if (f.type == FRAME_HELLO && f.channel == 0 && hello_decode(f.payload, f.len, &h) == 0 &&
                    h.version == FRAME_VERSION && h.role == HELLO_MANAGER)
                        see_all(&want, data + used, size - used, FRAME_FROM_MANAGER);
                else
                        want.end = -EPROTO;
        } else
                see_all(&want, data, size, FRAME_FROM_MANAGER);
        pair(fd);
        conn.fd = fd[0];
        conn.greeted = false;
        conn.start = conn.end = 0;
        for (unsigned i = 0; n > 0 && got.end == 0; i++) {
                ssize_t sent = 0;

                if (size > 0)
                        sent = send(fd[1], data, i < PIECES ? piece(data, size, &seed) : size,
                                    MSG_NOSIGNAL);
                else
                        shutdown(fd[1], SHUT_WR);
                check(sent >= 0);
                data += sent;
                size -= (size_t)sent;
                while ((n = cli_conn_fill(&conn, SIZE_MAX, MSG_DONTWAIT)) > 0) {
                        int r;

                        while ((r = cli_conn_next(&conn, &f, &e)) == 1)
                                see(&got, &f);
                        if (r < 0) {
                                check(e.text[0] && !strchr(e.text, '\n'));
                                got.end = r;
                                break;
                        }
                }
                if (n == -EAGAIN)
                        n = 1;
        }
        close(fd[0]);
        close(fd[1]);
        same(&want, &got);
}
