/*
 * Text from callers (command, profile, session) passes text_add_cut() or audit_kernel_encode() here and
 * nowhere gets by; all else is numbers, hex digits and words of our own.
 */
#include "manager/audit_line.h"

#include <inttypes.h>
#include <string.h>

static void copy_cut(char *ret, size_t cap, const char *s) {
        size_t n = s ? strnlen(s, cap - 1) : 0;

        if (n > 0)
                memcpy(ret, s, n);
        ret[n] = 0;
}

/* At most cap - 1 hex digits of an id, "?" for what is none. */
static void copy_id(char *ret, size_t cap, const char *s) {
        copy_cut(ret, cap, s);
        if (ret[0] == 0 || ret[strspn(ret, "0123456789abcdef")] != 0)
                copy_cut(ret, cap, "?");
}

void audit_open_exec_fill(struct audit_open_exec *o, const struct audit_exec *x,
                          const struct audit_command *c) {
        memset(o, 0, sizeof(*o));
        copy_id(o->exec_id, sizeof(o->exec_id), x->exec_id);
        copy_id(o->container_id, sizeof(o->container_id), x->container_id);
        copy_cut(o->profile, sizeof(o->profile), x->profile);
        copy_cut(o->session, sizeof(o->session), x->session);
        o->caller = x->caller;
        o->pool_hit = x->pool_hit;
        o->detached = x->detached;
        o->begun_us = x->begun_us;
        o->command_total = c->total;
        o->command_len = (uint16_t)(c->len < sizeof(o->command) ? c->len : sizeof(o->command));
        memcpy(o->command, c->head, o->command_len);
}

/* How many bytes of the command a line shows: a character that the slot cut is left out. */
static size_t whole_chars(const uint8_t *p, size_t len) {
        for (size_t back = 1; back <= 3 && back <= len; back++) {
                uint8_t lead = p[len - back];

                if (lead < 0x80)
                        break;
                if (lead < 0xc0)
                        continue;
                if ((back < 2 && lead >= 0xc0) || (back < 3 && lead >= 0xe0) ||
                    (back < 4 && lead >= 0xf0))
                        return len - back;
                break;
        }
        return len;
}

static void line_command(struct text *t, const struct audit_open_exec *o) {
        size_t len = o->command_len;

        if (o->command_total > len)
                len = whole_chars(o->command, len);
        text_addf(t, " cmd=\"");
        text_add_cut(t, o->command, len, o->command_total, sizeof(o->command));
        text_addf(t, "\"");
}

static void line_quoted(struct text *t, const char *name, const char *value) {
        text_addf(t, " %s=\"", name);
        text_add_escaped(t, value, strlen(value));
        text_addf(t, "\"");
}

/* A fingerprint has only characters that need no quotes (gateway.h). */
static void line_key(struct text *t, const struct audit_caller *who) {
        if (who->fp[0])
                text_addf(t, " fp=%s", who->fp);
}

static void line_tail(struct text *t, const struct audit_open_exec *o, const char *cause) {
        text_addf(t, " exec=%s uid=%" PRIu32, o->exec_id, (uint32_t)o->caller.uid);
        line_key(t, &o->caller);
        line_quoted(t, "profile", o->profile);
        if (o->session[0])
                line_quoted(t, "session", o->session);
        text_addf(t, " cause=%s", cause);
        if (o->command_total > sizeof(o->command))
                text_addf(t, " cmd_len=%" PRIu64, o->command_total);
}

void audit_line_end(struct text *t, const struct audit_open_exec *o, const struct audit_end *end) {
        if (end->unknown) {
                audit_line_unknown(t, o);
                return;
        }
        text_addf(t, "%s rc=%d dur=%" PRIu64 "ms out=%" PRIu64 "L cid=%s",
                  o->pool_hit ? "POOL HIT=true" : "COLD DONE", end->code, end->wall_us / 1000,
                  end->lines, o->container_id);
        line_command(t, o);
        line_tail(t, o, cause_name((uint8_t)end->cause));
        if (end->truncated)
                text_addf(t, " truncated=true");
}

void audit_line_unknown(struct text *t, const struct audit_open_exec *o) {
        text_addf(t, "UNKNOWN cid=%s", o->container_id);
        line_command(t, o);
        line_tail(t, o, "unknown");
}

