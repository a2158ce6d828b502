/* The broker as a whole: what its modules share. One thread, one event loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "common/engine_msg.h"
#include "config/config.h"
#include "engine/api.h"
#include "engine/records.h"
#include "engine/sockdir.h"

struct elink;
struct serve;
struct removal;
struct mounts_reader;

struct engined_options {
        const char *config_path;
        const char *config_dir;
        const char *runtime_dir;
        const char *state_dir;
        const char *agent_path;   /* absolute */
        const char *manager_user; /* the account whose processes may ask */
        bool single_user;         /* it is our own: nothing separates us from the manager */
};

struct broker {
        struct engined_options options;
        uid_t manager_uid;
        gid_t manager_gid; /* of the sandboxes' sockets */

        sd_event *event;
        struct config *config;
        uint8_t agent_hash[ENGINE_RECIPE];
        struct api *api;
        struct records records;
        struct sockdir sockdir;
        struct elink *link;                   /* to the engine: elink.h */
        struct serve *serve;                  /* to the manager: serve.h */
        struct removal *removals;             /* under way */
        struct mounts_reader *mounts_readers; /* likewise */
};

/* Runs until a signal ends it. Returns what main() exits with: 0, EXIT_CONFIG for a bad config, 1 for
 * another failure, which is logged. */
int engined_run(const struct engined_options *options);

/* Ends the loop after the current event; the process exits with 0. */
void engined_stop(struct broker *b);
