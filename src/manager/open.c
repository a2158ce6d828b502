/* A session is asked for: what the config and its policy make of that, before anything is made. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/image_name.h"
#include "config/narrow.h"
#include "config/profile.h"
#include "config/values.h"
#include "manager/exec.h"
#include "manager/gateway.h"
#include "manager/manager.h"
#include "manager/session.h"

/* --- the image ---------------------------------------------------------------------------------- */

static const char *without_sha256(const char *id) {
        return strncmp(id, "sha256:", 7) == 0 ? id + 7 : id;
}

/* The digits of an image's id, as many as engines show, or more. */
static bool same_id(const char *asked, const char *id) {
        const char *digits = without_sha256(asked), *whole = without_sha256(id);
        size_t n = strlen(digits);

        return n >= 12 && n <= 64 && strspn(digits, "0123456789abcdef") == n &&
               strncmp(whole, digits, n) == 0;
}

static bool image_is_profiles(const struct pool *p, const char *asked) {
        return !asked[0] || image_name_means(asked, p->profile->image) || same_id(asked, p->image_id) ||
               (config_image_pin(p->profile->image) == IMAGE_PIN_ID &&
                same_id(asked, p->profile->image));
}

/* --- what is wrong with the request --------------------------------------------------------------- */

/* Each refuses it and returns false where it is. */
static bool may_use(struct client *c, const struct open_request *r, const struct pool *p) {
        if (peer_profile_allowed(&c->peer, p->profile))
                return true;
        request_not_allowed(c, "session open", r->name, p->name,
                            "uid %u may not use profile \"%s\": its allow_users or allow_groups "
                            "decides",
                            (unsigned)c->peer.uid, p->name);
        return false;
}

static bool name_is_free(struct client *c, const struct open_request *r) {
        if (r->name[0] && !session_name_valid(r->name))
                client_reject(c, EXIT_USAGE,
                              "session open: \"%.64s\" cannot be a session's name: 1 to 64 letters, "
                              "digits, \"_\", \"-\" and \".\", the first none of the last two",
                              r->name);
        else if (gateway_name_is_kept(&c->peer, r->name))
                client_reject(c, EXIT_USAGE,
                              "session open: \"%s\" is the name of an ssh key's session: choose another",
                              r->name);
        else if (r->name[0] && session_find(c->m, r->name))
                client_refuse(c, EXIT_USAGE, "name_taken",
                              "session open: the name \"%s\" is taken: choose another, or close that "
                              "session",
                              r->name);
        else
                return true;
        return false;
}

static bool ttl_is_allowed(struct client *c, const struct open_request *r, const struct pool *p) {
        uint64_t max = p->profile->session_ttl_max_ms;

        if (!max || r->ttl_ms <= max)
                return true;
        client_reject(c, EXIT_USAGE,
                      "session open: a time to live of %llu s is over the limit of %llu s: ask "
                      "for less, or raise session_ttl_max",
                      (unsigned long long)r->ttl_ms / 1000, (unsigned long long)max / 1000);
        return false;
}

static bool mounts_are_callers(struct client *c, const struct open_request *r, const struct pool *p) {
        if (r->mounts && c->conn.passed < 0)
                client_reject(c, EXIT_USAGE, "session open: no descriptor came with the mounts");
        else if (r->mounts && !alone_is_callers(c->conn.passed, c->peer.uid))
                request_not_allowed(
                        c, "session open", r->name, p->name,
                        "the mounts come on something else than uid %u's own pair of packet sockets",
                        (unsigned)c->peer.uid);
        else
                return true;
        return false;
}

static bool is_profiles_image(struct client *c, const struct open_request *r, const struct pool *p) {
        if (image_is_profiles(p, r->image))
                return true;
        request_refused(c, "session open", r->name, p->name, "other_image");
        client_refuse(c, EXIT_SANDBOX, "other_image",
                      "session open: image \"%.300s\" is not that of profile \"%s\", which is \"%s\"",
                      r->image, p->name, p->profile->image);
        return false;
}

/* A user of the profile's, or the caller himself; root inside is the profile's to give. */
static bool user_is_allowed(struct client *c, const struct open_request *r, const struct pool *p) {
        const struct narrow *n = &r->narrow;
        const struct peer *peer = &c->peer;

        if (!n->user || config_profile_has_user(p->profile, n->uid, n->gid, NULL))
                return true;
        if (n->uid != 0 && n->gid != 0 && n->uid == peer->uid && peer_in_group(peer, n->gid))
                return true;
        request_refused(c, "session open", r->name, p->name, "no_user");
        client_refuse(
                c, EXIT_NOT_ALLOWED, "no_user",
                "session open: commands of profile \"%s\" may not run as %u:%u: see user and users "
                "of the profile",
                p->name, n->uid, n->gid);
        return false;
}

static bool narrow_fits(struct client *c, const struct open_request *r, const struct pool *p) {
        struct config_profile narrowed;
        struct errmsg e;

        if (narrow_is_empty(&r->narrow))
                return true;
        if (config_narrow(p->profile, &r->narrow, &narrowed, &e) < 0) {
                client_reject(c, EXIT_SANDBOX, "session open: %s", e.text);
                return false;
        }
        config_profile_done(&narrowed);
        return true;
}

static bool may_open(struct client *c, const struct open_request *r, const struct pool *p) {
        return may_use(c, r, p) && name_is_free(c, r) && ttl_is_allowed(c, r, p) &&
               mounts_are_callers(c, r, p) && is_profiles_image(c, r, p) && user_is_allowed(c, r, p) &&
               narrow_fits(c, r, p);
}

/* --- the request ---------------------------------------------------------------------------------- */

static void open_session(struct client *c, struct open_request *r) {
        const char *reason, *line;
        struct session *s;
        struct pool *p = pool_find(c->m, r->profile);

        if (!request_within_rate(c, p))
                return;
        if (c->m->refusing) {
                client_reject(c, EXIT_SANDBOX, "rejected: " STOPPING_LINE);
                return;
        }
        if (!p) {
                client_refuse(c, EXIT_USAGE, "no_profile",
                              "session open: no profile \"%.64s\" in the config: see hermes-sandbox "
                              "config show",
                              r->profile);
                return;
        }
        /* With host folders in it commands run as the caller, whatever was asked. */
        if (r->mounts) {
                r->narrow.user = false;
                r->narrow.uid = r->narrow.gid = 0;
        }
        if (!may_open(c, r, p))
                return;
        if (config_narrow_changes_nothing(p->profile, &r->narrow))
                r->narrow = (struct narrow){ 0 };
        s = session_new(c, p, r, &reason, &line);
        if (!s) {
                request_refused(c, "session open", r->name, p->name, reason);
                client_refuse(c, EXIT_SANDBOX, reason, "rejected: session open: %s", line);
                return;
        }
        s->mounts = r->mounts;
        if (r->mounts)
                s->mount_fd = take_fd(&c->conn.passed);
        s->opener = c;
        s->opener_form = r->form;
        c->opening = s;
        conn_pause(&c->conn, true);
        session_begin(s);
}

int open_handle(struct client *c, const struct frame *f) {
        struct open_request r;

        if (open_request_decode(f->payload, f->len, &r) < 0)
                return -EPROTO;
        if (!peer_allowed(&c->peer, &c->m->policy))
                request_not_allowed(
                        c, "session open", r.name, "",
                        "uid %u is not in group hermes-sandbox: sudo usermod -aG hermes-sandbox "
                        "USER, then log in again",
                        (unsigned)c->peer.uid);
        else
                open_session(c, &r);
        return 0;
}
