/* What several checks need, asked once. */
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"

#define MANAGER_SOCKET "/run/hermes-sandbox/pool.sock"
#define ENGINE_SOCKET "/run/docker.sock"
#define MANAGER_MS 500
#define ENGINE_MS 400

int64_t doctor_now_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t doctor_until(const struct doctor *d, int64_t ms) {
        int64_t end = doctor_now_ms() + ms;

        return end < d->end_ms ? end : d->end_ms;
}

/* The root is half as long as @buf at most; too long a path names nothing. */
const char *doctor_path(const struct doctor *d, const char *path, char buf[PATH_MAX]) {
        if (snprintf(buf, PATH_MAX, "%s%s", d->root, path) >= PATH_MAX)
                snprintf(buf, PATH_MAX, "/nonexistent");
        return buf;
}

FILE *doctor_open(const struct doctor *d, const char *path) {
        char buf[PATH_MAX];

        return fopen(doctor_path(d, path, buf), "re");
}

const char *doctor_engine_socket(const struct doctor *d) {
        return d->config ? d->config->engine_socket : ENGINE_SOCKET;
}

const char *doctor_json_str(const json_t *o, const char *key) {
        const char *s = json_string_value(json_object_get(o, key));

        return s ? s : "";
}

/* A reply that is what it should be: status 200 and an object. */
static json_t *get(struct doctor *d, const char *socket, const char *path) {
        json_t *reply = NULL;
        long http;

        if (d->probes->engine(socket, path, doctor_until(d, ENGINE_MS), &http, &reply,
                              &d->engine_error) < 0)
                return NULL;
        if (http == 200 && json_is_object(reply))
                return reply;
        errmsg_set(&d->engine_error, 0, "%s answers %s with status %ld%s", socket, path, http,
                   reply ? "" : " and no JSON");
        json_decref(reply);
        return NULL;
}

void doctor_look(struct doctor *d) {
        char path[PATH_MAX], dropins[PATH_MAX];
        const char *env = getenv("HERMES_SANDBOX_SOCKET"), *socket = d->socket;

        if (config_load_files(doctor_path(d, CONFIG_PATH, path),
                              doctor_path(d, CONFIG_DROPIN_DIR, dropins), true, &d->config,
                              &d->config_error) < 0)
                d->config = NULL;
        if (!socket && env && *env)
                socket = env;
        if (!socket)
                socket = doctor_path(d, MANAGER_SOCKET, path);
        d->status_errno = d->probes->manager(socket, doctor_until(d, MANAGER_MS), &d->status,
                                             &d->status_error);
        if (d->status_errno < 0)
                d->status = NULL;
        if (d->uid != 0)
                return;
        doctor_path(d, doctor_engine_socket(d), path);
        d->version = get(d, path, "/version");
        if (d->version)
                d->info = get(d, path, "/info");
}
