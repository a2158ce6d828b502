/*
 * The manager's side: engine.sock, who may connect to it, and the requests that came over it.
 *
 * A request lives from its packet to its one final answer. Whoever serves it holds a struct request and
 * gives it back through one of the request_*() calls that say "final"; a manager that goes away
 * meanwhile leaves the request with nobody to answer, which request_orphaned() tells.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/engine_msg.h"
#include "engine/engined.h"

#define SERVE_SOCKET "engine.sock"
#define SERVE_OUTSTANDING_MAX 64 /* requests without their answer; one more is ENGINE_E_BUSY */
#define SERVE_OUTBOX_MAX 512     /* packets that a manager does not fetch, then it is dropped */

struct request {
        struct request *next, **prev;
        struct serve *serve;
        struct broker *broker;
        uint32_t id;
        int fd; /* that came with it, or -1: who serves it may take it */
        bool orphaned;
};

/* Listens on <runtime-dir>/engine.sock, or takes the socket that systemd passes. 0 or -errno. */
int serve_new(struct broker *b, struct serve **ret);
void serve_free(struct serve *s);
/* The start has failed: tells the manager that waits in the socket which systemd passed, if any. */
void serve_last_word(const char *text);

/* Sends to the manager, if there is one that has said HELLO. */
void serve_died(struct serve *s, const char *container, uint32_t exit_code, bool oom_killed);
void serve_state(struct serve *s, enum engine_state state, const char *text);

/* Final: answers with @m, whose id is filled in, and @pass_fd unless it is -1 (the caller keeps its
 * own). Returns false when nobody is there to get it. */
bool request_answer(struct request *q, struct engine_msg *m, int pass_fd);
/* Final: FAILED with one line. */
__attribute__((format(printf, 3, 4))) void request_fail(struct request *q, enum engine_error error,
                                                        const char *fmt, ...);
/* Final: FAILED for a call to the engine that got no complete reply. */
void request_fail_call(struct request *q, const struct api_reply *reply, const char *what);

/* Not final: PROGRESS with @m's layer, text, done and total. How often it is said is the caller's to bound. */
void request_progress(struct request *q, struct engine_msg *m);
bool request_orphaned(const struct request *q);
