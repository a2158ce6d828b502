/*
 * One sandbox. The broker hands over the listening socket in its folder; the first connection that comes
 * from the container's own init process is the agent's, any other is closed. The handshake makes it warm, and
 * so does each proof, after a command, that it is as it was then. Whatever goes wrong with it, it is thrown
 * away whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"

/* Between a command's result and the removal of its sandbox. */
#define RETIRE_US 5000
/* Of what waits for an agent that has much to do one command may be longer than this (command_bytes). */
#define ORDER_LONG FRAME_PAYLOAD_MAX
/* What may wait at all: of all that run in a session the command and a whole window of input each. */
#define SANDBOX_OUT_MAX (SESSION_EXECS_MAX * (size_t)(FRAME_CREDIT + ORDER_LONG) + CONN_OUT_MAX)

static const bool moves[SANDBOX_STATES][SANDBOX_STATES] = {
        [SANDBOX_STARTING] = { [SANDBOX_WARM] = true, [SANDBOX_GONE] = true },
        [SANDBOX_WARM] = { [SANDBOX_BUSY] = true, [SANDBOX_LEASED] = true, [SANDBOX_GONE] = true },
        [SANDBOX_LEASED] = { [SANDBOX_GONE] = true },
        [SANDBOX_BUSY] = { [SANDBOX_SCRUBBING] = true, [SANDBOX_GONE] = true },
        [SANDBOX_SCRUBBING] = { [SANDBOX_WARM] = true, [SANDBOX_GONE] = true },
};

/* NULL for the one state that is not counted. */
static unsigned *counter(struct sandbox *sb) {
        switch (sb->state) {
        case SANDBOX_STARTING:
                return &sb->pool->n_starting;
        case SANDBOX_WARM:
                return &sb->pool->n_warm;
        case SANDBOX_BUSY:
                return &sb->pool->n_busy;
        case SANDBOX_SCRUBBING:
                return &sb->pool->n_scrubbing;
        case SANDBOX_LEASED:
                return &sb->pool->n_leased;
        default:
                return NULL;
        }
}

static void count(struct sandbox *sb, int by) {
        unsigned *n = counter(sb);

        if (n)
                *n += (unsigned)by;
}

void sandbox_set_state(struct sandbox *sb, enum sandbox_state to) {
        if (!moves[sb->state][to])
                abort();
        count(sb, -1);
        sb->state = to;
        sb->since_ms = now_ms();
        count(sb, 1);
}

bool sandbox_fit(const struct sandbox *sb, uint64_t now) {
        const struct config_profile *c = sb->pool->profile;

        return c && memcmp(sb->recipe, sb->pool->recipe, sizeof(sb->recipe)) == 0 &&
               (!sb->pool->image_id[0] || engine_same_image(sb->image, sb->pool->image_id)) &&
               (c->max_age_ms == 0 || now - sb->born_ms < c->max_age_ms);
}

/* It is handed out next where it was handed back last: what it has in the caches is still there. */
static void make_warm(struct sandbox *sb) {
        sandbox_set_state(sb, SANDBOX_WARM);
        TAILQ_REMOVE(&sb->pool->sandboxes, sb, link);
        TAILQ_INSERT_TAIL(&sb->pool->sandboxes, sb, link);
        pool_changed(sb->pool);
}

void sandbox_begin(struct sandbox *sb, struct exec *x, bool returns) {
        sb->uses++;
        if (x->session) {
                session_exec_begun(x->session, x);
                return;
        }
        sandbox_set_state(sb, SANDBOX_BUSY);
        sb->owner = x->audit.caller.uid;
        sb->returns = returns;
        sb->exec = x;
        memcpy(sb->last_exec, x->id, sizeof(sb->last_exec));
        pool_used_by(sb->pool, sb->owner);
}

void sandbox_lease(struct sandbox *sb, struct session *s) {
        sandbox_set_state(sb, SANDBOX_LEASED);
        sb->owner = s->owner.uid;
        sb->session = s;
        pool_used_by(sb->pool, sb->owner);
}

static int on_hello(struct sandbox *sb, const struct frame *f) {
        struct hello h;

        if (f->type != FRAME_HELLO || hello_decode(f->payload, f->len, &h) < 0 ||
            h.role != HELLO_AGENT || h.version != FRAME_VERSION)
                return -EPROTO;
        /* One that was made for its session alone is not what the pool's are. */
        if (!sb->session || !session_alone(sb->session))
                snprintf(sb->pool->probe, sizeof(sb->pool->probe), "%s", h.text);
        sb->can_scrub = strstr(h.text, "scrub=yes\n");
        sb->greeted = true;
        return 0;
}

/* It comes with HELLO. Of a sandbox that is new it can only be none; a session that waits for it begins with it. */
static int on_held(struct sandbox *sb, const struct frame *f) {
        struct held h;

        if (f->type != FRAME_HELD || held_decode(f->payload, f->len, &h) < 0 ||
            (!sb->session && h.n > 0))
                return -EPROTO;
        sb->pool->failures = 0;
        sb->pool->error[0] = '\0';
        sb->alive_ms = now_ms();
        sb->ready = true;
        if (sb->session)
                return session_held(sb->session, &h);
        make_warm(sb);
        return 0;
}

