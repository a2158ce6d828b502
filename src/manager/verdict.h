/* What a command's end means for its caller: exit code, cause, one line. */
#pragma once

#include "common/proto.h"

struct exec;

/* Fills *ret from what the agent reported and what the manager counted. The strings in it are @x's and
 * @message, which is set to one line or "". */
void verdict(const struct exec *x, const struct exited *e, struct result *ret, char *message,
             size_t cap);
