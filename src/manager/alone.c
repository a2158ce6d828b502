/*
 * Sessions whose sandboxes are made for them alone: with less than the profile gives (config/narrow.h), or with host
 * folders in them and their callers' own rights. What shall be mounted a caller has written on one end of a pair of
 * sockets, whose other end came with his request and goes to the broker unread. Making one begins when it is the session's
 * turn in the queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "manager/session.h"

/* Of the creations under way, so many for one user: he says how long one takes, and others wait. */
#define MAKING_PER_UID (CREATING_MAX / 2)

/* A creation under way. Its session may be given up meanwhile. */
struct making {
        LIST_ENTRY(making) link;
        struct pool *pool;
        struct session *session;
        uid_t uid;
        uint8_t recipe[CONFIG_RECIPE];
};

static void made(void *userdata, const struct engine_msg *m, int fd) {
        _cleanup_free_ struct making *k = userdata;
        struct pool *p = k->pool;
        struct session *s = k->session;

        LIST_REMOVE(k, link);
        p->n_alone--;
        p->m->n_creating--;
        pools_changed(p->m);
        if (s)
                s->making = NULL;
        if (m->type != ENGINE_CREATED) {
                close_fd(fd);
                if (m->type == ENGINE_FAILED && m->error == ENGINE_E_NO_IMAGE)
                        p->image_ready = false;
                if (m->type == ENGINE_FAILED && m->error == ENGINE_E_STALE)
                        broker_greet(&p->m->broker);
                if (s && m->type == ENGINE_FAILED && m->error == ENGINE_E_NOT_ALLOWED)
                        session_refuse(s, "not_allowed", m->text);
                else if (s)
                        session_refuse(s, "no_sandbox",
                                       m->type == ENGINE_FAILED ? m->text
                                                                : "the broker answered nonsense");
                return;
        }
        stats_created(p, true);
        image_seen(p, m->image);
        if (s && fd >= 0 && p->profile && !p->m->draining)
                s->sandbox = sandbox_new(p, m->container, k->recipe, m->image, (pid_t)m->pid, fd, s);
        else
                close_fd(fd);
        if (s && s->sandbox) {
                memcpy(s->container, s->sandbox->id, sizeof(s->container));
                return;
        }
        broker_ask(&p->m->broker,
                   &(struct engine_msg){ .type = ENGINE_REMOVE, .container = m->container },
                   broker_ignore, NULL);
        if (s)
                session_refuse(s, "no_sandbox", "its sandbox cannot be used any more");
}

static bool begin(struct pool *p, struct session *s) {
        struct engine_msg ask = { .type = ENGINE_CREATE_FOR,
                                  .profile = p->name,
                                  .hash = p->recipe,
                                  .narrow = s->narrow,
                                  .mounts = s->mounts };
        struct making *k;
        struct errmsg e;

        /* A reload may have come since it was asked for. */
        if (session_shape_take(s, &e) < 0) {
                session_refuse(s, "narrow", e.text);
                return true;
        }
        k = calloc(1, sizeof(*k));
        if (!k)
                abort();
        k->pool = p;
        k->session = s;
        memcpy(k->recipe, p->recipe, sizeof(k->recipe));
        if (broker_ask_passing(&p->m->broker, &ask, s->mount_fd, made, k) < 0) {
                free(k);
                return false;
        }
        s->mount_fd = close_fd(s->mount_fd);
        k->uid = s->owner.uid;
        LIST_INSERT_HEAD(&p->m->makings, k, link);
        s->making = k;
        queue_served(&s->waiter);
        p->n_alone++;
        p->m->n_creating++;
        return true;
}

/* An idle one that only takes up room: unused, or its own user's. */
static bool make_room(struct pool *p, uid_t uid) {
        struct sandbox *sb;

        TAILQ_FOREACH(sb, &p->sandboxes, link)
        if (sb->state == SANDBOX_WARM && !sb->spent && (sb->uses == 0 || sb->owner == uid)) {
                sandbox_discard(sb, "a session with a sandbox of its own needs its place");
                return true;
        }
        return false;
}

static bool at_bound(const struct manager *m, uid_t uid) {
        const struct making *k;
        unsigned n = 0;

        LIST_FOREACH(k, &m->makings, link)
        n += k->uid == uid;
        return n >= MAKING_PER_UID;
}

bool alone_step(struct pool *p, struct session *s) {
        if (!supply_ready(p))
                return false;
        if (supply_total(p) >= p->profile->max_sandboxes)
                return make_room(p, s->owner.uid);
        return p->m->n_creating < CREATING_MAX && !at_bound(p->m, s->owner.uid) && begin(p, s);
}

void alone_give_up(struct session *s) {
        if (s->making)
                s->making->session = NULL;
        s->making = NULL;
        s->mount_fd = close_fd(s->mount_fd);
}

bool alone_is_callers(int fd, uid_t uid) {
        struct ucred cred;
        socklen_t len = sizeof(cred);
        int type = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid != uid)
                return false;
        len = sizeof(type);
        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}
