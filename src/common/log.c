/* One write() a line, so that lines of two daemons on one terminal never mix. */
#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum log_priority max_level = LOG_P_INFO;
static const char *program_name = "hermes-sandbox";
static void (*also_to)(void *userdata, enum log_priority level, const char *line, size_t len);
static void *also_userdata;

void log_init(const char *program) {
        program_name = program;
}

void log_set_level(enum log_priority level) {
        max_level = level;
}

void log_also(void (*also)(void *userdata, enum log_priority level, const char *line, size_t len),
              void *userdata) {
        also_to = also;
        also_userdata = userdata;
}

void log_line(enum log_priority level, const char *fmt, ...) {
        char line[2048];
        int head;
        va_list ap;
        size_t n;

        if (level > max_level)
                return;
        if (getenv("JOURNAL_STREAM"))
                head = snprintf(line, sizeof(line), "<%d>", (int)level);
        else
                head = snprintf(line, sizeof(line), "%s: ", program_name);
        va_start(ap, fmt);
        vsnprintf(line + head, sizeof(line) - (size_t)head - 1, fmt, ap);
        va_end(ap);
        for (char *p = line + head; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        *p = '?';
        n = strlen(line);
        line[n++] = '\n';
        if (write(STDERR_FILENO, line, n) < 0) {
                /* nowhere to say so */
        }
        if (also_to)
                also_to(also_userdata, level, line + head, n - 1 - (size_t)head);
}
