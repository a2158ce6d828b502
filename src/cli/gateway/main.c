/*
 * The account's shell. sshd runs what it forces as it runs any command of an account, by that shell with -c; who would
 * have another command of the account than the one that is forced gets none.
 *
 * The options are for the ForceCommand of another sshd_config than ours: root writes that line, no client.
 */
#include <string.h>
#include <unistd.h>

#include "cli/cli_opts.h"
#include "cli/gateway/gateway.h"
#include "common/exitcode.h"

#define NAME "hermes-sandbox-ssh-gateway"
/* Of a ForceCommand, without its end. */
#define WORDS_MAX 8

enum { OPT_HELP, OPT_KEYS, OPT_SOCKET };

static const struct cli_opt opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "keys", 0, true, OPT_KEYS },
        { "socket", 0, true, OPT_SOCKET },
        { .name = "" },
};

static const char help[] = "usage: " NAME " [--keys FILE] [--socket PATH]\n"
                           "       " NAME " -c '" LIBEXEC "/" NAME " [--keys FILE] [--socket PATH]'\n"
                           "\n"
                           "Run by sshd as the ForceCommand and the shell of the ssh gateway: " NAME
                           "(8).\n";

/* The words of @command, which are what blanks part, in @ret, with room for WORDS_MAX and a NULL; they replace @command.
 * Returns how many, or 0: it does not run this program. */
static int forced_words(char *command, char **ret) {
        char *save = NULL, *name;
        int n = 0;

        for (char *w = strtok_r(command, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
                if (n == WORDS_MAX)
                        return 0;
                ret[n++] = w;
        }
        ret[n] = NULL;
        name = n > 0 ? strrchr(ret[0], '/') : NULL;
        return name && strcmp(name + 1, NAME) == 0 ? n : 0;
}

int main(int argc, char **argv) {
        char *words[WORDS_MAX + 1];
        struct gateway g = {
                .cli = {
                        .libexec = LIBEXEC,
                        .system_socket = "/run/hermes-sandbox/pool.sock",
                        .systemd_dir = "/run/systemd/system",
                        .group_file = "/etc/group",
                        .socket = "/run/hermes-sandbox/pool.sock",
                },
                .keys = "/etc/hermes-sandbox/ssh/authorized_keys",
        };
        const char *value;
        struct cli_opts o;
        struct errmsg e;
        int id;

        if (argc == 3 && strcmp(argv[1], "-c") == 0) {
                argc = forced_words(argv[2], words);
                argv = words;
                if (argc == 0) {
                        cli_error(
                                "this account runs commands in sandboxes alone: sshd_config has to have the "
                                "ForceCommand of " NAME "(8)");
                        return EXIT_NOT_ALLOWED;
                }
        }
        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, opts, &value, &e)) >= 0)
                if (id == OPT_HELP)
                        return cli_say(help);
                else if (id == OPT_KEYS)
                        g.keys = value;
                else
                        g.cli.socket = value;
        if (id != CLI_OPTS_END || o.next < argc) {
                cli_error("%s: see " NAME "(8)", id == CLI_OPTS_END ? "unexpected argument" : e.text);
                return EXIT_USAGE;
        }
        return gateway_run(&g, environ);
}
