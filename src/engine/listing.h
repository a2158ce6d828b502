/* What the engine has of ours, against what the records say. */
#pragma once

#include "engine/requests.h"

struct reconcile {
        struct broker *broker;
        void (*done)(void *userdata, const struct api_reply *reply);
        void *userdata;
};

/*
 * Asks the engine for the containers with our label and compares: records whose container is gone are
 * dropped (and the manager hears of it), containers that do not run are removed. @w is the caller's and
 * lives until its done was called, once: @reply NULL for a success, else the failed call's reply; or
 * until the call *ret was cancelled.
 */
int listing_reconcile(struct reconcile *w, struct api_call **ret);

/* ENGINE_LIST, ENGINE_INSPECT. */
void listing_request(struct broker *b, struct request *q, const struct engine_msg *m);
void listing_inspect(struct broker *b, struct request *q, const struct engine_msg *m);
