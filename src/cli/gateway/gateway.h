/*
 * What sshd runs for each login and for each command of the gateway's account (ForceCommand): it carries one command into
 * the session of the key that logged in. hermes-sandbox-ssh-gateway(8).
 *
 * Its environment is sshd's; of it only the words below are read. What the client says is in SSH_ORIGINAL_COMMAND, LANG
 * and LC_*, and all of it goes into the sandbox as it stands: nothing here, and no shell of the host, reads it.
 */
#pragma once

#include <sys/types.h>

#include "cli/cli.h"
#include "cli/cli_conn.h"
#include "cli/cli_sshkey.h"
#include "common/errmsg.h"
#include "common/proto.h"

/* What main() fills in, and tests otherwise. */
struct gateway {
        struct cli cli;
        const char *keys; /* authorized_keys */
        uid_t owner;      /* of that file: root */
};

/* For which key, from where. */
struct gw_who {
        struct sshkey_notes key;
        char session[SSHKEY_SESSION_LEN + 1];
        char hello[192]; /* "FINGERPRINT ADDRESS PORT CONNECTION", see proto.h */
};

/* Finds out from sshd's @env who has logged in. 0, or the exit status of the program and a line in *e. */
int gw_who_find(const struct gateway *g, char **env, struct gw_who *ret, struct errmsg *e);

/* The value of @name in @env, or NULL. */
const char *gw_env_get(char **env, const char *name);

/* What sshd would give a command: @ret gets at most GW_ENV_MAX strings, which point into @env and static memory.
 * Returns how many. */
#define GW_ENV_MAX 64
uint32_t gw_env_make(char **env, bool tty, const char **ret);

/* The words of the command: @shell with "-c" and what the client said, or as a login shell where it said nothing.
 * @ret has room for 3. Returns how many. */
uint32_t gw_command(const char *shell, const char *said, const char **ret);

/* Has whoever reads our output gone? */
bool gw_hung_up(void);

/* One request that runs no command, such as OPEN, over a connection of its own in @conn, which is closed after it. 0 when
 * it was done, else the exit status; then *ret_reason is an enum reject_reason and *e has the line to say. Ends the
 * program when who reads our output goes away meanwhile. */
int gw_ask(const struct gateway *g, const struct gw_who *who, struct cli_conn *conn, uint8_t type,
           const void *payload, size_t len, uint8_t *ret_reason, struct errmsg *e);

/* All of it. Returns the exit status. */
int gateway_run(const struct gateway *g, char **env);
