/* Log lines of the daemons, to stderr; with sd-daemon's "<6>" prefixes where stderr is the journal. */
#pragma once

#include <stddef.h>

enum log_priority {
        LOG_P_ERROR = 3,
        LOG_P_WARNING = 4,
        LOG_P_INFO = 6,
        LOG_P_DEBUG = 7
}; /* syslog's numbers */

/* @program stands before each line where there is no journal; it stays the caller's. */
void log_init(const char *program);
/* What is above @level (a higher number) is dropped from now on. The default is LOG_P_INFO. */
void log_set_level(enum log_priority level);
/* Each line that is not dropped goes to @also as well: without newline and without what stands before it on stderr,
 * only for as long as the call lasts. NULL: to nobody. @userdata stays the caller's. */
void log_also(void (*also)(void *userdata, enum log_priority level, const char *line, size_t len),
              void *userdata);
/* One line; a newline or another control character in it becomes '?'. */
__attribute__((format(printf, 2, 3))) void log_line(enum log_priority level, const char *fmt, ...);
