/*
 * Keys that take a list or a mapping with free names: lists replace what was there, mappings are laid
 * over it (a profile's tmpfs over the pool's).
 */
#include "config/readers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/agent_args.h"
#include "config/alloc.h"
#include "config/profile.h"
#include "config/units.h"
#include "config/values.h"

#define TMPFS_MAX (UINT64_C(1) << 50)
#define TMPFS_ENTRIES 32
#define ENV_ENTRIES 256
#define ENV_VALUE_MAX 8192
#define LIST_MAX 256

/* A list of texts, each through @check, which returns a new string or NULL. */
static int read_list(struct config_reader *r, const struct config_node *n, void *field,
                     char *(*check)(const char *s), const char *expected) {
        char ***f = field, **v;

        if (n->type != CONFIG_LIST)
                return config_bad_node(r, n, "a list");
        if (n->n > LIST_MAX)
                return config_bad(r, &n->mark, "too long a list", "at most 256 entries");
        v = config_calloc(n->n + 1, sizeof(*v));
        for (size_t i = 0; i < n->n; i++) {
                const struct config_node *item = n->items[i];

                v[i] = item->type == CONFIG_SCALAR && !item->null ? check(item->text) : NULL;
                if (!v[i]) {
                        config_strv_free(v);
                        return config_bad_node(r, item, expected);
                }
        }
        config_strv_free(*f);
        *f = v;
        return 0;
}

static char *check_path(const char *s) {
        char *path = config_path_normalise(s);

        if (path && strcmp(path, "/") == 0) {
                free(path);
                return NULL;
        }
        return path;
}

static char *check_account(const char *s) {
        return config_account_ok(s) ? config_strdup(s) : NULL;
}

CONFIG_READER(paths) {
        return read_list(r, n, (char *)object + k->offset, check_path,
                         "an absolute path without \"..\", and not / itself");
}

CONFIG_READER(accounts) {
        return read_list(r, n, (char *)object + k->offset, check_account, "a user's or group's name");
}

#define USER_WORDS "UID or UID:GID in numbers"

static int read_user(struct config_reader *r, const struct config_node *n, struct config_user *ret) {
        if (n->type != CONFIG_SCALAR || n->null)
                return config_bad_node(r, n, USER_WORDS);
        if (strcmp(n->text, "auto") == 0)
                return config_bad_node(r, n, USER_WORDS " (auto is not in this version)");
        if (n->text[0] < '0' || n->text[0] > '9')
                return config_bad_node(r, n, USER_WORDS " (names are not looked up)");
        if (config_parse_user(n->text, &ret->uid, &ret->gid) < 0)
                return config_bad_node(r, n,
                                       USER_WORDS " from 0 to 2147483647, without 65535 and the gids "
                                                  "1900000000 to 1900065535; gid 0 with uid 0 alone");
        return 0;
}

CONFIG_READER(user) {
        struct config_profile *p = (struct config_profile *)((char *)object + k->offset);
        struct config_user user;
        int q = read_user(r, n, &user);

        if (q < 0)
                return q;
        p->uid = user.uid;
        p->gid = user.gid;
        return 0;
}

CONFIG_READER(users) {
        struct config_profile *p = (struct config_profile *)((char *)object + k->offset);
        struct config_user v[AGENT_USERS_MAX];

        if (n->type != CONFIG_LIST)
                return config_bad_node(r, n, "a list of \"UID:GID\"");
        if (n->n > AGENT_USERS_MAX)
                return config_bad(r, &n->mark, "too many users", "at most 8");
        for (size_t i = 0; i < n->n; i++) {
                int q = read_user(r, n->items[i], &v[i]);

                if (q < 0)
                        return q;
        }
        p->n_users = 0;
        for (size_t i = 0; i < n->n; i++)
                config_profile_add_user(p, v[i].uid, v[i].gid);
        return 0;
}

CONFIG_READER(capabilities) {
        struct config_profile *p = (struct config_profile *)((char *)object + k->offset);
        uint64_t mask = 0;

        if (n->type != CONFIG_LIST)
                return config_bad_node(r, n, "a list of capabilities");
        for (size_t i = 0; i < n->n; i++) {
                const struct config_node *item = n->items[i];
                int cap = -EINVAL;

                if (item->type == CONFIG_SCALAR && !item->null)
                        cap = config_parse_capability(item->text);
                if (cap < 0)
                        return config_bad_node(
                                r, item,
                                "one of CHOWN, DAC_OVERRIDE, FOWNER, FSETID and NET_BIND_SERVICE (any "
                                "other could free a command of its agent, or of its sandbox)");
                mask |= UINT64_C(1) << cap;
        }
        p->capabilities = mask;
        return 0;
}

/* One entry of tmpfs:. A key must be in its one normal form, or two spellings of a path could say two
 * sizes in two files. */
