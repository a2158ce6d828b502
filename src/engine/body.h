/* The create body: the one place that decides what a sandbox's container is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/config.h"

struct body_context {
        const char *installation;  /* the installation id */
        const uint8_t *recipe;     /* CONFIG_RECIPE bytes: profile and agent binary */
        const char *agent_path;    /* of the agent binary on the host, absolute */
        const char *stream_folder; /* this sandbox's folder on the host, absolute */
        gid_t stream_gid;          /* the group that may connect to the socket in it */
        bool cgroup_v2;            /* the engine's machine */
        bool rootless;             /* the engine runs in a user namespace: few gids are mapped */
};

/* The JSON of POST /containers/create for a sandbox of @p: a new string, or NULL when out of memory. The
 * same input gives the same bytes. */
char *body_create(const struct config_profile *p, const struct body_context *ctx);
