/* Whom commands may run as (ids.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/agent_args.h"

struct agent_user {
        uid_t uid;
        gid_t gid;
};

/* What the broker wrote into the arguments (common/agent_args.h). */
struct agent_ids {
        struct agent_user user; /* whom most commands run as */
        gid_t exec_gid_first;
        uint32_t exec_gid_count; /* 0: commands run as the agent itself */
        uint64_t caps;           /* of commands that run as uid 0 */
        uint32_t n_more;
        struct agent_user more[AGENT_USERS_MAX];
};

/* From "UID GID EXEC_GID_FIRST EXEC_GID_COUNT RECONNECT_MS CAPS [UID:GID]..." behind the name: 0, or -EINVAL, also where
 * it is nothing for an agent with this process' uid and gid. */
int ids_parse(struct agent_ids *ids, int argc, char *args[], uint32_t *ret_reconnect_ms);
/* The pair of these, or NULL: no command may run as that. */
const struct agent_user *ids_find(const struct agent_ids *ids, uid_t uid, gid_t gid);
/* Some command may have the agent's uid. It could signal the agent's processes until they have another. */
bool ids_exposed(const struct agent_ids *ids);
/* Why the sandbox can never be scrubbed with such commands; NULL: it may be. */
const char *ids_no_scrub(const struct agent_ids *ids);
