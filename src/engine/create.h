/*
 * One sandbox: record and folder made, socket listening, container created, started and inspected, the
 * manager answered. Whatever fails on the way, everything made until then is removed again.
 */
#pragma once

#include "engine/requests.h"

/* ENGINE_CREATE. */
void create_request(struct broker *b, struct request *q, const struct engine_msg *m);
/* ENGINE_CREATE_FOR: the same with host folders in it, and the caller as its user (mounts.h). */
void create_mounted_request(struct broker *b, struct request *q, const struct engine_msg *m);
