/*
 * Times whole processes, interleaved: each round runs every command once, in turn, so that a noisy moment
 * of the machine meets all of them alike.
 *
 *     interleave ROUNDS READY <COMMANDS
 *
 * COMMANDS has a line each: NAME, a tab, the words of the command, separated by single blanks. Before each
 * timed run the shell command READY is run, untimed; it returns when the machine is ready for the next.
 * Prints "NAME MICROSECONDS" for each run, from before the spawn until the process is reaped. A command
 * that does not exit with 0 ends the run.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define COMMANDS_MAX 16
#define WORDS_MAX 64

struct command {
        char *name;
        char *argv[WORDS_MAX + 1];
};

static size_t read_commands(struct command *c) {
        size_t n = 0, cap;
        char *line = NULL;

        while (n < COMMANDS_MAX && getline(&line, &cap, stdin) > 0) {
                size_t words = 0;
                char *rest = strchr(line, '\t');

                if (!rest)
                        continue;
                *rest++ = '\0';
                rest[strcspn(rest, "\n")] = '\0';
                c[n].name = line;
                for (char *w; words < WORDS_MAX && (w = strsep(&rest, " "));)
                        c[n].argv[words++] = w;
                c[n++].argv[words] = NULL;
                line = NULL; /* the words point into it */
        }
        return n;
}

static double run(const struct command *c, posix_spawn_file_actions_t *actions, char **env) {
        struct timespec a, b;
        int status;
        pid_t pid;

        clock_gettime(CLOCK_MONOTONIC, &a);
        if (posix_spawn(&pid, c->argv[0], actions, NULL, c->argv, env) != 0 ||
            waitpid(pid, &status, 0) < 0 || status != 0) {
                fprintf(stderr, "interleave: %s failed\n", c->name);
                exit(1);
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
        return (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3;
}

int main(int argc, char **argv, char **env) {
        struct command c[COMMANDS_MAX];
        posix_spawn_file_actions_t actions;
        size_t n;

        if (argc != 3 || (n = read_commands(c)) == 0)
                return 64;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        for (int round = 0; round < atoi(argv[1]); round++)
                for (size_t i = 0; i < n; i++) {
                        if (system(argv[2]) != 0)
                                return 1;
                        printf("%s %.0f\n", c[i].name, run(&c[i], &actions, env));
                }
        return 0;
}
