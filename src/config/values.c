/*
 * Character-level checks. What passes here goes into a create call's JSON, into a URL or to the kernel:
 * each check allows what is known to be meant, and nothing else.
 */
#include "config/values.h"

#include <errno.h>
#include <string.h>

#include "common/agent_args.h"
#include "config/alloc.h"
#include "config/config.h"
#include "config/units.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"
#define ALNUM LOWER UPPER DIGIT
#define HEX DIGIT "abcdef"

/* One byte of @first, then only bytes of @rest, @max bytes in all. */
static bool made_of(const char *s, size_t len, const char *first, const char *rest, size_t max) {
        if (len == 0 || len > max || !strchr(first, s[0]))
                return false;
        for (size_t i = 1; i < len; i++)
                if (!strchr(rest, s[i]))
                        return false;
        return true;
}

/* No control character of ASCII. */
static bool printable(const char *s) {
        for (; *s; s++)
                if ((unsigned char)*s < 0x20 || *s == 0x7f)
                        return false;
        return true;
}

static bool digest_ok(const char *s) {
        static const char algorithm[] = "sha256:";
        size_t n = strlen(algorithm);

        return strncmp(s, algorithm, n) == 0 && strlen(s + n) == 64 &&
               strspn(s + n, "0123456789abcdef") == 64;
}

/* A path component of an image's name: runs of a-z and 0-9 with ".", "_", "__" or dashes between. */
static bool component_ok(const char *s, size_t len) {
        if (!made_of(s, len, LOWER DIGIT, LOWER DIGIT "._-", 255))
                return false;
        if (!strchr(LOWER DIGIT, s[len - 1]))
                return false;
        for (size_t i = 1; i < len; i++) {
                if (s[i] == '.' && !strchr(LOWER DIGIT, s[i - 1]))
                        return false;
                if (s[i] == '_' && (s[i - 1] == '.' || s[i - 1] == '-'))
                        return false;
                if (s[i] == '-' && (s[i - 1] == '.' || s[i - 1] == '_'))
                        return false;
                if (s[i] == '_' && i > 1 && s[i - 1] == '_' && s[i - 2] == '_')
                        return false;
        }
        return true;
}

/* HOST[:PORT], where it is a registry and no path component: it has a "." or ":", or is localhost. */
static bool registry_ok(const char *s, size_t len) {
        const char *colon = memchr(s, ':', len);
        size_t host = colon ? (size_t)(colon - s) : len;

        if (!colon && !memchr(s, '.', len) && !(len == 9 && memcmp(s, "localhost", 9) == 0))
                return false;
        if (!made_of(s, host, ALNUM, ALNUM ".-", 253) || !strchr(ALNUM, s[host - 1]))
                return false;
        return !colon || made_of(colon + 1, len - host - 1, DIGIT, DIGIT, 5);
}

enum image_pin config_image_pin(const char *s) {
        return digest_ok(s) ? IMAGE_PIN_ID : strchr(s, '@') ? IMAGE_PIN_DIGEST : IMAGE_PIN_NONE;
}

/* Engines look for an id where they find no name, and refuse these as names. */
static bool looks_like_id(const char *s, size_t len) {
        return (len == 6 && memcmp(s, "sha256", 6) == 0) ||
               (len == 64 && made_of(s, len, HEX, HEX, len));
}

bool config_image_ok(const char *s) {
        size_t len = strlen(s);
        const char *at = strchr(s, '@'), *end = at ? at : s + len, *tag, *p;

        if (len > 255 || (at && !digest_ok(at + 1)))
                return false;
        if (digest_ok(s))
                return true;
        p = s;
        tag = memrchr(p, ':', (size_t)(end - p));
        if (tag && memchr(tag, '/', (size_t)(end - tag)))
                tag = NULL; /* a registry's port */
        if (tag) {
                if (!made_of(tag + 1, (size_t)(end - tag - 1), ALNUM "_", ALNUM "_.-", 128))
                        return false;
                end = tag;
        }
        if (looks_like_id(s, (size_t)(end - s)))
                return false;
        for (bool first = true;; first = false) {
                const char *slash = memchr(p, '/', (size_t)(end - p));
                size_t n = (size_t)((slash ? slash : end) - p);

                if (!component_ok(p, n) && !(first && slash && registry_ok(p, n)))
                        return false;
                if (!slash)
                        return true;
                p = slash + 1;
        }
}

