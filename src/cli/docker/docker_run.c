/*
 * docker run -d opens a session; docker run --rm runs one command: in a warm sandbox, one-shot, where nothing is asked
 * for but what the profile is, else in a session of its own, which is closed at the end, however that comes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/docker/docker_ask.h"
#include "cli/docker/docker_child.h"
#include "cli/docker/docker_copy.h"
#include "cli/docker/docker_exec.h"
#include "cli/docker/docker_judge.h"
#include "common/cleanup.h"
#include "common/escape.h"
#include "common/exitcode.h"

/* A session for one command: if we are killed, the manager closes it so soon. */
#define ONE_COMMAND_TTL_MS 60000

static int say_table(void) {
        static char buf[32768];
        struct text t;

        text_init(&t, buf, sizeof(buf));
        text_addf(&t, "\nflags, and what becomes of each:\n\n");
        for (const struct run_flag *f = run_flags; f->f.name[0]; f++) {
                if (f->f.letter)
                        text_addf(&t, "  -%c, ", f->f.letter);
                else
                        text_addf(&t, "      ");
                text_addf(&t, "--%-22s%-8s %s\n", f->f.name, run_flag_decision(f), f->text);
        }
        return docker_help("run", buf);
}

static int refuse(const char *message) {
        cli_error("%s", message);
        return DOCKER_USAGE;
}

/* A refusal of ours: the manager has it in its trails, where it is one of those. */
static int refuse_flag(const struct docker *d, int how, const char *flag, const struct errmsg *e) {
        if (how == -EACCES)
                docker_tell_refused(d, flag);
        return refuse(e->text);
}

/* What the manager says to an OPEN. */
static int refuse_open(const struct docker *d, const char *name, const struct docker_answer *a) {
        struct docker_answer other;
        struct session_info s = { .id = "" };
        bool known;

        if (a->reason != REJECT_NAME_TAKEN)
                return refuse(a->error.text);
        known = docker_ask_session(d, name, &other, &s) == 0;
        cli_error(
                "Error response from daemon: Conflict. The container name \"/%s\" is already in use by "
                "container \"%s\". You have to remove (or rename) that container to be able to reuse that "
                "name.",
                name, known ? s.id : "");
        cli_line("See 'docker run --help'.");
        docker_answer_done(&other);
        return DOCKER_USAGE;
}

/* 0 and the session in @ret, or an exit status. */
static int open_session(const struct docker *d, const struct run_words *r, struct open_request *q,
                        struct docker_answer *a, struct session_info *ret) {
        _cleanup_fd_ int fd = -1;
        struct errmsg e;

        if (r->mounts.n > 0 &&
            (cli_mounts_open(&r->mounts, "--volume", &fd, &e) != 0 || run_files_link(r, &e) != 0)) {
                memset(a, 0, sizeof(*a));
                return refuse(e.text);
        }
        q->mounts = fd >= 0;
        if (docker_ask_open(d, q, fd, a) != 0)
                return refuse_open(d, r->name, a);
        return docker_answer_session(a, ret) == 1 ? 0
                                                  : refuse("protocol error: the manager says nothing");
}

/* --- what a session has from the beginning, and its end ----------------------------------------------- */

/* What is done in a session that was opened here. */
struct in_session {
        const struct docker *d;
        const struct run_words *r;
        const struct open_request *o;
        const char *name;
        const struct run_file *file; /* that is put there now */
};

static int put_file(void *userdata) {
        const struct in_session *in = userdata;

        return run_file_put(in->d, in->file, in->name);
}

static int make_workdir(void *userdata) {
        const struct in_session *in = userdata;

        return run_workdir_make(in->d, in->r->workdir, in->name);
}

/* With signals held: what there has to be before a command. 0, or what waitpid(2) says of the child that could not do it. */
static int furnish(struct in_session *in, const sigset_t *before) {
        int status = 0;

        for (int i = 0; i < in->r->n_files && status == 0; i++) {
                in->file = &in->r->files[i];
                status = docker_in_child(put_file, in, before);
        }
        if (status == 0 && in->r->make_workdir)
                status = docker_in_child(make_workdir, in, before);
        return status;
}

static void close_session(const struct docker *d, const char *name) {
        const struct ask q = { .op = ASK_SESSION_CLOSE, .name = name };
        struct docker_answer a;

        /* One that is gone already is what was wanted. */
        if (docker_ask(d, &q, &a) != 0 && a.reason != REJECT_NO_SESSION)
                cli_error("%s", a.error.text);
        docker_answer_done(&a);
}

/* --- run -d ------------------------------------------------------------------------------------------- */

/* What docker's callers give a container that shall only be there. */
static bool is_idle(const struct run_words *r) {
        static const char *const idle[][4] = { { "sleep", "infinity" },
                                               { "sleep", "inf" },
                                               { "tail", "-f", "/dev/null" } };

        for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++) {
                int n = 0;

                while (n < r->n_command && idle[i][n] && strcmp(r->command[n], idle[i][n]) == 0)
                        n++;
                if (n == r->n_command && !idle[i][n])
                        return true;
        }
        return r->n_command == 0;
}

/* All of it, or no session. An exit status. */
static int fill(const struct docker *d, const struct run_words *r, const char *name) {
        struct in_session in = { d, r, NULL, name, NULL };
        sigset_t before;
        int status;

        if (r->n_files == 0 && !r->make_workdir)
                return 0;
        docker_hold_signals(&before);
        status = furnish(&in, &before);
        if (status != 0)
                close_session(d, name);
        return docker_end_as(status, &before);
}

