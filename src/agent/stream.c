/*
 * A command's streams. The pipes are watched edge-triggered and remembered as ready, so that a stream without
 * credit costs no wake-up and no epoll_ctl. Output goes from the pipe straight into the link's buffer.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Chunks of each stream between two looks at everything else. */
#define PUMP_ROUNDS 16
#define WIDE_PIPE 262144
/* More than PIPE_BUF bytes in less than this are a flood. */
#define FLOOD_GAP_US 500

/* More than this of a slot's pool is given back with the slot. */
#define POOL_KEPT 16384

void stream_count_unsent(struct exec *x, int i, const uint8_t *p, size_t n) {
        x->end.dropped_bytes[i] += n;
        for (const uint8_t *end = p + n; (p = memchr(p, '\n', (size_t)(end - p))); p++)
                x->end.dropped_lines[i]++;
}

bool stream_done(const struct exec_out *o) {
        return o->fd < 0 || o->final_left == 0;
}

void stream_end(struct exec_out *o) {
        o->fd = close_fd(o->fd);
        o->theirs = close_fd(o->theirs);
        o->ready = false;
}

/* A command that fills its pipe is woken for each page that is taken: a larger one saves most of that. Not from
 * the start, as a user has only so much of it (man 7 pipe, pipe-user-pages-soft); beyond it stays as it is. */
static void widen(struct exec_out *o) {
        o->wide = true;
        fcntl(o->fd, F_SETPIPE_SZ, WIDE_PIPE);
}

/* @got of @n bytes came. Of a flood that is all that there was: time to rest. */
static void note_flood(struct agent *a, struct exec *x, int i, ssize_t got, size_t n) {
        struct exec_out *o = &x->out[i];

        if (got > 0) {
                uint64_t now = now_us();

                o->flood = got >= PIPE_BUF && now - o->taken_us < FLOOD_GAP_US;
                o->taken_us = now;
        }
        if (got < (ssize_t)n && o->flood && x->state == EXEC_RUNNING)
                a->rest = true;
}

static size_t smaller(size_t a, uint64_t b) {
        return b < a ? b : a;
}

/* Where the next bytes go, and how many there may be: 0 without credit or room. */
static size_t place(struct agent *a, struct exec *x, int i, uint8_t **ret) {
        static uint8_t waste[FRAME_PAYLOAD_MAX] PLACED_SCRATCH;
        struct exec_out *o = &x->out[i];
        size_t n = FRAME_PAYLOAD_MAX;

        if (x->limited && x->output_left == 0) {
                *ret = waste;
        } else if (o->ring) {
                *ret = o->ring + o->written % FRAME_CREDIT;
                n = smaller(n, FRAME_CREDIT - o->written % FRAME_CREDIT);
        } else {
                n = smaller(smaller(n, link_room(&a->link)), o->credit);
                *ret = n > 0 ? link_payload(&a->link) : NULL;
        }
        if (x->limited && x->output_left > 0)
                n = smaller(n, x->output_left);
        return o->final_left >= 0 ? smaller(n, (uint64_t)o->final_left) : n;
}

/* @n bytes stand at @to. */
static void taken(struct agent *a, struct exec *x, int i, const uint8_t *to, size_t n) {
        struct exec_out *o = &x->out[i];

        if (o->final_left >= 0)
                o->final_left -= (int64_t)n;
        if (x->limited && x->output_left == 0) {
                x->end.truncated = true;
                stream_count_unsent(x, i, to, n);
                return;
        }
        if (x->limited)
                x->output_left -= n;
        if (o->ring) {
                keep_written(x, i, n);
                return;
        }
        o->credit -= n;
        link_commit(&a->link, i == 0 ? FRAME_STDOUT : FRAME_STDERR, 0, x->channel, (uint32_t)n);
}

/* Moves one chunk of a stream. Returns true when it moved one and more may follow at once. */
static bool pump(struct agent *a, struct exec *x, int i) {
        struct exec_out *o = &x->out[i];
        uint8_t *to;
        size_t n;
        ssize_t got;

        if (!o->ready || stream_done(o))
                return false;
        n = place(a, x, i, &to);
        if (n == 0)
                return false;
        got = read(o->fd, to, n);
        note_flood(a, x, i, got, n);
        if (got < 0 && errno == EAGAIN) {
                o->ready = false;
                /* The writer is a background process that outlives the command. */
                if (x->state == EXEC_DRAINING)
                        stream_end(o);
                return false;
        }
        if (got <= 0) {
                stream_end(o);
                return false;
        }
        if (got == FRAME_PAYLOAD_MAX && !o->wide)
                widen(o);
        taken(a, x, i, to, (size_t)got);
        return true;
}