bool config_docker_name_ok(const char *s) {
        return made_of(s, strlen(s), ALNUM, ALNUM "_.-", 128);
}

bool config_profile_name_ok(const char *s) {
        return made_of(s, strlen(s), LOWER DIGIT, LOWER DIGIT "_-", 32);
}

bool config_env_key_ok(const char *s) {
        return made_of(s, strlen(s), LOWER UPPER "_", ALNUM "_", 255);
}

bool config_account_ok(const char *s) {
        size_t len = strlen(s);

        return len > 0 && len <= 255 && s[0] != '-' && !strpbrk(s, " :,/") && printable(s);
}

bool config_ulimit_ok(const char *s) {
        static const char *const names[] = {
                "core", "cpu",    "data", "fsize",  "locks",  "memlock",    "msgqueue",
                "nice", "nofile", "rss",  "rtprio", "rttime", "sigpending", "stack",
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(names[i], s) == 0)
                        return true;
        return false;
}

bool config_file_name_ok(const char *s) {
        size_t len = strlen(s);

        return len > 0 && len <= 255 && strcmp(s, ".") != 0 && strcmp(s, "..") != 0 && !strchr(s, '/') &&
               printable(s);
}

char *config_path_normalise(const char *s) {
        size_t len = strlen(s), n = 0;
        char *out;

        if (s[0] != '/' || len > 4095 || !printable(s))
                return NULL;
        out = config_calloc(1, len + 1);
        while (*s) {
                size_t part;

                s += strspn(s, "/");
                part = strcspn(s, "/");
                if (part == 2 && s[0] == '.' && s[1] == '.') {
                        free(out);
                        return NULL;
                }
                if (part > 0 && !(part == 1 && s[0] == '.')) {
                        out[n++] = '/';
                        memcpy(out + n, s, part);
                        n += part;
                }
                s += part;
        }
        if (n == 0)
                out[n++] = '/';
        return out;
}

bool config_tmpfs_path_ok(const char *s) {
        static const char *const taken[] = { "/proc", "/sys", "/dev", "/.hermes-sandbox" };

        if (strcmp(s, "/") == 0 || strlen(s) > 255 || strpbrk(s, ":,"))
                return false;
        for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
                size_t n = strlen(taken[i]);

                if (strncmp(s, taken[i], n) == 0 && (s[n] == 0 || s[n] == '/'))
                        return false;
        }
        return true;
}

static bool id_ok(uint64_t id) {
        return id != 65535 && id <= INT32_MAX;
}

bool config_user_ok(uint64_t uid, uint64_t gid) {
        if (!id_ok(uid) || !id_ok(gid) || (gid == 0 && uid != 0))
                return false;
        return gid < AGENT_EXEC_GID_FIRST || gid >= AGENT_EXEC_GID_FIRST + AGENT_EXEC_GID_COUNT;
}

int config_parse_user(const char *s, uint32_t *ret_uid, uint32_t *ret_gid) {
        const char *colon = strchr(s, ':');
        char first[16];
        size_t n = colon ? (size_t)(colon - s) : strlen(s);
        uint64_t uid, gid;

        if (n >= sizeof(first))
                return -EINVAL;
        memcpy(first, s, n);
        first[n] = 0;
        if (config_parse_u64(first, &uid) < 0 || config_parse_u64(colon ? colon + 1 : first, &gid) < 0)
                return -EINVAL;
        if (!config_user_ok(uid, gid))
                return -EINVAL;
        *ret_uid = (uint32_t)uid;
        *ret_gid = (uint32_t)gid;
        return 0;
}

static const struct {
        const char *name;
        int cap;
} capabilities[] = {
        { "CHOWN", CAP_CHOWN },   { "DAC_OVERRIDE", CAP_DAC_OVERRIDE },         { "FOWNER", CAP_FOWNER },
        { "FSETID", CAP_FSETID }, { "NET_BIND_SERVICE", CAP_NET_BIND_SERVICE },
};

int config_parse_capability(const char *s) {
        if (strncasecmp(s, "CAP_", 4) == 0)
                s += 4;
        for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
                if (strcasecmp(s, capabilities[i].name) == 0)
                        return capabilities[i].cap;
        return -EINVAL;
}

const char *config_capability_name(int cap) {
        for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
                if (capabilities[i].cap == cap)
                        return capabilities[i].name;
        return NULL;
}
