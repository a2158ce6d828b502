/*
 * start and stop. Where systemd runs, it has the units and is asked; elsewhere the supervisor keeps the
 * daemons up. Root's alone: who may start them could otherwise choose their moment and environment.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli_fork.h"
#include "cli/cli_opts.h"
#include "common/cleanup.h"
#include "common/exitcode.h"

#define START_DEADLINE_MS 10000
#define POLL_MS 20

enum { OPT_HELP, OPT_NO_SYSTEMD };

static const struct cli_opt lifecycle_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "no-systemd", 0, false, OPT_NO_SYSTEMD },
        { .name = "" },
};

#define SYSTEMCTL "/usr/bin/systemctl"
#define SOCKETS "hermes-sandbox-engine.socket", "hermes-sandbox-pool.socket"
#define SERVICES "hermes-sandbox-engine.service", "hermes-sandbox-pool.service"

static const char *const systemctl_start[] = { "systemctl", "start", SOCKETS, SERVICES, NULL };
static const char *const systemctl_stop[] = { "systemctl", "stop", SOCKETS, SERVICES, NULL };

/* Looks at the words and at who asks. -1: go on; else the exit status. */
static int prologue(const struct cli_command *cmd, const struct cli *c, int argc, char **argv,
                    bool *ret_systemd) {
        struct cli_opts o;
        struct errmsg e;
        struct stat st;
        const char *value;
        bool no_systemd = false;
        int id;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, lifecycle_opts, &value, &e)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(cmd->help);
                no_systemd = true;
        }
        if (id != CLI_OPTS_END || o.next < argc) {
                if (id == CLI_OPTS_END)
                        errmsg_set(&e, 0, "unexpected argument '%.80s'", argv[o.next]);
                cli_error("%s: %s: see hermes-sandbox %s --help", cmd->name, e.text, cmd->name);
                return EXIT_USAGE;
        }
        if (geteuid() != 0) {
                cli_error("%s is root's: sudo hermes-sandbox %s", cmd->name, cmd->name);
                return EXIT_NOT_ALLOWED;
        }
        *ret_systemd = !no_systemd && lstat(c->systemd_dir, &st) == 0 && S_ISDIR(st.st_mode);
        return -1;
}

static int exec_systemctl(const char *const *argv) {
        /* execv() changes nothing of it. */
        execv(SYSTEMCTL, (char *const *)(uintptr_t)argv);
        cli_error("cannot run %s: %s", SYSTEMCTL, strerror(errno));
        return EXIT_SANDBOX;
}

/* Runs LIBEXEC/@name and waits. Its exit status, or EXIT_SANDBOX after a line. */
static int run_program(const struct cli *c, const char *name, const char *arg, bool quiet) {
        char path[4096];
        const char *argv[] = { name, arg, NULL };
        int status;
        pid_t pid;

        if ((size_t)snprintf(path, sizeof(path), "%s/%s", c->libexec, name) >= sizeof(path)) {
                cli_error("%s/%s: %s", c->libexec, name, strerror(ENAMETOOLONG));
                return EXIT_SANDBOX;
        }
        pid = cli_fork();
        if (pid == 0) {
                if (quiet) {
                        _cleanup_fd_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

                        dup2(null, STDOUT_FILENO);
                }
                execv(path, (char *const *)(uintptr_t)argv);
                cli_error("cannot run %s: %s", path, strerror(errno));
                _exit(EXIT_SANDBOX);
        }
        if (pid < 0) {
                cli_error("cannot run %s: %s", path, strerror(errno));
                return EXIT_SANDBOX;
        }
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return EXIT_SANDBOX;
        return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SANDBOX;
}

static bool answers(const char *path) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || strlen(path) >= sizeof(sa.sun_path))
                return false;
        strcpy(sa.sun_path, path);
        return connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
}

static int run_start(const struct cli *c, int argc, char **argv) {
        const struct timespec nap = { .tv_nsec = POLL_MS * 1000000L };
        const char *path = c->socket ? c->socket : c->system_socket;
        bool systemd;
        int r = prologue(&cli_start_command, c, argc, argv, &systemd);

        if (r >= 0)
                return r;
        /* The one fault that is common is named here and now, not in a log. */
        r = run_program(c, "hermes-sandbox-config", "check", true);
        if (r == EXIT_CONFIG)
                return r;
        if (systemd)
                return exec_systemctl(systemctl_start);
        r = run_program(c, "supervisor", NULL, false);
        if (r != 0)
                return r;
        for (int waited_ms = 0; waited_ms < START_DEADLINE_MS; waited_ms += POLL_MS) {
                if (answers(path))
                        return 0;
                nanosleep(&nap, NULL);
        }
        cli_error("the manager does not answer at %s after %d s: see %s/pool.log and engine.log", path,
                  START_DEADLINE_MS / 1000, c->log_dir);
        return EXIT_NO_MANAGER;
}

static int run_stop(const struct cli *c, int argc, char **argv) {
        bool systemd;
        int r = prologue(&cli_stop_command, c, argc, argv, &systemd);

        if (r >= 0)
                return r;
        return systemd ? exec_systemctl(systemctl_stop) : run_program(c, "supervisor", "--stop", false);
}

const struct cli_command cli_start_command = {
        .name = "start",
        .group = CLI_ADMINISTER,
        .summary = "start the manager and the engine broker (root)",
        .help = "usage: hermes-sandbox start [--no-systemd]\n"
                "\n"
                "Starts the daemons: by systemd where it runs, else under a small supervisor. Returns\n"
                "when the manager answers.\n"
                "\n"
                "examples:\n"
                "  sudo hermes-sandbox start\n"
                "  sudo hermes-sandbox start --no-systemd\n",
        .run = run_start,
};

const struct cli_command cli_stop_command = {
        .name = "stop",
        .group = CLI_ADMINISTER,
        .summary = "stop them, and remove what is no session's (root)",
        .help = "usage: hermes-sandbox stop [--no-systemd]\n"
                "\n"
                "Stops the daemons, which removes every sandbox but those of sessions: these wait for\n"
                "reconnect_grace (2 min) for a start, which has them again. Other commands that run may go\n"
                "on for 30 s, or until this is said a second time; new ones are refused. Returns when the\n"
                "daemons are gone. Where systemd runs, this ends sessions, too:\n"
                "systemctl kill --signal=INT hermes-sandbox-pool.service\n"
                "\n"
                "examples:\n"
                "  sudo hermes-sandbox stop\n"
                "  sudo hermes-sandbox stop --no-systemd\n",
        .run = run_stop,
};
