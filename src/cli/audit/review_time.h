/* Points in time as people give them to journalctl and ausearch. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Reads @s into milliseconds since 1970:
 *
 *     2026-11-29, 2026-11-29 18:00, 2026-11-29 18:00:05     local time; a T may stand for the blank
 *     2026-11-29T18:00:05.250Z, …+01:00                      RFC 3339
 *     18:00, 18:00:05                                        today
 *     now, recent (10 minutes ago), today, yesterday, week-ago, this-month, this-year
 *     -2h, 2h ago, 90 min ago, -1h30m                        before @now_ms; s, m, h, d, w and longer names
 *     @1795997806, @1795997806.026                           seconds since 1970
 *
 * 0, or -EINVAL for anything else (29 February 2026, 24:01, …).
 */
int review_time_parse(const char *s, int64_t now_ms, int64_t *ret_ms);

#define REVIEW_TIME_TEXT 32

/* "2026-11-29 18:00:05" in local time, its first ten bytes being the day. Returns @buf. */
char *review_time_local(int64_t ms, char buf[REVIEW_TIME_TEXT]);

/* "2026-11-29T17:00:05.026Z". Returns @buf. */
char *review_time_utc(int64_t ms, char buf[REVIEW_TIME_TEXT]);
