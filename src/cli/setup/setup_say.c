/* Lines for people: what an image or an engine says is in them, so nothing that drives a terminal gets through. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/setup/setup.h"
#include "common/escape.h"

#define LINE 2048

__attribute__((format(printf, 3, 0))) static void line(FILE *f, const char *prefix, const char *fmt,
                                                       va_list ap) {
        char raw[LINE], shown[4 * LINE + 1];
        struct text t;

        vsnprintf(raw, sizeof(raw), fmt, ap);
        text_init(&t, shown, sizeof(shown));
        /* Backslashes stay as they are: what is quoted in these lines is escaped already. */
        for (const char *p = raw;; p++) {
                size_t len = strcspn(p, "\\");

                text_add_shown(&t, p, len);
                p += len;
                if (!*p)
                        break;
                text_add(&t, p, 1);
        }
        fflush(stdout);
        fprintf(f, "%s%s\n", prefix, shown);
        fflush(f);
}

int setup_fail(int code, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        line(stderr, SETUP_PROGRAM ": ", fmt, ap);
        va_end(ap);
        return code;
}

void setup_warn(const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        line(stderr, SETUP_PROGRAM ": ", fmt, ap);
        va_end(ap);
}

void setup_say(const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        line(stdout, "", fmt, ap);
        va_end(ap);
}
