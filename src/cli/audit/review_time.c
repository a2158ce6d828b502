/* By digits, as strptime() and strtol() skip blanks, take signs and let 31 February pass. */
#include "cli/audit/review_time.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000)
#define DAY (86400 * SECOND)

/* Exactly @n digits at the front of *s. */
static bool digits(const char **s, int n, int *ret) {
        int v = 0;

        for (int i = 0; i < n; i++) {
                if ((*s)[i] < '0' || (*s)[i] > '9')
                        return false;
                v = v * 10 + ((*s)[i] - '0');
        }
        *s += n;
        *ret = v;
        return true;
}

static bool take(const char **s, char c) {
        if (**s != c)
                return false;
        (*s)++;
        return true;
}

/* ".123…": at least one digit, what is below a millisecond is dropped. */
static bool fraction(const char **s, int *ret_ms) {
        int unit = 100, n = 0;

        *ret_ms = 0;
        for (; **s >= '0' && **s <= '9'; (*s)++, n++, unit /= 10)
                *ret_ms += (**s - '0') * unit;
        return n > 0;
}

/* HH:MM[:SS[.fff]] */
static bool clock_time(const char **s, struct tm *tm, int *ret_ms) {
        *ret_ms = 0;
        tm->tm_sec = 0;
        if (!digits(s, 2, &tm->tm_hour) || !take(s, ':') || !digits(s, 2, &tm->tm_min))
                return false;
        if (take(s, ':') && (!digits(s, 2, &tm->tm_sec) || (take(s, '.') && !fraction(s, ret_ms))))
                return false;
        return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60;
}

/* Z, +HH:MM or +HHMM. */
static bool zone(const char **s, int *ret_minutes) {
        int sign = **s == '-' ? -1 : 1, hours, minutes;

        *ret_minutes = 0;
        if (take(s, 'Z') || take(s, 'z'))
                return true;
        if (!take(s, '+') && !take(s, '-'))
                return false;
        if (!digits(s, 2, &hours))
                return false;
        take(s, ':');
        if (!digits(s, 2, &minutes) || hours > 23 || minutes > 59)
                return false;
        *ret_minutes = sign * (hours * 60 + minutes);
        return true;
}

static struct tm local_day(int64_t ms) {
        time_t t = (time_t)(ms / SECOND);
        struct tm tm;

        localtime_r(&t, &tm);
        tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
        tm.tm_isdst = -1;
        return tm;
}

/* mktime() makes 1 March out of 29 February: what comes back must be what went in. */
static int to_ms(struct tm tm, bool utc, int64_t *ret_ms) {
        struct tm want = tm;
        time_t t;

        tm.tm_isdst = utc ? 0 : -1;
        t = utc ? timegm(&tm) : mktime(&tm);
        if (t == (time_t)-1 || tm.tm_mday != want.tm_mday || tm.tm_mon != want.tm_mon)
                return -EINVAL;
        *ret_ms = (int64_t)t * SECOND;
        return 0;
}

static int calendar(const char *s, int64_t now_ms, int64_t *ret_ms) {
        struct tm tm = local_day(now_ms);
        int ms = 0, minutes = 0, r;
        bool utc = false, has_date = strlen(s) >= 5 && s[4] == '-';

        if (has_date) {
                if (!digits(&s, 4, &tm.tm_year) || !take(&s, '-') || !digits(&s, 2, &tm.tm_mon) ||
                    !take(&s, '-') || !digits(&s, 2, &tm.tm_mday))
                        return -EINVAL;
                tm.tm_year -= 1900;
                tm.tm_mon -= 1;
        }
        if (!has_date || take(&s, ' ') || take(&s, 'T') || take(&s, 't')) {
                if (!clock_time(&s, &tm, &ms))
                        return -EINVAL;
                utc = has_date && *s != 0;
                if (utc && !zone(&s, &minutes))
                        return -EINVAL;
        }
        if (*s)
                return -EINVAL;
        r = to_ms(tm, utc, ret_ms);
        if (r == 0)
                *ret_ms += ms - (int64_t)minutes * 60 * SECOND;
        return r;
}

