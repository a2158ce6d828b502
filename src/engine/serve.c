/*
 * One manager at a time. A newer connection of the manager's account replaces an older one: a manager
 * that was started again must not wait for the broker to notice that its predecessor is gone.
 *
 * The peer is known by SO_PEERCRED alone. A packet that is not a well-formed request ends the
 * connection: a manager of ours does not send such.
 */
#include "engine/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "common/cleanup.h"
#include "common/lastword.h"
#include "common/log.h"
#include "engine/elink.h"
#include "engine/requests.h"

/* Between connections, once one could not be taken for want of a descriptor: it stays there. */
#define ACCEPT_PACE_US 100000
/* The manager stays connected for that long, and tells the line meanwhile. */
#define LAST_WORD_MS 3000

struct packet {
        struct packet *next;
        int fd;
        size_t len;
        uint8_t bytes[];
};

struct serve {
        struct broker *broker;
        int listen_fd;
        bool own_socket; /* made by us: unlinked at the end */
        sd_event_source *listen_source;
        bool accept_paced;

        /* the connection, or -1 */
        int fd;
        sd_event_source *source;
        bool welcome;
        struct packet *out, **out_tail;
        size_t n_out;
        struct request *requests;
        size_t n_requests; /* of this connection */
        size_t n_live;     /* and of earlier ones, still being served */
};

/* --- sending
 * ----------------------------------------------------------------------------------------- */

static void outbox_pop(struct serve *s) {
        struct packet *p = s->out;

        s->out = p->next;
        if (!s->out)
                s->out_tail = &s->out;
        s->n_out--;
        close_fd(p->fd);
        free(p);
}

static void hang_up(struct serve *s, const char *why) {
        if (s->fd < 0)
                return;
        log_line(LOG_P_INFO, "manager: %s", why);
        sd_event_source_disable_unref(s->source);
        s->source = NULL;
        s->fd = close_fd(s->fd);
        s->welcome = false;
        while (s->out)
                outbox_pop(s);
        while (s->requests) {
                struct request *q = s->requests;

                /* Its server still holds it; the next final call frees it. */
                s->requests = q->next;
                if (q->next)
                        q->next->prev = &s->requests;
                q->orphaned = true;
        }
        s->n_requests = 0;
}

static int flush(struct serve *s) {
        int r = 0;

        while (s->out && (r = engine_msg_send(s->fd, s->out->bytes, s->out->len, s->out->fd)) == 0)
                outbox_pop(s);
        if (r == -EAGAIN)
                r = 0;
        if (r == 0)
                r = sd_event_source_set_io_events(s->source, EPOLLIN | (s->out ? EPOLLOUT : 0));
        return r;
}

static bool post(struct serve *s, const struct engine_msg *m, int pass_fd) {
        uint8_t buf[ENGINE_MSG_MAX];
        ssize_t n = engine_msg_encode(m, buf, sizeof(buf));
        struct packet *p;

        if (s->fd < 0)
                return false;
        if (n < 0) {
                log_line(LOG_P_ERROR, "message %u to the manager does not fit", m->type);
                return false;
        }
        if (s->n_out >= SERVE_OUTBOX_MAX) {
                hang_up(s, "does not fetch its messages: connection closed");
                return false;
        }
        p = malloc(sizeof(*p) + (size_t)n);
        if (!p)
                return false;
        *p = (struct packet){ .len = (size_t)n, .fd = -1 };
        memcpy(p->bytes, buf, (size_t)n);
        if (pass_fd >= 0) {
                p->fd = fcntl(pass_fd, F_DUPFD_CLOEXEC, 3);
                if (p->fd < 0) {
                        free(p);
                        return false;
                }
        }
        *s->out_tail = p;
        s->out_tail = &p->next;
        s->n_out++;
        if (flush(s) < 0) {
                hang_up(s, "connection lost");
                return false;
        }
        return true;
}

void serve_died(struct serve *s, const char *container, uint32_t exit_code, bool oom_killed) {
        struct engine_msg m = { .type = ENGINE_DIED,
                                .container = container,
                                .exit_code = exit_code,
                                .oom_killed = oom_killed };

        if (s && s->welcome)
                post(s, &m, -1);
}

void serve_state(struct serve *s, enum engine_state state, const char *text) {
        struct engine_msg m = { .type = ENGINE_STATE, .state = (uint8_t)state, .text = text };

        if (s && s->welcome)
                post(s, &m, -1);
}

/* --- requests
 * ---------------------------------------------------------------------------------------- */

static void request_free(struct request *q) {
        if (!q->orphaned) {
                *q->prev = q->next;
                if (q->next)
                        q->next->prev = q->prev;
                q->serve->n_requests--;
        }
        q->serve->n_live--;
        close_fd(q->fd);
        free(q);
}

bool request_orphaned(const struct request *q) {
        return q->orphaned;
}

