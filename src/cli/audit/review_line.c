/* Only the ends of a line are looked at: the body is what its hash vouches for. */
#include "cli/audit/review_line.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define TIME 20 /* "2026-06-08T05:02:59Z" */

/* All of it decimal digits, at most 19 of them, no leading zero. */
static bool number(const char *p, size_t len, uint64_t *ret) {
        uint64_t v = 0;

        if (len == 0 || len > 19 || (p[0] == '0' && len > 1))
                return false;
        for (size_t i = 0; i < len; i++) {
                if (p[i] < '0' || p[i] > '9')
                        return false;
                v = v * 10 + (uint64_t)(p[i] - '0');
        }
        *ret = v;
        return true;
}

static bool when(const char *p, int64_t *ret_ms) {
        static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
        int v[6] = { 0 }, n = 0;
        struct tm tm = { 0 };

        for (size_t i = 0; i < TIME; i++) {
                if (form[i] != 'd') {
                        if (p[i] != form[i])
                                return false;
                        n += i + 1 < TIME;
                        continue;
                }
                if (p[i] < '0' || p[i] > '9')
                        return false;
                v[n] = v[n] * 10 + (p[i] - '0');
        }
        tm.tm_year = v[0] - 1900;
        tm.tm_mon = v[1] - 1;
        tm.tm_mday = v[2];
        tm.tm_hour = v[3];
        tm.tm_min = v[4];
        tm.tm_sec = v[5];
        *ret_ms = (int64_t)timegm(&tm) * 1000;
        return true;
}

/* " seq=N prev=HEX" at the end. *ret_body is the length of what stands before it. */
static bool chain(const char *p, size_t len, struct review_trail_line *ret, size_t *ret_body) {
        static const char mark[] = " prev=", seq[] = " seq=";
        const size_t tail = sizeof(mark) - 1 + REVIEW_LINE_HASH;
        const char *hash, *end, *start;

        if (len < tail || memcmp(p + len - tail, mark, sizeof(mark) - 1) != 0)
                return false;
        hash = p + len - REVIEW_LINE_HASH;
        for (size_t i = 0; i < REVIEW_LINE_HASH; i++)
                if (!memchr("0123456789abcdef", hash[i], 16))
                        return false;
        end = p + len - tail;
        for (start = end; start > p && start[-1] >= '0' && start[-1] <= '9'; start--)
                ;
        if ((size_t)(start - p) < sizeof(seq) - 1 ||
            memcmp(start - (sizeof(seq) - 1), seq, sizeof(seq) - 1) != 0)
                return false;
        if (!number(start, (size_t)(end - start), &ret->seq) || ret->seq == 0)
                return false;
        memcpy(ret->prev, hash, REVIEW_LINE_HASH);
        ret->prev[REVIEW_LINE_HASH] = 0;
        *ret_body = (size_t)(start - (sizeof(seq) - 1) - p);
        return true;
}

static bool begins(const char *p, size_t len, const char *word) {
        size_t n = strlen(word);

        return len >= n && memcmp(p, word, n) == 0;
}

/* The number behind "WORD name=", where the body is that; else 0. */
static uint64_t count(const char *p, size_t len, const char *head) {
        size_t n = strlen(head);
        uint64_t v = 0;

        return begins(p, len, head) && number(p + n, len - n, &v) ? v : 0;
}

int review_line_parse(const char *p, size_t len, struct review_trail_line *ret) {
        struct review_trail_line l = { 0 };
        size_t body;

        if (len < TIME + 2 || p[TIME] != ' ' || !when(p, &l.time_ms) || !chain(p, len, &l, &body) ||
            body <= TIME)
                return -EBADMSG;
        p += TIME + 1;
        len = body - (TIME + 1);
        l.torn = count(p, len, "TORN bytes=");
        l.lost = count(p, len, "LOST lines=");
        l.recorded = !l.torn && !l.lost && !begins(p, len, "SCRUB ok=true ");
        *ret = l;
        return 0;
}
