/*
 * Many callers at once: whole processes, each caller starts the next one as soon as its last has ended.
 *
 *     crowd CALLERS RUNS PROGRAM [ARGUMENT]...
 *
 * Runs PROGRAM (an absolute path) RUNS times in all, from CALLERS processes that begin together. Prints
 * "run MICROSECONDS" for each run, from before the spawn until the process is reaped, and last
 * "all MICROSECONDS" for the whole. A run that does not exit with 0 ends it all with status 1.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLERS_MAX 1024
#define RUNS_MAX 1000000

/* Shared by all callers. */
struct board {
        atomic_long next;
        atomic_bool failed;
        double us[];
};

static double now_us(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void call(struct board *b, long runs, posix_spawn_file_actions_t *actions, char **argv,
                 char **env) {
        long i;

        while (!b->failed && (i = atomic_fetch_add(&b->next, 1)) < runs) {
                double begun = now_us();
                int status;
                pid_t pid;

                if (posix_spawn(&pid, argv[0], actions, NULL, argv, env) != 0 ||
                    waitpid(pid, &status, 0) < 0 || status != 0)
                        b->failed = true;
                b->us[i] = now_us() - begun;
        }
}

int main(int argc, char **argv, char **env) {
        int callers = argc > 3 ? atoi(argv[1]) : 0, gate[2];
        long runs = argc > 3 ? atol(argv[2]) : 0;
        posix_spawn_file_actions_t actions;
        struct board *b;
        double begun;
        char c;

        if (callers < 1 || callers > CALLERS_MAX || runs < 1 || runs > RUNS_MAX)
                return 64;
        b = mmap(NULL, sizeof(*b) + (size_t)runs * sizeof(b->us[0]), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (b == MAP_FAILED || pipe2(gate, O_CLOEXEC) < 0)
                return 1;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        for (int i = 0; i < callers; i++)
                switch (fork()) {
                case -1:
                        return 1;
                case 0:
                        /* The gate opens for all when its last writer, the parent, closes it. */
                        close(gate[1]);
                        if (read(gate[0], &c, 1) == 0)
                                call(b, runs, &actions, argv + 3, env);
                        _exit(0);
                }
        begun = now_us();
        close(gate[1]);
        while (wait(NULL) > 0)
                ;
        begun = now_us() - begun;
        if (b->failed || b->next < runs) {
                fprintf(stderr, "crowd: a run of %s failed\n", argv[3]);
                return 1;
        }
        for (long i = 0; i < runs; i++)
                printf("run %.0f\n", b->us[i]);
        printf("all %.0f\n", begun);
        return 0;
}
