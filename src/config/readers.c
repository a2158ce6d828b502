/*
 * Scalars: numbers and words. The text of a scalar is what counts, not its quotes: the key says what
 * type it has, so "3" and 3 are the same size.
 */
#include "config/readers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/alloc.h"
#include "config/units.h"
#include "config/values.h"

#define MIB (UINT64_C(1) << 20)
/* The engine refuses a smaller one (moby, daemon/daemon_unix.go: linuxMinMemory). */
#define RESERVE_MIN (6 * MIB)

static void *field(void *object, const struct config_key *k) {
        return (char *)object + k->offset;
}

static bool is_text(const struct config_node *n) {
        return n->type == CONFIG_SCALAR && !n->null;
}

static void set_text(void *object, const struct config_key *k, char *owned) {
        char **f = field(object, k);

        free(*f);
        *f = owned;
}

CONFIG_READER(table) {
        return config_read_mapping(r, n, k->table, field(object, k));
}

CONFIG_READER(u32) {
        uint64_t v;

        if (!is_text(n) || config_parse_u64(n->text, &v) < 0 || v < k->min || v > k->max) {
                char expected[96];

                snprintf(expected, sizeof(expected), "a whole number from %" PRIu64 " to %" PRIu64,
                         k->min, k->max);
                return config_bad_node(r, n, expected);
        }
        *(uint32_t *)field(object, k) = (uint32_t)v;
        return 0;
}

CONFIG_READER(size) {
        char min[CONFIG_UNIT_TEXT], max[CONFIG_UNIT_TEXT], expected[128];
        uint64_t v;

        if (is_text(n) && config_parse_size(n->text, &v) == 0 && v >= k->min && v <= k->max) {
                *(uint64_t *)field(object, k) = v;
                return 0;
        }
        snprintf(expected, sizeof(expected), "a size from %s to %s, such as 512k, 128m or 1g",
                 config_format_size(k->min, min), config_format_size(k->max, max));
        return config_bad_node(r, n, expected);
}

CONFIG_READER(reserve) {
        uint64_t v;

        if (!is_text(n) || config_parse_size(n->text, &v) < 0 || (v > 0 && v < RESERVE_MIN))
                return config_bad_node(r, n, "a size from 6m to memory_limit, or 0 (none)");
        *(uint64_t *)field(object, k) = v;
        return 0;
}

CONFIG_READER(megabytes) {
        uint32_t mib;
        struct config_key plain = { .min = k->min, .max = k->max };
        int q = config_read_u32(r, n, &plain, &mib);

        if (q < 0)
                return q;
        *(uint64_t *)field(object, k) = mib * MIB;
        return 0;
}

CONFIG_READER(duration) {
        char min[CONFIG_UNIT_TEXT], max[CONFIG_UNIT_TEXT], expected[128];
        uint64_t v;

        if (is_text(n) && config_parse_duration(n->text, &v) == 0 && v >= k->min && v <= k->max) {
                *(uint64_t *)field(object, k) = v;
                return 0;
        }
        snprintf(expected, sizeof(expected), "a duration from %s to %s, such as 500ms, 30s, 5m or 1h",
                 config_format_duration(k->min, min), config_format_duration(k->max, max));
        return config_bad_node(r, n, expected);
}

CONFIG_READER(cpus) {
        char min[CONFIG_UNIT_TEXT], max[CONFIG_UNIT_TEXT], expected[128];
        uint64_t v;

        if (is_text(n) && config_parse_cpus(n->text, &v) == 0 && v >= k->min && v <= k->max) {
                *(uint64_t *)field(object, k) = v;
                return 0;
        }
        snprintf(expected, sizeof(expected), "a number of CPUs from %s to %s, such as 0.5 or 2",
                 config_format_cpus(k->min, min), config_format_cpus(k->max, max));
        return config_bad_node(r, n, expected);
}

CONFIG_READER(bool) {
        bool yes = is_text(n) && strcmp(n->text, "true") == 0;

        if (!yes && !(is_text(n) && strcmp(n->text, "false") == 0))
                return config_bad_node(r, n, "true or false");
        *(bool *)field(object, k) = yes;
        return 0;
}

/* The place of the node's text in the words, or -EINVAL. */
static int find_word(struct config_reader *r, const struct config_node *n, const struct config_key *k) {
        char expected[128];
        size_t len = 0;

        for (int i = 0; is_text(n) && k->words[i]; i++)
                if (strcmp(n->text, k->words[i]) == 0)
                        return i;
        for (size_t i = 0; k->words[i] && len < sizeof(expected); i++)
                len += (size_t)snprintf(expected + len, sizeof(expected) - len, "%s%s",
                                        i == 0            ? ""
                                        : k->words[i + 1] ? ", "
                                                          : " or ",
                                        k->words[i]);
        return config_bad_node(r, n, expected);
}

CONFIG_READER(word) {
        int i = find_word(r, n, k);

        if (i < 0)
                return i;
        /* Every enum of config.h counts its words from 0; gcc and clang store it as unsigned. */
        *(unsigned *)field(object, k) = (unsigned)i;
        return 0;
}

CONFIG_READER(word_text) {
        int i = find_word(r, n, k);

        if (i < 0)
                return i;
        set_text(object, k, config_strdup(k->words[i]));
        return 0;
}

CONFIG_READER(image) {
        if (!is_text(n) || !config_image_ok(n->text))
                return config_bad_node(
                        r, n,
                        "an image such as debian:bookworm-slim, NAME@sha256:HEX or sha256:HEX (64 hex digits)");
        set_text(object, k, config_strdup(n->text));
        return 0;
}

CONFIG_READER(network) {
        if (is_text(n) && strcmp(n->text, "host") == 0)
                return config_bad_node(r, n,
                                       "none, bridge or a network's name (host would put the sandbox "
                                       "on the machine's own network)");
        if (is_text(n) && strncmp(n->text, "container:", 10) == 0)
                return config_bad_node(r, n,
                                       "none, bridge or a network's name (container: would put the "
                                       "sandbox on another container's network)");
        if (!is_text(n) || !config_docker_name_ok(n->text))
                return config_bad_node(r, n, "none, bridge or a network's name");
        set_text(object, k, config_strdup(n->text));
        return 0;
}

CONFIG_READER(runtime) {
        if (!is_text(n) || (n->text[0] && !config_docker_name_ok(n->text)))
                return config_bad_node(r, n,
                                       "a runtime's name such as runsc, or \"\" (the engine's default)");
        set_text(object, k, config_strdup(n->text));
        return 0;
}

CONFIG_READER(path) {
        char *path = is_text(n) ? config_path_normalise(n->text) : NULL;

        if (!path || strlen(path) > k->max || (k->min > 1 && strcmp(path, "/") == 0)) {
                free(path);
                return config_bad_node(r, n, "an absolute path without \"..\"");
        }
        set_text(object, k, path);
        return 0;
}

CONFIG_READER(file_name) {
        if (!is_text(n) || (n->text[0] && !config_file_name_ok(n->text)))
                return config_bad_node(r, n, "a file name without \"/\", or \"\" (no file)");
        set_text(object, k, config_strdup(n->text));
        return 0;
}

CONFIG_READER(socket) {
        const char *s = is_text(n) ? n->text : "";
        char *path = config_path_normalise(strncmp(s, "unix://", 7) == 0 ? s + 7 : s);

        /* sun_path has 108 bytes (unix(7)) */
        if (!path || strlen(path) > 107 || strcmp(path, "/") == 0) {
                free(path);
                return config_bad_node(r, n, "the absolute path of a Unix socket, at most 107 bytes");
        }
        set_text(object, k, path);
        return 0;
}