bool request_answer(struct request *q, struct engine_msg *m, int pass_fd) {
        struct serve *s = q->serve;
        bool there = !q->orphaned;

        m->id = q->id;
        request_free(q);
        return there && post(s, m, pass_fd);
}

void request_fail(struct request *q, enum engine_error error, const char *fmt, ...) {
        struct engine_msg m = { .type = ENGINE_FAILED, .error = (uint16_t)error };
        char text[ENGINE_TEXT_MAX + 1];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        for (char *p = text; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        *p = '?';
        log_line(LOG_P_DEBUG, "request %u failed: %s", q->id, text);
        m.text = text;
        request_answer(q, &m, -1);
}

void request_fail_call(struct request *q, const struct api_reply *reply, const char *what) {
        const char *path = api_socket(q->broker->api);

        switch (reply->error) {
        case -ETIMEDOUT:
                elink_doubt(q->broker->link);
                request_fail(q, ENGINE_E_UNREACHABLE,
                             "%s: the engine at %s does not answer (%s): look at docker's log "
                             "(journalctl -u docker)",
                             what, path, reply->why);
                break;
        case -EMSGSIZE:
        case -ENOMEM:
                request_fail(q, ENGINE_E_REFUSED, "%s: the engine at %s: %s", what, path, reply->why);
                break;
        case -ECANCELED:
        case -ESHUTDOWN:
                request_fail(q, ENGINE_E_UNREACHABLE, "%s: the broker ends: ask again when it is back",
                             what);
                break;
        default:
                request_fail(
                        q, ENGINE_E_UNREACHABLE,
                        "%s: the engine at %s went away (%s): start docker (systemctl%s start docker)",
                        what, path, reply->why, elink_systemctl(q->broker));
        }
}

void request_progress(struct request *q, struct engine_msg *m) {
        m->id = q->id;
        m->type = ENGINE_PROGRESS;
        if (!q->orphaned)
                post(q->serve, m, -1);
}

static struct request *request_new(struct serve *s, uint32_t id) {
        struct request *q = calloc(1, sizeof(*q));

        if (!q)
                return NULL;
        q->serve = s;
        q->broker = s->broker;
        q->id = id;
        q->fd = -1;
        q->next = s->requests;
        q->prev = &s->requests;
        if (q->next)
                q->next->prev = &q->next;
        s->requests = q;
        s->n_requests++;
        s->n_live++;
        return q;
}

static bool id_taken(const struct serve *s, uint32_t id) {
        for (const struct request *q = s->requests; q; q = q->next)
                if (q->id == id)
                        return true;
        return false;
}

static void say_hello(struct serve *s, const struct engine_msg *m) {
        struct broker *b = s->broker;
        struct engine_msg answer = { .id = m->id,
                                     .type = ENGINE_WELCOME,
                                     .version = ENGINE_PROTO_VERSION,
                                     .installation = b->records.installation,
                                     .hash = b->agent_hash };
        const char *text;
        enum engine_state state = elink_state(b->link, &text);

        if (m->version != ENGINE_PROTO_VERSION) {
                struct engine_msg no = {
                        .id = m->id,
                        .type = ENGINE_FAILED,
                        .error = ENGINE_E_REFUSED,
                        .text = "hello: the broker speaks another version: restart both "
                                "(hermes-sandbox stop, hermes-sandbox start)"
                };
                post(s, &no, -1);
                hang_up(s, "speaks another version: connection closed");
                return;
        }
        s->welcome = true;
        /* Who asks the manager meanwhile waits for the word. */
        if (post(s, &answer, -1) && elink_known(b->link))
                serve_state(s, state, text);
}

/* Returns why the packet ends the connection, or NULL. */
static const char *serve_packet(struct serve *s, const uint8_t *buf, size_t len, int *fd) {
        const struct request_row *row;
        const char *text;
        struct engine_msg m;
        struct request *q;
        bool descriptor;

        if (engine_msg_decode(buf, len, ENGINE_FROM_MANAGER, &m) < 0)
                return "sent a malformed message: connection closed";
        if (m.id == 0 || id_taken(s, m.id))
                return "used a request id twice, or 0: connection closed";
        if (m.type == ENGINE_HELLO) {
                if (*fd != -1)
                        return "sent what it may not send: connection closed";
                say_hello(s, &m);
                return NULL;
        }
        row = requests_find(m.type);
        descriptor = row && row->descriptor && m.mounts;
        if (!s->welcome || !row || len > row->max_len || (*fd != -1) != descriptor)
                return "sent what it may not send: connection closed";
        q = request_new(s, m.id);
        if (!q)
                return "out of memory: connection closed";
        q->fd = take_fd(fd);
        log_line(LOG_P_DEBUG, "request %u: %s", m.id, row->name);
        if (descriptor && q->fd < 0)
                request_fail(q, ENGINE_E_BUSY,
                             "%s: no descriptor is left for it: raise LimitNOFILE of hermes-engined",
                             row->name);
        else if (s->n_requests > SERVE_OUTSTANDING_MAX || s->n_live > 4 * SERVE_OUTSTANDING_MAX)
                request_fail(q, ENGINE_E_BUSY, "%s: %d requests are being served already: wait for one",
                             row->name, SERVE_OUTSTANDING_MAX);
        else if (row->needs_engine && elink_state(s->broker->link, &text) == ENGINE_NOT_ENABLED)
                request_fail(q, ENGINE_E_NOT_ENABLED, "%s", text);
        else if (row->needs_engine && elink_state(s->broker->link, &text) != ENGINE_UP)
                request_fail(q, ENGINE_E_UNREACHABLE, "%s", text);
        else
                row->handler(s->broker, q, &m);
        return NULL;
}

/* --- connections
 * ------------------------------------------------------------------------------------- */

static int on_peer(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        uint8_t buf[ENGINE_MSG_MAX];
        struct serve *s = userdata;
        const char *why = NULL;

        (void)source;
        (void)fd;
        if (revents & EPOLLOUT && flush(s) < 0)
                why = "connection lost";
        while (!why && s->fd >= 0) {
                _cleanup_fd_ int passed = -1;
                ssize_t n = engine_msg_recv(s->fd, buf, sizeof(buf), &passed);

                if (n == -EAGAIN)
                        break;
                if (n == 0 || n == -ECONNRESET)
                        why = "disconnected";
                else if (n < 0)
                        why = "sent what it may not send: connection closed";
                else
                        why = serve_packet(s, buf, (size_t)n, &passed);
        }
        if (why)
                hang_up(s, why);
        return 0;
}

static bool may_connect(const struct serve *s, const struct ucred *peer) {
        return peer->uid == s->broker->manager_uid;
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        _cleanup_fd_ int peer_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct serve *s = userdata;
        struct ucred peer;
        socklen_t len = sizeof(peer);

        (void)revents;
        /* Only when it changes: each call begins the interval anew. */
        if ((peer_fd < 0) != s->accept_paced) {
                s->accept_paced = peer_fd < 0;
                sd_event_source_set_ratelimit(source, s->accept_paced ? ACCEPT_PACE_US : 0, 1);
        }
        if (peer_fd < 0)
                return 0;
        if (getsockopt(peer_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || !may_connect(s, &peer)) {
                log_line(LOG_P_WARNING, "connection of uid %u pid %d refused: only %s may ask", peer.uid,
                         peer.pid, s->broker->options.manager_user);
                return 0;
        }
        hang_up(s, "replaced by a newer connection");
        if (sd_event_add_io(s->broker->event, &s->source, peer_fd, EPOLLIN, on_peer, s) < 0)
                return 0;
        s->fd = take_fd(&peer_fd);
        log_line(LOG_P_INFO, "manager: connected, pid %d", peer.pid);
        return 0;
}

static int open_socket(struct serve *s) {
        struct stat st;
        int n = sd_listen_fds(1);

        if (n < 0 || n > 1)
                return -EINVAL;
        if (n == 1) {
                if (sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0) <= 0)
                        return -EINVAL;
                s->listen_fd = SD_LISTEN_FDS_START;
                return 0;
        }
        /* What an earlier life left behind. Anything but a socket is not ours to remove. */
        if (fstatat(s->broker->sockdir.fd, SERVE_SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISSOCK(st.st_mode))
                unlinkat(s->broker->sockdir.fd, SERVE_SOCKET, 0);
        s->own_socket = true;
        return sockdir_listen(s->broker->sockdir.fd, SERVE_SOCKET, 0660, SOCK_SEQPACKET, &s->listen_fd);
}

static void tell(int fd, void *userdata) {
        struct engine_msg m = { .type = ENGINE_STATE, .state = ENGINE_DOWN, .text = userdata };
        uint8_t buf[ENGINE_MSG_MAX];
        ssize_t n = engine_msg_encode(&m, buf, sizeof(buf));

        if (n > 0)
                engine_msg_send(fd, buf, (size_t)n, -1);
}

void serve_last_word(const char *text) {
        char line[ENGINE_TEXT_MAX + 1];

        snprintf(line, sizeof(line), "the engine broker cannot start: %s", text);
        if (sd_listen_fds(1) == 1)
                lastword(SD_LISTEN_FDS_START, LAST_WORD_MS, tell, line);
}

int serve_new(struct broker *b, struct serve **ret) {
        struct serve *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->broker = b;
        s->listen_fd = s->fd = -1;
        s->out_tail = &s->out;
        r = open_socket(s);
        if (r == 0)
                r = sd_event_add_io(b->event, &s->listen_source, s->listen_fd, EPOLLIN, on_connect, s);
        if (r < 0) {
                serve_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

void serve_free(struct serve *s) {
        if (!s)
                return;
        hang_up(s, "the broker ends");
        sd_event_source_disable_unref(s->listen_source);
        if (s->own_socket && s->listen_fd >= 0)
                unlinkat(s->broker->sockdir.fd, SERVE_SOCKET, 0);
        close_fd(s->listen_fd);
        free(s);
}