/* It is thrown away a moment later: an engine that begins to work at once would keep the caller, who has
 * just been given the result, from the CPU. */
static void retire(struct sandbox *sb) {
        struct manager *m = sb->pool->m;

        sb->spent = true;
        if (m->retiring)
                return;
        m->retiring = true;
        sd_event_source_set_time_relative(m->retire, RETIRE_US);
        sd_event_source_set_enabled(m->retire, SD_EVENT_ONESHOT);
}

int sandbox_retire(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        struct sandbox *sb, *next;
        struct pool *p;

        (void)s;
        (void)usec;
        m->retiring = false;
        LIST_FOREACH(p, &m->pools, link)
        for (sb = TAILQ_FIRST(&p->sandboxes); sb; sb = next) {
                next = TAILQ_NEXT(sb, link);
                if (sb->spent)
                        sandbox_discard(sb, NULL);
        }
        return 0;
}

/* The agent has looked at itself. Its word is worth what the container's isolation is worth: one that was taken
 * over could lie, but it is handed only to the user whose commands took it over. */
static int on_scrubbed(struct sandbox *sb, const struct frame *f) {
        struct pool *p = sb->pool;
        struct scrubbed s;

        if (sb->state != SANDBOX_SCRUBBING || sb->spent || scrubbed_decode(f->payload, f->len, &s) < 0)
                return -EPROTO;
        p->n_scrubs++;
        stats_scrubbed(p, s.check);
        /* A line that could not be written shows in the audit counters, and no command is started on it. */
        (void)audit_scrubbed(p->m->audit, sb->id, sb->last_exec, &s);
        if (s.check != SCRUB_CLEAN) {
                p->n_scrubs_failed++;
                log_line(LOG_P_INFO, "sandbox %.12s of profile %s is not clean (%s): replaced", sb->id,
                         p->name, scrub_check_name(s.check));
                retire(sb);
        } else if (!sandbox_fit(sb, now_ms()) || p->m->refusing)
                retire(sb);
        else
                make_warm(sb);
        return 0;
}

/* Its command has ended. */
static void ended(struct sandbox *sb) {
        /* Its user may have been at his bound, which is over all profiles. */
        pools_changed(sb->pool->m);
        if (!sb->returns) {
                retire(sb);
                return;
        }
        sandbox_set_state(sb, SANDBOX_SCRUBBING);
}

/* A frame of one of a session's commands. */
static int on_session_frame(struct sandbox *sb, const struct frame *f) {
        struct exec *x = session_exec_at(sb->session, f->channel);

        if (f->type == FRAME_HALTED)
                return session_halted(sb->session, f);
        return x ? exec_agent_frame(x, f) : -EPROTO;
}

static int on_frame(void *userdata, const struct frame *f) {
        struct sandbox *sb = userdata;
        int r;

        if (!sb->ready)
                return sb->greeted ? on_held(sb, f) : on_hello(sb, f);
        sb->alive_ms = now_ms();
        if (f->type == FRAME_PONG)
                return 0;
        if (f->type == FRAME_SCRUBBED)
                return on_scrubbed(sb, f);
        if (sb->session)
                return on_session_frame(sb, f);
        if (!sb->exec || f->channel != sb->exec->channel)
                return -EPROTO;
        r = exec_agent_frame(sb->exec, f);
        if (r == 0 && !sb->exec)
                ended(sb);
        return r;
}

static void on_end(void *userdata, int r) {
        struct sandbox *sb = userdata;
        struct pool *p = sb->pool;
        bool starting = sb->state == SANDBOX_STARTING;

        if (sb->spent)
                sandbox_discard(sb, NULL);
        else if (r == -EPROTO)
                sandbox_discard(sb, "its agent broke the protocol");
        else if (r == -ENOBUFS)
                sandbox_discard(sb, "its agent does not read what it is sent");
        else
                sandbox_discard(sb, "its agent has gone");
        /* The next one would do the same: there is a pause, and those who wait are told. */
        if (starting)
                supply_failed(
                        p,
                        "a sandbox started, but its agent did not greet as it must: see the engine's log");
}

static void on_sent(void *userdata) {
        struct sandbox *sb = userdata;

        sb->alive_ms = now_ms();
        if (sb->session)
                session_exec_pending(sb->session);
}

bool sandbox_takes(const struct sandbox *sb, size_t bytes) {
        return bytes <= ORDER_LONG || sb->conn.out_joined - sb->conn.out_len >= sb->long_order;
}

void sandbox_took(struct sandbox *sb, size_t bytes) {
        if (bytes > ORDER_LONG)
                sb->long_order = sb->conn.out_joined;
}

