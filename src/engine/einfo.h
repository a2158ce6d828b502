/* ENGINE_INFO: what the engine says of itself and of its machine, for status. */
#pragma once

#include "engine/requests.h"

void einfo_request(struct broker *b, struct request *q, const struct engine_msg *m);
