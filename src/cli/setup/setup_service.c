#include "cli/setup/setup_service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_spawn.h"
#include "common/cleanup.h"
#include "common/exitcode.h"

#define SYSTEMCTL "/usr/bin/systemctl"
#define POOL "hermes-sandbox-pool"
#define ENGINE "hermes-sandbox-engine"

/* The supervisor that holds the lock on @pid_file, 0: none, or -errno. */
static pid_t supervisor(const char *pid_file) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        _cleanup_fd_ int fd = open(pid_file, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fcntl(fd, F_GETLK, &lock) < 0)
                return -errno;
        return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

static int run(const char *const argv[], const char *done) {
        int r = spawn_run(argv, -1, -1);

        if (r == 0) {
                setup_say("service: %s", done);
                return 0;
        }
        if (r < 0)
                return setup_fail(EXIT_OS, "cannot run %s: %s", argv[0], strerror(-r));
        return setup_fail(
                r == EXIT_CONFIG ? r : EXIT_NO_MANAGER,
                "%s %s failed (status %d): the configuration is written; try again with " SETUP_PROGRAM
                " --yes",
                argv[0], argv[1], r);
}

static int by_systemd(void) {
        static const char *const start[] = {
                SYSTEMCTL,       "start", ENGINE ".socket", POOL ".socket", ENGINE ".service",
                POOL ".service", NULL
        };
        static const char *const reload[] = { SYSTEMCTL, "reload", ENGINE ".service", POOL ".service",
                                              NULL };
        int r = run(start, "runs, by systemd");

        return r != 0 ? r : run(reload, "has read the configuration");
}

static int by_user_systemd(void) {
        static const char *const start[] = { SYSTEMCTL,      "--user",        "enable", "--now",
                                             POOL ".socket", POOL ".service", NULL };
        static const char *const reload[] = { SYSTEMCTL,         "--user",        "reload",
                                              ENGINE ".service", POOL ".service", NULL };
        int r = run(start, "runs, by systemd --user, and whenever you log in");

        return r != 0 ? r : run(reload, "has read the configuration");
}

static int tell(pid_t pid) {
        if (kill(pid, SIGHUP) < 0)
                return setup_fail(EXIT_OS, "cannot tell the supervisor (pid %d) to read again: %s",
                                  (int)pid, strerror(errno));
        setup_say("service: the supervisor (pid %d) has been told to read again", (int)pid);
        return 0;
}

static int by_supervisor(const struct setup_places *p) {
        char cli[4352];
        const char *const start[] = { cli, "start", "--no-systemd", NULL };
        pid_t pid = p->pid_file ? supervisor(p->pid_file) : 0;

        if (pid < 0)
                return setup_fail(EXIT_OS, "%s: %s", p->pid_file, strerror(-pid));
        if (pid > 0)
                return tell(pid);
        if (p->own_pair) {
                setup_say("service: left alone; your daemons read %s on HUP, or when they start",
                          p->config_dir);
                return 0;
        }
        snprintf(cli, sizeof(cli), "%s/hermes-sandbox", p->bin_dir);
        return run(start, "runs, under the supervisor");
}

int setup_service_up(const struct setup_options *o, const struct setup_places *p) {
        struct stat st;
        bool systemd = !o->no_systemd && lstat(p->systemd_dir, &st) == 0 && S_ISDIR(st.st_mode);

        fflush(stdout);
        if (p->own_pair || (!o->single_user && !systemd))
                return by_supervisor(p);
        if (!o->single_user)
                return by_systemd();
        if (systemd)
                return by_user_systemd();
        setup_say(
                "service: left alone; without systemd start the pair yourself: hermes-engined --user and hermes-sandboxd "
                "--user, both in " LIBEXEC);
        return 0;
}