static int named(const char *s, int64_t now_ms, int64_t *ret_ms) {
        struct tm tm = local_day(now_ms);

        if (strcmp(s, "now") == 0 || strcmp(s, "recent") == 0) {
                *ret_ms = *s == 'n' ? now_ms : now_ms - 600 * SECOND;
                return 0;
        }
        if (strcmp(s, "yesterday") == 0)
                tm.tm_mday -= 1;
        else if (strcmp(s, "week-ago") == 0)
                tm.tm_mday -= 7;
        else if (strcmp(s, "this-month") == 0)
                tm.tm_mday = 1;
        else if (strcmp(s, "this-year") == 0)
                tm.tm_mday = 1, tm.tm_mon = 0;
        else if (strcmp(s, "today") != 0)
                return -EINVAL;
        *ret_ms = (int64_t)mktime(&tm) * SECOND;
        return 0;
}

static int64_t unit_ms(const char *s, size_t len) {
        static const struct {
                const char *names; /* each between blanks */
                int64_t ms;
        } units[] = {
                { " s sec secs second seconds ", SECOND },
                { " m min mins minute minutes ", 60 * SECOND },
                { " h hr hrs hour hours ", 3600 * SECOND },
                { " d day days ", DAY },
                { " w week weeks ", 7 * DAY },
        };
        char word[16];

        if (len == 0 || len + 3 > sizeof(word))
                return 0;
        snprintf(word, sizeof(word), " %.*s ", (int)len, s);
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                if (strstr(units[i].names, word))
                        return units[i].ms;
        return 0;
}

/* "-2h", "2h ago", "1h 30 min ago" */
static int relative(const char *s, int64_t now_ms, int64_t *ret_ms) {
        bool minus = take(&s, '-');
        int64_t total = 0;
        size_t len = strlen(s);

        if (!minus) {
                if (len < 4 || strcmp(s + len - 4, " ago") != 0)
                        return -EINVAL;
                len -= 4;
        }
        for (const char *end = s + len; s < end;) {
                int64_t n = 0, unit;
                size_t word;
                int count = 0;

                for (; *s >= '0' && *s <= '9' && count < 9; s++, count++)
                        n = n * 10 + (*s - '0');
                if (count == 0)
                        return -EINVAL;
                take(&s, ' ');
                word = strspn(s, "abcdefghijklmnopqrstuvwxyz");
                unit = unit_ms(s, word);
                if (unit == 0 || s + word > end)
                        return -EINVAL;
                s += word;
                if (s < end)
                        take(&s, ' ');
                total += n * unit;
        }
        if (len == 0)
                return -EINVAL;
        *ret_ms = now_ms - total;
        return 0;
}

static int epoch(const char *s, int64_t *ret_ms) {
        int64_t v = 0;
        int ms = 0, n = 0;

        for (; *s >= '0' && *s <= '9' && n < 12; s++, n++)
                v = v * 10 + (*s - '0');
        if (n == 0 || (take(&s, '.') && !fraction(&s, &ms)) || *s)
                return -EINVAL;
        *ret_ms = v * SECOND + ms;
        return 0;
}

int review_time_parse(const char *s, int64_t now_ms, int64_t *ret_ms) {
        if (*s == '@')
                return epoch(s + 1, ret_ms);
        if (named(s, now_ms, ret_ms) == 0 || relative(s, now_ms, ret_ms) == 0)
                return 0;
        return calendar(s, now_ms, ret_ms);
}

char *review_time_local(int64_t ms, char buf[REVIEW_TIME_TEXT]) {
        time_t t = (time_t)(ms / SECOND);
        struct tm tm;

        if (!localtime_r(&t, &tm) || strftime(buf, REVIEW_TIME_TEXT, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                snprintf(buf, REVIEW_TIME_TEXT, "?");
        return buf;
}

char *review_time_utc(int64_t ms, char buf[REVIEW_TIME_TEXT]) {
        time_t t = (time_t)(ms / SECOND);
        struct tm tm;
        size_t n;

        if (!gmtime_r(&t, &tm) || (n = strftime(buf, REVIEW_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm)) == 0) {
                snprintf(buf, REVIEW_TIME_TEXT, "?");
                return buf;
        }
        snprintf(buf + n, REVIEW_TIME_TEXT - n, ".%03uZ", (unsigned)(ms % SECOND) % 1000u);
        return buf;
}
