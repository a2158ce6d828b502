#include "cli/docker/docker_child.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_fork.h"
#include "cli/docker/docker.h"
#include "common/exitcode.h"

static void held(sigset_t *ret) {
        static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

        sigemptyset(ret);
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
                sigaddset(ret, signals[i]);
}

void docker_hold_signals(sigset_t *ret_before) {
        sigset_t signals;

        held(&signals);
        sigprocmask(SIG_BLOCK, &signals, ret_before);
}

/* Hands signals on to @child until it has ended. Returns what waitpid(2) says of it. */
static int watch(pid_t child) {
        sigset_t signals;
        int status;

        held(&signals);
        for (;;) {
                int signo = sigwaitinfo(&signals, NULL);

                if (signo == SIGCHLD && waitpid(child, &status, WNOHANG) == child)
                        return status;
                if (signo > 0 && signo != SIGCHLD)
                        kill(child, signo);
        }
}

int docker_in_child(int (*work)(void *userdata), void *userdata, const sigset_t *before) {
        pid_t child = cli_fork();

        if (child == 0) {
                sigprocmask(SIG_SETMASK, before, NULL);
                _exit(work(userdata));
        }
        if (child > 0)
                return watch(child);
        cli_error("cannot fork: %s", strerror(errno));
        return DOCKER_USAGE << 8;
}

int docker_end_as(int status, const sigset_t *before) {
        if (WIFSIGNALED(status)) {
                signal(WTERMSIG(status), SIG_DFL);
                raise(WTERMSIG(status));
        }
        sigprocmask(SIG_SETMASK, before, NULL);
        return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}
