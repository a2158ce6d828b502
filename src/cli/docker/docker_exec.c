/* docker exec: what Hermes calls all the time, so nothing here allocates or asks twice. */
#include "cli/docker/docker_exec.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_run.h"
#include "cli/cli_tty.h"
#include "cli/cli_words.h"
#include "cli/docker/docker_ask.h"
#include "cli/docker/docker_words.h"
#include "common/exitcode.h"

#define OCI "OCI runtime exec failed: exec failed: unable to start container process: "

enum { DETACH, DETACH_KEYS, ENV, ENV_FILE, INTERACTIVE, PRIVILEGED, TTY, USER, WORKDIR };

static const struct docker_flag flags[] = {
        { "interactive", 'i', false, INTERACTIVE },
        { "env", 'e', true, ENV },
        { "workdir", 'w', true, WORKDIR },
        { "user", 'u', true, USER },
        { "tty", 't', false, TTY },
        { "detach", 'd', false, DETACH },
        { "detach-keys", 0, true, DETACH_KEYS },
        { "env-file", 0, true, ENV_FILE },
        { "privileged", 0, false, PRIVILEGED },
        { .name = "" },
};

static const char exec_help[] =
        "\n"
        "  -i, --interactive     pass stdin on\n"
        "  -t, --tty             a terminal for the command\n"
        "  -d, --detach          leave it running\n"
        "  -e, --env K[=V]       set a variable; K alone takes its value from here\n"
        "  -w, --workdir DIR     working directory, absolute\n"
        "  -u, --user UID[:GID]  as one of the profile's users\n"
        "\n"
        "refused: --privileged, --env-file, --detach-keys.\n"
        "\n"
        "example:\n"
        "  docker exec -i work sh -c 'cat >/tmp/file' <file\n";

static const char *env[PROTO_ENV_MAX];

const char *docker_env(const char *word, char **environ_list, struct errmsg *e) {
        size_t len = strcspn(word, "=");

        e->text[0] = '\0';
        if (len == 0) {
                errmsg_set(e, 0, "invalid environment variable: %.80s", word);
                return NULL;
        }
        if (word[len] == '=')
                return word;
        for (char **p = environ_list; *p; p++)
                if (strncmp(*p, word, len) == 0 && (*p)[len] == '=')
                        return *p;
        return NULL;
}

/* What keeps a command from starting, in docker's words. */
static int say_not_started(const struct result *r, const struct exec_request *q) {
        const char *program = q->shell ? "sh" : q->args[0];

        if (strncmp(r->message, "exec: working directory", 23) == 0)
                cli_line(OCI "chdir to cwd (\"%.400s\") set in config.json failed: %s: unknown",
                         q->workdir,
                         r->error == ENOENT ? "no such file or directory" : strerror(r->error));
        else if (r->cause == CAUSE_NOT_FOUND && !strchr(program, '/'))
                cli_line(OCI "exec: \"%.400s\": executable file not found in $PATH: unknown", program);
        else if (r->cause == CAUSE_NOT_FOUND)
                cli_line(OCI "exec: \"%.400s\": stat %.400s: no such file or directory: unknown",
                         program, program);
        else if (r->error == EACCES)
                cli_line(OCI "exec: \"%.400s\": permission denied: unknown", program);
        else
                cli_line(OCI "%s: unknown", r->message);
        return r->exit_code;
}

static int say_end(const struct cli_outcome *o, const struct exec_request *q, const char *word,
                   int refused) {
        switch (o->end) {
        case CLI_END_RESULT:
                if (o->result.cause == CAUSE_SANDBOX_LOST) {
                        docker_say_refusal(REJECT_NO_SESSION, "", word);
                        return refused;
                }
                if (o->result.error != 0)
                        return say_not_started(&o->result, q);
                if (o->result.message[0])
                        cli_error("%s", o->result.message);
                return o->exit_code;
        case CLI_END_REJECT:
                docker_say_refusal(o->reject.reason, o->reject.message, word);
                return refused;
        case CLI_END_LOST:
                cli_error("%s", o->error.text);
                return o->exit_code;
        default:
                return o->end == CLI_END_DETACHED ? 0 : o->exit_code;
        }
}

