/*
 * One place words every complaint, so that each has its file, line, column, key, what was found and
 * what was expected. Whatever came from a file is escaped and cut here: the line stays one line, and
 * the expectation, which stands last, always fits.
 */
#include "config/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/alloc.h"

#define FILE_SHOWN 128

void config_reader_init(struct config_reader *r, struct errmsg *e) {
        *r = (struct config_reader){ .e = e };
}

size_t config_enter(struct config_reader *r, const char *key) {
        size_t was = r->path_len, n = was;

        if (n > 0 && n + 1 < sizeof(r->path))
                r->path[n++] = '.';
        for (; *key && n + 1 < sizeof(r->path); key++)
                r->path[n++] = *key >= 0x20 && *key < 0x7f ? *key : '?';
        r->path[n] = 0;
        r->path_len = n;
        return was;
}

void config_leave(struct config_reader *r, size_t was) {
        r->path_len = was;
        r->path[was] = 0;
}

int config_bad(struct config_reader *r, const struct config_mark *m, const char *found,
               const char *expected) {
        size_t len = strlen(m->file);
        bool cut = len > FILE_SHOWN;

        return errmsg_set(r->e, -EINVAL, "%s%s:%u:%u: %s: found %s, expected %s", cut ? "..." : "",
                          m->file + (cut ? len - FILE_SHOWN : 0), m->line, m->column,
                          r->path_len ? r->path : "file", found, expected);
}

int config_bad_node(struct config_reader *r, const struct config_node *n, const char *expected) {
        char buf[48];

        switch (n->type) {
        case CONFIG_LIST:
                return config_bad(r, &n->mark, "a list", expected);
        case CONFIG_MAPPING:
                return config_bad(r, &n->mark, "a mapping", expected);
        case CONFIG_SCALAR:
                break;
        }
        if (n->null)
                return config_bad(r, &n->mark, "nothing", expected);
        return config_bad(r, &n->mark, config_quote(n->text, buf, sizeof(buf)), expected);
}

char *config_quote(const char *s, char *buf, size_t size) {
        size_t n = 0;

        buf[n++] = '"';
        for (; *s; s++) {
                char one[8];
                unsigned char c = (unsigned char)*s;
                int len = snprintf(one, sizeof(one),
                                   c == '"' || c == '\\'   ? "\\%c"
                                   : c >= 0x20 && c < 0x7f ? "%c"
                                                           : "\\x%02x",
                                   c);

                /* room for the cut's dots, the quote and the NUL */
                if (n + (size_t)len + 5 > size) {
                        memcpy(buf + n, "...", 3);
                        n += 3;
                        break;
                }
                memcpy(buf + n, one, (size_t)len);
                n += (size_t)len;
        }
        buf[n++] = '"';
        buf[n] = 0;
        return buf;
}
