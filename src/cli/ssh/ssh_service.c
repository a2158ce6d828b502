/* Where systemd runs, it has the unit and is asked. Elsewhere sshd is started as its administrator would do it, and found
 * again by its pid file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli_spawn.h"
#include "cli/ssh/ssh.h"
#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/walk.h"

#define DEADLINE_MS 10000
#define NAP_MS 20

static void nap(void) {
        const struct timespec t = { .tv_nsec = NAP_MS * 1000000L };

        nanosleep(&t, NULL);
}

bool ssh_service_is_units(const struct ssh_places *p, const struct ssh_words *w) {
        struct stat st;

        return !w->no_systemd && lstat(p->systemd_dir, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A pid comes back after a while as that of somebody else. */
static bool is_sshd(const struct ssh_places *p, pid_t pid) {
        char link[64], exe[PATH_MAX], real[PATH_MAX];
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
        n = readlink(link, exe, sizeof(exe) - 1);
        if (n < 0 || !realpath(p->sshd, real))
                return false;
        exe[n] = '\0';
        /* One that an upgrade has replaced goes on running. */
        return strncmp(exe, real, strlen(real)) == 0 &&
               (exe[strlen(real)] == '\0' || strcmp(exe + strlen(real), " (deleted)") == 0);
}

pid_t ssh_service_pid(const struct ssh_places *p) {
        char path[PATH_MAX], text[16] = "";
        _cleanup_fd_ int fd = -1;
        long pid;

        snprintf(path, sizeof(path), "%s/sshd.pid", p->run);
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
                return 0;
        pid = strtol(text, NULL, 10);
        return pid > 1 && pid < INT_MAX && is_sshd(p, (pid_t)pid) ? (pid_t)pid : 0;
}

static int by_systemd(const struct ssh_places *p, bool changed) {
        const char *const enable[] = { p->systemctl, "enable", "--quiet", SSH_UNIT, NULL };
        const char *const start[] = { p->systemctl, changed ? "reload-or-restart" : "start", SSH_UNIT,
                                      NULL };
        int r = spawn_run(enable, -1, -1);

        if (r == 0)
                r = spawn_run(start, -1, -1);
        if (r != 0)
                return ssh_fail(r < 0 ? EXIT_OS : EXIT_SANDBOX,
                                "enable: systemctl failed (status %d): systemctl status " SSH_UNIT, r);
        return 0;
}

/* Its log is where the daemons' are that the supervisor starts. */
static int start(const struct ssh_places *p) {
        char config[PATH_MAX], log[PATH_MAX];
        const char *const argv[] = { p->sshd, "-f", config, "-E", log, NULL };
        int r;

        snprintf(config, sizeof(config), "%s/" SSH_CONFIG, p->dir);
        snprintf(log, sizeof(log), "%s/ssh.log", p->log_dir);
        if (mkdir(p->log_dir, 0750) < 0 && errno != EEXIST)
                return ssh_fail(EXIT_OS, "enable: cannot make %s: %s", p->log_dir, strerror(errno));
        if (mkdir(p->run, 0755) < 0 && errno != EEXIST)
                return ssh_fail(EXIT_OS, "enable: cannot make %s: %s", p->run, strerror(errno));
        r = spawn_run(argv, -1, -1);
        if (r != 0)
                return ssh_fail(EXIT_OS, "enable: %s failed (status %d): see %s", p->sshd, r, log);
        /* It goes into the background first, and only then takes its addresses. */
        for (int waited = 0; ssh_service_pid(p) == 0; waited += NAP_MS) {
                if (waited >= DEADLINE_MS)
                        return ssh_fail(EXIT_OS, "enable: %s does not run: see %s", p->sshd, log);
                nap();
        }
        return 0;
}

int ssh_service_up(const struct ssh_places *p, const struct ssh_words *w, bool changed) {
        pid_t pid;

        if (ssh_service_is_units(p, w))
                return by_systemd(p, changed);
        pid = ssh_service_pid(p);
        if (pid == 0)
                return start(p);
        if (changed && kill(pid, SIGHUP) < 0)
                return ssh_fail(EXIT_OS, "enable: cannot tell sshd (pid %d) to read again: %s", (int)pid,
                                strerror(errno));
        return 0;
}

/* The number behind @key in the status of a process, which is anybody's to read also where its folder in /proc is root's
 * because it may not be traced. -1: there is no such process. */
static long status_of(const char *pid, const char *key) {
        char path[300], text[2048];
        _cleanup_fd_ int fd = -1;
        const char *line;
        ssize_t n;

        if (pid[strspn(pid, "0123456789")] != '\0')
                return -1;
        snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return -1;
        text[n] = '\0';
        line = strstr(text, key);
        return line ? strtol(line + strlen(key), NULL, 10) : -1;
}

/* Ends each process that has that number there. */
static void end_all(const char *key, long number) {
        _cleanup_fd_ int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct walk_names w = { 0 };
        const char *name;

        while (fd >= 0 && (name = walk_next(&w, fd)))
                if (status_of(name, key) == number)
                        kill((pid_t)strtol(name, NULL, 10), SIGTERM);
}

/* Who has not said yet which key is his has a process of sshd's, a child of the one that listens: without that he could
 * still log in. Stopped, it takes no more of them; ended, it says no more which are its own. */
static void end_newcomers(pid_t listener) {
        if (listener > 0 && kill(listener, SIGSTOP) == 0) {
                nap();
                end_all("\nPPid:\t", listener);
        }
}

/* All that the account has are connections, and a command of each: whichever session systemd has put them in. */
static void end_connections(const struct ssh_places *p) {
        const struct passwd *pw = getpwnam(p->account);

        if (pw && pw->pw_uid != 0)
                end_all("\nUid:\t", pw->pw_uid);
}

int ssh_service_down(const struct ssh_places *p, const struct ssh_words *w) {
        const char *const stop[] = { p->systemctl, "disable", "--quiet", "--now", SSH_UNIT, NULL };
        pid_t pid = ssh_service_pid(p);
        int r = 0;

        end_newcomers(pid);
        if (ssh_service_is_units(p, w))
                r = spawn_run(stop, -1, -1);
        if (r == 0 && pid > 0 && ssh_service_pid(p) == pid)
                kill(pid, SIGTERM);
        if (pid > 0)
                kill(pid, SIGCONT);
        if (r != 0)
                return ssh_fail(r < 0 ? EXIT_OS : EXIT_SANDBOX,
                                "disable: systemctl failed (status %d): systemctl status " SSH_UNIT, r);
        for (int waited = 0; ssh_service_pid(p) > 0; waited += NAP_MS) {
                if (waited >= DEADLINE_MS)
                        return ssh_fail(EXIT_OS, "disable: sshd (pid %d) does not end: kill -KILL %d",
                                        (int)pid, (int)pid);
                nap();
        }
        end_connections(p);
        return 0;
}
