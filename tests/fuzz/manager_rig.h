/*
 * A manager without an engine: its pools, queue, execs and connections as they are, callers and agents
 * at the other ends of real sockets, and the broker's answers made here. The callers are three users, the last of
 * which is the one who runs this. The manager can be ended and begun again over what it has left: its sessions, and
 * the records that stand open.
 */
#pragma once

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/engine_msg.h"
#include "common/log.h"
#include "config/load.h"
#include "fuzz/decoders.h"
#include "manager/audit_state.h"
#include "manager/exec.h"
#include "manager/gateway.h"
#include "manager/image_look.h"
#include "manager/manager.h"
#include "manager/rate.h"
#include "manager/session.h"

#ifndef CLIENTS /* a test may have more */
#define CLIENTS 4
#endif
#define AGENTS 4
#define PENDING 64
#define FIRST_UID 1000
#define USERS 3
#define GATEWAY_UID (FIRST_UID + 7)
#define IDS 16
/* The trail's file grows: a new one after so many inputs. */
#define TRAIL_INPUTS 2000

/* The far end of a connection. */
struct rig_end {
        int fd;
        size_t in_len;
        uint8_t in[2 * FRAME_MAX];
        bool started, final;            /* a client: what it has been told */
        uint8_t code;                   /* of its REJECT or RESULT */
        uint8_t reason;                 /* of its REJECT */
        char said[4096];                /* and the line there, or the ANSWER so far, or the exec's id */
        char before[4096];              /* the ANSWER before its REJECT */
        unsigned got[FRAME_HALTED + 1]; /* frames by type */
        bool detach;                    /* and what it has asked for: STARTED is the last it hears */
        /* an agent's sandbox */
        bool there;
        char id[ENGINE_ID_LEN + 1];
        struct sockaddr_un address;
        socklen_t address_len;
        bool used, may_be_clean;
        uid_t uid;
        char fp[KEYFP_LEN + 1];
};

struct rig {
        struct manager m;
        struct sockaddr_un address;
        socklen_t address_len;
        struct rig_end clients[CLIENTS], agents[AGENTS];
        int broker;      /* the broker's end */
        unsigned images; /* sandboxes that were made */
        struct {
                uint32_t id;
                uint16_t type;
                char container[ENGINE_ID_LEN + 1];
        } pending[PENDING];
        unsigned n_pending, n_created;
        char ids[IDS][PROTO_EXEC_ID + 1]; /* of the last commands in sessions */
        unsigned n_ids;
        int low_fd;
};

#include "fuzz/manager_world.h"

/* --- sockets ------------------------------------------------------------------------------------- */

/* A listening socket under a name that the kernel chooses. */
static inline int rig_listen(struct sockaddr_un *ret, socklen_t *ret_len) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        check(fd >= 0 && bind(fd, (struct sockaddr *)ret, sizeof(sa_family_t)) == 0 &&
              listen(fd, 16) == 0);
        *ret_len = sizeof(*ret);
        check(getsockname(fd, (struct sockaddr *)ret, ret_len) == 0);
        return fd;
}

static inline void rig_connect(struct rig_end *e, const struct sockaddr_un *to, socklen_t len) {
        e->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        e->in_len = 0;
        e->started = e->final = e->detach = false;
        e->code = e->reason = 0;
        e->said[0] = '\0';
        memset(e->got, 0, sizeof(e->got));
        if (connect(e->fd, (const struct sockaddr *)to, len) < 0)
                e->fd = close_fd(e->fd);
}

