#include "common/image_name.h"

#include <string.h>

static const char *without(const char *name, const char *prefix) {
        return strncmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix) : name;
}

void image_name_parse(const char *name, struct image_name *ret) {
        const char *bare = without(without(name, "index."), "docker.io/"), *at, *slash, *colon, *end;

        /* "library/" is left out of Docker's own registry's names alone, which need not say whose they are. */
        bare = without(bare, "library/");
        at = strchr(bare, '@');
        end = at ? at : bare + strlen(bare);
        slash = memrchr(bare, '/', (size_t)(end - bare));
        colon = memchr(slash ? slash : bare, ':', (size_t)(end - (slash ? slash : bare)));
        *ret = (struct image_name){ .repository = bare,
                                    .repository_len = (int)((colon ? colon : end) - bare),
                                    .tag = colon ? colon + 1
                                           : at  ? ""
                                                 : "latest",
                                    .tag_len = colon ? (int)(end - colon - 1)
                                               : at  ? 0
                                                     : 6,
                                    .digest = at ? at + 1 : "" };
}

bool image_name_means(const char *asked, const char *ours) {
        struct image_name a, b;

        image_name_parse(asked, &a);
        image_name_parse(ours, &b);
        if (a.repository_len != b.repository_len ||
            memcmp(a.repository, b.repository, (size_t)a.repository_len) != 0)
                return false;
        if (a.digest[0])
                return strcmp(a.digest, b.digest) == 0;
        return a.tag_len == b.tag_len && memcmp(a.tag, b.tag, (size_t)a.tag_len) == 0;
}
