/*
 * Writing to a standard stream. No write(2) waits for a reader: the wait is ppoll's, and that one lets every
 * signal through (exec keeps them blocked otherwise). So a reader that has stopped reading leaves us
 * killable. It also serves a stream that was made non-blocking by somebody else.
 *
 * Up to PIPE_BUF bytes fit into a pipe where poll says so. For more, and for a terminal in raw mode, each kind of
 * stream has its own way not to wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cli/cli.h"

enum kind {
        UNKNOWN,
        SMALL,  /* a device, say: PIPE_BUF bytes at a time */
        BULK,   /* write(2) takes all, or what fits, and does not wait */
        SOCKET, /* send(2) can be told not to wait */
};

/* What a standard stream is, and where its bytes go. */
static struct stream {
        enum kind kind;
        bool pipe;
        int fd;
} streams[STDERR_FILENO + 1];

/* A description of our own for the pipe or terminal behind @fd: its flags are not shared with the others that have
 * it open. Without /proc, or without the right to open what another user made, there is none. */
static int reopen(int fd) {
        char path[] = "/proc/self/fd/0";

        path[sizeof(path) - 2] = (char)('0' + fd);
        return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static struct stream look(int fd) {
        struct stat st;
        int own;

        if (fstat(fd, &st) < 0)
                return (struct stream){ SMALL, false, fd };
        if (S_ISSOCK(st.st_mode))
                return (struct stream){ SOCKET, false, fd };
        /* A file waits for no reader, nor does /dev/null (1, 3: admin-guide/devices.txt). */
        if (S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
                return (struct stream){ BULK, false, fd };
        if (!S_ISFIFO(st.st_mode) && !isatty(fd))
                return (struct stream){ SMALL, false, fd };
        own = reopen(fd);
        return (struct stream){ own < 0 ? SMALL : BULK, S_ISFIFO(st.st_mode), own < 0 ? fd : own };
}

static ssize_t put(const struct stream *s, const char *p, size_t len) {
        if (s->kind == SOCKET)
                return send(s->fd, p, len, MSG_DONTWAIT);
        if (s->kind == BULK)
                return write(s->fd, p, len);
        return write(s->fd, p, len < PIPE_BUF ? len : PIPE_BUF);
}

static int wait_for_room(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        sigset_t none;

        sigemptyset(&none);
        return ppoll(&p, 1, NULL, &none) < 0 && errno != EINTR ? -errno : 0;
}

static const struct stream *stream_of(int fd) {
        if (streams[fd].kind == UNKNOWN)
                streams[fd] = look(fd);
        return &streams[fd];
}

static int write_all(const struct stream *to, const char *b, size_t len) {
        const struct stream s = *to;
        bool full = s.kind == SMALL;

        while (len > 0) {
                int r = full ? wait_for_room(s.fd) : 0;
                ssize_t n;

                if (r < 0)
                        return r;
                n = put(&s, b, len);
                full = s.kind == SMALL || (n < 0 && errno == EAGAIN);
                if (n >= 0) {
                        b += n;
                        len -= (size_t)n;
                } else if (errno != EINTR && errno != EAGAIN)
                        return -errno;
        }
        return 0;
}

int cli_write_all(int fd, const void *p, size_t len) {
        const struct stream small = { SMALL, false, fd };

        return write_all(len > PIPE_BUF && fd >= 0 && fd <= STDERR_FILENO ? stream_of(fd) : &small, p,
                         len);
}

int cli_write_terminal(int fd, const void *p, size_t len) {
        return write_all(stream_of(fd), p, len);
}

bool cli_write_is_pipe(int fd) {
        return stream_of(fd)->pipe;
}

ssize_t cli_write_move(int fd, int from, size_t len) {
        for (bool waited = false;; waited = true) {
                ssize_t n = splice(from, NULL, fd, NULL, len, SPLICE_F_NONBLOCK);
                int r;

                if (n >= 0)
                        return n;
                if (errno != EAGAIN && errno != EINTR)
                        return -errno;
                /* The pipe is full, or the socket is empty: it does not say which. */
                if (waited)
                        return -EAGAIN;
                r = wait_for_room(fd);
                if (r < 0)
                        return r;
        }
}
