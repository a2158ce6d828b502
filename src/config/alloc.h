/* Memory for the config: running out of it ends the program. The daemons are crash-only, and a config
 * is bounded by its file's size. */
#pragma once

#include <stdlib.h>
#include <string.h>

static inline void *config_calloc(size_t n, size_t size) {
        void *p = calloc(n ? n : 1, size);

        if (!p)
                abort();
        return p;
}

static inline void *config_grow(void *p, size_t n, size_t size) {
        p = reallocarray(p, n ? n : 1, size);
        if (!p)
                abort();
        return p;
}

static inline char *config_strndup(const char *s, size_t len) {
        char *p = strndup(s, len);

        if (!p)
                abort();
        return p;
}

static inline char *config_strdup(const char *s) {
        return config_strndup(s, strlen(s));
}
