#include "manager/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/cleanup.h"
#include "common/proto.h"

/* What is read at once, from any connection. */
#define CONN_READ (4 * FRAME_MAX)
/* The loop is single-threaded and no handler reads another connection: one buffer serves all. */
static uint8_t scratch[CONN_READ];

/* What conn_pass() has collected and not yet sent: whole frames, one behind the other, in the buffer that is
 * just being parsed. */
static struct {
        struct conn *to; /* NULL: nothing */
        uint8_t *p;
        size_t len;
} passing;

static void pass_now(void);

static void want(struct conn *c, uint32_t events) {
        if (events != c->events && sd_event_source_set_io_events(c->source, events) >= 0)
                c->events = events;
}

/* A pause is told to the kernel only once something comes (on_io): most end before that. */
static void want_now(struct conn *c) {
        uint32_t in = c->paused ? c->events & (EPOLLIN | EPOLLRDHUP) : EPOLLIN;

        want(c, in | (c->full ? EPOLLOUT : 0));
}

/* Keeps @len bytes for the next turn. */
static int keep(struct conn *c, const uint8_t *p, size_t len) {
        uint8_t *in = c->in;

        if (len > 0 && p != c->in) {
                in = realloc(c->in, len);
                if (!in)
                        return -ENOMEM;
                memmove(in, p, len);
        } else if (len == 0) {
                free(c->in);
                in = NULL;
        }
        c->in = in;
        c->in_len = len;
        return 0;
}

/* Parses @buf[0..len) and keeps the rest. */
static int digest(struct conn *c, uint8_t *buf, size_t len) {
        size_t done = 0;
        int r = 0;

        while (!c->paused) {
                struct frame f;
                size_t used;

                r = frame_parse(buf + done, len - done, c->peer, &f, &used);
                if (r <= 0)
                        break;
                done += used;
                r = c->on_frame(c->userdata, &f);
                if (r < 0)
                        break;
        }
        pass_now();
        return r < 0 ? r : keep(c, buf + done, len - done);
}

static int receive(struct conn *c) {
        size_t have = c->in_len, cap = sizeof(scratch) - have;
        ssize_t n;

        if (c->paused)
                return 0;
        memcpy(scratch, c->in ? c->in : scratch, have);
        n = c->passes ? conn_receive_passed(c, scratch + have, cap)
                      : recv(c->fd, scratch + have, cap, MSG_DONTWAIT);
        if (n == 0)
                return -ECONNRESET;
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        return digest(c, scratch, have + (size_t)n);
}

static void drop_queue(struct conn *c) {
        free(c->out);
        c->out = NULL;
        c->out_start = c->out_cap = 0;
        c->last_grows = c->full = false;
}

