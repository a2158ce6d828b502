#include "cli/audit/review_options.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit/review_fields.h"
#include "cli/audit/review_time.h"

const char review_help[] =
        "usage: hermes-sandbox audit [OPTION]...\n"
        "       hermes-sandbox audit --summary [OPTION]...\n"
        "       hermes-sandbox audit --verify [--json]\n"
        "\n"
        "Who ran what, where, when, how it ended, and what was refused: from the kernel's audit trail,\n"
        "for root and members of the group adm.\n"
        "\n"
        "  --since T, --until T  what ran between these times: 2026-11-29, '2026-11-29 18:00',\n"
        "                        2026-11-29T18:00:00Z, 18:00, today, yesterday, -2h, '2h ago', @1795997806\n"
        "  --user U              of this caller, by name or uid\n"
        "  --session S           in this session\n"
        "  --key FINGERPRINT     of the holder of this ssh key, as ssh-keygen -l prints it\n"
        "  --exec ID             this exec alone\n"
        "  --failed              what did not end with 0, was refused, or has an unknown end\n"
        "  --summary             for each day and user: commands, failures, refusals\n"
        "  --json                one JSON object a line\n"
        "  --full                does not cut lines at the terminal's width\n"
        "  --verify              checks the readable trail against itself and the kernel's; exit status 1\n"
        "                        where something is missing, changed, reordered or inserted\n"
        "  --log FILE            reads FILE in place of auditd's log; may be given more than once, oldest\n"
        "                        first\n"
        "  --trail FILE          verifies FILE and FILE.1, FILE.2, ...\n"
        "  --account U           the manager's account, where the log is another machine's\n"
        "  --manager PATH        the manager's program, as exe= in the log names it\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox audit --since today --failed\n"
        "  hermes-sandbox audit --user hermes --json | jq -r .command\n"
        "  hermes-sandbox audit --summary --since -30d\n"
        "  hermes-sandbox audit --verify\n";

int review_uid(const char *s, uint32_t *ret) {
        struct passwd *pw;

        if (review_fields_u32(s, ret))
                return 0;
        pw = getpwnam(s);
        if (!pw)
                return -ENOENT;
        *ret = pw->pw_uid;
        return 0;
}

static int set_time(const char *name, const char *s, int64_t now_ms, int64_t *ret, struct errmsg *e) {
        if (review_time_parse(s, now_ms, ret) == 0)
                return 0;
        return errmsg_set(
                e, -EINVAL,
                "--%s: not a time: '%.100s' (such as 2026-11-29, '2026-11-29 18:00', today, -2h)", name,
                s);
}

static int add_log(struct review_options *o, const char *path, struct errmsg *e) {
        const char **more = reallocarray(o->logs, o->n_logs + 1, sizeof(*more));

        if (!more)
                return errmsg_set(e, -EINVAL, "out of memory");
        o->logs = more;
        o->logs[o->n_logs++] = path;
        return 0;
}

enum {
        SINCE = 256,
        UNTIL,
        USER,
        SESSION,
        KEY,
        EXEC,
        FAILED,
        JSON,
        VERIFY,
        SUMMARY,
        FULL,
        LOG,
        TRAIL,
        ACCOUNT,
        MANAGER
};

static const struct option options[] = {
        { "since", required_argument, NULL, SINCE },
        { "until", required_argument, NULL, UNTIL },
        { "user", required_argument, NULL, USER },
        { "session", required_argument, NULL, SESSION },
        { "key", required_argument, NULL, KEY },
        { "exec", required_argument, NULL, EXEC },
        { "failed", no_argument, NULL, FAILED },
        { "json", no_argument, NULL, JSON },
        { "verify", no_argument, NULL, VERIFY },
        { "summary", no_argument, NULL, SUMMARY },
        { "full", no_argument, NULL, FULL },
        { "log", required_argument, NULL, LOG },
        { "trail", required_argument, NULL, TRAIL },
        { "account", required_argument, NULL, ACCOUNT },
        { "manager", required_argument, NULL, MANAGER },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
};

static int take(struct review_options *o, int c, const char *value, int64_t now_ms, struct errmsg *e) {
        switch (c) {
        case SINCE:
                return set_time("since", value, now_ms, &o->since_ms, e);
        case UNTIL:
                return set_time("until", value, now_ms, &o->until_ms, e);
        case USER:
                o->has_user = true;
                if (review_uid(value, &o->user) < 0)
                        return errmsg_set(e, -EINVAL,
                                          "--user: no such user: '%.100s': a uid works without one",
                                          value);
                return 0;
        case SESSION:
                o->session = value;
                return 0;
        case KEY:
                o->key = value;
                return 0;
        case EXEC:
                o->exec = value;
                return 0;
        case LOG:
                return add_log(o, value, e);
        case TRAIL:
                o->trail = value;
                return 0;
        case ACCOUNT:
                o->account = value;
                return 0;
        case MANAGER:
                o->manager = value;
                return 0;
        case FAILED:
                o->failed = true;
                return 0;
        case JSON:
                o->json = true;
                return 0;
        case VERIFY:
                o->verify = true;
                return 0;
        case SUMMARY:
                o->summary = true;
                return 0;
        case FULL:
                o->full = true;
                return 0;
        default:
                o->help = true;
                return 0;
        }
}

static int conflicts(const struct review_options *o, struct errmsg *e) {
        if (o->verify && (o->summary || o->failed || o->has_user || o->session || o->key || o->exec))
                return errmsg_set(e, -EINVAL,
                                  "--verify looks at whole trails: it goes with --json, --since, "
                                  "--until, --log and --trail alone");
        if (o->trail && !o->verify)
                return errmsg_set(e, -EINVAL, "--trail goes with --verify alone");
        return 0;
}

int review_options_parse(struct review_options *o, int argc, char **argv, int64_t now_ms,
                         struct errmsg *e) {
        int c, r;

        *o = (struct review_options){ .since_ms = INT64_MIN, .until_ms = INT64_MAX };
        optind = 0; /* glibc: start anew, so that a test can call this twice */
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
                if (c == ':')
                        return errmsg_set(e, -EINVAL, "a value is missing behind %.100s",
                                          argv[optind - 1]);
                if (c == '?')
                        return errmsg_set(e, -EINVAL, "unknown option: %.100s", argv[optind - 1]);
                r = take(o, c, optarg, now_ms, e);
                if (r < 0)
                        return r;
        }
        if (optind < argc)
                return errmsg_set(e, -EINVAL, "too many arguments: %.100s", argv[optind]);
        return conflicts(o, e);
}

void review_options_done(struct review_options *o) {
        free(o->logs);
        o->logs = NULL;
}

static bool is_text(const struct review_bytes *b, const char *text) {
        return b->len > 0 && b->len == strlen(text) && memcmp(b->p, text, b->len) == 0;
}

bool review_options_match(const struct review_options *o, const struct review_event *e) {
        const struct review_record *r = &e->record;
        int64_t begin = e->begin_ms >= 0 ? e->begin_ms : e->end_ms;
        int64_t end = e->end_ms >= 0 ? e->end_ms : e->begin_ms;

        if (begin > o->until_ms || end < o->since_ms)
                return false;
        if (o->has_user && r->uid != o->user)
                return false;
        if ((o->session && !is_text(&r->session, o->session)) || (o->key && !is_text(&r->fp, o->key)))
                return false;
        if (o->exec && strcmp(r->exec, o->exec) != 0)
                return false;
        return !o->failed || e->failed;
}