static int on_listen(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct sandbox *sb = userdata;
        struct ucred cred;
        socklen_t len = sizeof(cred);
        _cleanup_fd_ int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        (void)revents;
        (void)s;
        if (peer < 0)
                return 0;
        if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.pid != sb->pid) {
                log_line(LOG_P_WARNING,
                         "sandbox %.12s: a connection that is not its agent's was refused", sb->id);
                return 0;
        }
        if (conn_init(&sb->conn, sb->pool->m->event, take_fd(&peer), FRAME_FROM_AGENT, on_frame, on_end,
                      sb) < 0)
                return 0;
        sb->conn.out_max = SANDBOX_OUT_MAX;
        sb->conn.on_sent = on_sent;
        sb->connected = true;
        sb->listen_source = sd_event_source_disable_unref(sb->listen_source);
        sb->listen_fd = close_fd(sb->listen_fd);
        conn_greet(&sb->conn);
        conn_flush(&sb->conn);
        return 0;
}

struct sandbox *sandbox_new(struct pool *p, const char *id, const uint8_t recipe[CONFIG_RECIPE],
                            const char *image, pid_t pid, int listen_fd, struct session *s) {
        struct sandbox *sb = calloc(1, sizeof(*sb));

        if (!sb ||
            sd_event_add_io(p->m->event, &sb->listen_source, listen_fd, EPOLLIN, on_listen, sb) < 0 ||
            /* Without a descriptor to take it with, the agent stays there: at a pace, not at once again. */
            sd_event_source_set_ratelimit(sb->listen_source, ACCEPT_PACE_US, 1) < 0) {
                if (sb)
                        sd_event_source_disable_unref(sb->listen_source);
                free(sb);
                close_fd(listen_fd);
                return NULL;
        }
        sb->pool = p;
        sb->pid = pid;
        sb->listen_fd = listen_fd;
        sb->conn.fd = -1;
        sb->born_ms = sb->since_ms = now_ms();
        sb->next_channel = 1;
        snprintf(sb->id, sizeof(sb->id), "%s", id);
        snprintf(sb->image, sizeof(sb->image), "%s", image);
        memcpy(sb->recipe, recipe, sizeof(sb->recipe));
        if (s) {
                sb->state = SANDBOX_LEASED;
                sb->owner = s->owner.uid;
                sb->session = s;
        }
        count(sb, 1);
        TAILQ_INSERT_TAIL(&p->sandboxes, sb, link);
        return sb;
}

static void removed(void *userdata, const struct engine_msg *m, int fd) {
        (void)userdata;
        close_fd(fd);
        /* What could not be removed now is found by label and record at the next connect. */
        if (m->type == ENGINE_FAILED && m->error != ENGINE_E_UNREACHABLE)
                log_line(LOG_P_WARNING, "a sandbox could not be removed: %s", m->text);
}

static void sandbox_free(struct sandbox *sb) {
        if (sb->connected)
                conn_done(&sb->conn);
        sb->listen_source = sd_event_source_disable_unref(sb->listen_source);
        close_fd(sb->listen_fd);
        free(sb);
}

void sandbox_release(struct sandbox *sb) {
        sandbox_set_state(sb, SANDBOX_GONE);
        TAILQ_REMOVE(&sb->pool->sandboxes, sb, link);
        sandbox_free(sb);
}

void sandbox_discard(struct sandbox *sb, const char *why) {
        struct pool *p = sb->pool;

        if (sb->session) {
                session_close(sb->session, "lost", NULL, why);
                return;
        }
        if (why)
                log_line(LOG_P_INFO, "sandbox %.12s of profile %s: %s; replaced", sb->id, p->name, why);
        sandbox_set_state(sb, SANDBOX_GONE);
        TAILQ_REMOVE(&p->sandboxes, sb, link);
        if (sb->exec)
                exec_lost(sb->exec, why ? why : "it was thrown away");
        if (sb->connected)
                conn_send(&sb->conn, FRAME_BYE, 0, 0, NULL, 0);
        broker_ask(&p->m->broker, &(struct engine_msg){ .type = ENGINE_REMOVE, .container = sb->id },
                   removed, NULL);
        sandbox_free(sb);
        pool_changed(p);
}

void sandbox_check(struct sandbox *sb, uint64_t now) {
        uint8_t nonce[8] = { 0 };

        if (!sb->ready) {
                if (now - sb->born_ms > HANDSHAKE_MS) {
                        struct pool *p = sb->pool;
                        bool starting = sb->state == SANDBOX_STARTING;

                        sandbox_discard(sb, "its agent did not answer in time");
                        if (starting)
                                supply_failed(
                                        p,
                                        "a sandbox started, but its agent did not answer: see the engine's log");
                }
                return;
        }
        if (sb->state == SANDBOX_SCRUBBING && now - sb->since_ms > SCRUB_LOST_MS) {
                sandbox_discard(sb, "its scrub did not end in time");
                return;
        }
        if ((sb->exec && exec_overdue(sb->exec, now)) ||
            (sb->session && session_overdue(sb->session, now))) {
                sandbox_discard(sb, "its agent does not end a command");
                return;
        }
        if (now - sb->alive_ms > PING_LOST_MS) {
                sandbox_discard(sb, "its agent does not answer");
                return;
        }
        if (now - sb->pinged_ms >= PING_MS) {
                sb->pinged_ms = now;
                conn_send(&sb->conn, FRAME_PING, 0, 0, nonce, sizeof(nonce));
        }
}
