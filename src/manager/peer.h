/* Who is at the other end of a Unix socket, by the kernel's word alone, and what they may. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"
#include "manager/audit.h"

#define PEER_GROUPS_MAX 1024

struct peer {
        uid_t uid;
        gid_t gid;
        pid_t pid;
        uint32_t loginuid; /* UINT32_MAX: unset, or not readable without a race */
        gid_t *groups;     /* supplementary, as they were at connect */
        size_t n_groups;
        char fp[KEYFP_LEN + 1]; /* of the key that the gateway speaks for, by its word; "": none */
};

struct peer_policy {
        gid_t group; /* of hermes-sandbox; (gid_t)-1 where there is none: then only the manager's own uid */
        bool have_group;
        uid_t gateway; /* the ssh gateway's account */
        bool have_gateway;
};

/* @gateway is the name of an account, "" for none. One that there is not, root and our own are nobody's. */
void peer_policy_init(struct peer_policy *p, const char *gateway);
/* Fills *ret from the socket; 0 or -errno. peer_done() frees it. */
int peer_get(int fd, struct peer *ret);
void peer_done(struct peer *p);
/* May they use the sandbox at all? */
bool peer_allowed(const struct peer *p, const struct peer_policy *policy);
/* And this profile (allow_users, allow_groups)? */
bool peer_profile_allowed(const struct peer *p, const struct config_profile *profile);
/* Is that group his? */
bool peer_in_group(const struct peer *p, gid_t gid);
struct audit_caller peer_caller(const struct peer *p);
/* Is it the same user, and the holder of the same key? Two keys never see what is the other's. */
bool peer_is(const struct peer *p, const struct audit_caller *who);
