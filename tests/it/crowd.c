/*
 * Many callers at once: COUNT processes of one command, each with an end of its own.
 *
 *     crowd [-w WIDTH] [-o FOLDER] [-s] COUNT WORD…
 *
 * Without -w all are forked first and then let go together; with it, WIDTH of them run at any time. "{}" in a
 * WORD is the process' number, from 1. stdin is /dev/null; stdout and stderr go to FOLDER/NUMBER.out and .err,
 * without -o to /dev/null. Prints a line "NUMBER STATUS" for each, in the order of their ends (128 and the
 * signal for one that was killed); with -s instead a line "STATUS COUNT" for each status, and then
 * "rate N" with how many ended a second.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 64

static pid_t *pids;
static unsigned count, width;
static const char *folder;

static void die(const char *what) {
        perror(what);
        exit(70);
}

static void redirect(unsigned number, const char *kind, int flags, int to) {
        char path[4096] = "/dev/null";
        int fd;

        if (folder && kind)
                snprintf(path, sizeof(path), "%s/%u.%s", folder, number, kind);
        fd = open(path, flags | O_CLOEXEC, 0644);
        if (fd < 0 || dup2(fd, to) < 0)
                die(path);
}

/* @gate: a pipe. Where there is one, the process becomes the command once our writing end is closed. */
static pid_t start(unsigned number, char **words, const int *gate) {
        static char store[WORDS_MAX][4096];
        char *args[WORDS_MAX + 1], byte;
        unsigned n = 0;
        pid_t pid = fork();

        if (pid < 0)
                die("fork");
        if (pid > 0)
                return pid;
        for (; words[n] && n < WORDS_MAX; n++) {
                char *hole = strstr(words[n], "{}");

                args[n] = words[n];
                if (!hole)
                        continue;
                args[n] = store[n];
                snprintf(store[n], sizeof(store[n]), "%.*s%u%s", (int)(hole - words[n]), words[n],
                         number, hole + 2);
        }
        args[n] = NULL;
        if (gate) {
                close(gate[1]);
                if (read(gate[0], &byte, 1) != 0)
                        _exit(70);
        }
        redirect(number, NULL, O_RDONLY, 0);
        redirect(number, "out", O_WRONLY | O_CREAT | O_TRUNC, 1);
        redirect(number, "err", O_WRONLY | O_CREAT | O_TRUNC, 2);
        execvp(args[0], args);
        _exit(71);
}

/* The number of the one that ended, of the @started so far, and its status. */
static unsigned reap(unsigned started, int *ret_status) {
        int status;
        pid_t pid = wait(&status);

        if (pid < 0)
                die("wait");
        *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        for (unsigned i = started; i > 0; i--)
                if (pids[i] == pid) {
                        pids[i] = 0;
                        return i;
                }
        fputs("crowd: a child that is none\n", stderr);
        exit(70);
}

static double seconds(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run(char **words, bool sums) {
        unsigned started = 0, seen[256] = { 0 };
        int gate[2] = { -1, -1 };
        double began;

        if (width == 0 && pipe2(gate, O_CLOEXEC) < 0)
                die("pipe2");
        began = seconds();
        while (started < count && (width == 0 || started < width)) {
                started++;
                pids[started] = start(started, words, width ? NULL : gate);
        }
        if (width == 0) {
                began = seconds();
                close(gate[1]);
        }
        for (unsigned ended = 0; ended < count; ended++) {
                int status;
                unsigned number = reap(started, &status);

                seen[status & 255]++;
                if (!sums)
                        printf("%u %d\n", number, status);
                if (started < count) {
                        started++;
                        pids[started] = start(started, words, NULL);
                }
        }
        for (int s = 0; sums && s < 256; s++)
                if (seen[s])
                        printf("%d %u\n", s, seen[s]);
        if (sums)
                printf("rate %.0f\n", count / (seconds() - began));
}

int main(int argc, char **argv) {
        bool sums = false;
        int o;

        while ((o = getopt(argc, argv, "+w:o:s")) != -1) {
                if (o == 'w')
                        width = (unsigned)strtoul(optarg, NULL, 10);
                else if (o == 'o')
                        folder = optarg;
                else if (o == 's')
                        sums = true;
                else
                        return 64;
        }
        if (argc - optind < 2 || argc - optind > WORDS_MAX)
                return 64;
        count = (unsigned)strtoul(argv[optind], NULL, 10);
        pids = calloc(count + 1, sizeof(*pids));
        if (!pids)
                die("calloc");
        /* Each child has a copy of what is still in the buffer. */
        setvbuf(stdout, NULL, _IOLBF, 0);
        run(argv + optind + 1, sums);
        return 0;
}
