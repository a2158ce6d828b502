/*
 * hermes-sandbox-setup: from nothing to a proved sandbox, and from one configuration to another.
 *
 * Everything that names a place of the system stands in struct setup_places; setup_places_find() fills it from
 * the options, tests fill it otherwise. Functions of this folder that return an exit code have said what went
 * wrong in one line on stderr.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* The one file that is ever written in the folder of drop-ins. */
#define SETUP_DROPIN "50-setup.yaml"
#define SETUP_PROGRAM "hermes-sandbox-setup"

/* What can be asked for, in the order of the questions. */
enum setting {
        SETTING_SIZE,
        SETTING_MEMORY,
        SETTING_RESERVE,
        SETTING_CPUS,
        SETTING_NETWORK,
        SETTING_READ_ONLY,
        SETTING_IMAGE,
        N_SETTINGS
};

struct setup_options {
        const char *values[N_SETTINGS]; /* NULL: not asked for */
        const char *profile;            /* NULL: the default one */
        const char *add_user;           /* NULL: nobody */
        const char *config_dir;         /* NULL: the system's, or the user's */
        const char *socket;             /* NULL: likewise */
        const char *pid_file;           /* NULL: likewise */
        bool single_user, no_systemd, no_start, dry_run, yes, install_scripts;
};

struct setup_places {
        const char *config_path, *config_dir; /* sandbox.yaml; the folder of drop-ins */
        const char *socket;                   /* of the manager; NULL: there is none to ask */
        const char *pid_file;                 /* of the supervisor; NULL: none that is told */
        const char *bin_dir;                  /* where hermes-sandbox is */
        const char *scripts_dir;              /* sandbox-daemon.sh and its like */
        const char *systemd_dir;              /* exists where systemd is PID 1 (sd_booted(3)) */
        bool own_pair;                        /* --config-dir: who gave it starts the daemons */
};

/* The strings of *ret live as long as the program. 0, or an exit code. */
int setup_places_find(const struct setup_options *o, struct setup_places *ret);

/* The whole program. */
int setup_main(int argc, char **argv);

/* One line on stderr, "hermes-sandbox-setup: …", control characters made harmless. Returns @code. */
__attribute__((format(printf, 2, 3))) int setup_fail(int code, const char *fmt, ...);
/* The same without a code. */
__attribute__((format(printf, 1, 2))) void setup_warn(const char *fmt, ...);
/* One line on stdout, made harmless likewise. */
__attribute__((format(printf, 1, 2))) void setup_say(const char *fmt, ...);
