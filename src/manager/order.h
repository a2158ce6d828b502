/* From a caller's request and a profile to what the agent is told. */
#pragma once

#include <stdbool.h>

#include "common/proto.h"
#include "config/config.h"

/* Bytes of request.args_wire that are arguments; the rest is environment. */
size_t order_args_len(const struct exec_request *r);
/* What limits.command_bytes counts: the arguments' bytes and one between each two. */
uint64_t order_command_bytes(const struct exec_request *r);
/* Where a command runs, beside the profile: as whom, and what its session adds. */
struct order_place {
        struct config_user user;
        const char *workdir; /* of commands that name none */
        uint32_t n_env;      /* variables */
        const uint8_t *env;  /* as strings on the wire */
        size_t env_len;
};

/* Do the variables of profile, session (@n_env, @env_len bytes) and caller together stay within what the agent takes
 * (proto.h)? */
bool order_fits(const struct config_profile *p, uint32_t n_env, size_t env_len,
                const struct exec_request *r);
/* What the agent gives the command, in ms: its own time-out, else the profile's; 0: no bound. */
uint64_t order_timeout_ms(const struct config_profile *p, const struct exec_request *r);
/* How much output it may have, in bytes; 0: no limit. */
uint64_t order_output_bytes(const struct config_profile *p, const struct exec_request *r);
/* The whole EXEC payload for the agent, allocated: LANG, HOME and TMPDIR, then the profile's variables, the session's, the
 * caller's. HOME is the profile's, as whomever the command runs. @one_shot, @scrub, @exec_id: as in exec_order. Never
 * fails (out of memory ends the daemon). */
uint8_t *order_encode(const struct config_profile *p, const struct order_place *at,
                      const struct exec_request *r, size_t args_len, bool one_shot, bool scrub,
                      const char *exec_id, size_t *ret_len);
