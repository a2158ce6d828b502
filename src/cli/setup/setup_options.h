/* The words of the command line, and what there is to ask for. */
#pragma once

#include "cli/setup/setup.h"

struct setting_info {
        const char *option;   /* without the -- */
        const char *key;      /* in sandbox.yaml */
        const char *question; /* for a person */
};

extern const struct setting_info setup_settings[N_SETTINGS];

#define SETTING_TEXT 320

/* What is in force of @s, as it would stand in sandbox.yaml. Returns @buf. */
const char *setup_in_force(const struct config_profile *p, enum setting s, char buf[SETTING_TEXT]);

/* Do @asked and what is in force mean the same? */
bool setup_is_in_force(const struct config_profile *p, enum setting s, const char *asked);

/* Parses main()'s arguments into *ret, whose strings are theirs. -1: go on; else the exit code: 0 after --help and
 * --version, EXIT_USAGE after a line on stderr. */
int setup_options_parse(int argc, char **argv, struct setup_options *ret);

/* Is anything asked of the configuration? */
bool setup_asks(const struct setup_options *o);
