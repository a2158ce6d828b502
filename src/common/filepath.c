#include "common/filepath.h"

#include <string.h>

void filepath_init(struct filepath *p, const char *path) {
        p->len = 0;
        p->text[0] = '\0';
        filepath_push(p, path[0] ? path : ".");
}

size_t filepath_push(struct filepath *p, const char *name) {
        size_t before = p->len, len = strlen(name);
        size_t slash = before > 0 && len > 0 && p->text[before - 1] != '/';

        if (len + slash < sizeof(p->text) - before) {
                if (slash)
                        p->text[before] = '/';
                memcpy(p->text + before + slash, name, len + 1);
                p->len += slash + len;
        }
        return before;
}

void filepath_pop(struct filepath *p, size_t len) {
        p->len = len;
        p->text[len] = '\0';
}
