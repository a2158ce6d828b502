#include "manager/broker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/cleanup.h"
#include "common/log.h"

#define RETRY_MIN_US 100000
#define RETRY_MAX_US 2000000

static void set_state(struct broker *b, enum engine_state state, const char *text) {
        bool changed = b->state != state || strcmp(b->state_text, text) != 0;

        b->known = true;
        b->state = state;
        snprintf(b->state_text, sizeof(b->state_text), "%s", text);
        if (changed)
                b->on->state(b->userdata);
}

static void arm_retry(struct broker *b) {
        sd_event_source_set_time_relative(b->retry, b->retry_us);
        sd_event_source_set_enabled(b->retry, SD_EVENT_ONESHOT);
        b->retry_us = b->retry_us * 2 < RETRY_MAX_US ? b->retry_us * 2 : RETRY_MAX_US;
}

/* Every request gets its answer before anyone hears that the broker is gone. */
static void disconnect(struct broker *b, const char *why) {
        struct engine_msg m = { .type = ENGINE_FAILED, .error = ENGINE_E_UNREACHABLE, .text = why };
        struct broker_request *q;
        bool was = b->welcomed;

        b->io = sd_event_source_disable_unref(b->io);
        b->fd = close_fd(b->fd);
        b->welcomed = false;
        b->info[0] = '\0';
        while ((q = LIST_FIRST(&b->requests))) {
                LIST_REMOVE(q, link);
                q->answer(q->userdata, &m, -1);
                free(q);
        }
        if (!b->last_word)
                set_state(b, ENGINE_DOWN, why);
        b->last_word = false;
        if (was)
                b->on->gone(b->userdata);
        arm_retry(b);
}

static void info_answer(void *userdata, const struct engine_msg *m, int fd) {
        struct broker *b = userdata;

        (void)fd;
        if (m->type == ENGINE_INFO_IS)
                snprintf(b->info, sizeof(b->info), "%s", m->text);
}

static void progress(struct broker *b, const struct engine_msg *m) {
        struct broker_request *q;

        if (!m->layer[0])
                log_line(LOG_P_INFO, "engine: %s", m->text);
        LIST_FOREACH(q, &b->requests, link)
        if (q->id == m->id && q->progress) {
                q->progress(q->userdata, m);
                return;
        }
}

static void handle(struct broker *b, const struct engine_msg *m, int fd) {
        struct broker_request *q;

        switch (m->type) {
        case ENGINE_STATE:
                b->last_word = !b->welcomed;
                set_state(b, m->state, m->state == ENGINE_UP ? "" : m->text);
                if (m->state == ENGINE_UP)
                        broker_ask(b, &(struct engine_msg){ .type = ENGINE_INFO }, info_answer, b);
                return;
        case ENGINE_DIED:
                b->on->died(b->userdata, m->container);
                return;
        case ENGINE_PROGRESS:
                progress(b, m);
                return;
        default:
                break;
        }
        LIST_FOREACH(q, &b->requests, link) {
                if (q->id != m->id)
                        continue;
                LIST_REMOVE(q, link);
                q->answer(q->userdata, m, fd);
                free(q);
                return;
        }
        close_fd(fd);
}

static void welcome(void *userdata, const struct engine_msg *m, int fd) {
        struct broker *b = userdata;
        bool news;

        close_fd(fd);
        if (m->type != ENGINE_WELCOME || m->version != ENGINE_PROTO_VERSION) {
                if (m->type != ENGINE_FAILED || m->error != ENGINE_E_UNREACHABLE)
                        log_line(LOG_P_ERROR, "the broker at %s speaks another version: %s",
                                 b->socket_path,
                                 m->type == ENGINE_FAILED ? m->text : "restart both daemons");
                return;
        }
        /* Greeted again, with nothing new: no reason to try again what has just failed. */
        news = !b->welcomed || memcmp(b->agent_hash, m->hash, sizeof(b->agent_hash)) != 0;
        memcpy(b->agent_hash, m->hash, sizeof(b->agent_hash));
        snprintf(b->installation, sizeof(b->installation), "%s", m->installation);
        b->welcomed = true;
        b->retry_us = RETRY_MIN_US;
        if (news)
                b->on->connected(b->userdata);
}

