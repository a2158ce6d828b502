/*
 * Where both daemons have their files. The pair of a single user (--user) has them below the folders of the XDG base
 * directory specification, as systemd's %E, %t and %S. The strings are never freed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "common/errmsg.h"

struct config_places {
        const char *config_path; /* sandbox.yaml of the user, or the system's where there is none */
        const char *config_dir;  /* the user's drop-ins */
        const char *manager_run, *engine_run; /* in $XDG_RUNTIME_DIR */
        const char *manager_state, *engine_state;
        const char *manager_log;   /* the folder of logging.file */
        const char *engine_socket; /* of the broker */
};

/* Fills *ret, and makes what the config says nothing of lie there too: the socket of the rootless engine, and
 * the readable trail, below manager_state. 0, or -errno and a line in *e when $XDG_RUNTIME_DIR or $HOME is not
 * set to an absolute path. */
int config_places_user(struct config_places *ret, struct errmsg *e);

/* The places of the system's pair, or of @single_user's as config_places_user() has them. As that returns. */
int config_places_find(bool single_user, struct config_places *ret, struct errmsg *e);

/* Makes the folder @path with @mode (under the umask), and the missing ones above it as 0700. 0, also where it is
 * there, or -errno and a line in *e. */
int config_places_make(const char *path, mode_t mode, struct errmsg *e);
