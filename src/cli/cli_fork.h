/* Children that are waited for. */
#pragma once

#include <signal.h>
#include <unistd.h>

/* fork(2). Who started us may have left us SIGCHLD ignored, with which a child's end sends no signal and leaves no status
 * to wait for (sigaction(2)). */
static inline pid_t cli_fork(void) {
        signal(SIGCHLD, SIG_DFL);
        return fork();
}
