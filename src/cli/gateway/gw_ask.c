/* As cli_ask.c, but it ends with the ssh client: an OPEN may wait for long in the pool's queue, and sshd tells of a client
 * that has gone by closing our output, not by a signal. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/gateway/gateway.h"
#include "common/exitcode.h"
#include "common/frame.h"

bool gw_hung_up(void) {
        struct pollfd p = { .fd = STDOUT_FILENO };

        return poll(&p, 1, 0) > 0 && p.revents != 0;
}

/* For the manager's next bytes. */
static void wait_for_answer(int fd) {
        struct pollfd p[] = { { .fd = fd, .events = POLLIN }, { .fd = STDOUT_FILENO } };

        do
                p[0].revents = p[1].revents = 0;
        while (poll(p, 2, -1) < 0 && errno == EINTR);
        if (p[1].revents)
                raise(SIGHUP);
}

/* -1: more is to come; else the exit status. */
static int on_frame(const struct frame *f, uint8_t *ret_reason, struct errmsg *e) {
        struct reject reject;

        if (f->type == FRAME_ANSWER)
                return f->flags & FRAME_MORE ? -1 : 0;
        if (f->type != FRAME_REJECT || reject_decode(f->payload, f->len, &reject) < 0)
                return errmsg_set(e, EXIT_SANDBOX,
                                  "protocol error: the manager's answer is none to the question");
        *ret_reason = reject.reason;
        return errmsg_set(e, reject.exit_code, "%s", reject.message);
}

static int receive(struct cli_conn *conn, uint8_t *ret_reason, struct errmsg *e) {
        struct frame f;
        int code, r;

        for (;;) {
                wait_for_answer(conn->fd);
                r = cli_conn_fill(conn, SIZE_MAX, 0);
                if (r <= 0)
                        return errmsg_set(e, EXIT_SANDBOX, "lost the manager%s%s", r < 0 ? ": " : "",
                                          r < 0 ? strerror(-r) : "");
                while ((r = cli_conn_next(conn, &f, e)) > 0) {
                        code = on_frame(&f, ret_reason, e);
                        if (code >= 0)
                                return code;
                }
                if (r < 0)
                        return EXIT_SANDBOX;
        }
}

int gw_ask(const struct gateway *g, const struct gw_who *who, struct cli_conn *conn, uint8_t type,
           const void *payload, size_t len, uint8_t *ret_reason, struct errmsg *e) {
        int r;

        *ret_reason = REJECT_OTHER;
        r = cli_conn_open(conn, &g->cli, e);
        if (r != 0)
                return r;
        conn->gateway = who->hello;
        r = cli_conn_request(conn, type, payload, len);
        if (r < 0)
                r = errmsg_set(e, EXIT_SANDBOX, "cannot send to the manager: %s", strerror(-r));
        else
                r = receive(conn, ret_reason, e);
        close(conn->fd);
        return r;
}
