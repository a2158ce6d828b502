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
/* cli_parse_duration() with a line; @option is named in it. */
int cli_parse_time(const char *what, const char *option, const char *s, uint64_t *ret_ms,
                   struct errmsg *e);
