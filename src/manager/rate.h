/*
 * How many commands a second a uid may ask for (limits.exec_rate): nobody shall wash older records out of
 * the audit trail by sheer rate. What is over the rate is refused without a record of its own; the burst
 * gets one, once it is over or has lasted RATE_REPORT_MS.
 *
 * One theoretical arrival time for each uid (GCRA): a request of a profile with N commands a second costs 1/N s,
 * and a second's worth may come at once. So profiles with different rates share one account, and one without a
 * limit costs nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A burst that goes on is reported this often; one that is silent for RATE_QUIET_MS is over. */
#define RATE_REPORT_MS 60000
#define RATE_QUIET_MS 1000

struct rate;

/* *@report is called, from rate_check() and rate_free(), once for each burst: @requests were suppressed within
 * @duration_ms. */
struct rate *rate_new(void (*report)(void *userdata, uid_t uid, uint64_t requests, uint64_t duration_ms),
                      void *userdata);
/* Reports what is still open. */
void rate_free(struct rate *r);

/* May @uid run one more, at @per_second (0: no limit)? False: it is counted as suppressed. @now_us is monotonic. */
bool rate_take(struct rate *r, uid_t uid, uint32_t per_second, uint64_t now_us);

/* Reports bursts that are over and forgets uids that owe nothing; to be called about once a second. */
void rate_check(struct rate *r, uint64_t now_us);
