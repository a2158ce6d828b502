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

/* A whole number of at most 10 digits at the front of @s; *end is behind it. False: there is none. */
static bool digits(const char *s, uint64_t *ret, const char **end) {
        size_t n = strspn(s, "0123456789");
        uint64_t v = 0;

        if (n == 0 || n > 10)
                return false;
        for (size_t i = 0; i < n; i++)
                v = v * 10 + (uint64_t)(s[i] - '0');
        *ret = v;
        *end = s + n;
        return true;
}

int cli_parse_size(const char *what, const char *option, const char *s, uint64_t *ret_bytes,
                   struct errmsg *e) {
        static const char units[] = "kmgt";
        unsigned shift = 0;
        const char *end;
        uint64_t n;

        if (digits(s, &n, &end)) {
                const char *unit = *end ? strchr(units, *end | 0x20) : NULL;

                if (unit) {
                        shift = 10 * (unsigned)(unit - units + 1);
                        end++;
                }
                if (*end == '\0' && n > 0 && n <= UINT64_C(1) << (50 - shift)) {
                        *ret_bytes = n << shift;
                        return 0;
                }
        }
        return errmsg_set(e, -EINVAL, "%s: %s '%.80s': expected bytes, such as 512m or 1g", what, option,
                          s);
}

int cli_parse_cpus(const char *what, const char *option, const char *s, uint64_t *ret_nano,
                   struct errmsg *e) {
        uint64_t whole = 0, nano = 0, unit = 1000000000;
        const char *p = s;
        bool good = digits(s, &whole, &p) || *s == '.';

        if (good && *p == '.')
                for (p++; *p >= '0' && *p <= '9' && unit > 1; p++) {
                        unit /= 10;
                        nano += unit * (uint64_t)(*p - '0');
                }
        if (good && *p == '\0' && whole * 1000000000 + nano > 0 &&
            whole * 1000000000 + nano <= UINT64_C(1024) * 1000000000) {
                *ret_nano = whole * 1000000000 + nano;
                return 0;
        }
        return errmsg_set(e, -EINVAL, "%s: %s '%.80s': expected a number of CPUs, such as 0.5 or 2",
                          what, option, s);
}

int cli_parse_count(const char *what, const char *option, const char *s, uint32_t max, uint32_t *ret,
                    struct errmsg *e) {
        const char *end;
        uint64_t n;

        if (!digits(s, &n, &end) || *end || n == 0 || n > max)
                return errmsg_set(e, -EINVAL, "%s: %s '%.80s': expected a whole number of 1 to %u", what,
                                  option, s, max);
        *ret = (uint32_t)n;
        return 0;
}

int cli_parse_user(const char *what, const char *option, const char *s, uint32_t *ret_uid,
                   uint32_t *ret_gid, struct errmsg *e) {
        uint64_t uid = 0, gid = UINT32_MAX;
        const char *end = s;
        bool good = strncmp(s, "root", 4) == 0 || digits(s, &uid, &end);

        if (good && end == s)
                end = s + 4;
        if (good && *end == ':') {
                const char *group = end + 1;

                if (strcmp(group, "root") == 0) {
                        gid = 0;
                        end = group + 4;
                } else
                        good = digits(group, &gid, &end) && gid < UINT32_MAX;
        }
        if (!good || *end || uid >= UINT32_MAX)
                return errmsg_set(
                        e, -EINVAL,
                        "%s: %s '%.80s': expected UID or UID:GID in numbers, or root: names are the image's",
                        what, option, s);
        *ret_uid = (uint32_t)uid;
        *ret_gid = (uint32_t)gid;
        return 0;
}

/* Length of the name at the front of @s, 0 when it is none. Wider than the shell's rule, as real programs read names
 * such as npm_config_a-b. */
static size_t env_name(const char *s) {
        static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-";
        size_t len = strspn(s, chars);

        if (len == 0 || strspn(s, chars + 53) > 0 || (s[len] != '=' && s[len] != '\0'))
                return 0;
        return len;
}

int cli_parse_env(const char *what, const char *s, char **environ_list, const char **ret,
                  struct errmsg *e) {
        size_t len = env_name(s);
        char **p = environ_list;

        if (len == 0)
                return errmsg_set(e, -EINVAL, "%s: -e '%.80s': expected KEY or KEY=VALUE", what, s);
        *ret = s;
        if (s[len] != '\0')
                return 0;
        while (*p && (strncmp(*p, s, len) != 0 || (*p)[len] != '='))
                p++;
        /* A variable that the caller does not have is left out, as docker does. */
        *ret = *p;
        return 0;
}

int cli_check_workdir(const char *what, const char *s, struct errmsg *e) {
        if (s[0] != '/' || strlen(s) > PROTO_PATH_MAX)
                return errmsg_set(e, -EINVAL,
                                  "%s: -w '%.80s': expected an absolute path of at most %d bytes", what,
                                  s, PROTO_PATH_MAX);
        return 0;
}
