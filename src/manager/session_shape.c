/* What a session's sandbox is, and as which users commands run in it: taken from the profile when the sandbox is made, as
 * what its agent has been told does not change with the config. */
#include <stdio.h>
#include <string.h>

#include "config/narrow.h"
#include "config/profile.h"
#include "manager/session.h"

bool session_alone(const struct session *s) {
        return s->mounts || !narrow_is_empty(&s->narrow);
}

static void fill(struct session *s, const struct config_profile *p) {
        struct session_shape *shape = &s->shape;

        snprintf(shape->image, sizeof(shape->image), "%s", p->image);
        snprintf(shape->network, sizeof(shape->network), "%.*s", PROTO_NAME_MAX, p->network);
        shape->memory_bytes = p->memory_bytes;
        shape->cpu_nano = p->cpu_nano;
        shape->shm_bytes = p->shm_bytes;
        shape->pids_limit = p->pids_limit;
        shape->n_users = 1;
        /* With host folders in it its commands are its owner, whatever else was asked for. */
        if (s->mounts) {
                shape->users[0] = (struct config_user){ s->owner.uid, s->gid };
                return;
        }
        shape->users[0] = (struct config_user){ p->uid, p->gid };
        for (size_t i = 0; i < p->n_users && i < AGENT_USERS_MAX; i++)
                shape->users[shape->n_users++] = p->users[i];
}

int session_shape_take(struct session *s, struct errmsg *e) {
        const struct config_profile *p = s->pool->profile;
        struct config_profile narrowed;
        int r;

        if (narrow_is_empty(&s->narrow)) {
                fill(s, p);
                return 0;
        }
        r = config_narrow(p, &s->narrow, &narrowed, e);
        if (r < 0)
                return r;
        fill(s, &narrowed);
        config_profile_done(&narrowed);
        return 0;
}

void session_shape_guess(struct session *s) {
        struct errmsg e;

        if (s->shape.n_users == 0 && s->pool->profile)
                (void)session_shape_take(s, &e);
}

static bool among(const struct config_user *users, uint32_t n, const struct exec_request *r,
                  struct config_user *ret) {
        for (uint32_t i = 0; i < n; i++)
                if (users[i].uid == r->uid && (r->gid == UINT32_MAX || users[i].gid == r->gid)) {
                        *ret = users[i];
                        return true;
                }
        return false;
}

bool session_user(const struct session *s, const struct config_profile *p, const struct exec_request *r,
                  struct config_user *ret) {
        struct config_user own = { p->uid, p->gid };

        if (s && s->shape.n_users > 0) {
                *ret = s->shape.users[0];
                return !r->user || among(s->shape.users, s->shape.n_users, r, ret);
        }
        if (s && s->mounts)
                own = (struct config_user){ s->owner.uid, s->gid };
        else if (s && s->narrow.user)
                own = (struct config_user){ s->narrow.uid, s->narrow.gid };
        *ret = own;
        if (!r->user || among(&own, 1, r, ret))
                return true;
        if (s && s->mounts)
                return false;
        ret->uid = r->uid;
        return config_profile_has_user(p, r->uid, r->gid, &ret->gid);
}
