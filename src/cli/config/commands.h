/* The subcommands of hermes-sandbox-config, which `hermes-sandbox config` executes. */
#pragma once

#include <stdio.h>

/*
 * Runs the program with main()'s arguments; results go to @out, complaints to @err. Returns the exit
 * code: 0, EXIT_USAGE, EXIT_CONFIG, or 1 when @out cannot be written.
 */
int config_command(int argc, char **argv, FILE *out, FILE *err);