static void grant_stdin(struct agent *a, struct exec *x, uint32_t bytes) {
        uint8_t buf[WINDOW_SIZE];

        window_encode(&(struct window){ STREAM_STDIN, bytes }, buf);
        link_put(&a->link, FRAME_WINDOW, x->channel, buf, sizeof(buf));
}

/* Writes what is buffered for the command's stdin, and gives the sender credit for what went. A command
 * that closed its stdin, or is gone, takes everything: the sender must not wait for it. */
static void feed(struct agent *a, struct exec *x) {
        struct exec_in *in = &x->in;
        uint32_t gone = 0;

        while (in->len > 0) {
                ssize_t n = in->fd >= 0 ? write(in->fd, in->buf + in->start, in->len) : (ssize_t)in->len;

                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0) {
                        in->fd = close_fd(in->fd);
                        continue;
                }
                in->start += (size_t)n;
                in->len -= (size_t)n;
                gone += (uint32_t)n;
        }
        if (in->len == 0) {
                in->start = 0;
                if (in->eof && !x->tty)
                        in->fd = close_fd(in->fd);
                else if (in->eof && in->eof_us == 0 && x->state == EXEC_RUNNING)
                        in->eof_us = now_us();
        }
        if (gone > 0 && link_room(&a->link) >= WINDOW_SIZE)
                grant_stdin(a, x, gone);
        else
                in->ungranted += gone;
}

int stream_stdin_frame(struct agent *a, const struct frame *f) {
        struct exec *x = exec_find(a, f->channel);
        struct exec_in *in;

        if (!x)
                return 0; /* it ended while the frame was on its way */
        in = &x->in;
        if (in->eof || f->len > FRAME_CREDIT - in->len)
                return -EPROTO;
        if (in->start + in->len + f->len > FRAME_CREDIT) {
                memmove(in->buf, in->buf + in->start, in->len);
                in->start = 0;
        }
        memcpy(in->buf + in->start + in->len, f->payload, f->len);
        in->len += f->len;
        x->pool_used |= in->start + in->len > POOL_KEPT;
        in->eof = f->flags & FRAME_EOF;
        feed(a, x);
        return 0;
}

int stream_window_frame(struct agent *a, const struct frame *f) {
        struct exec *x = exec_find(a, f->channel);
        struct reader *r = attach_find(a, f->channel);
        struct window w;

        if (window_decode(f->payload, f->len, &w) < 0 || w.stream == STREAM_STDIN)
                return -EPROTO;
        if (r)
                r->credit[w.stream - STREAM_STDOUT] += w.bytes;
        if (x)
                x->out[w.stream - STREAM_STDOUT].credit += w.bytes;
        return 0;
}

void stream_event(struct agent *a, enum agent_event kind, unsigned index) {
        struct exec *x = &a->execs[index];

        if (x->state == EXEC_FREE)
                return;
        if (kind == EVENT_STDIN)
                feed(a, x);
        else
                x->out[kind == EVENT_STDOUT ? 0 : 1].ready = true;
}

void stream_grant(struct agent *a, struct exec *x) {
        if (x->in.ungranted == 0 || link_room(&a->link) < WINDOW_SIZE)
                return;
        grant_stdin(a, x, x->in.ungranted);
        x->in.ungranted = 0;
}

void stream_drain(struct exec *x) {
        x->in.fd = close_fd(x->in.fd);
        x->in.eof_us = 0;
        /* A terminal's count leaves out what is on its way; a read does not. It ends with EIO, or with EAGAIN
         * while a background process has it open. */
        if (x->tty) {
                x->out[0].theirs = close_fd(x->out[0].theirs);
                x->out[0].final_left = TTY_HELD_MAX;
                x->out[0].ready = true;
                return;
        }
        for (int i = 0; i < 2; i++) {
                int held = 0;

                if (x->out[i].fd < 0)
                        continue;
                if (ioctl(x->out[i].fd, FIONREAD, &held) == 0)
                        x->out[i].final_left = held;
                x->out[i].ready = true;
        }
}

/* A chunk a stream, so that one that floods cannot starve another. The next round goes on where this one
 * found the link full: the slots in front would take all of its room for ever. */
static bool pump_round(struct agent *a) {
        unsigned from = a->pump_from < a->top ? a->pump_from : 0;
        bool more = attach_pump(a), moved;

        for (unsigned n = 0; n < a->top; n++) {
                unsigned i = (from + n) % a->top;

                if (a->execs[i].state == EXEC_FREE || a->execs[i].state == EXEC_KEPT)
                        continue;
                moved = pump(a, &a->execs[i], 0);
                moved |= pump(a, &a->execs[i], 1);
                if (moved)
                        a->pump_from = (i + 1) % a->top;
                more |= moved;
        }
        return more;
}

bool stream_pump(struct agent *a) {
        bool more = true;

        for (int round = 0; more && round < PUMP_ROUNDS; round++)
                more = pump_round(a);
        return more;
}