void broker_greet(struct broker *b) {
        broker_ask(b, &(struct engine_msg){ .type = ENGINE_HELLO, .version = ENGINE_PROTO_VERSION },
                   welcome, b);
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct broker *b = userdata;
        static uint8_t buf[ENGINE_MSG_MAX];
        static struct engine_msg m; /* large: the list's entries */

        (void)s;
        (void)revents;
        for (int i = 0; i < 32 && b->fd == fd; i++) {
                int passed = -1;
                ssize_t n = engine_msg_recv(fd, buf, sizeof(buf), &passed);

                if (n == -EAGAIN)
                        return 0;
                if (n <= 0 || engine_msg_decode(buf, (size_t)n, ENGINE_FROM_BROKER, &m) < 0) {
                        close_fd(passed);
                        disconnect(
                                b,
                                n == 0 || n == -ECONNRESET
                                        ? "the engine broker has gone: start hermes-engined"
                                        : "the engine broker speaks nonsense: restart hermes-engined");
                        return 0;
                }
                handle(b, &m, passed);
        }
        return 0;
}

static int try_connect(struct broker *b) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        _cleanup_fd_ int fd = -1;
        int r;

        if (strlen(b->socket_path) >= sizeof(sa.sun_path))
                return -ENAMETOOLONG;
        strcpy(sa.sun_path, b->socket_path);
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                return -errno;
        r = sd_event_add_io(b->event, &b->io, fd, EPOLLIN, on_io, b);
        if (r < 0)
                return r;
        b->fd = take_fd(&fd);
        broker_greet(b);
        return 0;
}

static int on_retry(sd_event_source *s, uint64_t usec, void *userdata) {
        struct broker *b = userdata;
        char why[ENGINE_TEXT_MAX];
        int r = try_connect(b);

        (void)s;
        (void)usec;
        if (r < 0) {
                snprintf(why, sizeof(why), "no engine broker answers at %s: %s: start hermes-engined",
                         b->socket_path, strerror(-r));
                disconnect(b, why);
        }
        return 0;
}

int broker_init(struct broker *b, sd_event *event, const char *socket_path,
                const struct broker_events *on, void *userdata) {
        *b = (struct broker){ .event = event,
                              .socket_path = socket_path,
                              .on = on,
                              .userdata = userdata,
                              .fd = -1,
                              .state = ENGINE_DOWN,
                              .retry_us = RETRY_MIN_US,
                              .next_id = 1 };
        snprintf(b->state_text, sizeof(b->state_text), "the engine broker has not answered yet");
        LIST_INIT(&b->requests);
        return sd_event_add_time_relative(event, &b->retry, CLOCK_MONOTONIC, 0, 1000, on_retry, b);
}

void broker_done(struct broker *b) {
        struct broker_request *q;

        b->io = sd_event_source_disable_unref(b->io);
        b->retry = sd_event_source_disable_unref(b->retry);
        b->fd = close_fd(b->fd);
        while ((q = LIST_FIRST(&b->requests))) {
                LIST_REMOVE(q, link);
                free(q);
        }
}

static int ask(struct broker *b, struct engine_msg *m, int pass_fd,
               const struct broker_request *request) {
        uint8_t buf[ENGINE_MSG_MAX];
        struct broker_request *q;
        ssize_t n;
        int r;

        if (b->fd < 0 || (!b->welcomed && m->type != ENGINE_HELLO))
                return -ENOTCONN;
        m->id = b->next_id++;
        if (b->next_id == 0)
                b->next_id = 1;
        n = engine_msg_encode(m, buf, sizeof(buf));
        if (n < 0)
                return (int)n;
        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = *request;
        q->id = m->id;
        q->pull = m->type == ENGINE_IMAGE;
        r = engine_msg_send(b->fd, buf, (size_t)n, pass_fd);
        if (r < 0) {
                free(q);
                return r;
        }
        LIST_INSERT_HEAD(&b->requests, q, link);
        return 0;
}

int broker_ask(struct broker *b, struct engine_msg *m, broker_answer *answer, void *userdata) {
        return ask(b, m, -1, &(struct broker_request){ .answer = answer, .userdata = userdata });
}

int broker_ask_passing(struct broker *b, struct engine_msg *m, int pass_fd, broker_answer *answer,
                       void *userdata) {
        return ask(b, m, pass_fd, &(struct broker_request){ .answer = answer, .userdata = userdata });
}

int broker_ask_watched(struct broker *b, struct engine_msg *m, broker_progress *on_progress,
                       broker_answer *answer, void *userdata) {
        return ask(b, m, -1,
                   &(struct broker_request){
                           .progress = on_progress, .answer = answer, .userdata = userdata });
}

bool broker_idle(const struct broker *b) {
        const struct broker_request *q;

        LIST_FOREACH(q, &b->requests, link)
        if (!q->pull)
                return false;
        return true;
}

void broker_ignore(void *userdata, const struct engine_msg *m, int fd) {
        (void)userdata;
        (void)m;
        close_fd(fd);
}
