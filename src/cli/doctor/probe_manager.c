/* What `hermes-sandbox status --json` asks, but with a deadline: HELLO and STATUS go out, STATUS frames or a REJECT
 * come back. */
#include "cli/doctor/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/frame.h"
#include "common/proto.h"

#define ANSWER_MAX (4u << 20)
#define CHANNEL 1

struct talk {
        int fd;
        int64_t end_ms;
        bool greeted;
        size_t have; /* bytes in buf */
        char *answer;
        size_t len;
        uint8_t buf[FRAME_MAX];
};

static int open_socket(const char *path) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        if (strlen(path) >= sizeof(sa.sun_path))
                return -ENAMETOOLONG;
        strcpy(sa.sun_path, path);
        if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                return -errno;
        return take_fd(&fd);
}

/* Both frames are far smaller than a socket's buffer: a fresh connection takes them at once. */
static int ask(int fd) {
        const struct hello hello = { FRAME_VERSION, HELLO_CLIENT, "hermes-sandbox-doctor " VERSION };
        uint8_t out[2 * FRAME_HEADER + 256];
        ssize_t n = hello_encode(&hello, out + FRAME_HEADER, 128), sent;

        if (n < 0)
                return (int)n;
        frame_put_header(out, FRAME_HELLO, 0, 0, (uint32_t)n);
        n += FRAME_HEADER;
        frame_put_header(out + n, FRAME_STATUS, 0, CHANNEL, 1);
        n += FRAME_HEADER;
        out[n++] = 1; /* as JSON */
        sent = send(fd, out, (size_t)n, MSG_NOSIGNAL);
        if (sent < 0)
                return -errno;
        return sent == n ? 0 : -EAGAIN;
}

/* 1 when the answer is whole, 0 when more is to come, -errno and a line. */
static int on_frame(struct talk *t, const struct frame *f, struct errmsg *e) {
        struct reject reject;
        struct hello hello;
        char *more;

        if (f->type == FRAME_REJECT && reject_decode(f->payload, f->len, &reject) == 0)
                return errmsg_set(e, reject.exit_code == EXIT_NOT_ALLOWED ? -EACCES : -EPROTO, "%s",
                                  reject.message);
        if (!t->greeted) {
                if (f->type != FRAME_HELLO || hello_decode(f->payload, f->len, &hello) < 0 ||
                    hello.role != HELLO_MANAGER || hello.version != FRAME_VERSION)
                        return errmsg_set(e, -EPROTO,
                                          "who answers is no manager of this version: install the same "
                                          "release of both and restart the manager");
                t->greeted = true;
                return 0;
        }
        if (f->type != FRAME_STATUS || f->channel != CHANNEL || t->len + f->len > ANSWER_MAX)
                return errmsg_set(e, -EPROTO, "the manager's answer is none to the question");
        more = realloc(t->answer, t->len + f->len + 1);
        if (!more)
                return errmsg_set(e, -ENOMEM, "out of memory");
        t->answer = more;
        memcpy(t->answer + t->len, f->payload, f->len);
        t->len += f->len;
        return !(f->flags & FRAME_MORE);
}

/* All whole frames in the buffer; as on_frame(). */
static int take_frames(struct talk *t, struct errmsg *e) {
        struct frame f;
        size_t used;
        int r;

        while ((r = frame_parse(t->buf, t->have, FRAME_FROM_MANAGER, &f, &used)) > 0) {
                r = on_frame(t, &f, e);
                if (r != 0)
                        return r;
                t->have -= used;
                memmove(t->buf, t->buf + used, t->have);
        }
        return r < 0 ? errmsg_set(e, r, "a frame from the manager that makes no sense") : 0;
}

static int receive(struct talk *t, struct errmsg *e) {
        for (;;) {
                struct pollfd p = { .fd = t->fd, .events = POLLIN };
                int64_t left = t->end_ms - doctor_now_ms();
                ssize_t n;
                int r;

                if (left <= 0 || poll(&p, 1, (int)left) == 0)
                        return errmsg_set(e, -ETIMEDOUT, "the manager does not answer in time");
                n = recv(t->fd, t->buf + t->have, sizeof(t->buf) - t->have, MSG_DONTWAIT);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (n <= 0)
                        return errmsg_set(e, n < 0 ? -errno : -ECONNRESET,
                                          "the manager ended the connection");
                t->have += (size_t)n;
                r = take_frames(t, e);
                if (r != 0)
                        return r;
        }
}

int probe_manager(const char *socket, int64_t end_ms, json_t **ret, struct errmsg *e) {
        struct talk *t = calloc(1, sizeof(*t));
        int r;

        if (!t)
                return errmsg_set(e, -ENOMEM, "out of memory");
        t->end_ms = end_ms;
        t->fd = open_socket(socket);
        r = t->fd < 0 ? t->fd : ask(t->fd);
        if (r < 0)
                errmsg_set(e, r, "no manager at %s: %s", socket, strerror(-r));
        else
                r = receive(t, e);
        if (r > 0) {
                *ret = json_loadb(t->answer, t->len, 0, NULL);
                r = *ret ? 0 : errmsg_set(e, -EPROTO, "the manager's status is no JSON");
        }
        if (t->fd >= 0)
                close(t->fd);
        free(t->answer);
        free(t);
        return r;
}
