#include "config/places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/alloc.h"
#include "config/config.h"
#include "config/load.h"

static const char *joined(const char *folder, const char *rest) {
        char *s;

        if (asprintf(&s, "%s/%s", folder, rest) < 0)
                abort();
        return s;
}

/* What @name says, or @fallback below $HOME. As the specification has it, a path that is not absolute is none. */
static const char *folder(const char *name, const char *fallback, struct errmsg *e) {
        const char *value = getenv(name), *home = getenv("HOME");

        if (value && value[0] == '/')
                return config_strdup(value);
        if (fallback && home && home[0] == '/')
                return joined(home, fallback);
        errmsg_set(e, 0, "%s is not set to an absolute path: --user is for systemctl --user, or set it",
                   fallback ? "HOME" : name);
        return NULL;
}

int config_places_user(struct config_places *ret, struct errmsg *e) {
        const char *run = folder("XDG_RUNTIME_DIR", NULL, e);
        const char *config = run ? folder("XDG_CONFIG_HOME", ".config", e) : NULL;
        const char *state = config ? folder("XDG_STATE_HOME", ".local/state", e) : NULL;

        if (!state)
                return -ENOENT;
        *ret = (struct config_places){
                .config_path = joined(config, "hermes-sandbox/sandbox.yaml"),
                .config_dir = joined(config, "hermes-sandbox/sandbox.d"),
                .manager_run = joined(run, "hermes-sandbox"),
                .engine_run = joined(run, "hermes-sandbox-engine"),
                .manager_state = joined(state, "hermes-sandbox"),
                .manager_log = joined(state, "hermes-sandbox"),
                .engine_state = joined(state, "hermes-sandbox-engine"),
                .engine_socket = joined(run, "hermes-sandbox-engine/engine.sock"),
        };
        if (access(ret->config_path, F_OK) < 0)
                ret->config_path = CONFIG_PATH;
        config_set_defaults(joined(run, "docker.sock"), joined(ret->manager_state, "sandbox-audit.log"));
        return 0;
}

int config_places_find(bool single_user, struct config_places *ret, struct errmsg *e) {
        if (single_user)
                return config_places_user(ret, e);
        *ret = (struct config_places){
                .config_path = CONFIG_PATH,
                .config_dir = CONFIG_DROPIN_DIR,
                .manager_run = "/run/hermes-sandbox",
                .engine_run = "/run/hermes-sandbox-engine",
                .manager_state = "/var/lib/hermes-sandbox",
                .manager_log = "/var/log/hermes-sandbox",
                .engine_state = "/var/lib/hermes-sandbox-engine",
                .engine_socket = "/run/hermes-sandbox-engine/engine.sock",
        };
        return 0;
}

int config_places_make(const char *path, mode_t mode, struct errmsg *e) {
        char *above = config_strdup(path);
        int r = 0;

        for (char *p = above + 1; r == 0 && (p = strchr(p, '/')); *p++ = '/') {
                *p = '\0';
                if (mkdir(above, 0700) < 0 && errno != EEXIST)
                        r = errmsg_set(e, -errno, "%s: cannot make it: %s", above, strerror(errno));
        }
        free(above);
        if (r == 0 && mkdir(path, mode) < 0 && errno != EEXIST)
                r = errmsg_set(e, -errno, "%s: cannot make it: %s", path, strerror(errno));
        return r;
}
