/* The command comes last, as it is the one column without a bound. */
#include "cli/audit/review_show.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "cli/audit/review_time.h"
#include "common/escape.h"
#include "common/jsonw.h"
#include "common/utf8.h"

#define LINE 32768 /* four bytes for each of a command, and the rest */
#define JSON 32768 /* six for each of a command */
#define SIGNALED 128

const char *review_name(const struct review_names *n, uint32_t uid, const char *enriched,
                        char buf[REVIEW_NAME]) {
        /* One caller has many events: this saves the look into the user database. */
        static uint32_t last_uid = REVIEW_NO_ID;
        static char last[REVIEW_NAME];
        struct passwd *pw = NULL;

        if (uid == REVIEW_NO_ID)
                snprintf(buf, REVIEW_NAME, "-");
        else if (enriched[0])
                snprintf(buf, REVIEW_NAME, "%s", enriched);
        else if (!n->local)
                snprintf(buf, REVIEW_NAME, "%" PRIu32, uid);
        else {
                if (uid != last_uid) {
                        pw = getpwuid(uid);
                        if (pw)
                                snprintf(last, sizeof(last), "%s", pw->pw_name);
                        else
                                snprintf(last, sizeof(last), "%" PRIu32, uid);
                        last_uid = uid;
                }
                snprintf(buf, REVIEW_NAME, "%s", last);
        }
        return buf;
}

static size_t columns(const char *s) {
        size_t n = 0;

        for (; *s; s++)
                n += (*s & 0xc0) != 0x80;
        return n;
}

/* @s and blanks up to @width, one at least. */
static void column(struct text *t, const char *s, unsigned width) {
        size_t n = columns(s);

        text_addf(t, "%s%*s", s, n < width ? (int)(width - n) + 1 : 1, "");
}

static void shown_column(struct text *t, const void *p, size_t len, unsigned width) {
        char buf[512];
        struct text s;

        text_init(&s, buf, sizeof(buf));
        if (len > 0)
                text_add_shown(&s, p, len);
        column(t, buf[0] ? buf : "-", width);
}

static const char *session_word(const struct review_record *r) {
        switch (r->op) {
        case REVIEW_SESSION_OPEN:
                return "opened";
        case REVIEW_SESSION_STOP:
                return "stopped";
        case REVIEW_SESSION_START:
                return "started";
        default:
                return "closed";
        }
}

static void how(const struct review_event *e, char *buf, size_t cap) {
        const struct review_record *r = &e->record;

        switch (e->kind) {
        case REVIEW_EXEC:
                if (e->end_ms < 0)
                        snprintf(buf, cap, "running or lost");
                else if (strcmp(r->cause, "exited") == 0 && r->rc >= 0)
                        snprintf(buf, cap, "exit %d", r->rc);
                else if (strcmp(r->cause, "signaled") == 0 && r->rc > SIGNALED)
                        snprintf(buf, cap, "signal %d", r->rc - SIGNALED);
                else
                        snprintf(buf, cap, "%s", r->cause);
                break;
        case REVIEW_REFUSED:
                snprintf(buf, cap, "refused: %s", r->reason);
                break;
        case REVIEW_SUPPRESSED:
                snprintf(buf, cap, "suppressed");
                break;
        case REVIEW_SESSION:
                if (r->op == REVIEW_SESSION_CLOSE)
                        snprintf(buf, cap, "%s", r->reason);
                else
                        snprintf(buf, cap, "%s", r->op == REVIEW_SESSION_OPEN ? "opened" : r->op_word);
                break;
        case REVIEW_UNCLEAN:
                snprintf(buf, cap, "not clean");
                break;
        case REVIEW_GRANT:
                snprintf(buf, cap, "%s: %s", r->res, r->reason);
                break;
        default:
                snprintf(buf, cap, "%s", r->op_word);
        }
}

