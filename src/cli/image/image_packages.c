#include "cli/image/image_packages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one stanza; they point into the file. */
struct stanza {
        const char *name, *version, *arch;
        size_t name_len, version_len, arch_len;
        bool installed;
};

static bool field(const char *line, size_t len, const char *key, const char **ret, size_t *ret_len) {
        size_t n = strlen(key);

        if (len <= n || strncmp(line, key, n) != 0 || line[n] != ':')
                return false;
        line += n + 1;
        len -= n + 1;
        while (len > 0 && (*line == ' ' || *line == '\t'))
                line++, len--;
        while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
                len--;
        *ret = line;
        *ret_len = len;
        return true;
}

static int add(struct image_packages *p, const struct stanza *s) {
        char **more, *line;

        if (!s->installed)
                return 0;
        if (!s->name || !s->version || !s->arch)
                return -EPROTO;
        more = reallocarray(p->lines, p->n + 1, sizeof(*more));
        if (!more)
                return -ENOMEM;
        p->lines = more;
        if (asprintf(&line, "%.*s %.*s %.*s", (int)s->name_len, s->name, (int)s->version_len, s->version,
                     (int)s->arch_len, s->arch) < 0)
                return -ENOMEM;
        p->lines[p->n++] = line;
        return 0;
}

static int by_bytes(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

int image_packages_parse(struct image_packages *p, const char *status, size_t len) {
        struct stanza s = { 0 };
        int r = 0;

        *p = (struct image_packages){ 0 };
        while (len > 0 && r == 0) {
                const char *end = memchr(status, '\n', len), *value;
                size_t n = end ? (size_t)(end - status) : len, value_len;

                if (n == 0) {
                        r = add(p, &s);
                        s = (struct stanza){ 0 };
                } else if (field(status, n, "Status", &value, &value_len)) {
                        static const char installed[] = " ok installed";

                        s.installed = value_len > sizeof(installed) - 1 &&
                                      memcmp(value + value_len - (sizeof(installed) - 1), installed,
                                             sizeof(installed) - 1) == 0;
                } else if (!field(status, n, "Package", &s.name, &s.name_len) &&
                           !field(status, n, "Version", &s.version, &s.version_len)) {
                        field(status, n, "Architecture", &s.arch, &s.arch_len);
                }
                n += end ? 1 : 0;
                status += n;
                len -= n;
        }
        if (r == 0)
                r = add(p, &s);
        if (r == 0 && p->n == 0)
                r = -EPROTO;
        if (r == 0)
                qsort(p->lines, p->n, sizeof(*p->lines), by_bytes);
        return r;
}

void image_packages_done(struct image_packages *p) {
        for (size_t i = 0; i < p->n; i++)
                free(p->lines[i]);
        free(p->lines);
        *p = (struct image_packages){ 0 };
}

void image_hex(const uint8_t digest[SHA256_DIGEST_SIZE], char ret[IMAGE_HEX]) {
        for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++)
                sprintf(ret + 2 * i, "%02x", digest[i]);
}

void image_packages_hash(const struct image_packages *p, char ret[IMAGE_HEX]) {
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx c;

        sha256_init(&c);
        for (size_t i = 0; i < p->n; i++) {
                sha256_update(&c, strlen(p->lines[i]), (const uint8_t *)p->lines[i]);
                sha256_update(&c, 1, (const uint8_t *)"\n");
        }
        sha256_digest(&c, sizeof(digest), digest);
        image_hex(digest, ret);
}
