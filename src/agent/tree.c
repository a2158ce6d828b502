/*
 * A command's processes. Each exec has a supplementary gid of its own; a process without CAP_SETGID can
 * neither drop it nor pass it by, so that a scan of /proc for the gid finds every descendant, whatever
 * double fork or setsid it went through. A process that forks while the scan runs is caught by stopping
 * what was found and scanning again until nothing new runs.
 */
#include "agent/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rounds of stopping before killing starts anyway. */
#define STOP_ROUNDS 64

struct found {
        bool member; /* carries the gid and is not dead */
        bool stopped;
};

static bool groups_have(const char *line, gid_t gid) {
        while (*line && *line != '\n') {
                char *end;
                unsigned long v = strtoul(line, &end, 10);

                if (end == line)
                        return false;
                if (v == gid)
                        return true;
                line = end;
                while (*line == ' ' || *line == '\t')
                        line++;
        }
        return false;
}

/* "Z" stands for a dead process, and for a living one whose first thread has ended before the others. */
static bool is_dead(const char *buf, char state) {
        const char *threads = strstr(buf, "\nThreads:\t");

        if (state != 'Z' && state != 'X')
                return false;
        return !threads || strtoul(threads + strlen("\nThreads:\t"), NULL, 10) <= 1;
}

static struct found examine(int proc_fd, const char *pid, gid_t gid) {
        struct found f = { 0 };
        char path[64], buf[4096];
        const char *state, *groups;
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "%.20s/status", pid);
        fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return f;
        n = read(fd, buf, sizeof(buf) - 1);
        close(fd);
        if (n <= 0)
                return f;
        buf[n] = '\0';
        /* The first line is the process' name, chosen by it: the kernel escapes a newline there. */
        state = strstr(buf, "\nState:\t");
        groups = strstr(buf, "\nGroups:\t");
        if (!state || !groups)
                return f;
        state += strlen("\nState:\t");
        if (is_dead(buf, *state))
                return f;
        f.member = groups_have(groups + strlen("\nGroups:\t"), gid);
        f.stopped = *state == 'T' || *state == 't';
        return f;
}

/* Walks /proc; @signo 0 only counts, a @only_running scan leaves out what is stopped already. */
static int scan(gid_t gid, int signo, bool only_running) {
        DIR *d = opendir("/proc");
        struct dirent *e;
        int n = 0;

        if (!d)
                return -errno;
        while ((e = readdir(d))) {
                struct found f;

                if (e->d_name[0] < '1' || e->d_name[0] > '9')
                        continue;
                f = examine(dirfd(d), e->d_name, gid);
                if (!f.member || (only_running && f.stopped))
                        continue;
                n++;
                if (signo)
                        kill((pid_t)strtol(e->d_name, NULL, 10), signo);
        }
        closedir(d);
        return n;
}

int tree_count(gid_t gid) {
        return scan(gid, 0, false);
}

int tree_signal(gid_t gid, int signo) {
        return scan(gid, signo, false);
}

int tree_kill(gid_t gid) {
        for (int i = 0; i < STOP_ROUNDS; i++)
                if (scan(gid, SIGSTOP, true) <= 0)
                        break;
        return scan(gid, SIGKILL, false);
}