static void duration(const struct review_event *e, char *buf, size_t cap) {
        int64_t ms = e->end_ms - e->begin_ms;

        if (e->kind != REVIEW_EXEC || e->begin_ms < 0 || e->end_ms < 0 || ms < 0)
                snprintf(buf, cap, "-");
        else if (ms < 100000)
                snprintf(buf, cap, "%" PRId64 ".%03us", ms / 1000, (unsigned)(ms % 1000));
        else
                snprintf(buf, cap, "%" PRId64 "s", ms / 1000);
}

static void show_bytes(struct text *t, const struct review_bytes *b) {
        if (b->len > 0)
                text_add_shown(t, b->p, b->len);
}

/* A character that the record's bound has cut is left out. */
static size_t whole(const struct review_record *r) {
        size_t len = r->command.len;

        return r->command_len > len ? utf8_whole(r->command.p, len) : len;
}

static void what(struct text *t, const struct review_event *e) {
        const struct review_record *r = &e->record;

        switch (e->kind) {
        case REVIEW_EXEC:
        case REVIEW_REFUSED:
                if (!r->command.p)
                        text_addf(t, "? (its start is not in the log)");
                else if (whole(r) > 0)
                        text_add_shown(t, r->command.p, whole(r));
                if (r->command_len > 0)
                        text_addf(t, "\\... (%" PRIu64 " bytes)", r->command_len);
                break;
        case REVIEW_SUPPRESSED:
                text_addf(t, "%" PRIu64 " requests in %" PRIu64 ".%03us over limits.exec_rate",
                          r->requests, r->ms / 1000, (unsigned)(r->ms % 1000));
                break;
        case REVIEW_SESSION:
                text_addf(t, "session ");
                show_bytes(t, &r->session);
                text_addf(t, " %s", session_word(r));
                if (r->by[0] && r->by[0] != '?')
                        text_addf(t, " by uid %s", r->by);
                if (r->op == REVIEW_SESSION_STOP)
                        text_addf(t, ", %" PRIu64 " processes ended", r->processes);
                break;
        case REVIEW_LOGIN:
                text_addf(t, "ssh login of ");
                show_bytes(t, &r->fp);
                text_addf(t, " from %s port %u", r->address, (unsigned)r->port);
                break;
        case REVIEW_UNCLEAN:
                text_addf(t, "check %s", r->check);
                if (r->place.p)
                        text_addf(t, " at ");
                show_bytes(t, &r->place);
                text_addf(t, " after exec %s", r->exec);
                break;
        case REVIEW_GRANT:
                text_addf(t, "%s ", r->op_word);
                show_bytes(t, &r->account);
                text_addf(t, " in group ");
                show_bytes(t, &r->group);
                break;
        case REVIEW_POOL:
                if (r->op != REVIEW_TRAIL_OPEN)
                        text_addf(t, "%" PRIu64 " containers", r->containers);
                else
                        text_addf(t, "the manager starts; the trail's last line is %" PRIu64, r->seq);
                break;
        case REVIEW_UNKNOWN:
                text_addf(t, "%s", r->res);
        }
}

/* Cuts what is longer than @width characters, which then ends in an ellipsis. */
static void cut(char *s, unsigned width) {
        size_t n = 0, at = 0;

        for (size_t i = 0; s[i]; i++) {
                if ((s[i] & 0xc0) == 0x80)
                        continue;
                if (++n == width)
                        at = i;
                if (n > width) {
                        strcpy(s + at, "…"); /* three bytes, and there are that many */
                        return;
                }
        }
}