static int run_detached(const struct docker *d, const struct run_words *r, struct open_request *q) {
        struct docker_answer a;
        struct session_info s;
        char line[PROTO_CONTAINER_ID + 2];
        int code = open_session(d, r, q, &a, &s);

        if (code == 0)
                code = fill(d, r, s.name);
        if (code == 0) {
                snprintf(line, sizeof(line), "%s\n", s.id);
                code = cli_say(line);
        }
        docker_answer_done(&a);
        return code;
}

/* --- run --rm ----------------------------------------------------------------------------------------- */

static int run_command(const struct docker *d, const struct run_words *r, const struct open_request *o,
                       const char *session) {
        struct exec_request q = {
                .tty = r->tty,
                .profile = session[0] ? "" : o->profile,
                .workdir = session[0] ? "" : o->workdir,
                .session = session,
                .args = (const char **)r->command,
                .n_args = (uint32_t)r->n_command,
                .env = o->env,
                .n_env = session[0] ? 0 : o->n_env,
        };

        return docker_exec_run(d, &q, r->input, session, DOCKER_USAGE);
}

static int command_in_child(void *userdata) {
        const struct in_session *in = userdata;

        return run_command(in->d, in->r, in->o, in->name);
}

static int run_in_session(const struct docker *d, const struct run_words *r, struct open_request *o) {
        char name[PROTO_NAME_MAX + 1];
        struct in_session in = { d, r, o, name, NULL };
        struct docker_answer a;
        struct session_info s;
        sigset_t before;
        int status;

        o->ttl_ms = ONE_COMMAND_TTL_MS;
        status = open_session(d, r, o, &a, &s);
        if (status == 0)
                snprintf(name, sizeof(name), "%s", s.name);
        docker_answer_done(&a);
        if (status != 0)
                return status;
        docker_hold_signals(&before);
        status = furnish(&in, &before);
        if (status == 0)
                status = docker_in_child(command_in_child, &in, &before);
        close_session(d, name);
        return docker_end_as(status, &before);
}

/* --- both --------------------------------------------------------------------------------------------- */

/* Whether these words go together; 0, or an exit status. */
static int check(const struct run_words *r) {
        if (!r->image)
                return docker_too_few("run", 1);
        if (r->detach && !is_idle(r))
                return refuse(
                        "run -d opens a session, and its command is sleep infinity, tail -f /dev/null or "
                        "none: run what shall run in it with docker exec -d");
        if (!r->detach && !r->remove)
                return refuse(
                        "run without -d and without --rm is not done here: -d opens a session, --rm "
                        "runs one command");
        if (!r->detach && r->n_command == 0)
                return refuse(
                        "run --rm: no command: what an image itself would start is not started here");
        if (!r->detach && r->n_command > PROTO_ARGS_MAX)
                return refuse("run --rm: more than 4096 arguments");
        return 0;
}

static bool is_one_shot(const struct run_words *r, const struct open_request *q) {
        return narrow_is_empty(&q->narrow) && r->mounts.n == 0 && r->n_files == 0 && !r->make_workdir &&
               r->name[0] == '\0';
}

static int run(const struct docker *d, struct run_words *r) {
        struct docker_answer a;
        struct image_info p;
        struct open_request q;
        struct errmsg e;
        const char *flag;
        int code = docker_ask_profile(d, d->profile, false, &a, &p);

        if (code != 0) {
                docker_answer_done(&a);
                return refuse(a.error.text);
        }
        code = run_judge(r, &p, &q, &flag, &e);
        if (code < 0)
                code = refuse_flag(d, code, flag, &e);
        else if (run_files_read(r, &e) < 0)
                code = refuse(e.text);
        else {
                run_warn(r, &p);
                code = r->detach            ? run_detached(d, r, &q)
                       : is_one_shot(r, &q) ? run_command(d, r, &q, "")
                                            : run_in_session(d, r, &q);
        }
        docker_answer_done(&a);
        return code;
}

/* 0, or an exit status in *ret. */
static bool parse(const struct docker *d, struct run_words *r, int argc, char **argv, int *ret) {
        struct errmsg e;
        char flag[PROTO_NAME_MAX];
        int code = run_words_parse(r, argc, argv, &e);

        switch (code) {
        case 0:
                return true;
        case DOCKER_WORDS_HELP:
                *ret = say_table();
                return false;
        case DOCKER_WORDS_BAD:
                *ret = docker_bad_words(argv[0], &e);
                return false;
        default:
                snprintf(flag, sizeof(flag), "--%s", r->refused->f.name);
                *ret = refuse_flag(d, code, flag, &e);
                return false;
        }
}

/* What the words point to is there for as long as the program runs. */
static struct run_words words;

int docker_run(const struct docker *d, int argc, char **argv) {
        int code;

        if (!parse(d, &words, argc, argv, &code))
                return code;
        code = check(&words);
        return code != 0 ? code : run(d, &words);
}

/* Hermes makes one with --storage-opt to see whether there are disk quotas: there are none. */
int docker_create(const struct docker *d, int argc, char **argv) {
        int code;

        if (!parse(d, &words, argc, argv, &code))
                return code;
        cli_error(words.storage
                          ? "create: --storage-opt: refused: no disk quota: what a sandbox writes is in "
                            "memory, and the sizes of its tmpfs bound it"
                          : "create: what is made runs at once here: docker run -d opens a session");
        return DOCKER_FAILED;
}
