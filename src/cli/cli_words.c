/* The manager judges all of it again: what is judged here is told at once, and in the caller's words. */
#include "cli/cli_words.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "cli/cli_opts.h"
#include "common/proto_session.h"

int cli_check_session(const char *what, const char *s, struct errmsg *e) {
        static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
        size_t len = strlen(s);

        if (len == 0 || len > PROTO_NAME_MAX || s[0] == '-' || s[0] == '.' || strspn(s, chars) != len)
                return errmsg_set(
                        e, -EINVAL,
                        "%s: session '%.80s': expected a name of 1 to %d of A-Z a-z 0-9 _ . -, not "
                        "beginning with - or .",
                        what, s, PROTO_NAME_MAX);
        return 0;
}

int cli_check_profile(const char *what, const char *s, struct errmsg *e) {
        size_t len = strlen(s);

        if (len == 0 || len > PROTO_NAME_MAX)
                return errmsg_set(e, -EINVAL, "%s: --profile '%.80s': expected a name of 1 to %d bytes",
                                  what, s, PROTO_NAME_MAX);
        return 0;
}

int cli_check_exec_id(const char *what, const char *s, struct errmsg *e) {
        if (strlen(s) != PROTO_EXEC_ID || strspn(s, "0123456789abcdef") != PROTO_EXEC_ID)
                return errmsg_set(
                        e, -EINVAL,
                        "%s: '%.80s': expected the id of a command, %d hex digits: hermes-sandbox ps "
                        "lists them",
                        what, s, PROTO_EXEC_ID);
        return 0;
}

int cli_check_label(const char *what, const char *s, struct errmsg *e) {
        if (s[0] == '=' || !strchr(s, '=') || strlen(s) > PROTO_LABEL_MAX)
                return errmsg_set(e, -EINVAL,
                                  "%s: --label '%.80s': expected KEY=VALUE of at most %d bytes", what, s,
                                  PROTO_LABEL_MAX);
        return 0;
}

/* 0: none. */
static unsigned number(const char *s) {
        unsigned n = 0;

        if (strspn(s, "0123456789") != strlen(s) || strlen(s) > 2)
                return 0;
        for (; *s; s++)
                n = n * 10 + (unsigned)(*s - '0');
        return n <= 64 ? n : 0;
}

int cli_parse_signal(const char *what, const char *s, uint8_t *ret, struct errmsg *e) {
        static const struct {
                char name[7];
                uint8_t number;
        } signals[] = {
                { "HUP", SIGHUP },   { "INT", SIGINT },       { "QUIT", SIGQUIT }, { "ILL", SIGILL },
                { "TRAP", SIGTRAP }, { "ABRT", SIGABRT },     { "BUS", SIGBUS },   { "FPE", SIGFPE },
                { "KILL", SIGKILL }, { "USR1", SIGUSR1 },     { "SEGV", SIGSEGV }, { "USR2", SIGUSR2 },
                { "PIPE", SIGPIPE }, { "ALRM", SIGALRM },     { "TERM", SIGTERM }, { "CHLD", SIGCHLD },
                { "CONT", SIGCONT }, { "STOP", SIGSTOP },     { "TSTP", SIGTSTP }, { "TTIN", SIGTTIN },
                { "TTOU", SIGTTOU }, { "URG", SIGURG },       { "XCPU", SIGXCPU }, { "XFSZ", SIGXFSZ },
                { "PROF", SIGPROF }, { "VTALRM", SIGVTALRM }, { "IO", SIGIO },     { "WINCH", SIGWINCH },
                { "PWR", SIGPWR },   { "SYS", SIGSYS },
        };
        const char *name = strncasecmp(s, "SIG", 3) == 0 ? s + 3 : s;
        unsigned n = number(s);

        for (size_t i = 0; n == 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
                if (strcasecmp(signals[i].name, name) == 0)
                        n = signals[i].number;
        if (n == 0)
                return errmsg_set(
                        e, -EINVAL,
                        "%s: signal '%.80s': expected a name such as TERM or a number of 1 to 64", what,
                        s);
        *ret = (uint8_t)n;
        return 0;
}

int cli_parse_time(const char *what, const char *option, const char *s, uint64_t *ret_ms,
                   struct errmsg *e) {
        int r = cli_parse_duration(s, ret_ms);

        if (r == -ERANGE)
                return errmsg_set(e, -EINVAL, "%s: %s '%.80s': expected more than 0 and at most a year",
                                  what, option, s);
        if (r < 0)
                return errmsg_set(
                        e, -EINVAL,
                        "%s: %s '%.80s': expected a number with ms, s, m, h, d, or plain seconds", what,
                        option, s);
        return 0;
}
