/* The words: a table of commands, one of options for each. */
#include "cli/ssh/ssh.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_sshkey.h"
#include "common/escape.h"
#include "common/exitcode.h"

static const char help[] =
        "usage: hermes-sandbox ssh enable [--listen ADDR[:PORT]]... [--no-systemd]\n"
        "       hermes-sandbox ssh disable [--no-systemd]\n"
        "       hermes-sandbox ssh status\n"
        "       hermes-sandbox ssh add-key [--profile P] [--ttl D] [--name N] FILE\n"
        "       hermes-sandbox ssh remove-key NAME|FINGERPRINT\n"
        "       hermes-sandbox ssh list-keys [--json]\n"
        "\n"
        "The ssh gateway: whoever holds a key that is in its list logs in as hermes-ssh, and each\n"
        "command runs in the session of that key, in a sandbox. There is nothing else to be had.\n"
        "\n"
        "enable:     writes sshd's configuration, makes the host key once, and starts it, on\n"
        "            127.0.0.1:2222 or where --listen says. Said again, it changes what has changed.\n"
        "disable:    stops it and ends its connections; keys and host key stay.\n"
        "add-key:    takes a public key (-: from stdin). One that is there gets what is said anew.\n"
        "remove-key: from the next command on.\n"
        "\n"
        "options:\n"
        "  --listen ADDR[:PORT]  an address of this machine in numbers; may be given 16 times\n"
        "  --no-systemd          start sshd itself, also where systemd runs\n"
        "  --profile P           of the key's session (default: default)\n"
        "  --ttl D               closed when nothing ran in it for D: 30m, 8h, 1d (default: the profile's)\n"
        "  --name N              of the key, for you (default: what its comment says)\n"
        "  --json                list-keys: JSON\n"
        "\n"
        "examples:\n"
        "  sudo hermes-sandbox ssh enable\n"
        "  sudo hermes-sandbox ssh add-key --profile hermes ~hermes/.ssh/id_ed25519.pub\n"
        "  ssh -p 2222 hermes-ssh@127.0.0.1 'id; uname -a'\n";

enum { OPT_HELP, OPT_LISTEN, OPT_NO_SYSTEMD, OPT_PROFILE, OPT_TTL, OPT_NAME, OPT_JSON };

#define HELP \
        { "help", 'h', false, OPT_HELP }
#define NO_SYSTEMD \
        { "no-systemd", 0, false, OPT_NO_SYSTEMD }
#define END \
        { .name = "" }

static const struct cli_opt enable_opts[] = { HELP, NO_SYSTEMD, { "listen", 0, true, OPT_LISTEN }, END };
static const struct cli_opt disable_opts[] = { HELP, NO_SYSTEMD, END };
static const struct cli_opt key_opts[] = { HELP,
                                           { "profile", 0, true, OPT_PROFILE },
                                           { "ttl", 0, true, OPT_TTL },
                                           { "name", 0, true, OPT_NAME },
                                           END };
static const struct cli_opt list_opts[] = { HELP, { "json", 0, false, OPT_JSON }, END };
static const struct cli_opt no_opts[] = { HELP, END };

