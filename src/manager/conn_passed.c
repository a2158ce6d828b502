/*
 * The one descriptor that may come with a request: the first is kept until somebody takes it, others are closed, by
 * the kernel where there is no room for them. (Behind one there is, for a second, as the room is rounded up.)
 */
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "manager/conn.h"

ssize_t conn_receive_passed(struct conn *c, uint8_t *buf, size_t cap) {
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec iov = { buf, cap };
        struct msghdr mh = { .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(c->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        struct cmsghdr *h = n < 0 ? NULL : CMSG_FIRSTHDR(&mh);

        if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
                return n;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= h->cmsg_len; at += sizeof(int)) {
                int fd;

                memcpy(&fd, (uint8_t *)h + at, sizeof(fd));
                if (c->passed < 0)
                        c->passed = fd;
                else
                        close_fd(fd);
        }
        return n;
}

void conn_pass_none(struct conn *c) {
        c->passes = false;
        c->passed = close_fd(c->passed);
}
