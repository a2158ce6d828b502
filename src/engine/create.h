/*
 * One sandbox: record and folder made, socket listening, container created, started and inspected, the
 * manager answered. Whatever fails on the way, everything made until then is removed again.
 */
#pragma once

#include "engine/requests.h"

struct mounts;

/* ENGINE_CREATE. */
void create_request(struct broker *b, struct request *q, const struct engine_msg *m);

/* The same, of the profile as @narrow leaves it and with the host folders @mounts (mounts.h), which are this call's; NULL:
 * none. The others are borrowed for as long as it lasts. */
void create_begin(struct broker *b, struct request *q, const char *profile, const uint8_t *hash,
                  const struct narrow *narrow, struct mounts *mounts);