static int send_queue(struct conn *c) {
        while (c->out_len > 0) {
                ssize_t n = send(c->fd, c->out + c->out_start, c->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                c->full = n < 0 && errno == EAGAIN;
                if (n < 0)
                        return c->full ? 0 : -errno;
                c->out_start += (size_t)n;
                c->out_len -= (size_t)n;
                c->last_grows = false;
        }
        drop_queue(c);
        return 0;
}

int conn_poke(struct conn *c) {
        int r = receive(c);

        if (r < 0)
                c->on_end(c->userdata, r);
        return r;
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct conn *c = userdata;
        int r = 0;

        (void)s;
        (void)fd;
        if (c->overrun)
                r = -ENOBUFS;
        if (r == 0 && revents & EPOLLOUT) {
                r = send_queue(c);
                if (r == 0 && c->on_sent)
                        c->on_sent(c->userdata);
        }
        if (r == 0 && revents & EPOLLIN && !c->paused)
                r = receive(c);
        /* While it is paused nothing is read, and the end shows only here. */
        else if (r == 0 && revents & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
                r = -ECONNRESET;
        else if (r == 0 && revents & EPOLLIN)
                want(c, EPOLLRDHUP | (c->events & EPOLLOUT));
        if (r < 0)
                c->on_end(c->userdata, r);
        else
                want_now(c);
        return 0;
}

int conn_init(struct conn *c, sd_event *event, int fd, enum frame_from peer,
              int (*on_frame)(void *, const struct frame *), void (*on_end)(void *, int),
              void *userdata) {
        int r;

        *c = (struct conn){ .fd = fd,
                            .peer = peer,
                            .events = EPOLLIN,
                            .passed = -1,
                            .out_max = CONN_OUT_MAX,
                            .on_frame = on_frame,
                            .on_end = on_end,
                            .userdata = userdata };
        r = sd_event_add_io(event, &c->source, fd, EPOLLIN, on_io, c);
        if (r < 0)
                conn_done(c);
        return r < 0 ? r : 0;
}

void conn_done(struct conn *c) {
        if (passing.to == c)
                passing.to = NULL;
        c->source = sd_event_source_disable_unref(c->source);
        c->fd = close_fd(c->fd);
        conn_pass_none(c);
        free(c->in);
        free(c->out);
        c->in = c->out = NULL;
        c->in_len = c->out_len = c->out_start = c->out_cap = 0;
}

/* Room for @len more bytes at the end of the queue. */
static uint8_t *reserve(struct conn *c, size_t len) {
        if (c->out_start + c->out_len + len > c->out_cap) {
                if (c->out_start > 0) {
                        memmove(c->out, c->out + c->out_start, c->out_len);
                        c->last_frame -= c->last_grows ? c->out_start : 0;
                        c->out_start = 0;
                }
                if (c->out_len + len > c->out_cap) {
                        size_t cap = c->out_len + len + c->out_cap / 2;
                        uint8_t *out = realloc(c->out, cap);

                        if (!out)
                                abort(); /* crash-only: see CONVENTIONS on memory in the daemons */
                        c->out = out;
                        c->out_cap = cap;
                }
        }
        return c->out + c->out_start + c->out_len;
}

/* A stream's bytes join the last queued frame where that is of the same stream: small writes to a peer
 * that does not read must not cost a header each. */
static bool grow_last(struct conn *c, uint8_t type, uint8_t flags, uint32_t channel, const void *payload,
                      size_t len) {
        struct frame f;
        size_t used;
        uint8_t *head;

        if (!c->last_grows || flags || (type != FRAME_STDOUT && type != FRAME_STDERR))
                return false;
        if (frame_parse(c->out + c->last_frame, c->out_start + c->out_len - c->last_frame,
                        FRAME_FROM_MANAGER, &f, &used) != 1 ||
            f.type != type || f.channel != channel || f.len + len > FRAME_PAYLOAD_MAX)
                return false;
        memcpy(reserve(c, len), payload, len);
        head = c->out + c->last_frame;
        frame_put_header(head, type, 0, channel, f.len + (uint32_t)len);
        c->out_len += len;
        c->out_joined += len;
        return true;
}

/* @len bytes have joined the end of the queue. */
static void joined(struct conn *c, size_t len) {
        c->out_len += len;
        c->out_joined += len;
        if (c->out_len > c->out_max && !c->overrun) {
                c->overrun = true;
                shutdown(c->fd, SHUT_RDWR); /* the loop sees it and calls on_end */
        }
}

/* What was passed to this peer before goes first. */
static void keep_order(const struct conn *c) {
        if (passing.to == c)
                pass_now();
}

void conn_queue(struct conn *c, uint8_t type, uint8_t flags, uint32_t channel, const void *payload,
                size_t len) {
        uint8_t *p;

        keep_order(c);
        if (c->fd < 0 || c->overrun || grow_last(c, type, flags, channel, payload, len))
                return;
        p = reserve(c, FRAME_HEADER + len);
        frame_put_header(p, type, flags, channel, (uint32_t)len);
        if (len > 0)
                memcpy(p + FRAME_HEADER, payload, len);
        c->last_frame = (size_t)(p - c->out);
        c->last_grows = true;
        joined(c, FRAME_HEADER + len);
}

void conn_greet(struct conn *c) {
        const struct hello h = { FRAME_VERSION, HELLO_MANAGER, "hermes-sandboxd " VERSION };
        uint8_t buf[256];

        conn_queue(c, FRAME_HELLO, 0, 0, buf, (size_t)hello_encode(&h, buf, sizeof(buf)));
}

void conn_flush(struct conn *c) {
        keep_order(c);
        if (c->fd < 0)
                return;
        /* A failed send shows as an error event of the loop, where the owner can handle it. */
        (void)send_queue(c);
        want_now(c);
}

/* Once a peer has shown that it is slow: the socket then holds more, and the queue here less. */
static bool widen(struct conn *c) {
        int bytes = 2 * FRAME_CREDIT;

        if (c->widened)
                return false;
        c->widened = true;
        return setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0;
}

/* The queue, then both parts; what the socket does not take joins the queue. */
static void send_behind(struct conn *c, struct iovec part[2]) {
        do {
                struct iovec iov[3] = { { c->out ? c->out + c->out_start : NULL, c->out_len },
                                        part[0],
                                        part[1] };
                struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 3 };
                ssize_t n = sendmsg(c->fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
                size_t left = n > 0 ? (size_t)n : 0, took = left < c->out_len ? left : c->out_len;

                c->last_grows = c->last_grows && took == 0;
                c->out_start += took;
                c->out_len -= took;
                left -= took;
                for (int i = 0; i < 2; i++) {
                        took = left < part[i].iov_len ? left : part[i].iov_len;
                        if (took == 0)
                                continue; /* a frame without payload has no address to count from */
                        part[i].iov_base = (uint8_t *)part[i].iov_base + took;
                        part[i].iov_len -= took;
                        left -= took;
                }
        } while (c->out_len + part[0].iov_len + part[1].iov_len > 0 && widen(c));

        for (int i = 0; i < 2; i++)
                if (part[i].iov_len > 0) {
                        memcpy(reserve(c, part[i].iov_len), part[i].iov_base, part[i].iov_len);
                        c->last_grows = false;
                        joined(c, part[i].iov_len);
                }
        c->full = true;
        if (c->out_len == 0)
                drop_queue(c);
        want_now(c);
}

void conn_send(struct conn *c, uint8_t type, uint8_t flags, uint32_t channel, const void *payload,
               size_t len) {
        uint8_t head[FRAME_HEADER];

        keep_order(c);
        if (c->fd < 0)
                return;
        if (c->full) {
                conn_queue(c, type, flags, channel, payload, len);
                return;
        }
        frame_put_header(head, type, flags, channel, (uint32_t)len);
        send_behind(c, (struct iovec[2]){ { head, sizeof(head) }, { (void *)payload, len } });
}

void conn_pass(struct conn *c, const struct frame *f, uint32_t channel) {
        /* It stands in our own buffer, behind its header. */
        uint8_t *p = (uint8_t *)(uintptr_t)f->payload - FRAME_HEADER;

        if (c->fd < 0)
                return;
        if (c->full) {
                conn_queue(c, f->type, f->flags, channel, f->payload, f->len);
                return;
        }
        frame_put_header(p, f->type, f->flags, channel, f->len);
        if (passing.to != c || passing.p + passing.len != p) {
                pass_now();
                passing.to = c;
                passing.p = p;
                passing.len = 0;
        }
        passing.len += FRAME_HEADER + f->len;
}

static void pass_now(void) {
        struct conn *c = passing.to;

        passing.to = NULL;
        if (c && c->fd >= 0)
                send_behind(c, (struct iovec[2]){ { passing.p, passing.len } });
}

void conn_pause(struct conn *c, bool paused) {
        if (c->paused == paused)
                return;
        c->paused = paused;
        if (!paused && c->in_len > 0) {
                /* Frames that came meanwhile: handled as if they had come now, and not through the
                 * shared buffer, which another connection's handler may be standing in. */
                _cleanup_free_ uint8_t *kept = c->in;
                size_t len = c->in_len;
                int r;

                c->in = NULL;
                c->in_len = 0;
                r = digest(c, kept, len);
                if (r < 0) {
                        c->on_end(c->userdata, r);
                        return;
                }
        }
        if (c->fd >= 0)
                want_now(c);
}
