/* Other programs, by their fixed paths. */
#pragma once

#include <stddef.h>

/* What a program may print for spawn_read(); what is more ends it. */
#define SPAWN_OUTPUT_MAX (1u << 20)

/* Runs argv[0], a path, with our descriptors, of which @stdin_fd (-1: ours) is its 0 and @also_fd (-1: none) its 3, and
 * waits. Its exit status, 128 + the number of the signal that ended it, or -errno. */
int spawn_run(const char *const argv[], int stdin_fd, int also_fd);

/* The same with all that it prints in a new *ret, with a NUL behind it, also where its status is not 0; stdin is
 * /dev/null. Nothing is in *ret where it returns -errno. */
int spawn_read(const char *const argv[], char **ret);
