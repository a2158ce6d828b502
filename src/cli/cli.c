/*
 * The first words of the command line: global options, then one row of the table of commands. Nothing
 * here allocates or uses stdio, so that what `exec` pays is what `exec` needs.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_opts.h"
#include "common/escape.h"
#include "common/exitcode.h"

static int run_config(const struct cli *c, int argc, char **argv);
static int run_audit(const struct cli *c, int argc, char **argv);
static int run_doctor(const struct cli *c, int argc, char **argv);
static int run_setup(const struct cli *c, int argc, char **argv);
static int run_ssh(const struct cli *c, int argc, char **argv);
static int run_version(const struct cli *c, int argc, char **argv);
static int run_help(const struct cli *c, int argc, char **argv);

static const struct cli_command config_command = {
        .name = "config",
        .group = CLI_ADMINISTER,
        .summary = "check the configuration, or show what is in force",
        .help = "usage: hermes-sandbox config check [FILE]\n"
                "       hermes-sandbox config show\n"
                "\n"
                "check: reads FILE (default /etc/hermes-sandbox/sandbox.yaml and sandbox.d/*.yaml) and\n"
                "       names the first fault with its file, line and column; exit status 78 then.\n"
                "show:  prints what is in force, all defaults filled in.\n"
                "\n"
                "examples:\n"
                "  hermes-sandbox config check\n"
                "  hermes-sandbox config check ./sandbox.yaml\n"
                "  hermes-sandbox config show\n",
        .run = run_config,
};

static const struct cli_command audit_command = {
        .name = "audit",
        .group = CLI_ADMINISTER,
        .summary = "who ran what, and what was refused; check the trails",
        .help = "usage: hermes-sandbox audit [--since T] [--until T] [--user U] [--session S] [--exec ID]\n"
                "                            [--failed] [--summary] [--json] [--full]\n"
                "       hermes-sandbox audit --verify [--json]\n"
                "\n"
                "Reads the kernel's audit trail, for root and members of the group adm; --verify checks\n"
                "/var/log/hermes-sandbox/sandbox-audit.log against itself and against the kernel's trail\n"
                "(exit status 1: something is missing, changed, reordered or inserted).\n"
                "T is such as 2026-11-29, '2026-11-29 18:00', today, yesterday, -2h. All options:\n"
                "hermes-sandbox-audit(1).\n"
                "\n"
                "examples:\n"
                "  hermes-sandbox audit --since today --failed\n"
                "  hermes-sandbox audit --user hermes --json | jq -r .command\n"
                "  hermes-sandbox audit --summary --since -30d\n"
                "  hermes-sandbox audit --verify\n",
        .run = run_audit,
};

static const struct cli_command doctor_command = {
        .name = "doctor",
        .group = CLI_ADMINISTER,
        .summary = "what is wrong with this machine, and what mends it",
        .help = "usage: hermes-sandbox doctor [--json] [--root DIR]\n"
                "\n"
                "Looks at all that the sandbox needs: engine, accounts, sockets, limits, images, audit,\n"
                "disk, clock. One line for each: ok, warning or failure, and the command that mends it;\n"
                "exit status 1 when something fails. Some things only root can see.\n"
                "\n"
                "examples:\n"
                "  sudo hermes-sandbox doctor\n"
                "  sudo hermes-sandbox doctor --json | jq -r '.[] | select(.result != \"ok\").mend'\n",
        .run = run_doctor,
};

static const struct cli_command setup_command = {
        .name = "setup",
        .group = CLI_ADMINISTER,
        .summary = "configure it, start it, prove it (root)",
        .help = "usage: hermes-sandbox setup [OPTION]...\n"
                "\n"
                "Writes what is asked for to /etc/hermes-sandbox/sandbox.d/50-setup.yaml, makes sure of\n"
                "the image, starts or reloads the service, runs a command in a sandbox, and shows what is\n"
                "enforced. Said twice, it changes nothing. Without options, on a terminal, it asks.\n"
                "All options: hermes-sandbox-setup --help.\n"
                "\n"
                "examples:\n"
                "  sudo hermes-sandbox setup\n"
                "  sudo hermes-sandbox setup --pool-size 5 --memory 256m --dry-run\n"
                "  sudo hermes-sandbox setup --yes --add-user hermes --install-scripts\n",
        .run = run_setup,
};

static const struct cli_command ssh_command = {
        .name = "ssh",
        .group = CLI_ADMINISTER,
        .summary = "the ssh gateway: start it, and who may log in (root)",
        .help = "usage: hermes-sandbox ssh enable|disable|status|add-key|remove-key|list-keys ...\n"
                "\n"
                "Whoever holds a key of the list logs in as hermes-ssh, and each command runs in the\n"
                "session of that key. All words: hermes-sandbox-ssh(1), hermes-sandbox ssh enable --help.\n"
                "\n"
                "examples:\n"
                "  sudo hermes-sandbox ssh enable\n"
                "  sudo hermes-sandbox ssh add-key --profile hermes ~hermes/.ssh/id_ed25519.pub\n"
                "  ssh -p 2222 hermes-ssh@127.0.0.1 'id; uname -a'\n",
        .run = run_ssh,
};

static const struct cli_command version_command = {
        .name = "version",
        .group = CLI_ADMINISTER,
        .summary = "print the version",
        .help = "usage: hermes-sandbox version\n\nexample:\n  hermes-sandbox version\n",
        .run = run_version,
};

static const struct cli_command help_command = {
        .name = "help",
        .group = CLI_ADMINISTER,
        .summary = "this list, or a command's own help",
        .help = "usage: hermes-sandbox help [COMMAND]\n\nexample:\n  hermes-sandbox help exec\n",
        .run = run_help,
};

/* Those of a group in the order in which the list has them. */
static const struct cli_command *const commands[] = {
        &cli_exec_command,  &cli_session_command, &cli_ps_command,     &cli_attach_command,
        &cli_wait_command,  &cli_kill_command,    &cli_cp_command,     &cli_cat_command,
        &cli_ls_command,    &cli_rm_command,      &cli_status_command, &cli_top_command,
        &cli_stats_command, &cli_metrics_command, &cli_logs_command,   &cli_start_command,
        &cli_stop_command,  &setup_command,       &cli_image_command,  &config_command,
        &ssh_command,       &audit_command,       &doctor_command,     &version_command,
        &help_command,
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct cli_command *find(const char *name) {
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (strcmp(commands[i]->name, name) == 0)
                        return commands[i];
        return NULL;
}

static void add_group(struct text *t, enum cli_group group, const char *heading) {
        bool any = false;

        for (size_t i = 0; i < N_COMMANDS; i++) {
                if (commands[i]->group != group)
                        continue;
                if (!any)
                        text_addf(t, "\n%s:\n", heading);
                any = true;
                text_addf(t, "  %-9s%s\n", commands[i]->name, commands[i]->summary);
        }
}

static int say_overview(void) {
        char buf[4096];
        struct text t;

        text_init(&t, buf, sizeof(buf));
        text_addf(&t, "usage: hermes-sandbox [--socket PATH] COMMAND ...\n"
                      "\n"
                      "Runs commands in warm, throw-away containers.\n");
        add_group(&t, CLI_RUN, "run");
        add_group(&t, CLI_SESSIONS, "sessions");
        add_group(&t, CLI_FILES, "files");
        add_group(&t, CLI_LOOK, "look");
        add_group(&t, CLI_ADMINISTER, "administer");
        text_addf(&t, "\n"
                      "The manager's socket: --socket PATH, else $HERMES_SANDBOX_SOCKET, else\n"
                      "$XDG_RUNTIME_DIR/hermes-sandbox/pool.sock if it exists, else\n"
                      "/run/hermes-sandbox/pool.sock.\n"
                      "\n"
                      "examples:\n"
                      "  hermes-sandbox exec 'echo hello; id'\n"
                      "  hermes-sandbox exec -it --session work --open bash\n"
                      "  hermes-sandbox status\n"
                      "  hermes-sandbox help exec\n");
        return cli_say(buf);
}

static int run_version(const struct cli *c, int argc, char **argv) {
        (void)c;
        if (argc > 1) {
                cli_error("version: unexpected argument '%s'", argv[1]);
                return EXIT_USAGE;
        }
        return cli_say("hermes-sandbox " VERSION "\n");
}

static int run_help(const struct cli *c, int argc, char **argv) {
        const struct cli_command *cmd;

        (void)c;
        if (argc < 2)
                return say_overview();
        cmd = find(argv[1]);
        if (!cmd || argc > 2) {
                cli_error("help: unknown command '%s': see hermes-sandbox help", argv[argc - 1]);
                return EXIT_USAGE;
        }
        return cli_say(cmd->help);
}

int cli_run_program(const struct cli *c, const char *name, char **argv) {
        char path[4096];

        if ((size_t)snprintf(path, sizeof(path), "%s/%s", c->libexec, name) >= sizeof(path))
                errno = ENAMETOOLONG;
        else
                execv(path, argv);
        cli_error("cannot run %s: %s", path, strerror(errno));
        return EXIT_SANDBOX;
}

static int run_config(const struct cli *c, int argc, char **argv) {
        (void)argc;
        return cli_run_program(c, "hermes-sandbox-config", argv);
}

static int run_audit(const struct cli *c, int argc, char **argv) {
        (void)argc;
        return cli_run_program(c, "hermes-sandbox-audit", argv);
}

/* It finds the manager as we do, but for --socket, which is an option of ours. */
static int run_doctor(const struct cli *c, int argc, char **argv) {
        (void)argc;
        if (c->socket && setenv("HERMES_SANDBOX_SOCKET", c->socket, 1) < 0) {
                cli_error("doctor: %s", strerror(errno));
                return EXIT_OS;
        }
        return cli_run_program(c, "hermes-sandbox-doctor", argv);
}

static int run_setup(const struct cli *c, int argc, char **argv) {
        (void)argc;
        return cli_run_program(c, "hermes-sandbox-setup", argv);
}

static int run_ssh(const struct cli *c, int argc, char **argv) {
        (void)argc;
        return cli_run_program(c, "hermes-sandbox-ssh", argv);
}

enum { OPT_HELP, OPT_VERSION, OPT_SOCKET };

static const struct cli_opt global_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "version", 0, false, OPT_VERSION },
        { "socket", 0, true, OPT_SOCKET },
        { .name = "" },
};

int cli_main(struct cli *c, int argc, char **argv) {
        const struct cli_command *cmd;
        struct errmsg e;
        struct cli_opts o;
        const char *arg;
        int id;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, global_opts, &arg, &e)) >= 0) {
                if (id == OPT_HELP)
                        return say_overview();
                if (id == OPT_VERSION)
                        return run_version(c, 1, argv);
                c->socket = arg;
        }
        if (id != CLI_OPTS_END) {
                cli_error("%s: see hermes-sandbox help", e.text);
                return EXIT_USAGE;
        }
        argc -= o.next;
        argv += o.next;
        if (argc < 1) {
                cli_error("no command given: see hermes-sandbox help");
                return EXIT_USAGE;
        }
        cmd = find(argv[0]);
        if (!cmd) {
                cli_error("unknown command '%s': see hermes-sandbox help", argv[0]);
                return EXIT_USAGE;
        }
        if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
                return cli_say(cmd->help);
        return cmd->run(c, argc, argv);
}