static int read_tmpfs_pair(struct config_reader *r, const struct config_pair *pair,
                           struct config_profile *p) {
        bool normal;
        char *path = config_path_normalise(pair->key), found[64];
        uint64_t bytes;

        normal = path && strcmp(path, pair->key) == 0 && config_tmpfs_path_ok(path);
        free(path);
        if (!normal)
                return config_bad(
                        r, &pair->mark, config_quote(pair->key, found, sizeof(found)),
                        "an absolute path in normal form, without \":\" or \",\", not / and not "
                        "below /proc, /sys, /dev or /.hermes-sandbox");
        if (pair->value->type != CONFIG_SCALAR || pair->value->null ||
            config_parse_size(pair->value->text, &bytes) < 0 ||
            (bytes > 0 && bytes < CONFIG_TMPFS_MIN) || bytes > TMPFS_MAX)
                return config_bad_node(r, pair->value,
                                       "a size from 4k to 1048576g, such as 48m, or 0 (no tmpfs there)");
        config_profile_set_tmpfs(p, pair->key, bytes);
        return 0;
}

CONFIG_READER(tmpfs) {
        struct config_profile *p = (struct config_profile *)((char *)object + k->offset);

        if (n->type != CONFIG_MAPPING)
                return config_bad_node(r, n, "a mapping of paths to sizes");
        for (size_t i = 0; i < n->n; i++) {
                size_t was = config_enter(r, n->pairs[i].key);
                int q = read_tmpfs_pair(r, &n->pairs[i], p);

                if (q < 0)
                        return q;
                config_leave(r, was);
        }
        if (p->n_tmpfs > TMPFS_ENTRIES)
                return config_bad(r, &n->mark, "too many places", "at most 32");
        return 0;
}

CONFIG_READER(env) {
        struct config_profile *p = (struct config_profile *)((char *)object + k->offset);
        size_t n_env = 0;

        if (n->type != CONFIG_MAPPING)
                return config_bad_node(r, n, "a mapping of names to values");
        for (size_t i = 0; i < n->n; i++) {
                const struct config_pair *pair = &n->pairs[i];
                size_t was = config_enter(r, pair->key);
                char found[64];

                if (!config_env_key_ok(pair->key))
                        return config_bad(r, &pair->mark, config_quote(pair->key, found, sizeof(found)),
                                          "a name of letters, digits and _, no digit in front");
                if (pair->value->type != CONFIG_SCALAR || pair->value->null)
                        return config_bad_node(r, pair->value, "a text (\"\" for an empty one)");
                if (strlen(pair->value->text) > ENV_VALUE_MAX)
                        return config_bad(r, &pair->value->mark, "a value too long",
                                          "at most 8192 bytes");
                config_profile_set_env(p, pair->key, pair->value->text);
                config_leave(r, was);
        }
        while (p->env[n_env])
                n_env++;
        if (n_env > ENV_ENTRIES)
                return config_bad(r, &n->mark, "too many variables", "at most 256");
        return 0;
}

/* N or SOFT:HARD. 0 or -EINVAL. The engine's numbers are signed. */
static int parse_ulimit(const char *s, uint64_t *ret_soft, uint64_t *ret_hard) {
        const char *colon = strchr(s, ':');
        size_t n = colon ? (size_t)(colon - s) : strlen(s);
        char soft[24];

        if (n >= sizeof(soft))
                return -EINVAL;
        memcpy(soft, s, n);
        soft[n] = 0;
        if (config_parse_u64(soft, ret_soft) < 0 ||
            config_parse_u64(colon ? colon + 1 : soft, ret_hard) < 0)
                return -EINVAL;
        return *ret_soft <= *ret_hard && *ret_hard <= INT64_MAX ? 0 : -EINVAL;
}

CONFIG_READER(ulimits) {
        struct config_profile *p = (struct config_profile *)((char *)object + k->offset);

        if (n->type != CONFIG_MAPPING)
                return config_bad_node(r, n, "a mapping of names to limits");
        for (size_t i = 0; i < n->n; i++) {
                const struct config_pair *pair = &n->pairs[i];
                size_t was = config_enter(r, pair->key);
                uint64_t soft, hard;
                char found[64];

                if (strcmp(pair->key, "nproc") == 0)
                        return config_bad(
                                r, &pair->mark, "\"nproc\"",
                                "pids_limit instead (nproc counts a uid over the whole machine)");
                if (!config_ulimit_ok(pair->key))
                        return config_bad(r, &pair->mark, config_quote(pair->key, found, sizeof(found)),
                                          "a name of docker's --ulimit, such as nofile or core");
                if (pair->value->type != CONFIG_SCALAR || pair->value->null ||
                    parse_ulimit(pair->value->text, &soft, &hard) < 0)
                        return config_bad_node(r, pair->value, "N or \"SOFT:HARD\", soft at most hard");
                config_profile_set_ulimit(p, pair->key, soft, hard);
                config_leave(r, was);
        }
        return 0;
}

CONFIG_READER(overrides) {
        (void)k;
        (void)object;
        if (n->type != CONFIG_MAPPING || n->n > 0)
                return config_bad_node(r, n, "{} (tool overrides are not in this version)");
        return 0;
}
