/*
 * How long a program takes to write its output into a pipe.
 *
 *     drain BYTES PROGRAM [ARGUMENT]...
 *
 * Reads PROGRAM's stdout (an absolute path) to its end and prints the microseconds from before the spawn
 * until the process is reaped. It fails unless there were exactly BYTES and the exit status was 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv, char **env) {
        static char buf[1 << 20];
        long long wanted = argc > 2 ? atoll(argv[1]) : 0, got = 0;
        posix_spawn_file_actions_t actions;
        struct timespec a, b;
        int p[2], status;
        pid_t pid;

        if (wanted < 1)
                return 64;
        if (pipe2(p, O_CLOEXEC) < 0)
                return 1;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, p[1], 1);
        clock_gettime(CLOCK_MONOTONIC, &a);
        if (posix_spawn(&pid, argv[2], &actions, NULL, argv + 2, env) != 0)
                return 1;
        close(p[1]);
        for (;;) {
                ssize_t n = read(p[0], buf, sizeof(buf));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                got += n;
        }
        if (waitpid(pid, &status, 0) < 0 || status != 0 || got != wanted) {
                fprintf(stderr, "drain: %s: status %d, %lld bytes of %lld\n", argv[2], status, got,
                        wanted);
                return 1;
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("%.0f\n", (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3);
        return 0;
}
