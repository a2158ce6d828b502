/* What goes into the paths of the API's calls: versions, and texts made harmless. */
#include "engine/api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *api_path(const char *fmt, ...) {
        char *s;
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = vasprintf(&s, fmt, ap);
        va_end(ap);
        return r < 0 ? NULL : s;
}

char *api_escape(const char *s, const char *keep) {
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
        char *out = malloc(strlen(s) * 3 + 1), *p = out;

        if (!out)
                return NULL;
        for (; *s; s++) {
                if (strchr(plain, *s) || strchr(keep, *s))
                        *p++ = *s;
                else
                        p += sprintf(p, "%%%02X", (unsigned char)*s);
        }
        *p = '\0';
        return out;
}

int api_choose_version(const char *engine_max, char ret[API_VERSION_LEN]) {
        unsigned major, minor;
        int end = 0;

        if (sscanf(engine_max, "%2u.%3u%n", &major, &minor, &end) != 2 || engine_max[end] != '\0')
                return -EPROTO;
        if (major != 1 || minor < 40)
                return -EPROTONOSUPPORT;
        snprintf(ret, API_VERSION_LEN, "1.%u", minor < 47 ? minor : 47);
        return 0;
}
