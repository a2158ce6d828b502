/* What runs, and what has ended detached: the answer to `hermes-sandbox ps`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/escape.h"
#include "common/jsonw.h"
#include "manager/audit_line.h"
#include "manager/exec.h"
#include "manager/manager.h"
#include "manager/session.h"

/* A command of either kind. */
struct row {
        const char *id, *session, *sandbox;
        const struct audit_caller *caller;
        bool detached;
        const struct result *result; /* NULL: it runs */
        uint64_t begun_us;
        const uint8_t *command;
        size_t command_len;
        uint64_t command_total;
};

struct list {
        FILE *f;
        struct jsonw json;
        bool as_json;
};

static uint64_t duration_us(const struct row *r) {
        return r->result ? r->result->wall_us : now_us() - r->begun_us;
}

/* The first line of the command, as one word of a line of ours. */
static void first_line(const struct row *r, char *ret, size_t cap) {
        const uint8_t *end = memchr(r->command, '\n', r->command_len);
        size_t len = end ? (size_t)(end - r->command) : r->command_len;
        struct text t;

        text_init(&t, ret, cap);
        text_add_cut(&t, r->command, len, end ? len + 1 : r->command_total, AUDIT_STATE_COMMAND);
}

static void began(const struct row *r, char ret[32]) {
        time_t t = time(NULL) - (time_t)((now_us() - r->begun_us) / 1000000);
        struct tm tm;

        if (!gmtime_r(&t, &tm) || strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
                snprintf(ret, 32, "?");
}

static void as_json(struct jsonw *j, const struct row *r, const char *started, const char *command) {
        jsonw_object(j);
        jsonw_key(j, "exec");
        jsonw_str(j, r->id);
        jsonw_key(j, "session");
        jsonw_str(j, r->session[0] ? r->session : NULL);
        jsonw_key_uint(j, "uid", true, r->caller->uid);
        if (r->caller->fp[0])
                jsonw_key_str(j, "key", r->caller->fp);
        jsonw_key(j, "sandbox");
        jsonw_str(j, r->sandbox);
        jsonw_key(j, "state");
        jsonw_str(j, r->result ? "ended" : "running");
        jsonw_key(j, "detached");
        jsonw_bool(j, r->detached);
        jsonw_key(j, "cause");
        jsonw_str(j, r->result ? cause_name(r->result->cause) : NULL);
        jsonw_key_uint(j, "exit_code", r->result, r->result ? r->result->exit_code : 0);
        jsonw_key(j, "started");
        jsonw_str(j, started);
        jsonw_key_uint(j, "wall_ms", true, duration_us(r) / 1000);
        jsonw_key(j, "command");
        jsonw_str(j, command);
        jsonw_object_end(j);
}

static void as_line(FILE *f, const struct row *r, const char *started, const char *command) {
        char code[8] = "-";

        if (r->result)
                snprintf(code, sizeof(code), "%u", r->result->exit_code);
        fprintf(f, "%-16s  %-20s %-6u %-8s %4s  %-14s %-20s %8" PRIu64 "s  %s\n", r->id,
                r->session[0] ? r->session : "-", (unsigned)r->caller->uid,
                r->result ? "ended" : "running", code, r->result ? cause_name(r->result->cause) : "-",
                started, duration_us(r) / 1000000, command);
}

static void show(struct list *l, const struct row *r) {
        char started[32], command[4 * AUDIT_STATE_COMMAND + 8];

        began(r, started);
        first_line(r, command, sizeof(command));
        if (l->as_json)
                as_json(&l->json, r, started, command);
        else
                as_line(l->f, r, started, command);
}

static void show_running(struct list *l, const struct exec *x) {
        struct audit_open_exec o;

        audit_exec_shown(&x->audit, &o);
        show(l, &(struct row){ .id = x->id,
                               .session = x->session ? x->session->name : "",
                               .sandbox = x->container,
                               .caller = &x->audit.caller,
                               .detached = x->request.detach,
                               .begun_us = x->begun_us,
                               .command = o.command,
                               .command_len = o.command_len,
                               .command_total = o.command_total });
}

static void show_ended(struct list *l, const struct session *s) {
        const struct ended *e;

        TAILQ_FOREACH(e, &s->ended, link)
        show(l, &(struct row){ .id = e->id,
                               .session = s->name,
                               .sandbox = s->container,
                               .caller = &s->owner,
                               .detached = true,
                               .result = &e->result,
                               .begun_us = e->begun_us,
                               .command = e->command,
                               .command_len = e->command_len,
                               .command_total = e->command_total });
}

char *ps_text(struct manager *m, const struct peer *who, bool all, const struct session *session,
              bool json, size_t *ret_len) {
        struct list l = { .as_json = json };
        const struct session *s;
        const struct exec *x;
        char *buf = NULL;

        l.f = open_memstream(&buf, ret_len);
        if (!l.f)
                return NULL;
        jsonw_init_file(&l.json, l.f);
        if (json)
                jsonw_array(&l.json);
        else
                fprintf(l.f, "%-16s  %-20s %-6s %-8s %4s  %-14s %-20s %9s  %s\n", "EXEC", "SESSION",
                        "UID", "STATE", "CODE", "CAUSE", "STARTED", "DURATION", "COMMAND");
        LIST_FOREACH(x, &m->execs, link)
        if (x->state == EXEC_RUNNING && !x->attach && (all || peer_is(who, &x->audit.caller)) &&
            (!session || x->session == session))
                show_running(&l, x);
        TAILQ_FOREACH(s, &m->sessions, link)
        if ((all || peer_is(who, &s->owner)) && (!session || s == session))
                show_ended(&l, s);
        if (json) {
                jsonw_array_end(&l.json);
                fputc('\n', l.f);
        }
        if (fclose(l.f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}