static const struct command {
        const char *name;
        const struct cli_opt *opts;
        bool root;
        const char *operand; /* what it is, or NULL */
        int (*run)(const struct ssh_places *p, const struct ssh_words *w);
} commands[] = {
        { "enable", enable_opts, true, NULL, ssh_enable },
        { "disable", disable_opts, true, NULL, ssh_disable },
        { "status", no_opts, false, NULL, ssh_status },
        { "add-key", key_opts, true, "the file of a public key, or -", ssh_add_key },
        { "remove-key", no_opts, true, "the name or the fingerprint of a key", ssh_remove_key },
        { "list-keys", list_opts, false, NULL, ssh_list_keys },
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

int ssh_fail(int code, const char *fmt, ...) {
        char raw[1024], shown[4 * sizeof(raw) + 1];
        struct text t;
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(raw, sizeof(raw), fmt, ap);
        va_end(ap);
        text_init(&t, shown, sizeof(shown));
        text_add_shown(&t, raw, strlen(raw));
        fflush(stdout);
        fprintf(stderr, SSH_PROGRAM ": %s\n", shown);
        return code;
}

static int take_listen(struct ssh_words *w, const char *value, struct errmsg *e) {
        if (w->n_listen == SSH_LISTEN_MAX)
                return errmsg_set(e, -EINVAL, "more than %d times --listen", SSH_LISTEN_MAX);
        return ssh_listen_parse(value, &w->listen[w->n_listen++], e);
}

/* A name of a profile stands between blanks in the key's line. */
static bool is_profile(const char *s) {
        return s[0] != '\0' && strlen(s) <= PROTO_NAME_MAX &&
               strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") ==
                       strlen(s);
}

static int take_option(struct ssh_words *w, int id, const char *value, struct errmsg *e) {
        uint64_t ms;

        switch (id) {
        case OPT_LISTEN:
                return take_listen(w, value, e);
        case OPT_NO_SYSTEMD:
                w->no_systemd = true;
                return 0;
        case OPT_PROFILE:
                w->profile = value;
                return is_profile(value)
                               ? 0
                               : errmsg_set(e, -EINVAL,
                                            "--profile '%.80s': expected the name of a profile, 1 to "
                                            "%d of A-Z a-z 0-9 _ . -",
                                            value, PROTO_NAME_MAX);
        case OPT_TTL:
                w->ttl = value;
                return cli_parse_duration(value, &ms) == 0
                               ? 0
                               : errmsg_set(
                                         e, -EINVAL,
                                         "--ttl '%.80s': expected such as 90s, 30m, 8h or 1d, at most a year",
                                         value);
        case OPT_NAME:
                w->name = value;
                return sshkey_name_valid(value)
                               ? 0
                               : errmsg_set(e, -EINVAL,
                                            "--name '%.80s': expected 1 to %d of A-Z a-z 0-9 _ "
                                            ". @ -, not beginning with - or .",
                                            value, SSHKEY_NAME_MAX);
        default:
                w->json = true;
                return 0;
        }
}

/* 0, 1: --help, or -EINVAL and a line in *e. */
static int parse(const struct command *c, int argc, char **argv, struct ssh_words *w, struct errmsg *e) {
        struct cli_opts o;
        const char *value;
        int id, most = c->operand ? 1 : 0;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, c->opts, &value, e)) >= 0) {
                if (id == OPT_HELP)
                        return 1;
                if (take_option(w, id, value, e) < 0)
                        return -EINVAL;
        }
        if (id != CLI_OPTS_END)
                return -EINVAL;
        if (o.n_operands > most)
                return errmsg_set(e, -EINVAL, "unexpected argument '%.80s'", argv[1 + most]);
        if (o.n_operands < most)
                return errmsg_set(e, -EINVAL, "expected %s", c->operand);
        w->operand = most ? argv[1] : NULL;
        return 0;
}

static int finish(int code) {
        if (fflush(stdout) != 0 || ferror(stdout))
                return ssh_fail(EXIT_OS, "cannot write to stdout");
        return code;
}

int ssh_main(const struct ssh_places *p, int argc, char **argv) {
        const struct command *c = commands;
        struct ssh_words w = { 0 };
        struct errmsg e;
        int r;

        if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
                fputs(help, stdout);
                return finish(0);
        }
        while (argc > 1 && c < commands + N_COMMANDS && strcmp(c->name, argv[1]) != 0)
                c++;
        if (argc < 2 || c == commands + N_COMMANDS)
                return ssh_fail(EXIT_USAGE,
                                "expected enable, disable, status, add-key, remove-key or list-keys: "
                                "see " SSH_PROGRAM " --help");
        w.command = c->name;
        r = parse(c, argc - 1, argv + 1, &w, &e);
        if (r < 0)
                return ssh_fail(EXIT_USAGE, "%s: %s: see " SSH_PROGRAM " --help", c->name, e.text);
        if (r > 0) {
                fputs(help, stdout);
                return finish(0);
        }
        if (c->root && geteuid() != p->root)
                return ssh_fail(EXIT_NOT_ALLOWED, "%s is root's: sudo " SSH_PROGRAM " %s", c->name,
                                c->name);
        return finish(c->run(p, &w));
}
