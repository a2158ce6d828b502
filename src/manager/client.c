/* A caller's connection: HELLO, one request, its answer. Who it is was read from the socket at accept. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/log.h"
#include "manager/exec.h"
#include "manager/gateway.h"
#include "manager/manager.h"
#include "manager/session.h"

/* An answered client that does not close its end is closed after this. */
#define LINGER_MS 5000
/* After this what is queued for a caller is sent without the frame that it waits for. A short command ends before
 * that, on a busy machine too, and costs its caller one wake-up alone. */
#define ANNOUNCE_MS 20
/* Of one user's commands, those that come in and those that wait or run: a session full of the longest that the shipped
 * profiles take has 192 MiB. */
#define HELD_PER_UID (256u << 20)

void client_announce_later(struct manager *m) {
        if (m->announcing)
                return;
        m->announcing = true;
        sd_event_source_set_time_relative(m->announce, ANNOUNCE_MS * 1000);
        sd_event_source_set_enabled(m->announce, SD_EVENT_ONESHOT);
}

int client_announce(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        uint64_t now = now_ms();
        struct client *c;

        (void)s;
        (void)usec;
        m->announcing = false;
        LIST_FOREACH(c, &m->clients, link) {
                if (c->conn.out_len == 0 || c->conn.full || (c->exec && c->exec->state == EXEC_WAITING))
                        continue;
                if (now - c->since_ms >= ANNOUNCE_MS)
                        conn_flush(&c->conn);
                else
                        client_announce_later(m);
        }
        return 0;
}

void client_finish(struct client *c, uint8_t type, const void *payload, size_t len) {
        c->answered = true;
        c->exec = NULL;
        c->opening = NULL;
        c->images = NULL;
        if (c->stopping)
                session_stop_left(c);
        c->since_ms = now_ms();
        conn_send(&c->conn, type, 0, c->channel, payload, len);
        conn_pause(&c->conn, true);
}

/* The words of the trails that a program is told, too. */
static uint8_t reason_of(const char *word) {
        static const struct {
                const char *word;
                uint8_t reason;
        } reasons[] = {
                { "no_session", REJECT_NO_SESSION }, { "stopped", REJECT_STOPPED },
                { "name_taken", REJECT_NAME_TAKEN }, { "ambiguous", REJECT_AMBIGUOUS },
                { "no_profile", REJECT_NO_PROFILE }, { "other_image", REJECT_OTHER_IMAGE },
                { "no_user", REJECT_NO_USER },       { "session_lost", REJECT_NO_SESSION },
        };

        for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
                if (strcmp(reasons[i].word, word) == 0)
                        return reasons[i].reason;
        return REJECT_OTHER;
}

__attribute__((format(printf, 4, 0))) static void reject(struct client *c, uint8_t exit_code,
                                                         const char *word, const char *fmt, va_list ap) {
        char line[PROTO_LINE_MAX];
        uint8_t buf[PROTO_LINE_MAX + 64];
        struct reject r = { exit_code, reason_of(word), line };

        vsnprintf(line, sizeof(line), fmt, ap);
        c->m->n_rejected++;
        client_finish(c, FRAME_REJECT, buf, (size_t)reject_encode(&r, buf, sizeof(buf)));
}

void client_reject(struct client *c, uint8_t exit_code, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        reject(c, exit_code, "", fmt, ap);
        va_end(ap);
}

void client_refuse(struct client *c, uint8_t exit_code, const char *word, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        reject(c, exit_code, word, fmt, ap);
        va_end(ap);
}

void client_answer(struct client *c, uint8_t type, const char *text, size_t len) {
        size_t done = 0;

        for (; len - done > FRAME_PAYLOAD_MAX; done += FRAME_PAYLOAD_MAX)
                conn_queue(&c->conn, type, FRAME_MORE, c->channel, text + done, FRAME_PAYLOAD_MAX);
        client_finish(c, type, text + done, len - done);
}

static void client_free(struct client *c) {
        if (c->exec)
                exec_hangup(c->exec);
        if (c->opening)
                session_hangup(c->opening);
        if (c->images)
                image_hangup(c->images);
        if (c->stopping)
                session_stop_left(c);
        LIST_REMOVE(c, link);
        c->m->n_clients--;
        conn_done(&c->conn);
        peer_done(&c->peer);
        free(c->request);
        free(c);
}