int review_show_line(FILE *f, const struct review_event *e, const struct review_names *n, unsigned width,
                     bool *began) {
        const struct review_record *r = &e->record;
        char line[LINE], buf[REVIEW_NAME * 2], name[REVIEW_NAME];
        struct text t;

        if (!*began)
                fprintf(f, "%-19s %-10s %-12s %-8s %-15s %6s  %s\n", "WHEN", "USER", "SANDBOX",
                        "PROFILE", "END", "TIME", "COMMAND");
        *began = true;
        /* Room for the ellipsis in any case. */
        text_init(&t, line, sizeof(line) - 4);
        column(&t, review_time_local(e->begin_ms >= 0 ? e->begin_ms : e->end_ms, buf), 19);
        review_name(n, r->uid, r->user, name);
        shown_column(&t, name, strlen(name), 10);
        column(&t, r->cid[0] ? r->cid : "-", 12);
        if (r->session.len > 0) {
                char both[512];
                struct text s;

                text_init(&s, both, sizeof(both));
                show_bytes(&s, &r->profile);
                text_addf(&s, "/");
                show_bytes(&s, &r->session);
                column(&t, both, 8);
        } else {
                shown_column(&t, r->profile.p, r->profile.len, 8);
        }
        how(e, buf, sizeof(buf));
        column(&t, buf, 15);
        duration(e, buf, sizeof(buf));
        text_addf(&t, "%6s  ", buf);
        what(&t, e);
        if (width > 0)
                cut(line, width);
        return fprintf(f, "%s\n", line) < 0 ? -EIO : 0;
}

/* --- JSON ------------------------------------------------------------------------------------------ */

static void key_str(struct jsonw *j, const char *key, const char *s) {
        jsonw_key(j, key);
        jsonw_str(j, s && s[0] && strcmp(s, "?") != 0 ? s : NULL);
}

static void key_bytes(struct jsonw *j, const char *key, const struct review_bytes *b) {
        jsonw_key(j, key);
        if (b->p)
                jsonw_strn(j, b->p, b->len);
        else
                jsonw_null(j);
}

static void key_time(struct jsonw *j, const char *key, int64_t ms) {
        char buf[REVIEW_TIME_TEXT];

        key_str(j, key, ms >= 0 ? review_time_utc(ms, buf) : NULL);
}

/* As it was if it is UTF-8, else base64 of all that is there. */
static void put_command(struct jsonw *j, const struct review_record *r) {
        size_t len = r->command.p ? whole(r) : 0;
        bool text = utf8_valid(r->command.p, len);

        jsonw_key(j, "command");
        if (!r->command.p)
                jsonw_null(j);
        else if (text)
                jsonw_strn(j, r->command.p, len);
        else
                jsonw_base64(j, r->command.p, r->command.len);
        key_str(j, "command_encoding", !r->command.p ? NULL : text ? "utf-8" : "base64");
        jsonw_key_uint(j, "command_bytes", r->command.p,
                       r->command_len ? r->command_len : r->command.len);
        key_str(j, "command_sha256", r->sha256);
}

static const char *event_word(const struct review_event *e) {
        static const char *const words[] = {
                [REVIEW_EXEC] = "exec",
                [REVIEW_REFUSED] = "refused",
                [REVIEW_SUPPRESSED] = "suppressed",
                [REVIEW_SESSION] = "session",
                [REVIEW_LOGIN] = "login",
                [REVIEW_UNCLEAN] = "unclean",
                [REVIEW_POOL] = "pool",
                [REVIEW_GRANT] = "helper",
                [REVIEW_UNKNOWN] = "other",
        };

        return words[e->kind];
}

/* Only where an ssh key's holder has asked. */
static void put_key(struct jsonw *j, const struct review_record *r) {
        if (r->fp.p)
                key_bytes(j, "key", &r->fp);
}

