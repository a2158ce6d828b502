/*
 * A uid has an entry only while it owes time or has an open burst, so the list is as long as the uids
 * are many that ran something within the last second; the one that asked last stands in front.
 */
#include "manager/rate.h"

#include <stdlib.h>
#include <sys/queue.h>

#define SECOND_NS UINT64_C(1000000000)

struct account {
        LIST_ENTRY(account) link;
        uid_t uid;
        uint64_t owes_until_ns; /* the theoretical arrival time */
        uint64_t suppressed;    /* of the open burst; 0: there is none */
        uint64_t first_us, last_us;
};

struct rate {
        LIST_HEAD(, account) accounts;
        void (*report)(void *userdata, uid_t uid, uint64_t requests, uint64_t duration_ms);
        void *userdata;
};

struct rate *rate_new(void (*report)(void *userdata, uid_t uid, uint64_t requests, uint64_t duration_ms),
                      void *userdata) {
        struct rate *r = calloc(1, sizeof(*r));

        /* Crash-only: the next life rebuilds what there is. */
        if (!r)
                abort();
        LIST_INIT(&r->accounts);
        r->report = report;
        r->userdata = userdata;
        return r;
}

static void close_burst(struct rate *r, struct account *a) {
        uint64_t requests = a->suppressed;

        if (requests == 0)
                return;
        a->suppressed = 0;
        r->report(r->userdata, a->uid, requests, (a->last_us - a->first_us) / 1000);
}

void rate_free(struct rate *r) {
        struct account *a;

        if (!r)
                return;
        while ((a = LIST_FIRST(&r->accounts))) {
                LIST_REMOVE(a, link);
                close_burst(r, a);
                free(a);
        }
        free(r);
}

static struct account *account_of(struct rate *r, uid_t uid) {
        struct account *a;

        LIST_FOREACH(a, &r->accounts, link)
        if (a->uid == uid)
                break;
        if (a) {
                LIST_REMOVE(a, link);
        } else {
                a = calloc(1, sizeof(*a));
                if (!a)
                        abort();
                a->uid = uid;
        }
        LIST_INSERT_HEAD(&r->accounts, a, link);
        return a;
}

static void suppress(struct account *a, uint64_t now_us) {
        if (a->suppressed++ == 0)
                a->first_us = now_us;
        a->last_us = now_us;
}

bool rate_take(struct rate *r, uid_t uid, uint32_t per_second, uint64_t now_us) {
        uint64_t now = now_us * 1000, from;
        struct account *a;

        if (per_second == 0)
                return true;
        a = account_of(r, uid);
        from = a->owes_until_ns > now ? a->owes_until_ns : now;
        if (from + SECOND_NS / per_second - now > SECOND_NS) {
                suppress(a, now_us);
                return false;
        }
        a->owes_until_ns = from + SECOND_NS / per_second;
        return true;
}

static bool burst_over(const struct account *a, uint64_t now_us) {
        return now_us - a->last_us >= UINT64_C(1000) * RATE_QUIET_MS ||
               now_us - a->first_us >= UINT64_C(1000) * RATE_REPORT_MS;
}

void rate_check(struct rate *r, uint64_t now_us) {
        struct account *a, *next;

        for (a = LIST_FIRST(&r->accounts); a; a = next) {
                next = LIST_NEXT(a, link);
                if (a->suppressed > 0 && burst_over(a, now_us))
                        close_burst(r, a);
                if (a->suppressed > 0 || a->owes_until_ns > now_us * 1000)
                        continue;
                LIST_REMOVE(a, link);
                free(a);
        }
}