void client_leave(struct client *c) {
        if (c->conn.out_len == 0)
                client_free(c);
}

static int on_hello(struct client *c, const struct frame *f) {
        struct hello h;

        if (f->type != FRAME_HELLO || hello_decode(f->payload, f->len, &h) < 0 ||
            (h.role != HELLO_CLIENT && h.role != HELLO_GATEWAY))
                return -EPROTO;
        c->greeted = true;
        conn_greet(&c->conn);
        client_announce_later(c->m);
        if (h.version != FRAME_VERSION)
                client_reject(c, EXIT_SANDBOX,
                              "the client speaks frame version %u, hermes-sandboxd %u: "
                              "install the same version of both",
                              h.version, FRAME_VERSION);
        else
                return gateway_hello(c, h.role, h.text);
        return 0;
}

static size_t held_for(const struct manager *m, uid_t uid) {
        const struct client *c;
        const struct exec *x;
        size_t n = 0;

        LIST_FOREACH(c, &m->clients, link)
        if (c->peer.uid == uid)
                n += c->request_len;
        LIST_FOREACH(x, &m->execs, link)
        if (x->audit.caller.uid == uid)
                n += x->payload_len;
        return n;
}

static void drop_request(struct client *c) {
        free(c->request);
        c->request = NULL;
        c->request_len = 0;
}

/* Joins the frames of an EXEC. What is too long is counted and not kept. */
static int on_exec(struct client *c, const struct frame *f) {
        if (c->request_total > 0 && f->channel != c->channel)
                return -EPROTO;
        c->channel = f->channel;
        c->request_total += f->len;
        /* One frame is little. */
        if (c->request_len > 0 && held_for(c->m, c->peer.uid) + f->len > HELD_PER_UID) {
                drop_request(c);
                client_refuse(
                        c, EXIT_SANDBOX, "quota",
                        "rejected: your commands that wait or run have %u MiB: wait for some to end",
                        HELD_PER_UID >> 20);
                return 0;
        }
        if (c->request_total <= PROTO_EXEC_MAX && f->len > 0) {
                uint8_t *p = realloc(c->request, c->request_len + f->len);

                if (!p)
                        abort();
                memcpy(p + c->request_len, f->payload, f->len);
                c->request = p;
                c->request_len += f->len;
        }
        if (f->flags & FRAME_MORE)
                return 0;
        if (c->request_total > PROTO_EXEC_MAX)
                client_reject(c, EXIT_USAGE, "the request has %llu bytes: at most %u fit",
                              (unsigned long long)c->request_total, PROTO_EXEC_MAX);
        else {
                uint8_t *p = c->request;
                size_t len = c->request_len;

                c->request = NULL;
                c->request_len = 0;
                exec_request(c, p, len);
        }
        return 0;
}

static int on_status(struct client *c, const struct frame *f) {
        _cleanup_free_ char *text = NULL;
        size_t len;

        if (f->len != 1 || f->payload[0] > 1 || f->flags)
                return -EPROTO;
        c->channel = f->channel;
        if (!peer_allowed(&c->peer, &c->m->policy)) {
                request_not_allowed(
                        c, "status", "", "",
                        "uid %u is not in group hermes-sandbox: sudo usermod -aG hermes-sandbox "
                        "USER, then log in again",
                        (unsigned)c->peer.uid);
                return 0;
        }
        text = status_text(c->m, &c->peer, f->payload[0], &len);
        if (!text)
                abort();
        client_answer(c, FRAME_STATUS, text, len);
        return 0;
}

/* What runs in the sessions of an earlier life is known in a moment. */
static int put_off(struct client *c, const struct frame *f) {
        c->request = malloc(f->len);
        if (!c->request)
                abort();
        memcpy(c->request, f->payload, f->len);
        c->request_len = f->len;
        c->later = f->type;
        c->since_ms = now_ms();
        conn_pause(&c->conn, true);
        return 0;
}

/* The same request again; what was not refused before is not refused now. */
static void resume(struct client *c) {
        struct frame f = { .type = c->later,
                           .channel = c->channel,
                           .len = (uint32_t)c->request_len,
                           .payload = c->request };
        int r;

        c->later = 0;
        r = f.type == FRAME_ASK ? ask_handle(c, &f) : attach_handle(c, &f);
        if (r < 0)
                client_reject(c, EXIT_USAGE, "the request is malformed");
        else if (c->exec)
                conn_pause(&c->conn, false);
}