static void put_exec(struct jsonw *j, const struct review_event *e) {
        const struct review_record *r = &e->record;
        bool ended = e->kind == REVIEW_EXEC && e->end_ms >= 0;

        key_str(j, "exec_id", r->exec);
        jsonw_key_uint(j, "pid", r->pid > 0, r->pid);
        key_str(j, "sandbox", r->cid);
        key_bytes(j, "profile", &r->profile);
        key_bytes(j, "session", &r->session);
        put_key(j, r);
        put_command(j, r);
        if (e->kind == REVIEW_REFUSED) {
                key_str(j, "reason", r->reason);
                return;
        }
        jsonw_key(j, "pool_hit");
        if (r->pool[0])
                jsonw_bool(j, strcmp(r->pool, "hit") == 0);
        else
                jsonw_null(j);
        key_str(j, "cause", ended ? r->cause : "running_or_lost");
        jsonw_key_uint(j, "exit_code", ended && r->rc >= 0, r->rc >= 0 ? (uint64_t)r->rc : 0);
        key_time(j, "ended", e->end_ms);
        jsonw_key_uint(j, "wall_ms", ended && e->begin_ms >= 0 && e->end_ms >= e->begin_ms,
                       (uint64_t)(e->end_ms - e->begin_ms));
}

static void put_rest(struct jsonw *j, const struct review_event *e) {
        const struct review_record *r = &e->record;

        switch (e->kind) {
        case REVIEW_EXEC:
        case REVIEW_REFUSED:
                put_exec(j, e);
                break;
        case REVIEW_SUPPRESSED:
                jsonw_key_uint(j, "requests", true, r->requests);
                jsonw_key_uint(j, "burst_ms", true, r->ms);
                break;
        case REVIEW_SESSION:
                jsonw_key_uint(j, "pid", r->pid > 0, r->pid);
                key_str(j, "sandbox", r->cid);
                key_bytes(j, "profile", &r->profile);
                key_bytes(j, "session", &r->session);
                put_key(j, r);
                key_str(j, "reason", r->reason);
                key_str(j,
                        r->op == REVIEW_SESSION_STOP    ? "stopped_by"
                        : r->op == REVIEW_SESSION_START ? "started_by"
                                                        : "closed_by",
                        r->by);
                jsonw_key_uint(j, "processes", r->op == REVIEW_SESSION_STOP, r->processes);
                break;
        case REVIEW_LOGIN:
                jsonw_key_uint(j, "pid", r->pid > 0, r->pid);
                put_key(j, r);
                key_str(j, "address", r->address);
                jsonw_key_uint(j, "port", true, r->port);
                break;
        case REVIEW_UNCLEAN:
                key_str(j, "exec_id", r->exec);
                key_str(j, "sandbox", r->cid);
                key_str(j, "check", r->check);
                key_bytes(j, "place", &r->place);
                break;
        case REVIEW_POOL:
                jsonw_key_uint(j, "containers", r->op != REVIEW_TRAIL_OPEN, r->containers);
                break;
        case REVIEW_GRANT:
                key_bytes(j, "account", &r->account);
                key_bytes(j, "group", &r->group);
                key_str(j, "reason", r->reason);
                break;
        case REVIEW_UNKNOWN:
                break;
        }
}

int review_show_json(FILE *f, const struct review_event *e, const struct review_names *n) {
        const struct review_record *r = &e->record;
        char name[REVIEW_NAME], text[JSON];
        struct jsonw j;
        int rc;

        /* Not into the file, which would be flushed for each of them. */
        jsonw_init_buf(&j, text, sizeof(text));
        jsonw_object(&j);
        key_str(&j, "event", event_word(e));
        key_str(&j, "op", r->op_word);
        key_time(&j, "time", e->begin_ms >= 0 ? e->begin_ms : e->end_ms);
        key_str(&j, "result", r->res);
        jsonw_key_uint(&j, "uid", r->uid != REVIEW_NO_ID, r->uid);
        key_str(&j, "user", r->uid != REVIEW_NO_ID ? review_name(n, r->uid, r->user, name) : NULL);
        jsonw_key_uint(&j, "login_uid", r->loginuid != REVIEW_NO_ID, r->loginuid);
        put_rest(&j, e);
        jsonw_key_uint(&j, "seq", r->seq > 0, r->seq);
        key_str(&j, "hash", r->seq > 0 ? r->hash : NULL);
        jsonw_object_end(&j);
        rc = jsonw_done(&j);
        return rc == 0 && fprintf(f, "%s\n", text) < 0 ? -EIO : rc;
}
