/* The table of requests: what the manager may ask, how long it may be, and who serves it. */
#pragma once

#include "engine/serve.h"

struct request_row {
        uint16_t type;
        const char *name;
        size_t max_len;    /* of the whole packet */
        bool needs_engine; /* fails at once while no engine is there */
        bool descriptor;   /* exactly one comes with it if it says mounts; else none may */
        /* Serves @m, whose strings live only until it returns; @q gets its final answer then or later.
         * */
        void (*handler)(struct broker *b, struct request *q, const struct engine_msg *m);
};

/* The row of @type, or NULL: not a request. HELLO is the server's own and stands not in it. */
const struct request_row *requests_find(uint16_t type);
