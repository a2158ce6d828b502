#include "cli/cli_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_fork.h"
#include "common/cleanup.h"
#include "common/exitcode.h"

static int wait_for(pid_t pid) {
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
}

/* In the child. @fds become 0 to 3 there; -1: left as it is. dup2() clears close-on-exec, but not onto itself. */
static _Noreturn void become(const char *const argv[], const int fds[4]) {
        int copies[4];

        for (int i = 0; i < 4; i++)
                copies[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
        for (int i = 0; i < 4; i++)
                if (fds[i] >= 0 && dup2(copies[i], i) < 0)
                        _exit(EXIT_SANDBOX);
        /* execv() changes nothing of it. */
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC);
}

int spawn_run(const char *const argv[], int stdin_fd, int also_fd) {
        const int fds[4] = { stdin_fd, -1, -1, also_fd };
        pid_t pid = cli_fork();

        if (pid == 0)
                become(argv, fds);
        return pid < 0 ? -errno : wait_for(pid);
}

/* All of @fd into a new string; what is over the bound is left unread. */
static char *slurp(int fd) {
        char *text = malloc(SPAWN_OUTPUT_MAX + 1);
        size_t len = 0;

        if (!text)
                abort();
        while (len < SPAWN_OUTPUT_MAX) {
                ssize_t n = read(fd, text + len, SPAWN_OUTPUT_MAX - len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                len += (size_t)n;
        }
        text[len] = '\0';
        return text;
}

int spawn_read(const char *const argv[], char **ret) {
        _cleanup_fd_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC), in = -1, out = -1;
        int ends[2], r;
        pid_t pid;
        char *text;

        if (null < 0 || pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        in = ends[0];
        out = ends[1];
        pid = cli_fork();
        if (pid == 0)
                become(argv, (const int[4]){ null, out, out, -1 });
        if (pid < 0)
                return -errno;
        out = close_fd(out);
        text = slurp(in);
        in = close_fd(in);
        r = wait_for(pid);
        if (r < 0)
                free(text);
        else
                *ret = text;
        return r;
}
