/* The options are for the ForceCommand of another sshd_config than ours: root writes that line, no client. */
#include <string.h>
#include <unistd.h>

#include "cli/cli_opts.h"
#include "cli/gateway/gateway.h"
#include "common/exitcode.h"

enum { OPT_HELP, OPT_KEYS, OPT_SOCKET };

static const struct cli_opt opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "keys", 0, true, OPT_KEYS },
        { "socket", 0, true, OPT_SOCKET },
        { .name = "" },
};

static const char help[] =
        "usage: hermes-sandbox-ssh-gateway [--keys FILE] [--socket PATH]\n"
        "\n"
        "Run by sshd as the ForceCommand of the ssh gateway: hermes-sandbox-ssh-gateway(8).\n";

int main(int argc, char **argv) {
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

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, opts, &value, &e)) >= 0)
                if (id == OPT_HELP)
                        return cli_say(help);
                else if (id == OPT_KEYS)
                        g.keys = value;
                else
                        g.cli.socket = value;
        if (id != CLI_OPTS_END || o.next < argc) {
                cli_error("%s: see hermes-sandbox-ssh-gateway(8)",
                          id == CLI_OPTS_END ? "unexpected argument" : e.text);
                return EXIT_USAGE;
        }
        return gateway_run(&g, environ);
}
