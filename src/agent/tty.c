/*
 * A command's terminal: a pty that is made here, inside, and belongs to the command's uid. The command opens its
 * end by name, with its own rights (child.c). The agent keeps that end open, too: so the terminal lives for as
 * long as the command does, whoever closes it, and the agent sees whether its input waits for a reader.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Between two looks whether the end of the input has been read. */
#define EOF_RETRY_US 50000

static int set_size(int fd, uint16_t rows, uint16_t cols) {
        const struct winsize w = { .ws_row = rows, .ws_col = cols };

        return ioctl(fd, TIOCSWINSZ, &w) < 0 ? -errno : 0;
}

/* The agent's end, which does not block, with the command's end still closed to all. */
static int open_master(const struct agent_user *user) {
        int fd, r;

        start_as_command(user);
        fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        r = fd < 0 ? -errno : fd;
        if (start_as_agent() < 0) {
                close_fd(fd);
                return -EPERM;
        }
        return r;
}

int tty_open(struct agent *a, struct exec *x, const struct exec_order *o, char ret_name[TTY_NAME]) {
        unsigned slot = (unsigned)(x - a->execs), number;
        int unlocked = 0, r = open_master(x->user);

        if (r < 0)
                return r;
        x->out[0].fd = r;
        if (ioctl(x->out[0].fd, TIOCSPTLCK, &unlocked) < 0 || ioctl(x->out[0].fd, TIOCGPTN, &number) < 0)
                return -errno;
        x->out[0].theirs = ioctl(x->out[0].fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        x->in.fd = fcntl(x->out[0].fd, F_DUPFD_CLOEXEC, 0);
        if (x->out[0].theirs < 0 || x->in.fd < 0)
                return -errno;
        snprintf(ret_name, TTY_NAME, "/dev/pts/%u", number);
        r = set_size(x->out[0].fd, o->rows, o->cols);
        if (r == 0)
                r = start_watch(a, x->out[0].fd, EPOLLIN, EVENT_STDOUT, slot);
        return r < 0 ? r : start_watch(a, x->in.fd, EPOLLOUT, EVENT_STDIN, slot);
}

int tty_resize_frame(struct agent *a, const struct frame *f) {
        struct exec *x = exec_find(a, f->channel);
        struct resize r;

        if (resize_decode(f->payload, f->len, &r) < 0)
                return -EPROTO;
        if (x && x->tty && x->out[0].fd >= 0)
                set_size(x->out[0].fd, r.rows, r.cols);
        return 0;
}

/* A terminal has no end of input, only a character that lets one read return nothing: Ctrl-D at the start of a
 * line. Who reads afterwards would wait for ever, and a shell that changes its terminal's mode swallows it. So it is
 * written again for as long as the command runs, whenever all input has been read: as with /dev/null, every read
 * meets the end. */
void tty_end_input(struct exec *x, uint64_t now) {
        struct pollfd p = { .fd = x->out[0].theirs, .events = POLLIN };
        struct termios t;

        x->in.eof_us = now + EOF_RETRY_US;
        if (x->in.fd < 0 || poll(&p, 1, 0) != 0 || tcgetattr(x->in.fd, &t) < 0)
                return;
        if (write(x->in.fd, &t.c_cc[VEOF], 1) < 0)
                return; /* at the next look */
}

void tty_hang_up(struct exec *x) {
        x->in.fd = close_fd(x->in.fd);
        x->in.eof_us = 0;
        stream_end(&x->out[0]);
}