void audit_line_rejected(struct text *t, const struct audit_open_exec *o, const char *reason,
                         uint64_t length) {
        if (length > 0)
                text_addf(t, "REJECTED %" PRIu64 "B", length);
        else
                text_addf(t, "REJECTED %s", reason);
        line_command(t, o);
        line_tail(t, o, "rejected");
        text_addf(t, " reason=%s", reason);
}

void audit_line_scrub(struct text *t, const char *container_id, const char *exec_id,
                      const struct scrubbed *s) {
        char cid[AUDIT_STATE_CID + 1], exec[PROTO_EXEC_ID + 1];

        copy_id(cid, sizeof(cid), container_id);
        copy_id(exec, sizeof(exec), exec_id);
        text_addf(t, "SCRUB ok=%s dur=%" PRIu64 "ms cid=%s exec=%s check=%s emptied=%s us=%" PRIu64,
                  s->check == SCRUB_CLEAN ? "true" : "false", s->us / 1000, cid, exec,
                  scrub_check_name(s->check), s->emptied ? "true" : "false", s->us);
        if (s->place && s->place[0])
                line_quoted(t, "place", s->place);
}

static void add_by(struct text *t, const struct audit_caller *by) {
        if (by)
                text_addf(t, " by=%" PRIu32, (uint32_t)by->uid);
        else
                text_addf(t, " by=?");
}

static const char *const session_lines[] = {
        [AUDIT_OPENED] = "SESSION-OPEN",
        [AUDIT_STOPPED] = "SESSION-STOP",
        [AUDIT_STARTED] = "SESSION-START",
        [AUDIT_CLOSED] = "SESSION-CLOSE",
};
static const char *const session_ops[] = {
        [AUDIT_OPENED] = "session-open",
        [AUDIT_STOPPED] = "session-stop",
        [AUDIT_STARTED] = "session-start",
        [AUDIT_CLOSED] = "session-close",
};

/* The same in both trails. */
static void add_event(struct text *t, const struct audit_session_event *e) {
        if (e->what == AUDIT_CLOSED)
                text_addf(t, " reason=%s", e->reason);
        if (e->what == AUDIT_STOPPED)
                text_addf(t, " processes=%" PRIu32, e->processes);
        if (e->what != AUDIT_OPENED)
                add_by(t, e->by);
}

void audit_line_session(struct text *t, const struct audit_session *s,
                        const struct audit_session_event *e) {
        char cid[AUDIT_STATE_CID + 1];

        copy_id(cid, sizeof(cid), s->container_id);
        text_addf(t, "%s cid=%s", session_lines[e->what], cid);
        line_quoted(t, "session", s->name);
        text_addf(t, " uid=%" PRIu32, (uint32_t)s->owner.uid);
        line_key(t, &s->owner);
        line_quoted(t, "profile", s->profile);
        add_event(t, e);
}

void audit_line_login(struct text *t, const struct audit_caller *who, const char *address,
                      uint16_t port) {
        text_addf(t, "SSH-LOGIN uid=%" PRIu32, (uint32_t)who->uid);
        line_key(t, who);
        line_quoted(t, "addr", address);
        text_addf(t, " port=%u", port);
}

void audit_line_suppressed(struct text *t, uid_t uid, uint64_t requests, uint64_t duration_ms) {
        text_addf(t, "SUPPRESSED requests=%" PRIu64 " dur=%" PRIu64 "ms uid=%" PRIu32, requests,
                  duration_ms, (uint32_t)uid);
}

static void fields_key(struct text *t, const struct audit_caller *who) {
        if (who->fp[0])
                audit_kernel_encode(t, "fp", who->fp, strlen(who->fp));
}

/* ausearch -ua and -ui find uid=, the first name that ends in "uid"; but what -i prints for a second
 * uid= or auid= of an enriched record is the name that belongs to the first, the manager's. So the
 * caller stands there as id= again and its login uid as sauid=. Hex digits are quoted: in a TRUSTED_APP
 * record -i would decode them. */
static void fields_head(struct text *t, const char *op, const struct audit_open_exec *o) {
        text_addf(t,
                  "op=%s exec=\"%s\" uid=%" PRIu32 " id=%" PRIu32 " sauid=%" PRIu32 " pid=%d cid=\"%s\"",
                  op, o->exec_id, (uint32_t)o->caller.uid, (uint32_t)o->caller.uid, o->caller.loginuid,
                  (int)o->caller.pid, o->container_id);
        audit_kernel_encode(t, "profile", o->profile, strlen(o->profile));
        if (o->session[0])
                audit_kernel_encode(t, "session", o->session, strlen(o->session));
        fields_key(t, &o->caller);
}

