/* docker start, stop and rm: each container by itself, and what could not be done of them at the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/docker/docker_ask.h"
#include "cli/docker/docker_words.h"

/* docker's, from TERM to KILL; and the longest that is taken. */
#define GRACE_S 10
#define GRACE_MAX_S 3600

/* One request on what @word names. Returns 0, or the exit status with which it was refused. */
static int ask_on(const struct docker *d, uint16_t op, const char *word, uint64_t grace_ms,
                  struct docker_answer *ret) {
        const struct ask q = { .op = op, .name = word, .grace_ms = grace_ms };

        if (word[0] == '\0' || strlen(word) > PROTO_NAME_MAX) {
                memset(ret, 0, sizeof(*ret));
                ret->reason = REJECT_NO_SESSION;
                return DOCKER_FAILED;
        }
        return docker_ask(d, &q, ret);
}

static int say_word(const char *word) {
        char line[PROTO_NAME_MAX + 2];
        size_t len = strlen(word);

        memcpy(line, word, len);
        memcpy(line + len, "\n", 2);
        return cli_say(line);
}

/* Prints the word where it could be done, and says why where not. */
static int do_on(const struct docker *d, uint16_t op, const char *word, uint64_t grace_ms) {
        struct docker_answer a;
        int r = ask_on(d, op, word, grace_ms, &a);

        if (r == 0)
                r = say_word(word);
        else {
                docker_say_refusal(a.reason, a.error.text, word);
                r = DOCKER_FAILED;
        }
        docker_answer_done(&a);
        return r;
}

/* What is on no flag's side: help and bad words. True: *ret is the exit status. */
static bool is_over(const char *command, int i, const char *help, const struct docker_words *w,
                    const struct errmsg *e, int *ret) {
        if (i == DOCKER_WORDS_HELP)
                *ret = docker_help(command, help);
        else if (i == DOCKER_WORDS_BAD)
                *ret = docker_bad_words(command, e);
        else if (w->n_operands == 0)
                *ret = docker_too_few(command, 1);
        else
                return false;
        return true;
}

/* --- start ---------------------------------------------------------------------------------------------- */

int docker_start(const struct docker *d, int argc, char **argv) {
        static const struct docker_flag flags[] = { { .name = "" } };
        struct docker_words w;
        struct errmsg e;
        const char *value;
        int i, code = 0;

        docker_words_init(&w, argc, argv, true);
        i = docker_words_next(&w, flags, sizeof(flags[0]), &value, &e);
        if (is_over("start", i, NULL, &w, &e, &code))
                return code;
        for (i = 1; i <= w.n_operands; i++)
                if (do_on(d, ASK_SESSION_START, argv[i], 0) != 0) {
                        code = DOCKER_FAILED;
                        cli_line("Error: failed to start containers: %s", argv[i]);
                }
        return code;
}

/* --- stop ----------------------------------------------------------------------------------------------- */

/* Seconds; -1 is docker's "for ever". */
static int parse_grace(const char *s, uint64_t *ret_ms) {
        char *end;
        long n;

        errno = 0;
        n = strtol(s, &end, 10);
        if (errno != 0 || end == s || *end || n < -1)
                return -EINVAL;
        *ret_ms = (uint64_t)(n < 0 || n > GRACE_MAX_S ? GRACE_MAX_S : n) * 1000;
        /* 0 is the manager's own choice: one is as good as none. */
        *ret_ms = *ret_ms > 0 ? *ret_ms : 1;
        return 0;
}

int docker_stop(const struct docker *d, int argc, char **argv) {
        static const struct docker_flag flags[] = {
                { "time", 't', true, 0 },
                { "timeout", 0, true, 0 },
                { .name = "" },
        };
        static const char help[] = "\n  -t, --time SECONDS  from TERM to KILL (10, at most 3600)\n";
        uint64_t grace_ms = GRACE_S * 1000;
        struct docker_words w;
        struct errmsg e;
        const char *value;
        int i, code = 0;

        docker_words_init(&w, argc, argv, true);
        while ((i = docker_words_next(&w, flags, sizeof(flags[0]), &value, &e)) >= 0)
                if (parse_grace(value, &grace_ms) < 0) {
                        errmsg_set(
                                &e, 0,
                                "invalid argument \"%.80s\" for \"-t, --time\" flag: expected seconds",
                                value);
                        return docker_bad_words("stop", &e);
                }
        if (is_over("stop", i, help, &w, &e, &code))
                return code;
        for (i = 1; i <= w.n_operands; i++)
                if (do_on(d, ASK_SESSION_STOP, argv[i], grace_ms) != 0)
                        code = DOCKER_FAILED;
        return code;
}

/* --- rm ------------------------------------------------------------------------------------------------- */

/* 0: it may go; else it has been said why not. */
static int is_stopped(const struct docker *d, const char *word) {
        struct docker_answer a;
        struct session_info s;
        int r = docker_ask_session(d, word, &a, &s);

        if (r != 0)
                docker_say_refusal(a.reason, a.error.text, word);
        else if (s.status == SESSION_IS_RUNNING) {
                cli_line(
                        "Error response from daemon: You cannot remove a running container %s. Stop the "
                        "container before attempting removal or force remove",
                        s.id);
                r = DOCKER_FAILED;
        }
        docker_answer_done(&a);
        return r;
}

/* With --force what is not there is as good as removed, and still told. */
static int remove_forced(const struct docker *d, const char *word) {
        struct docker_answer a;
        int r = ask_on(d, ASK_SESSION_CLOSE, word, 0, &a);

        if (r == 0)
                r = say_word(word);
        else {
                docker_say_refusal(a.reason, a.error.text, word);
                r = a.reason == REJECT_NO_SESSION ? 0 : DOCKER_FAILED;
        }
        docker_answer_done(&a);
        return r;
}

int docker_rm(const struct docker *d, int argc, char **argv) {
        enum { FORCE, VOLUMES };
        static const struct docker_flag flags[] = {
                { "force", 'f', false, FORCE },
                { "volumes", 'v', false, VOLUMES },
                { .name = "" },
        };
        static const char help[] = "\n  -f, --force  one that runs, too: all that runs in it ends\n";
        struct docker_words w;
        struct errmsg e;
        const char *value;
        bool force = false;
        int i, code = 0;

        docker_words_init(&w, argc, argv, true);
        while ((i = docker_words_next(&w, flags, sizeof(flags[0]), &value, &e)) >= 0)
                if (flags[i].id == FORCE)
                        force = value == NULL;
        if (is_over("rm", i, help, &w, &e, &code))
                return code;
        for (i = 1; i <= w.n_operands; i++) {
                int r = force                         ? remove_forced(d, argv[i])
                        : is_stopped(d, argv[i]) != 0 ? DOCKER_FAILED
                                                      : do_on(d, ASK_SESSION_CLOSE, argv[i], 0);

                code = code != 0 ? code : r;
        }
        return code;
}
