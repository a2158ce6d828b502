/*
 * The file tool: what `hermes-sandbox cp`, `cat`, `ls` and `rm`, and `docker run`, run inside a sandbox. It is the agent's own
 * binary, executed as an ordinary command with argv[0] FILES_NAME: with the command's uid and rights, and with nothing of
 * the agent's. So it can do what any command can, and what it says is to be trusted as much as any command's output:
 * other processes of its uid can reach into it.
 *
 *     put [-m|-s] PATH   a stream (common/archive.h) of files from stdin into PATH; -m: there are several, which
 *                        takes a folder; -s: one that has no name of its own, which takes none
 *     get PATH…          such a stream to stdout; at its top is one entry for each PATH, in that order
 *     cat PATH…          the files' bytes to stdout
 *     ls PATH…           a stream of items to stdout
 *     rm [-r] [-f] PATH…
 *     mkdir PATH         an absolute one, and what is missing before it, with mode 0755; then it can be entered
 *
 * What cannot be done gets one line on stderr, which ends with a NUL, as names may hold anything else. The exit status
 * is 0, 1 when something was not done, or 64.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FILES_NAME "hermes-files"

/* The whole tool; argv[1] is the verb. Returns the exit status. */
int files_main(int argc, char **argv);

/* --- between its parts --------------------------------------------------------------------------- */

/* filepath_say_fn, with no userdata. */
void files_say(void *userdata, const char *what, const char *path, const char *why);
/* Zeros, of which those that are not used cost nothing; never given back. NULL after a line. */
void *files_memory(size_t size);
/* Paths, up to a NULL. Each returns the exit status. */
int files_ls(char **paths);
int files_rm(char **paths, bool recursive, bool force);
