/*
 * exec [options] CMD. Options end at the first operand, so that whatever follows belongs to the command.
 * One operand is a line for the shell; two or more, or any after "--", are the command's own words.
 */
#include "cli/cli_exec_args.h"

#include <errno.h>
#include <string.h>

#include "cli/cli_opts.h"
#include "cli/cli_words.h"

static const char *env[PROTO_ENV_MAX];

enum {
        OPT_HELP,
        OPT_PROFILE,
        OPT_SESSION,
        OPT_OPEN,
        OPT_DETACH,
        OPT_ENV,
        OPT_WORKDIR,
        OPT_STDIN,
        OPT_TTY,
        OPT_TIMEOUT,
        OPT_USER,
        OPT_SCRIPT,
        OPT_JSON
};

static const struct cli_opt exec_opts[] = {
        { "help", 'h', false, OPT_HELP },      { "profile", 0, true, OPT_PROFILE },
        { "session", 0, true, OPT_SESSION },   { "open", 0, false, OPT_OPEN },
        { "detach", 'd', false, OPT_DETACH },  { "env", 'e', true, OPT_ENV },
        { "workdir", 'w', true, OPT_WORKDIR }, { "stdin", 'i', false, OPT_STDIN },
        { "tty", 't', false, OPT_TTY },        { "timeout", 0, true, OPT_TIMEOUT },
        { "user", 'u', true, OPT_USER },       { "script", 0, true, OPT_SCRIPT },
        { "json", 0, false, OPT_JSON },        { .name = "" },
};

static int add_env(struct cli_exec_args *a, const char *s, char **environ_list, struct errmsg *e) {
        const char *entry;
        int r = cli_parse_env("exec", s, environ_list, &entry, e);

        if (r < 0 || !entry)
                return r;
        if (a->request.n_env >= PROTO_ENV_MAX)
                return errmsg_set(e, -EINVAL, "exec: more than %d times -e", PROTO_ENV_MAX);
        env[a->request.n_env++] = entry;
        return 0;
}

static int take_option(struct cli_exec_args *a, int id, const char *value, char **environ_list,
                       struct errmsg *e) {
        switch (id) {
        case OPT_HELP:
                a->help = true;
                return 0;
        case OPT_PROFILE:
                a->request.profile = value;
                return cli_check_profile("exec", value, e);
        case OPT_SESSION:
                a->request.session = value;
                return cli_check_session("exec", value, e);
        case OPT_OPEN:
                a->request.open = true;
                return 0;
        case OPT_DETACH:
                a->request.detach = true;
                return 0;
        case OPT_ENV:
                return add_env(a, value, environ_list, e);
        case OPT_WORKDIR:
                a->request.workdir = value;
                return cli_check_workdir("exec", value, e);
        case OPT_STDIN:
                a->input = true;
                return 0;
        case OPT_TTY:
                a->request.tty = true;
                return 0;
        case OPT_TIMEOUT:
                return cli_parse_time("exec", "--timeout", value, &a->request.timeout_ms, e);
        case OPT_USER:
                a->request.user = true;
                return cli_parse_user("exec", "--user", value, &a->request.uid, &a->request.gid, e);
        case OPT_SCRIPT:
                a->script = value;
                return 0;
        default:
                a->json = true;
                return 0;
        }
}

/* What does not go together. */
static int check_options(struct cli_exec_args *a, struct errmsg *e) {
        struct exec_request *r = &a->request;

        if ((r->open || r->detach) && r->session[0] == '\0')
                return errmsg_set(e, -EINVAL, "exec: %s is for a session: give --session NAME, too",
                                  r->detach ? "--detach" : "--open");
        if (r->detach && (a->input || r->tty))
                return errmsg_set(e, -EINVAL,
                                  "exec: --detach and %s: nobody is there to type, expected one of them",
                                  r->tty ? "-t" : "-i");
        if (r->tty && a->json)
                return errmsg_set(e, -EINVAL, "exec: -t and --json: expected one of them");
        return 0;
}

/* A program on a terminal wants to know which. One that -e gave stands first and says more. */
static void add_term(struct cli_exec_args *a, char **environ_list) {
        for (uint32_t i = 0; i < a->request.n_env; i++)
                if (strncmp(env[i], "TERM=", 5) == 0)
                        return;
        for (char **p = environ_list; *p && a->request.n_env < PROTO_ENV_MAX; p++)
                if (strncmp(*p, "TERM=", 5) == 0) {
                        env[a->request.n_env++] = *p;
                        return;
                }
}

int cli_exec_args_parse(struct cli_exec_args *a, int argc, char **argv, char **environ_list,
                        struct errmsg *e) {
        struct cli_opts o;
        struct errmsg why;
        const char *value;
        int id, r, operands;

        a->help = a->json = a->input = false;
        a->script = NULL;
        memset(&a->request, 0, sizeof(a->request));
        a->request.profile = a->request.workdir = a->request.session = "";
        a->request.env = env;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, exec_opts, &value, &why)) >= 0) {
                r = take_option(a, id, value, environ_list, e);
                if (r < 0)
                        return r;
                if (a->help)
                        return 0;
        }
        if (id != CLI_OPTS_END)
                return errmsg_set(e, -EINVAL, "exec: %s: see hermes-sandbox exec --help", why.text);

        r = check_options(a, e);
        if (r < 0)
                return r;
        /* A terminal always has an input: without -i one that is at its end. */
        a->request.use_stdin = a->input || a->request.tty;
        if (a->request.tty)
                add_term(a, environ_list);

        operands = argc - o.next;
        if (a->script) {
                if (operands > 0)
                        return errmsg_set(e, -EINVAL,
                                          "exec: --script and a command: expected one of them");
                if (a->input && strcmp(a->script, "-") == 0)
                        return errmsg_set(e, -EINVAL, "exec: --script - and -i: both want stdin");
                return 0;
        }
        if (operands < 1)
                return errmsg_set(e, -EINVAL, "exec: no command given: see hermes-sandbox exec --help");
        if (operands > PROTO_ARGS_MAX)
                return errmsg_set(e, -EINVAL, "exec: %d arguments, at most %d", operands,
                                  PROTO_ARGS_MAX);
        a->request.args = (const char **)argv + o.next;
        a->request.n_args = (uint32_t)operands;
        a->request.shell = operands == 1 && !o.dashdash;
        return 0;
}

void cli_exec_args_set_script(struct cli_exec_args *a, const char *text) {
        a->script_arg[0] = text;
        a->request.args = a->script_arg;
        a->request.n_args = 1;
        a->request.shell = true;
}
