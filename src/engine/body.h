/* The create body: the one place that decides what a sandbox's container is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/config.h"

/* A host folder in the sandbox. */
struct body_mount {
        const char *dst;
        int fd; /* of process @pid: the folder itself */
        bool read_only;
};

/* Whose the sandbox is, where it has host folders. */
struct body_caller {
        uid_t uid;
        gid_t gid;
        pid_t pid; /* this process, as the engine sees it */
        size_t n;
        const struct body_mount *mounts;
};

struct body_context {
        const char *image;         /* its id, whatever the profile's name for it means by then */
        const char *installation;  /* the installation id */
        const uint8_t *recipe;     /* CONFIG_RECIPE bytes: profile and agent binary */
        const char *agent_path;    /* of the agent binary on the host, absolute */
        const char *stream_folder; /* this sandbox's folder on the host, absolute */
        gid_t stream_gid;          /* the group that may connect to the socket in it */
        bool cgroup_v2;            /* the engine's machine */
        bool rootless;             /* the engine runs in a user namespace: few gids are mapped */
        const struct body_caller
                *caller; /* NULL: no host folders, and the agent is root in the container */
};

/* The JSON of POST /containers/create for a sandbox of @p, which may be a narrowed one (config/narrow.h): a new string, or
 * NULL when out of memory. The same input gives the same bytes. */
char *body_create(const struct config_profile *p, const struct body_context *ctx);