static inline void rig_send(struct rig_end *e, const void *p, size_t len) {
        if (e->fd >= 0 && len > 0)
                (void)!send(e->fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        e->may_be_clean = true;
}

static inline void rig_frame(struct rig_end *e, uint8_t type, uint8_t flags, uint32_t channel,
                             const void *payload, size_t len) {
        uint8_t buf[FRAME_HEADER + 2048];
        bool was = e->may_be_clean;

        check(len <= 2048);
        frame_put_header(buf, type, flags, channel, (uint32_t)len);
        memcpy(buf + FRAME_HEADER, payload, len);
        rig_send(e, buf, FRAME_HEADER + len);
        e->may_be_clean = was || type == FRAME_SCRUBBED;
}

static inline void rig_hello(struct rig_end *e, uint8_t role, const char *text) {
        const struct hello h = { FRAME_VERSION, role, text };
        uint8_t buf[256];

        rig_frame(e, FRAME_HELLO, 0, 0, buf, (size_t)hello_encode(&h, buf, sizeof(buf)));
}

/* Connects as @uid and says that in HELLO, or ends. */
static inline void rig_connect_as(struct rig *r, unsigned slot, uid_t uid, uint8_t role,
                                  const char *text) {
        struct rig_end *c = &r->clients[slot];
        struct client *last = LIST_FIRST(&r->m.clients), *now;

        if (c->fd >= 0) {
                c->fd = close_fd(c->fd);
                return;
        }
        rig_connect(c, &r->address, r->address_len);
        client_accept(&r->m);
        now = LIST_FIRST(&r->m.clients);
        check(c->fd >= 0 && now && now != last);
        now->peer.uid = uid;
        rig_hello(c, role, text);
}

/* As one of the users. */
static inline void rig_client(struct rig *r, unsigned slot, unsigned user) {
        rig_connect_as(r, slot, user < 2 ? FIRST_UID + user : getuid(), HELLO_CLIENT, "fuzz");
}

/* As the gateway, for the holder of one of two keys. */
static inline void rig_gateway(struct rig *r, unsigned slot, unsigned key) {
        static const char *const texts[] = {
                "SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL+/123 192.0.2.1 40022 a",
                "SHA256:321/+LKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba 2001:db8::7 40022 b",
        };

        rig_connect_as(r, slot, GATEWAY_UID, HELLO_GATEWAY, texts[key]);
}

static inline void rig_agent(struct rig *r, unsigned slot, const char *hello) {
        struct rig_end *a = &r->agents[slot];

        if (a->fd >= 0) {
                a->fd = close_fd(a->fd);
                return;
        }
        if (!a->there)
                return;
        rig_connect(a, &a->address, a->address_len);
        rig_hello(a, HELLO_AGENT, hello);
}

/* What the agent holds: @n of the last commands, every second of them ended, under channels from @first. */
static inline void rig_held(struct rig *r, struct rig_end *a, unsigned n, uint32_t first) {
        static struct held h;
        uint8_t buf[2048];

        h.n = 0;
        for (unsigned i = 0; i < n && i < r->n_ids && i < IDS; i++) {
                h.of[h.n].exec_id = r->ids[(r->n_ids - 1 - i) % IDS];
                h.of[h.n].channel = first + i;
                h.of[h.n++].ended = i % 2;
        }
        rig_frame(a, FRAME_HELD, 0, 0, buf, (size_t)held_encode(&h, buf, sizeof(buf)));
}

static inline struct sandbox *rig_sandbox(struct rig *r, const char *id) {
        struct sandbox *sb;
        struct pool *p;

        LIST_FOREACH(p, &r->m.pools, link)
        TAILQ_FOREACH(sb, &p->sandboxes, link)
        if (strcmp(sb->id, id) == 0)
                return sb;
        return NULL;
}

/* One on which a command of the agent's runs, or who attaches to one. */
static inline uint32_t rig_channel(struct rig *r, const struct rig_end *a, unsigned pick) {
        struct sandbox *sb = rig_sandbox(r, a->id);
        unsigned n = 0;
        struct exec *x;

        if (sb && sb->session) {
                LIST_FOREACH(x, &r->m.execs, link)
                if (x->sandbox == sb && n++ == pick % 4)
                        return x->channel;
        }
        return sb && sb->exec ? sb->exec->channel : 1;
}

/* --- the broker ---------------------------------------------------------------------------------- */

static inline void rig_created(struct rig *r, struct engine_msg *m, int *ret_fd) {
        for (int i = 0; i < AGENTS; i++) {
                struct rig_end *a = &r->agents[i];

                if (a->there)
                        continue;
                a->there = true;
                a->used = false;
                a->fd = close_fd(a->fd);
                snprintf(a->id, sizeof(a->id), "%064x", ++r->n_created);
                *ret_fd = rig_listen(&a->address, &a->address_len);
                m->type = ENGINE_CREATED;
                m->container = a->id;
                m->pid = (uint32_t)getpid();
                m->image = ++r->images % 64 ? "sha256:0" : "sha256:1";
                return;
        }
}

static inline void rig_listening(struct rig *r, const char *id, struct engine_msg *m, int *ret_fd) {
        m->error = ENGINE_E_NOT_OURS;
        for (int i = 0; i < AGENTS; i++) {
                struct rig_end *a = &r->agents[i];

                if (!a->there || strcmp(a->id, id) != 0)
                        continue;
                a->fd = close_fd(a->fd);
                *ret_fd = rig_listen(&a->address, &a->address_len);
                m->type = ENGINE_LISTENING;
                m->pid = (uint32_t)getpid();
                m->image = "sha256:0";
        }
}

/* An answer to one that is open: the right one, a failure, or nonsense. */
static inline void rig_answer(struct rig *r, uint8_t how) {
        static const uint16_t errors[] = { ENGINE_E_UNREACHABLE, ENGINE_E_NO_IMAGE, ENGINE_E_STALE,
                                           ENGINE_E_REFUSED };
        struct engine_msg m = { .type = ENGINE_FAILED, .error = errors[how % 4], .text = "because" };
        unsigned i = r->n_pending ? how % r->n_pending : 0;
        struct broker_request *q;
        int fd = -1;

        if (r->n_pending == 0)
                return;
        if (how / 32 < 6)
                switch (r->pending[i].type) {
                case ENGINE_HELLO:
                        m.type = ENGINE_WELCOME;
                        m.version = ENGINE_PROTO_VERSION;
                        m.hash = r->m.broker.agent_hash;
                        m.installation = r->m.broker.installation;
                        break;
                case ENGINE_IMAGE:
                        m.type = ENGINE_IMAGE_READY;
                        m.image = how & 16 ? "sha256:1" : "sha256:0";
                        m.pulled = how & 8;
                        break;
                case ENGINE_IMAGE_LOOK:
                        m.type = ENGINE_IMAGE_IS;
                        m.present = how & 4;
                        m.image = how & 4 ? how & 8 ? "sha256:0" : "sha256:1" : "";
                        m.digest = "";
                        m.created = how & 16 ? "2026-11-29T18:12:43Z" : "";
                        break;
                case ENGINE_LISTEN:
                        rig_listening(r, r->pending[i].container, &m, &fd);
                        break;
                case ENGINE_CREATE:
                case ENGINE_CREATE_FOR:
                        rig_created(r, &m, &fd);
                        break;
                default:
                        m.type = ENGINE_DONE;
                }
        else if (how / 32 == 6)
                m.type = ENGINE_DONE;
        LIST_FOREACH(q, &r->m.broker.requests, link)
        if (q->id == r->pending[i].id)
                break;
        check(q);
        if (q->progress && how & 32) {
                q->progress(q->userdata, &(struct engine_msg){ .layer = how & 16 ? "0123456789ab" : "",
                                                               .text = "an \033 escape",
                                                               .done = how,
                                                               .total = how & 8 ? 255 : 0 });
                return;
        }
        r->pending[i] = r->pending[--r->n_pending];
        LIST_REMOVE(q, link);
        q->answer(q->userdata, &m, fd);
        free(q);
}

static inline void rig_read_broker(struct rig *r) {
        static struct engine_msg m;
        uint8_t buf[ENGINE_MSG_MAX];
        int passed = -1;
        ssize_t n;

        while ((n = engine_msg_recv(r->broker, buf, sizeof(buf), &passed)) > 0) {
                check(engine_msg_decode(buf, (size_t)n, ENGINE_FROM_MANAGER, &m) == 0);
                check(r->n_pending < PENDING && (passed >= 0) == m.mounts);
                passed = close_fd(passed);
                snprintf(r->pending[r->n_pending].container, ENGINE_ID_LEN + 1, "%s",
                         m.type == ENGINE_LISTEN ? m.container : "");
                r->pending[r->n_pending].id = m.id;
                r->pending[r->n_pending++].type = m.type;
                for (int i = 0; m.type == ENGINE_REMOVE && i < AGENTS; i++)
                        if (r->agents[i].there && strcmp(r->agents[i].id, m.container) == 0)
                                r->agents[i].there = false;
        }
}

/* --- what the others are told -------------------------------------------------------------------- */

/* Keeps what is there to be read of it. */
static inline void rig_keep(struct rig_end *e, const struct frame *f) {
        size_t n = strlen(e->said);
        struct reject no;
        struct result r;
        struct started s;

        e->got[f->type]++;
        if (f->type == FRAME_REJECT && reject_decode(f->payload, f->len, &no) == 0) {
                e->code = no.exit_code;
                e->reason = no.reason;
                memcpy(e->before, e->said, sizeof(e->before));
                snprintf(e->said, sizeof(e->said), "%s", no.message);
        } else if (f->type == FRAME_RESULT && result_decode(f->payload, f->len, &r) == 0) {
                e->code = r.exit_code;
                snprintf(e->said, sizeof(e->said), "%s", r.message);
        } else if (f->type == FRAME_STARTED && started_decode(f->payload, f->len, &s) == 0)
                snprintf(e->said, sizeof(e->said), "%s", s.exec_id);
        else if (f->type == FRAME_ANSWER && f->len < sizeof(e->said) - n) {
                memcpy(e->said + n, f->payload, f->len);
                e->said[n + f->len] = '\0';
        }
}

/* STARTED before anything of the command, one last word, nothing behind it. */
static inline void rig_client_frame(struct rig_end *c, const struct frame *f) {
        check(!c->final);
        switch (f->type) {
        case FRAME_STARTED:
                check(!c->started);
                c->started = true;
                c->final = c->detach;
                break;
        case FRAME_ATTACHED:
        case FRAME_STDOUT:
        case FRAME_STDERR:
        case FRAME_WINDOW:
                check(c->started);
                break;
        case FRAME_RESULT:
                check(c->started);
                c->final = true;
                break;
        case FRAME_REJECT:
                check(!c->started);
                c->final = true;
                break;
        case FRAME_STATUS:
        case FRAME_ANSWER:
                c->final = !(f->flags & FRAME_MORE);
                break;
        default:
                check(f->type == FRAME_HELLO);
        }
}

static inline void rig_read(struct rig_end *e, bool client) {
        ssize_t n;

        while (e->fd >= 0 &&
               (n = recv(e->fd, e->in + e->in_len, sizeof(e->in) - e->in_len, MSG_DONTWAIT)) > 0) {
                size_t done = 0, used;
                struct frame f;
                int got;

                e->in_len += (size_t)n;
                while ((got = frame_parse(e->in + done, e->in_len - done, FRAME_FROM_MANAGER, &f,
                                          &used)) == 1) {
                        decode(&f);
                        rig_keep(e, &f);
                        if (client)
                                rig_client_frame(e, &f);
                        done += used;
                }
                check(got == 0);
                memmove(e->in, e->in + done, e->in_len - done);
                e->in_len -= done;
        }
}

/* Until nobody has anything more to do. */
static inline void rig_settle(struct rig *r) {
        for (int i = 0; i < 1000 && sd_event_run(r->m.event, 0) > 0; i++)
                ;
        rig_read_broker(r);
        for (int i = 0; i < CLIENTS; i++)
                rig_read(&r->clients[i], true);
        for (int i = 0; i < AGENTS; i++)
                rig_read(&r->agents[i], false);
}

/* --- other steps --------------------------------------------------------------------------------- */

/* The regular checks, as if so much time had passed. */
static inline void rig_later(struct rig *r, uint64_t ms) {
        struct sandbox *sb, *next;
        struct pool *p;

        clients_check(&r->m, now_ms() + ms);
        LIST_FOREACH(p, &r->m.pools, link) {
                for (sb = TAILQ_FIRST(&p->sandboxes); sb; sb = next) {
                        next = TAILQ_NEXT(sb, link);
                        sandbox_check(sb, now_ms() + ms);
                }
                pool_check(p, now_ms() + ms);
        }
        image_check(&r->m, now_ms() + ms);
        sessions_check(&r->m, now_ms() + ms);
        adopt_ask(&r->m);
        rate_check(r->m.rate, now_us() + ms * 1000);
}

static inline void rig_reload(struct rig *r, unsigned which) {
        r->m.config = rig_configs[which % 2];
        pools_update(&r->m);
}

static inline void rig_status(struct rig *r, bool as_json) {
        size_t len;
        char *text = status_text(&r->m, &(struct peer){ .uid = FIRST_UID }, as_json, &len);

        check(text && len > 0 && strlen(text) == len && text[len - 1] == '\n');
        free(text);
}

static inline void rig_note_ids(struct rig *r) {
        struct exec *x;

        LIST_FOREACH(x, &r->m.execs, link)
        if (x->session && !x->attach && x->state == EXEC_RUNNING) {
                bool known = false;

                for (unsigned i = 0; i < IDS; i++)
                        known |= strcmp(r->ids[i], x->id) == 0;
                if (!known)
                        memcpy(r->ids[r->n_ids++ % IDS], x->id, sizeof(x->id));
        }
}

#include "fuzz/manager_check.h"

/* --- begin and end ------------------------------------------------------------------------------- */

/* With one sandbox that is warm. */
static inline struct rig *rig_begin(void) {
        static const struct broker_events on;
        static struct rig rig;
        static unsigned inputs;
        struct manager *m = &rig.m;
        int pair[2];

        if (inputs == 0)
                rig_init();
        if (inputs++ % TRAIL_INPUTS == 0)
                rig_open_trail();
        memset(m, 0, sizeof(*m));
        TAILQ_INIT(&m->sessions);
        TAILQ_INIT(&m->image_looks);
        rig.n_pending = rig.n_created = rig.n_ids = 0;
        memset(rig.ids, 0, sizeof(rig.ids));
        m->options.state_dir = rig_state_dir;
        rig.low_fd = rig_low_fd();
        for (int i = 0; i < CLIENTS; i++)
                rig.clients[i].fd = -1;
        for (int i = 0; i < AGENTS; i++) {
                rig.agents[i].fd = -1;
                rig.agents[i].there = false;
                rig.agents[i].id[0] = '\0';
        }
        check(sd_event_new(&m->event) >= 0);
        check(sd_event_add_time_relative(m->event, &m->announce, CLOCK_MONOTONIC, 0, 1000,
                                         client_announce, m) >= 0);
        check(sd_event_add_time_relative(m->event, &m->retire, CLOCK_MONOTONIC, 0, 1000, sandbox_retire,
                                         m) >= 0);
        check(pools_attach(m) >= 0);
        check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
        rig.broker = pair[1];
        m->broker = (struct broker){ .event = m->event,
                                     .on = &on,
                                     .fd = pair[0],
                                     .welcomed = true,
                                     .next_id = 1,
                                     .state = ENGINE_UP };
        m->audit = rig_audit;
        m->rate = rate_new(rig_suppressed, &rig);
        m->swept = true;
        m->policy = (struct peer_policy){
                .have_group = true, .group = getgid(), .have_gateway = true, .gateway = GATEWAY_UID
        };
        m->listen_fd = rig_listen(&rig.address, &rig.address_len);
        rig_reload(&rig, 0);
        rig_settle(&rig);
        rig_answer(&rig, 0); /* the image */
        rig_settle(&rig);
        rig_answer(&rig, 0); /* the first sandbox */
        rig_agent(&rig, 0, "scrub=yes\n");
        rig_held(&rig, &rig.agents[0], 0, 1);
        rig_settle(&rig);
        return &rig;
}

/* Callers, sandboxes and what was asked of the broker go; with @close sessions, too. */
static inline void rig_stop(struct rig *r, bool close_all) {
        struct manager *m = &r->m;
        struct pool *p;

        m->draining = m->refusing = m->stopping = true;
        for (int i = 0; i < CLIENTS; i++)
                r->clients[i].fd = close_fd(r->clients[i].fd);
        rig_settle(r);
        while (close_all && !TAILQ_EMPTY(&m->sessions))
                session_close(TAILQ_FIRST(&m->sessions), "stopped", NULL, NULL);
        sessions_leave(m);
        LIST_FOREACH(p, &m->pools, link)
        while (!TAILQ_EMPTY(&p->sandboxes))
                sandbox_discard(TAILQ_FIRST(&p->sandboxes), NULL);
        for (int i = 0; i < AGENTS; i++)
                r->agents[i].fd = close_fd(r->agents[i].fd);
        rig_settle(r);
        while (r->n_pending > 0)
                rig_answer(r, 223);
        rig_settle(r);
        rig_check(r);
}

/* The next manager, in the same struct: of this one it knows what stands in the files. */
static inline void rig_restart(struct rig *r) {
        struct manager *m = &r->m;
        struct errmsg e;

        rig_stop(r, false);
        m->draining = m->refusing = m->stopping = false;
        check(adopt_begin(m, &e) == 0);
        pools_update(m);
        adopt_ask(m);
}

static inline void rig_finish(struct rig *r) {
        struct manager *m = &r->m;
        struct audit_open_exec open;
        size_t i = 0;

        rig_stop(r, true);
        check(!audit_open_next(m->audit, &i, &open) && TAILQ_EMPTY(&m->sessions));
        check(LIST_EMPTY(&m->image_jobs) && TAILQ_EMPTY(&m->image_looks));
        check(LIST_EMPTY(&m->execs) && LIST_EMPTY(&m->clients) && m->n_creating == 0);
        broker_done(&m->broker);
        rate_free(m->rate);
        free(m->logins);
        pools_free(m);
        sd_event_source_disable_unref(m->announce);
        sd_event_source_disable_unref(m->retire);
        sd_event_source_disable_unref(m->settle);
        sd_event_unref(m->event);
        close(r->broker);
        close(m->listen_fd);
        check(rig_low_fd() == r->low_fd);
}
