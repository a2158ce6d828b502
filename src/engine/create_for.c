/*
 * What of a sandbox is not the profile's own is judged here, by the broker itself: the manager only passes on what a
 * caller asks for, and nothing in that makes a sandbox more than its profile is. Whether a uid other than 0 is the
 * caller's own the broker does not know, and need not: it gives no right, as a sandbox without host folders has nothing
 * of anybody's in it.
 */
#include "engine/create_for.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "config/narrow.h"
#include "engine/create.h"
#include "engine/elink.h"

/* --- judging ------------------------------------------------------------------------------------ */

/* 0, -EPERM: he may not, or another error: it cannot be. */
static int check_mounts(struct broker *b, const struct config_profile *p, const struct narrow *n,
                        const struct mounts *m, struct errmsg *e) {
        if (n->user && (n->uid != m->uid || n->gid != m->gid))
                return errmsg_set(
                        e, -EPERM,
                        "mount: beside a host folder commands run as %u:%u, who mounts it, and not "
                        "as %u:%u: leave --user out",
                        (unsigned)m->uid, (unsigned)m->gid, n->uid, n->gid);
        if (elink_rootless(b->link) || elink_userns(b->link))
                return errmsg_set(
                        e, -EINVAL,
                        "mount: this engine maps the uids of its containers (rootless, or userns-remap): a "
                        "caller's folder would belong to nobody there");
        return mounts_check(m, b->config, p, e);
}

int create_for_profile(struct broker *b, const struct config_profile *p, const struct narrow *n,
                       const struct mounts *m, struct config_profile *ret, enum engine_error *ret_error,
                       struct errmsg *e) {
        struct narrow own = *n;
        int r = 0;

        if (m)
                r = check_mounts(b, p, n, m, e);
        else if (n->user && n->uid == 0 && !config_profile_has_user(p, 0, n->gid, NULL))
                r = errmsg_set(
                        e, -EPERM,
                        "--user 0:%u: neither user nor users of the profile has it, in sandbox.yaml",
                        n->gid);
        /* Beside host folders it is the caller, whoever the profile names. */
        if (m)
                own.user = false;
        if (r == 0)
                r = config_narrow(p, &own, ret, e);
        if (r == 0)
                return 0;
        *ret_error = r == -EPERM ? ENGINE_E_NOT_ALLOWED : ENGINE_E_REFUSED;
        if (m)
                log_line(LOG_P_WARNING, "refused uid %u: %s", (unsigned)m->uid, e->text);
        else
                log_line(LOG_P_WARNING, "refused: %s", e->text);
        return r;
}

/* --- the request -------------------------------------------------------------------------------- */

/* While the caller's messages are read. */
struct asking {
        struct broker *broker;
        struct request *request;
        char profile[ENGINE_PROFILE_MAX + 1];
        uint8_t hash[ENGINE_RECIPE];
        struct narrow_kept narrow;
};

static void told(void *userdata, struct mounts *m, enum engine_error error, const char *why) {
        _cleanup_free_ struct asking *a = userdata;

        if (m)
                create_begin(a->broker, a->request, a->profile, a->hash, &a->narrow.narrow, m);
        else
                request_fail(a->request, error, "mount: %s", why);
}

static void read_mounts(struct broker *b, struct request *q, const struct engine_msg *m) {
        struct asking *a = calloc(1, sizeof(*a));
        int r = -ENOMEM;

        if (a) {
                *a = (struct asking){ .broker = b, .request = q };
                snprintf(a->profile, sizeof(a->profile), "%s", m->profile);
                memcpy(a->hash, m->hash, sizeof(a->hash));
                narrow_copy(&m->narrow, &a->narrow.narrow, a->narrow.paths);
                r = mounts_read(b, take_fd(&q->fd), told, a);
        }
        if (r == 0)
                return;
        free(a);
        if (r == -EBUSY)
                request_fail(q, ENGINE_E_BUSY, "mount: %d are being read already: wait for one",
                             MOUNTS_READERS_MAX);
        else
                request_fail(q, ENGINE_E_REFUSED, "mount: %s", strerror(-r));
}

void create_for_request(struct broker *b, struct request *q, const struct engine_msg *m) {
        if (m->mounts)
                read_mounts(b, q, m);
        else
                create_begin(b, q, m->profile, m->hash, &m->narrow, NULL);
}
