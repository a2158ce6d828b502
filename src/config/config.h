/*
 * sandbox.yaml as the daemons see it: read, checked, defaults filled in. One reader, shared by manager
 * and broker, so that both mean the same thing by the same file.
 *
 * The strings and arrays belong to the struct config; nothing in it is NULL unless it says so.
 */
#pragma once

#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/errmsg.h"

#define CONFIG_PATH "/etc/hermes-sandbox/sandbox.yaml"
#define CONFIG_DROPIN_DIR "/etc/hermes-sandbox/sandbox.d"
#define CONFIG_RECIPE 32

/* What must stay free of tmpfs and shm: an OOM kill cannot free what a tmpfs holds, so a full one would leave no memory
 * to run anything in. */
#define CONFIG_HEADROOM (UINT64_C(16) << 20)
/* The smallest of what a sandbox may have. With fewer processes there is no room beside a command for the agent and its
 * spare children; less than 10^7 the engine takes for none. */
#define CONFIG_MEMORY_MIN (UINT64_C(16) << 20)
#define CONFIG_CPU_MIN UINT64_C(10000000)
#define CONFIG_PIDS_MIN 16u
#define CONFIG_SHM_MIN (UINT64_C(64) << 10)
#define CONFIG_TMPFS_MIN UINT64_C(4096)

/* What commands as uid 0 may be given. SETUID and SETGID are not of it: a command that can put its supplementary gid away
 * is not found again (common/agent_args.h). */
#define CONFIG_CAPABILITIES                                                                       \
        (UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_FOWNER | \
         UINT64_C(1) << CAP_FSETID | UINT64_C(1) << CAP_NET_BIND_SERVICE)

enum reuse { REUSE_REPLACE, REUSE_SCRUB };
enum on_empty { ON_EMPTY_COLD, ON_EMPTY_WAIT };
enum tristate { TRI_AUTO, TRI_TRUE, TRI_FALSE };
enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

struct config_limits {
        uint64_t
                command_bytes; /* all arguments together, each with its NUL; default 16 KiB, at most 3 MiB */
        uint64_t timeout_ms;     /* default 180 s; 0: none */
        uint64_t timeout_max_ms; /* what a caller may ask for, at most; default 1 h; 0: no bound */
        uint64_t output_bytes;   /* both streams together; 0 (default): no limit */
        uint64_t grace_ms;       /* between TERM and KILL; default 2 s */
        uint32_t exec_rate;      /* execs a second for each uid; 0 (default): no limit */
        uint32_t sessions;       /* of one uid, in all profiles; default 16; 0: none may be opened */
        uint32_t execs;          /* of one uid that run at once, in all profiles; default 512 */
        uint32_t queued; /* of one uid that wait, in all profiles; default queue_limit, at least 1 */
};

struct config_tmpfs {
        char *path; /* absolute, normalised */
        uint64_t bytes;
};

struct config_ulimit {
        char *name; /* as docker's: nofile, core, … */
        uint64_t soft, hard;
};

struct config_user {
        uint32_t uid, gid;
};

/* A container recipe and a policy. */
struct config_profile {
        char *name; /* "default" is the file's pool: */

        /* the recipe: what the create call is built from */
        char *image;
        uint64_t memory_bytes;
        uint64_t memory_reserve_bytes; /* 0: none */
        uint64_t cpu_nano;             /* 10^9 = one CPU */
        char *network;                 /* "none", "bridge" or a network's name */
        bool read_only;
        uint32_t pids_limit;
        uint64_t reconnect_grace_ms; /* how long a sandbox waits for a manager; default 2 min */
        struct config_tmpfs *tmpfs;  /* sorted by path */
        size_t n_tmpfs;
        uint64_t shm_bytes;
        char *runtime;             /* "": the engine's default */
        uint32_t uid, gid;         /* of commands; 0: root inside, never scrubbed for anybody */
        struct config_user *users; /* further ones that a caller may ask for; sorted */
        size_t n_users;            /* at most AGENT_USERS_MAX */
        uint64_t capabilities;     /* of commands as uid 0: bits CAP_X, out of CONFIG_CAPABILITIES */
        char *workdir;             /* absolute */
        char *home;                /* absolute: HOME of commands */
        char **env;                /* "KEY=VALUE", NULL-terminated, sorted; for commands */
        struct config_ulimit *ulimits;
        size_t n_ulimits;

        /* the policy */
        uint32_t size;       /* warm sandboxes */
        enum reuse reuse;    /* default scrub; always replace where a command can be uid 0 */
        uint32_t max_uses;   /* commands of one sandbox; default 10000; 0: no bound */
        uint64_t max_age_ms; /* of one sandbox; default a day; 0: no bound */
        enum on_empty on_empty;
        uint64_t cold_after_ms; /* how long none has come back; 10 times that at most */
        uint32_t max_sandboxes; /* of this profile, warm and busy; of one uid, busy in all profiles */
        uint32_t queue_limit;
        uint64_t queue_timeout_ms;
        uint64_t session_ttl_ms; /* idle for so long, a session is closed; default 30 min; 0: never */
        uint64_t session_ttl_max_ms; /* what a caller may ask for; default a day; 0: no bound */
        char **allow_users; /* NULL-terminated names; both lists empty: every member of hermes-sandbox */
        char **allow_groups;
        struct config_limits limits;

        uint8_t recipe[CONFIG_RECIPE]; /* SHA-256 over the recipe's fields in a canonical form */
};

struct config {
        struct config_profile *profiles; /* [0] is "default", the others sorted by name */
        size_t n_profiles;

        char *waf_mode;            /* accepted, not enforced in this version */
        char **allowed_file_paths; /* NULL-terminated, absolute: below these a sandbox may get folders */

        enum log_level log_level;
        uint32_t log_backup_count; /* of the trail and of log_file */
        uint64_t log_max_bytes;
        char *log_file; /* the manager's: a file name below /var/log/hermes-sandbox, "": journal or stderr only */

        enum tristate audit_required;
        char *audit_file; /* absolute: the readable trail */

        char *engine_socket; /* absolute path of the engine's Unix socket */
};

/*
 * Reads @path and then every *.yaml in @dropin_dir (NULL or a folder that is not there: none) in
 * alphabetical order, merged over it: scalars and lists replace, mappings merge.
 *
 * Returns 0 and a new *ret (config_free()), or -errno and one line in *e: for what stands in a file
 * -EINVAL and "FILE:LINE:COLUMN: KEY: found X, expected Y"; for a file that cannot be read its errno.
 */
int config_load(const char *path, const char *dropin_dir, struct config **ret, struct errmsg *e);

void config_free(struct config *c);

/* The profile of that name ("" is "default"), or NULL. */
const struct config_profile *config_profile_find(const struct config *c, const char *name);

/* What a sandbox is created from: SHA-256 over the profile's recipe and then the agent binary's own hash.
 * Manager and broker compute it each for itself and compare. */
void config_recipe_with_agent(const struct config_profile *p, const uint8_t agent[CONFIG_RECIPE],
                              uint8_t ret[CONFIG_RECIPE]);

/* Prints what is in force, as YAML that config_load() accepts, all defaults filled in. Returns 0 or
 * -EIO. */
int config_show(const struct config *c, FILE *f);

/* What is accepted but not enforced in this version: calls @say once for each, with a line such as
 * "waf_mode: unenforced (no MCP server in this version)". */
void config_unenforced(const struct config *c, void (*say)(void *userdata, const char *line),
                       void *userdata);