static void fields_command(struct text *t, const struct audit_command *c) {
        audit_kernel_encode(t, "cmd", c->head, c->len);
        if (c->total > c->len)
                text_addf(t, " cmd_len=%" PRIu64 " cmd_sha256=\"%s\"", c->total, c->sha256);
}

void audit_fields_stamp(struct text *t, const struct trail_stamp *stamp) {
        if (stamp->seq > 0)
                text_addf(t, " seq=%" PRIu64 " hash=\"%s\"", stamp->seq, stamp->hash);
        else
                text_addf(t, " seq=? hash=?");
}

void audit_fields_start(struct text *t, const struct audit_open_exec *o, const struct audit_command *c) {
        fields_head(t, "exec-start", o);
        text_addf(t, " pool=%s", o->pool_hit ? "hit" : "cold");
        fields_command(t, c);
}

void audit_fields_end(struct text *t, const struct audit_open_exec *o, const struct audit_end *end,
                      const struct trail_stamp *stamp) {
        fields_head(t, "exec-end", o);
        if (end->unknown)
                text_addf(t, " cause=unknown rc=?");
        else
                text_addf(t, " cause=%s rc=%d", cause_name((uint8_t)end->cause), end->code);
        audit_fields_stamp(t, stamp);
}

void audit_fields_rejected(struct text *t, const struct audit_open_exec *o,
                           const struct audit_command *c, const char *reason, uint64_t length,
                           const struct trail_stamp *stamp) {
        fields_head(t, "exec-rejected", o);
        text_addf(t, " reason=%s", reason);
        if (length > 0)
                text_addf(t, " bytes=%" PRIu64, length);
        fields_command(t, c);
        audit_fields_stamp(t, stamp);
}

void audit_fields_scrub_failed(struct text *t, const char *container_id, const char *exec_id,
                               const struct scrubbed *s, const struct trail_stamp *stamp) {
        char cid[AUDIT_STATE_CID + 1], exec[PROTO_EXEC_ID + 1];

        copy_id(cid, sizeof(cid), container_id);
        copy_id(exec, sizeof(exec), exec_id);
        text_addf(t, "op=scrub-failed exec=\"%s\" cid=\"%s\" check=%s", exec, cid,
                  scrub_check_name(s->check));
        if (s->place && s->place[0])
                audit_kernel_encode(t, "place", s->place, strlen(s->place));
        audit_fields_stamp(t, stamp);
}

static void fields_who(struct text *t, const char *op, const struct audit_caller *who) {
        text_addf(t, "op=%s uid=%" PRIu32 " id=%" PRIu32 " sauid=%" PRIu32 " pid=%d", op,
                  (uint32_t)who->uid, (uint32_t)who->uid, who->loginuid, (int)who->pid);
}

void audit_fields_session(struct text *t, const struct audit_session *s,
                          const struct audit_session_event *e, const struct trail_stamp *stamp) {
        char cid[AUDIT_STATE_CID + 1];

        copy_id(cid, sizeof(cid), s->container_id);
        fields_who(t, session_ops[e->what], &s->owner);
        text_addf(t, " cid=\"%s\"", cid);
        audit_kernel_encode(t, "profile", s->profile, strlen(s->profile));
        audit_kernel_encode(t, "session", s->name, strlen(s->name));
        fields_key(t, &s->owner);
        add_event(t, e);
        audit_fields_stamp(t, stamp);
}

void audit_fields_login(struct text *t, const struct audit_caller *who, uint16_t port,
                        const struct trail_stamp *stamp) {
        fields_who(t, "ssh-login", who);
        fields_key(t, who);
        text_addf(t, " port=%u", port);
        audit_fields_stamp(t, stamp);
}

void audit_fields_suppressed(struct text *t, uid_t uid, uint64_t requests, uint64_t duration_ms,
                             const struct trail_stamp *stamp) {
        text_addf(t,
                  "op=exec-suppressed uid=%" PRIu32 " id=%" PRIu32 " requests=%" PRIu64 " ms=%" PRIu64,
                  (uint32_t)uid, (uint32_t)uid, requests, duration_ms);
        audit_fields_stamp(t, stamp);
}
