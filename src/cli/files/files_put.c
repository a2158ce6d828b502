/*
 * Into a sandbox: a child of ours makes the stream, into a pipe that is this process' stdin, so that the loop of
 * every command carries it. The child draws the progress; lines from both are written over it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_fork.h"
#include "cli/files/files.h"
#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/pack.h"

static void progress(void *userdata, const char *path, uint64_t bytes) {
        struct files_copy *copy = userdata;

        files_progress_show(&copy->progress, path, bytes);
}

/* The child. What it cannot write, nobody reads any more: whoever did not says why. */
static int make_stream(struct files_copy *copy, int fd) {
        static struct pack p;
        int r = 0;

        pack_init(&p, fd, files_local_say, copy);
        p.progress = progress;
        for (int i = 0; i < copy->n_sources && r == 0; i++) {
                if (strcmp(copy->sources[i], "-") == 0)
                        r = pack_stream(&p, STDIN_FILENO, "stdin", 0644);
                else
                        r = pack_path(&p, copy->sources[i]);
        }
        if (r == 0)
                r = pack_end(&p);
        files_progress_clear(&copy->progress);
        return r < 0 || p.failed;
}

static pid_t start(struct files_copy *copy, const int p[2]) {
        pid_t parent = getpid(), pid = cli_fork();

        if (pid != 0)
                return pid;
        close(p[0]);
        close(copy->run.conn->fd);
        /* The parent passes the terminal's signals on to the tool, and ends this when that has ended. */
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
                _exit(1);
        _exit(make_stream(copy, p[1]));
}

/* Both ends above the standard streams, some of which may be closed. */
static int make_pipe(int ret[2]) {
        int p[2], r = 0;

        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        for (int i = 0; i < 2; i++) {
                ret[i] = fcntl(p[i], F_DUPFD_CLOEXEC, 3);
                if (ret[i] < 0)
                        r = -errno;
        }
        close(p[0]);
        close(p[1]);
        return r;
}

/* It is over; @status is the tool's. */
static int end(pid_t pid, int status) {
        int how;

        close(STDIN_FILENO);
        /* Where all was taken, the child is at its end, too. */
        if (status != 0)
                kill(pid, SIGTERM);
        while (waitpid(pid, &how, 0) < 0)
                if (errno != EINTR)
                        return status ? status : EXIT_SANDBOX;
        if (status != 0)
                return status;
        return WIFEXITED(how) && WEXITSTATUS(how) == 0 ? 0 : 1;
}

/* The child may have drawn something. */
static void clear_line(struct files_run *r) {
        struct files_copy *copy = (struct files_copy *)r;

        copy->progress.drawn = copy->progress.on;
        files_progress_clear(&copy->progress);
}

int files_put(struct files_copy *copy, const struct cli *c) {
        int p[2] = { -1, -1 }, status = files_connect(&copy->run, c);
        pid_t pid;
        int r;

        if (status != 0)
                return status;
        copy->run.use_stdin = true;
        files_progress_init(&copy->progress);
        copy->run.before_line = clear_line;
        r = make_pipe(p);
        pid = r < 0 ? r : start(copy, p);
        if (pid < 0 || dup2(p[0], STDIN_FILENO) < 0) {
                cli_error("cp: cannot start: %s", strerror(pid < 0 && r < 0 ? -r : errno));
                return EXIT_SANDBOX;
        }
        close(p[0]);
        close(p[1]);
        return end(pid, files_go(&copy->run));
}
