/*
 * The command is tried first, as the session is there for all but the first of many. What the manager then says is
 * missing is brought, and it is tried again: with the same input, of which nothing that came along is lost. Many channels
 * of one key may find no session at the same time: one of them opens it, and the others hear that it is there.
 */
#include "cli/gateway/gateway.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_run.h"
#include "cli/cli_tty.h"
#include "common/exitcode.h"
#include "common/frame.h"
#include "common/proto_open.h"

/* A session may end between the moment that it was opened and the command, but not again and again. */
#define TRIES 8

static const char *const shells[] = { "/bin/bash", "/bin/sh" };
#define N_SHELLS (sizeof(shells) / sizeof(shells[0]))

struct login {
        const struct gateway *g;
        struct gw_who who;
        struct exec_request request;
        struct cli_way way;
        const char *args[3], *env[GW_ENV_MAX];
        const char *said; /* the client's command; NULL: a login shell */
        unsigned shell;   /* in shells */
};

/* They are too large for the stack. */
static struct cli_conn conn;
static struct cli_input input;
static uint8_t payload[PROTO_EXEC_MAX];

static int refuse(int code, const char *text) {
        cli_error("%s", text);
        return code;
}

/* The session is opened. 0, also where another channel was faster, or the exit status. */
static int open_session(struct login *l) {
        const struct open_request open = {
                .form = ANSWER_RECORDS,
                .name = l->who.session,
                .profile = l->who.key.profile,
                .image = "",
                .workdir = "",
                .ttl_ms = l->who.key.ttl_ms,
        };
        ssize_t len = open_request_encode(&open, payload, sizeof(payload));
        struct errmsg e;
        uint8_t reason;
        int r;

        if (len < 0)
                return refuse(EXIT_SANDBOX, "the session's request does not fit");
        r = gw_ask(l->g, &l->who, &conn, FRAME_OPEN, payload, (size_t)len, &reason, &e);
        return r == 0 || reason == REJECT_NAME_TAKEN ? 0 : refuse(r, e.text);
}

static int start_session(struct login *l) {
        const struct ask start = { .op = ASK_SESSION_START, .name = l->who.session, .profile = "" };
        ssize_t len = ask_encode(&start, payload, sizeof(payload));
        struct errmsg e;
        uint8_t reason;
        int r;

        if (len < 0)
                return refuse(EXIT_SANDBOX, "the session's request does not fit");
        r = gw_ask(l->g, &l->who, &conn, FRAME_ASK, payload, (size_t)len, &reason, &e);
        /* It may have been closed meanwhile: the command will say so. */
        return r == 0 || reason == REJECT_NO_SESSION ? 0 : refuse(r, e.text);
}

static void run_once(struct login *l, struct cli_outcome *o, struct errmsg *e) {
        ssize_t len;
        int r;

        l->request.args = l->args;
        l->request.n_args = gw_command(shells[l->shell], l->said, l->args);
        len = exec_request_encode(&l->request, payload, sizeof(payload));
        if (len < 0) {
                errmsg_set(e, 0, "the command has more than %u bytes", PROTO_EXEC_MAX);
                cli_outcome_refused(o, EXIT_USAGE, e->text);
                return;
        }
        r = cli_conn_open(&conn, &l->g->cli, e);
        if (r != 0) {
                cli_outcome_refused(o, r, e->text);
                return;
        }
        conn.gateway = l->who.hello;
        r = cli_conn_request(&conn, FRAME_EXEC, payload, (size_t)len);
        if (r < 0) {
                errmsg_set(e, 0, "cannot send to the manager: %s", strerror(-r));
                cli_outcome_refused(o, EXIT_SANDBOX, e->text);
        } else
                cli_run_way(&conn, &l->way, l->way.tty ? &cli_terminal_sink : &cli_raw_sink, o);
        close(conn.fd);
}

/* The image has no such shell, and another one was not tried yet. */
static bool next_shell(struct login *l, const struct cli_outcome *o) {
        if (o->end != CLI_END_RESULT || o->result.cause != CAUSE_NOT_FOUND || input.lost ||
            l->shell + 1 == N_SHELLS)
                return false;
        l->shell++;
        l->env[0] = "SHELL=/bin/sh";
        return true;
}

/* True: what was missing is there now, *ret_code is 0; or it cannot be had, *ret_code is the exit status. */
static bool bring(struct login *l, const struct cli_outcome *o, int *ret_code) {
        if (o->end != CLI_END_REJECT || o->started)
                return false;
        if (o->reject.reason == REJECT_NO_SESSION)
                *ret_code = open_session(l);
        else if (o->reject.reason == REJECT_STOPPED)
                *ret_code = start_session(l);
        else
                return false;
        return true;
}

static int run(struct login *l) {
        for (int tries = 0;; tries++) {
                struct cli_outcome o;
                struct errmsg e;
                int code = 0;

                if (gw_hung_up())
                        return EXIT_SIGNAL + SIGHUP;
                run_once(l, &o, &e);
                if (next_shell(l, &o))
                        continue;
                if (tries < TRIES && bring(l, &o, &code)) {
                        if (code != 0)
                                return code;
                        continue;
                }
                cli_outcome_say(&o);
                return o.exit_code;
        }
}

/* sshd may have been started by somebody who had other plans for them. */
static void reset_signals(void) {
        static const int all[] = {
                SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP
        };
        sigset_t none;

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                signal(all[i], SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

int gateway_run(const struct gateway *g, char **env) {
        struct login l = { .g = g, .said = gw_env_get(env, "SSH_ORIGINAL_COMMAND") };
        struct errmsg e;
        int r;

        reset_signals();
        r = gw_who_find(g, env, &l.who, &e);
        if (r != 0)
                return refuse(r, e.text);
        l.way = (struct cli_way){
                .kind = CLI_EXEC,
                .use_stdin = true,
                .tty = isatty(STDIN_FILENO),
                .watch = true,
                .input = &input,
        };
        l.request = (struct exec_request){
                .use_stdin = true,
                .tty = l.way.tty,
                .profile = "",
                .workdir = "",
                .session = l.who.session,
                .env = l.env,
        };
        if (l.way.tty && cli_tty_size(&l.request.rows, &l.request.cols)) {
                l.way.rows = l.request.rows;
                l.way.cols = l.request.cols;
        }
        l.request.n_env = gw_env_make(env, l.way.tty, l.env);
        return run(&l);
}
