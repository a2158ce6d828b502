/*
 * What has happened since the start, in numbers. Nothing here costs a command more than a few additions: each number
 * is kept where what it counts happens, and summed up or looked up only when somebody asks.
 *
 * Most stand in the pool of their profile; refusals and sessions are counted as they are recorded (audit.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/proto.h"
#include "manager/tally.h"

struct exec;
struct manager;
struct pool;

/* The buckets of a latency: how many took at most stats_bounds[i].us and more than the bound before; the last one has
 * no bound. */
#define STATS_BOUNDS 20
struct stats_bound {
        uint64_t us;
        const char *seconds; /* as OpenMetrics writes it */
        const char *shown;   /* for people */
};
extern const struct stats_bound stats_bounds[STATS_BOUNDS];

struct stats_latency {
        uint64_t n[STATS_BOUNDS + 1];
        uint64_t sum_us;
};

#define STATS_CAUSES (CAUSE_NOT_EXECUTABLE + 1)

/* Of one profile. */
struct pool_stats {
        uint64_t warm, cold;           /* commands that began, and what they found */
        uint64_t waited, waited_us;    /* of these, those that stood in the queue, and for how long */
        uint64_t ended[STATS_CAUSES];  /* by enum cause; 0: another */
        uint64_t bytes[2];             /* of stdout and stderr that came from the agents */
        uint64_t created, not_created; /* sandboxes that came from the engine, attempts that failed */
        uint64_t scrubs[SCRUB_CHECKS]; /* proofs by their outcome, enum scrub_check */
        struct stats_latency start;    /* from the request to the order to the agent */
        struct stats_latency wall;     /* from the request to the result */
};

/* @x begins in its sandbox; @now_us is monotonic. */
void stats_started(const struct exec *x, uint64_t now_us);
/* @x has ended with @r. */
void stats_ended(const struct exec *x, const struct result *r);
/* The engine has made a sandbox, or has not. One with a caller's folders that was not made is a refusal instead. */
void stats_created(struct pool *p, bool ok);
/* A scrub has been proved (SCRUB_CLEAN), or has not. */
void stats_scrubbed(struct pool *p, uint8_t check);

uint64_t stats_count(const struct stats_latency *l);
void stats_latency_add(struct stats_latency *l, uint64_t us);
/* The bucket, 0 … STATS_BOUNDS, within which @per_mille of all lie; only where there are some. */
size_t stats_quantile(const struct stats_latency *l, unsigned per_mille);
/* How many sessions are open. */
unsigned stats_sessions(const struct manager *m);
/* Adds all numbers of @p to @sum. */
void stats_sum(struct pool_stats *sum, const struct pool_stats *p);
/* Refusals by reason: those with a record of their own, "exec_rate", and "other" for what was no request at all. */
void stats_rejected(const struct manager *m, struct tally *ret);

/* By enum sandbox_state, GONE left out: how many of @p are in it, those that the engine is making with STARTING. */
#define STATS_STATES 8
void stats_states(const struct pool *p, unsigned ret[STATS_STATES]);
/* "starting", "warm", …; NULL for one that does not exist or is GONE. */
const char *stats_state_name(unsigned state);

/* The answers to `hermes-sandbox stats` and `hermes-sandbox metrics`: allocated, NULL when out of memory. */
char *stats_text(struct manager *m, bool as_json, size_t *ret_len);
char *metrics_text(struct manager *m, size_t *ret_len);
