/*
 * A new listening socket for the agent of a sandbox that runs: a manager that was started again has lost
 * the old one, and the agent goes on looking for a socket of that name.
 */
#pragma once

#include "engine/requests.h"

/* ENGINE_LISTEN. */
void relisten_request(struct broker *b, struct request *q, const struct engine_msg *m);