void clients_resume(struct manager *m) {
        struct client *c, *next;

        for (c = LIST_FIRST(&m->clients); c; c = next) {
                next = LIST_NEXT(c, link);
                if (c->later)
                        resume(c);
        }
}

static int on_frame(void *userdata, const struct frame *f) {
        struct client *c = userdata;
        int r;

        /* POOL-STOP is written: nothing shall come behind it. */
        if (c->m->stopping && !c->answered)
                return -ECONNRESET;
        if (!c->greeted)
                return on_hello(c, f);
        if (c->answered)
                return 0;
        if (c->exec)
                return exec_client_frame(c->exec, f);
        /* It has asked, and waits for the answer; or has begun with another request. */
        if (c->opening || c->images || c->stopping || (c->request_total > 0 && f->type != FRAME_EXEC))
                return -EPROTO;
        if (f->type != FRAME_OPEN)
                conn_pass_none(&c->conn);
        switch (f->type) {
        case FRAME_EXEC:
                return on_exec(c, f);
        case FRAME_STATUS:
                return on_status(c, f);
        case FRAME_OPEN:
                c->channel = f->channel;
                r = open_handle(c, f);
                conn_pass_none(&c->conn);
                return r;
        case FRAME_ASK:
        case FRAME_ATTACH:
                c->channel = f->channel;
                if (c->m->n_adopting > 0 && (f->type == FRAME_ATTACH || ask_needs_sessions(f)))
                        return put_off(c, f);
                return f->type == FRAME_ASK ? ask_handle(c, f) : attach_handle(c, f);
        default:
                return -EPROTO;
        }
}

static void on_end(void *userdata, int r) {
        struct client *c = userdata;

        if (r == -EPROTO || r == -ENOBUFS)
                log_line(LOG_P_WARNING, "a client of uid %u (pid %d) broke the protocol",
                         (unsigned)c->peer.uid, (int)c->peer.pid);
        client_free(c);
}

static bool too_many(const struct manager *m, uid_t uid) {
        const struct client *c;
        unsigned n = 0;

        if (m->n_clients < CLIENTS_PER_UID)
                return false;
        LIST_FOREACH(c, &m->clients, link)
        n += c->peer.uid == uid;
        return n >= CLIENTS_PER_UID || m->n_clients >= CLIENTS_MAX;
}

static void take(struct manager *m, int fd) {
        struct client *c = calloc(1, sizeof(*c));

        if (!c || peer_get(fd, &c->peer) < 0) {
                close_fd(fd);
                free(c);
                return;
        }
        c->m = m;
        c->since_ms = now_ms();
        if (conn_init(&c->conn, m->event, fd, FRAME_FROM_CLIENT, on_frame, on_end, c) < 0) {
                peer_done(&c->peer);
                free(c);
                return;
        }
        LIST_INSERT_HEAD(&m->clients, c, link);
        m->n_clients++;
        c->conn.passes = true;
        if (too_many(m, c->peer.uid)) {
                c->greeted = true;
                c->channel = 1;
                conn_greet(&c->conn);
                client_reject(c, EXIT_SANDBOX,
                              "rejected: uid %u has %u connections open: wait for some to end",
                              (unsigned)c->peer.uid, CLIENTS_PER_UID);
                return;
        }
        /* The request is on its way behind the connect: it need not wait for another turn. */
        conn_poke(&c->conn);
}

bool client_accept(struct manager *m) {
        /* One at a time: the loop says at once when there are more, and most often there are none. */
        int fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return false;
        take(m, fd);
        return true;
}

void clients_check(struct manager *m, uint64_t now) {
        struct client *c, *next;

        for (c = LIST_FIRST(&m->clients); c; c = next) {
                next = LIST_NEXT(c, link);
                if (c->later && now - c->since_ms > FIRST_FRAME_MS)
                        resume(c);
                else if (c->answered ? now - c->since_ms > LINGER_MS && c->conn.out_len == 0
                                     : !c->exec && !c->opening && !c->images && !c->stopping &&
                                               !c->later && now - c->since_ms > FIRST_FRAME_MS)
                        client_free(c);
        }
}