int docker_exec_run(const struct docker *d, struct exec_request *q, bool input, const char *word,
                    int refused) {
        struct cli_way way = {
                .kind = q->detach ? CLI_DETACH : CLI_EXEC,
                .use_stdin = input,
                .no_input = q->tty && !input,
                .tty = q->tty,
        };
        struct cli_outcome o;

        if (q->tty && input && !isatty(STDIN_FILENO)) {
                cli_line("the input device is not a TTY");
                return DOCKER_FAILED;
        }
        if (q->tty) {
                cli_tty_size(&q->rows, &q->cols);
                way.rows = q->rows;
                way.cols = q->cols;
        }
        /* A terminal always has an input: without -i one that is at its end. */
        q->use_stdin = input || q->tty;
        cli_exec_send(&d->cli, q, &way, q->tty ? &cli_terminal_sink : &cli_raw_sink, &o);
        return say_end(&o, q, word, refused);
}

static int take_env(struct exec_request *q, const char *value, struct errmsg *e) {
        const char *pair = docker_env(value, environ, e);

        if (!pair)
                return e->text[0] ? -EINVAL : 0;
        if (q->n_env == PROTO_ENV_MAX)
                return errmsg_set(e, -EINVAL, "exec: --env: more than %d variables", PROTO_ENV_MAX);
        env[q->n_env++] = pair;
        return 0;
}

static int refuse_privileged(const struct docker *d, struct errmsg *e) {
        docker_tell_refused(d, "--privileged");
        return errmsg_set(e, -EPERM, "exec: --privileged: refused: nothing allows it");
}

static int take(const struct docker *d, struct exec_request *q, bool *input, const struct docker_flag *f,
                const char *value, struct errmsg *e) {
        bool on = value == NULL;

        switch (f->id) {
        case INTERACTIVE:
                *input = on;
                return 0;
        case TTY:
                q->tty = on;
                return 0;
        case DETACH:
                q->detach = on;
                return 0;
        case ENV:
                return take_env(q, value, e);
        case WORKDIR:
                if (value[0] != '/' || strlen(value) > PROTO_PATH_MAX)
                        return errmsg_set(
                                e, -EINVAL,
                                "exec: the working directory '%.80s' is invalid, it needs to be an "
                                "absolute path",
                                value);
                q->workdir = value;
                return 0;
        case USER:
                q->user = true;
                return cli_parse_user("exec", "--user", value, &q->uid, &q->gid, e);
        case PRIVILEGED:
                return on ? refuse_privileged(d, e) : 0;
        default:
                return errmsg_set(e, -EINVAL, "exec: --%s: hermes-sandbox's docker does not take it",
                                  f->name);
        }
}

int docker_exec(const struct docker *d, int argc, char **argv) {
        struct exec_request q = { 0 };
        struct docker_words w;
        struct errmsg e;
        const char *value, *word;
        bool input = false;
        int i;

        q.profile = q.workdir = q.session = "";
        q.env = env;
        docker_words_init(&w, argc, argv, false);
        while ((i = docker_words_next(&w, flags, sizeof(flags[0]), &value, &e)) >= 0)
                if (take(d, &q, &input, &flags[i], value, &e) < 0) {
                        cli_error("%s", e.text);
                        return DOCKER_USAGE;
                }
        if (i == DOCKER_WORDS_HELP)
                return docker_help("exec", exec_help);
        if (i == DOCKER_WORDS_BAD)
                return docker_bad_words("exec", &e);
        if (argc - w.next < 2)
                return docker_too_few("exec", 2);
        word = argv[w.next++];
        if (word[0] == '\0' || strlen(word) > PROTO_NAME_MAX) {
                docker_say_refusal(REJECT_NO_SESSION, "", word);
                return DOCKER_FAILED;
        }
        if (argc - w.next > PROTO_ARGS_MAX) {
                cli_error("exec: %d arguments, at most %d", argc - w.next, PROTO_ARGS_MAX);
                return DOCKER_USAGE;
        }
        if (q.detach)
                input = q.tty = false;
        q.session = word;
        q.args = (const char **)argv + w.next;
        q.n_args = (uint32_t)(argc - w.next);
        return docker_exec_run(d, &q, input, word, DOCKER_FAILED);
}
