/* One connection, one question, one answer. The read blocks: any signal ends the program, as it has nothing to
 * undo. */
#include "cli/cli_ask.h"

#include <string.h>
#include <unistd.h>

#include "cli/cli_conn.h"
#include "common/exitcode.h"
#include "common/frame.h"
#include "common/proto.h"

/* Text in the making. */
struct answer {
        cli_take *take;
        void *userdata;
        size_t n; /* bytes of a character whose end is in the next frame */
        char text[4 + FRAME_PAYLOAD_MAX];
};

int cli_take_say(void *userdata, const char *text, size_t len) {
        int r = cli_write_all(STDOUT_FILENO, text, len);

        (void)userdata;
        return r < 0 ? cli_write_failed("to stdout", r) : 0;
}

static int take_text(void *userdata, const uint8_t *p, size_t n, bool last) {
        struct answer *a = userdata;
        size_t len = a->n + n, whole;
        int r;

        memcpy(a->text + a->n, p, n);
        whole = cli_disarm(a->text, len);
        if (last && whole < len) {
                memset(a->text + whole, '?', len - whole);
                whole = len;
        }
        r = a->take(a->userdata, a->text, whole);
        a->n = len - whole;
        memmove(a->text, a->text + whole, a->n);
        return r;
}

/* -1: more is to come; else the exit status. */
static int on_frame(const struct cli_question *q, const struct frame *f, cli_take_bytes *take,
                    void *userdata, uint8_t *ret_reason, struct errmsg *e) {
        bool last = !(f->flags & FRAME_MORE);
        struct reject reject;
        int r;

        if (f->type == FRAME_REJECT && reject_decode(f->payload, f->len, &reject) == 0) {
                *ret_reason = reject.reason;
                return errmsg_set(e, reject.exit_code, "%s", reject.message);
        }
        if (f->type != (q->type == FRAME_STATUS ? FRAME_STATUS : FRAME_ANSWER) ||
            f->channel != CLI_CHANNEL)
                return errmsg_set(e, EXIT_SANDBOX,
                                  "protocol error: the manager's answer is none to the question");
        r = take(userdata, f->payload, f->len, last);
        return r != 0 || last ? r : -1;
}

static int receive(struct cli_conn *conn, const struct cli_question *q, cli_take_bytes *take,
                   void *userdata, uint8_t *ret_reason, struct errmsg *e) {
        struct frame f;
        int code, r;

        while ((r = cli_conn_fill(conn, SIZE_MAX, 0)) > 0) {
                while ((r = cli_conn_next(conn, &f, e)) > 0) {
                        code = on_frame(q, &f, take, userdata, ret_reason, e);
                        if (code >= 0)
                                return code;
                }
                if (r < 0)
                        return EXIT_SANDBOX;
        }
        return errmsg_set(e, EXIT_SANDBOX, "lost the manager%s%s", r < 0 ? ": " : "",
                          r < 0 ? strerror(-r) : "");
}

int cli_ask_bytes(const struct cli *c, const struct cli_question *q, cli_take_bytes *take,
                  void *userdata, uint8_t *ret_reason, struct errmsg *e) {
        static struct cli_conn conn;
        int r;

        *ret_reason = REJECT_OTHER;
        e->text[0] = '\0';
        r = cli_conn_open(&conn, c, e);
        if (r != 0)
                return r;
        r = cli_conn_request_fd(&conn, q->type, q->payload, q->len, q->fd);
        if (r < 0)
                r = errmsg_set(e, EXIT_SANDBOX, "cannot send to the manager: %s", strerror(-r));
        else
                r = receive(&conn, q, take, userdata, ret_reason, e);
        close(conn.fd);
        return r;
}

int cli_ask_frame(const struct cli *c, uint8_t type, const void *payload, size_t len, int fd,
                  cli_take *to, void *userdata, struct errmsg *e) {
        const struct cli_question q = { type, payload, len, fd };
        static struct answer a;
        uint8_t reason;

        a.take = to;
        a.userdata = userdata;
        a.n = 0;
        return cli_ask_bytes(c, &q, take_text, &a, &reason, e);
}

int cli_ask(const struct cli *c, const struct ask *asked, cli_take *to, void *userdata,
            struct errmsg *e) {
        static uint8_t payload[16384];
        struct ask a = *asked;
        ssize_t len;

        a.name = a.name ? a.name : "";
        a.profile = a.profile ? a.profile : "";
        len = ask_encode(&a, payload, sizeof(payload));
        if (len < 0)
                return errmsg_set(e, EXIT_USAGE, "the question is longer than %zu bytes",
                                  sizeof(payload));
        return cli_ask_frame(c, FRAME_ASK, payload, (size_t)len, -1, to, userdata, e);
}

int cli_ask_and_say(const struct cli *c, const struct ask *a) {
        struct errmsg e;
        int r = cli_ask(c, a, cli_take_say, NULL, &e);

        if (r != 0 && e.text[0] != '\0')
                cli_error("%s", e.text);
        return r;
}
