/* Work in a child, so that whatever ends it, a signal, too, leaves us to do what has to come after it. */
#pragma once

#include <signal.h>

/* From here on those that end a program are handed on to the child that there is, or wait for the next one. */
void docker_hold_signals(sigset_t *ret_before);
/* Calls @work in a child, which has the signals as @before has them, and exits with what it returns. Returns what
 * waitpid(2) says of it; where there can be no child, that of DOCKER_USAGE, after a line. */
int docker_in_child(int (*work)(void *userdata), void *userdata, const sigset_t *before);
/* Gives the signals back; then ends as that child did, where a signal ended it. Returns its exit status. */
int docker_end_as(int status, const sigset_t *before);
