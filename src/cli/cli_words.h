/* Words that more than one command takes. */
#pragma once

#include <stdint.h>

#include "common/errmsg.h"

/* Each returns 0, or -EINVAL and a line in *e that begins with @what, the command. */

/* The name of a session: 1 to 64 of A-Z a-z 0-9 _ . - and neither "-" nor "." at its front. */
int cli_check_session(const char *what, const char *s, struct errmsg *e);
/* The name of a profile: its length, as the manager knows which there are. */
int cli_check_profile(const char *what, const char *s, struct errmsg *e);
/* The id of a command: 16 lower-case hex digits. */
int cli_check_exec_id(const char *what, const char *s, struct errmsg *e);
/* "KEY=VALUE" with a key, at most 256 bytes. */
int cli_check_label(const char *what, const char *s, struct errmsg *e);
/* "TERM", "SIGTERM", "term" or "15" into 1 … 64. */
int cli_parse_signal(const char *what, const char *s, uint8_t *ret, struct errmsg *e);
/* "512m", "1g", "64k" or plain bytes into 1 … 2^50 bytes. */
int cli_parse_size(const char *what, const char *option, const char *s, uint64_t *ret_bytes,
                   struct errmsg *e);
/* "2", "0.5", "1.25" into billionths of a CPU: more than 0, at most 1024 CPUs. */
int cli_parse_cpus(const char *what, const char *option, const char *s, uint64_t *ret_nano,
                   struct errmsg *e);
/* A whole number of 1 … @max. */
int cli_parse_count(const char *what, const char *option, const char *s, uint32_t max, uint32_t *ret,
                    struct errmsg *e);
/* "UID", "UID:GID" or "root"; *ret_gid is UINT32_MAX where none is said. */
int cli_parse_user(const char *what, const char *option, const char *s, uint32_t *ret_uid,
                   uint32_t *ret_gid, struct errmsg *e);
/* "KEY=VALUE", or "KEY" for what @environ_list has, with a key of letters, digits and "_.-", no digit first. *ret is
 * the entry, in one of the two; NULL: "KEY", and there is no such variable. */
int cli_parse_env(const char *what, const char *s, char **environ_list, const char **ret,
                  struct errmsg *e);
/* An absolute path of at most PROTO_PATH_MAX bytes. */
int cli_check_workdir(const char *what, const char *s, struct errmsg *e);
/* cli_parse_duration() with a line; @option is named in it. */
int cli_parse_time(const char *what, const char *option, const char *s, uint64_t *ret_ms,
                   struct errmsg *e);
