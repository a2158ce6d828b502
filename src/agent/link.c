/*
 * The stream to the manager. Frames to be sent are built in place at the end of one bounded buffer, so
 * that a command's output is read from its pipe straight to where it is sent from; whoever wants to add
 * a frame asks link_room() first, and what does not fit waits in its pipe.
 */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void link_init(struct link *l) {
        l->fd = -1;
        l->out_start = l->out_len = l->in_len = 0;
}

int link_connect(struct link *l, const char *path) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        int fd, r;

        if (strlen(path) >= sizeof(sa.sun_path))
                return -ENAMETOOLONG;
        strcpy(sa.sun_path, path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
                r = -errno;
                close(fd);
                return r;
        }
        link_init(l);
        l->fd = fd;
        return 0;
}

void link_close(struct link *l) {
        if (l->fd >= 0)
                close(l->fd);
        link_init(l);
}

size_t link_room(struct link *l) {
        size_t room;

        if (l->fd < 0)
                return 0;
        if (l->out_len == 0)
                l->out_start = 0;
        /* Move the rest to the front before less than one frame fits behind it. */
        if (l->out_start > 0 && LINK_OUT - l->out_start - l->out_len < FRAME_MAX) {
                memmove(l->out, l->out + l->out_start, l->out_len);
                l->out_start = 0;
        }
        room = LINK_OUT - l->out_start - l->out_len;
        return room > FRAME_HEADER ? room - FRAME_HEADER : 0;
}

uint8_t *link_payload(struct link *l) {
        return l->out + l->out_start + l->out_len + FRAME_HEADER;
}

void link_commit(struct link *l, uint8_t type, uint8_t flags, uint32_t channel, uint32_t len) {
        frame_put_header(l->out + l->out_start + l->out_len, type, flags, channel, len);
        l->out_len += FRAME_HEADER + len;
}

void link_put(struct link *l, uint8_t type, uint32_t channel, const void *p, uint32_t len) {
        uint8_t frame[FRAME_HEADER + LINK_SMALL];
        size_t n = FRAME_HEADER + len;
        ssize_t sent = 0;

        frame_put_header(frame, type, 0, channel, len);
        if (len > 0)
                memcpy(frame + FRAME_HEADER, p, len);
        /* Most often alone: then it takes no page of the buffer. An error is link_flush()'s to see. */
        if (l->out_len == 0)
                sent = send(l->fd, frame, n, MSG_NOSIGNAL);
        if (sent < 0)
                sent = 0;
        memcpy(l->out + l->out_start + l->out_len, frame + sent, n - (size_t)sent);
        l->out_len += n - (size_t)sent;
}

int link_flush(struct link *l) {
        while (l->fd >= 0 && l->out_len > 0) {
                ssize_t n = send(l->fd, l->out + l->out_start, l->out_len, MSG_NOSIGNAL);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return errno == EAGAIN ? 0 : -errno;
                }
                l->out_start += (size_t)n;
                l->out_len -= (size_t)n;
        }
        return 0;
}

int link_receive(struct link *l, int (*handle)(void *userdata, const struct frame *f), void *userdata) {
        size_t room = LINK_IN - l->in_len, done = 0;
        ssize_t n = 0;
        int r = 0;

        if (room > 0) {
                n = recv(l->fd, l->in + l->in_len, room, 0);
                if (n == 0)
                        return -ECONNRESET;
                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return -errno;
                if (n > 0)
                        l->in_len += (size_t)n;
        }
        while (r == 0) {
                struct frame f;
                size_t used;

                r = frame_parse(l->in + done, l->in_len - done, FRAME_FROM_MANAGER, &f, &used);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                r = handle(userdata, &f);
                if (r < 0)
                        return r;
                if (r == 0)
                        done += used;
        }
        l->in_len -= done;
        memmove(l->in, l->in + done, l->in_len);
        return r == LINK_LATER ? r : n == (ssize_t)room;
}
