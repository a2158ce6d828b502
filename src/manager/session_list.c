/* What is shown of sessions: the answers to session open and session list, and their part of status. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/escape.h"
#include "common/jsonw.h"
#include "manager/session.h"

static const char *state_name(const struct session *s) {
        if (s->state == SESSION_OPEN)
                return "open";
        return s->state == SESSION_OPENING ? "opening" : "adopting";
}

static void when(uint64_t seconds, char ret[32]) {
        time_t t = (time_t)seconds;
        struct tm tm;

        if (!gmtime_r(&t, &tm) || strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
                snprintf(ret, 32, "?");
}

/* Milliseconds since nothing runs in it. */
static uint64_t idle(const struct session *s) {
        bool at_work = s->state != SESSION_OPEN || s->n_running + s->n_attached > 0;

        return at_work ? 0 : now_ms() - s->idle_ms;
}

void session_json(struct jsonw *j, const struct session *s) {
        char opened[32];

        when(s->opened, opened);
        jsonw_object(j);
        jsonw_key(j, "session");
        jsonw_str(j, s->name);
        jsonw_key_uint(j, "uid", true, s->owner.uid);
        jsonw_key(j, "profile");
        jsonw_str(j, s->pool->name);
        jsonw_key(j, "state");
        jsonw_str(j, state_name(s));
        jsonw_key(j, "sandbox");
        jsonw_str(j, s->container[0] ? s->container : NULL);
        jsonw_key(j, "opened");
        jsonw_str(j, s->opened ? opened : NULL);
        jsonw_key_uint(j, "ttl_ms", s->ttl_ms > 0, s->ttl_ms);
        jsonw_key_uint(j, "idle_ms", s->state == SESSION_OPEN, idle(s));
        jsonw_key_uint(j, "running", true, s->n_running);
        jsonw_key(j, "mounts");
        jsonw_bool(j, s->mounts);
        jsonw_key(j, "labels");
        jsonw_object(j);
        for (uint32_t i = 0; i < s->n_labels; i++) {
                char key[PROTO_LABEL_MAX + 1];
                size_t n = strcspn(s->labels[i], "=");

                memcpy(key, s->labels[i], n);
                key[n] = '\0';
                jsonw_key(j, key);
                jsonw_str(j, s->labels[i] + n + 1);
        }
        jsonw_object_end(j);
        jsonw_object_end(j);
}

/* "90s", "30m", "2h", "1d": whole units, the largest that loses nothing. */
static void duration(uint64_t ms, char ret[24]) {
        static const struct {
                uint64_t ms;
                const char *unit;
        } units[] = { { 86400000, "d" }, { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" } };
        size_t i = 0;

        while (i < 4 && (ms == 0 || ms % units[i].ms != 0))
                i++;
        snprintf(ret, 24, "%" PRIu64 "%s", ms / units[i].ms, units[i].unit);
}

static void line(FILE *f, const char *name, const char *uid, const char *profile, const char *state,
                 const char *sandbox, const char *running, const char *idle_for, const char *ttl,
                 bool brief) {
        fprintf(f, "%-20s %-6s %-12s %-8s", name, uid, profile, state);
        if (!brief)
                fprintf(f, " %-12.12s", sandbox);
        fprintf(f, " %7s %7s %6s", running, idle_for, ttl);
}

void session_line(FILE *f, const struct session *s, bool brief) {
        char uid[16], running[16], idle_for[24];
        char opened[32], ttl[24] = "never", buf[4 * PROTO_LABEL_MAX + 1];

        when(s->opened, opened);
        if (s->ttl_ms)
                duration(s->ttl_ms, ttl);
        snprintf(uid, sizeof(uid), "%u", (unsigned)s->owner.uid);
        snprintf(running, sizeof(running), "%u", s->n_running);
        snprintf(idle_for, sizeof(idle_for), "%" PRIu64 "s", idle(s) / 1000);
        line(f, s->name, uid, s->pool->name, state_name(s), s->container[0] ? s->container : "-",
             running, idle_for, ttl, brief);
        if (!brief)
                fprintf(f, "  %-20s", s->opened ? opened : "-");
        for (uint32_t i = 0; i < s->n_labels && !brief; i++) {
                struct text t;

                text_init(&t, buf, sizeof(buf));
                text_add_shown(&t, s->labels[i], strlen(s->labels[i]));
                fprintf(f, " %s", buf);
        }
        fputc('\n', f);
}

void session_line_head(FILE *f, bool brief) {
        line(f, "SESSION", "UID", "PROFILE", "STATE", "SANDBOX", "RUNNING", "IDLE", "TTL", brief);
        if (!brief)
                fprintf(f, "  %-20s %s", "OPENED", "LABELS");
        fputc('\n', f);
}

char *session_list(struct manager *m, uid_t uid, bool all, bool json, size_t *ret_len) {
        const struct session *s;
        char *buf = NULL;
        struct jsonw j;
        FILE *f = open_memstream(&buf, ret_len);

        if (!f)
                return NULL;
        if (json) {
                jsonw_init_file(&j, f);
                jsonw_array(&j);
        } else
                session_line_head(f, false);
        TAILQ_FOREACH(s, &m->sessions, link)
        if (all || s->owner.uid == uid) {
                if (json)
                        session_json(&j, s);
                else
                        session_line(f, s, false);
        }
        if (json) {
                jsonw_array_end(&j);
                fputc('\n', f);
        }
        if (fclose(f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}

void session_answer_opened(const struct session *s, struct client *c, bool json) {
        char buf[256 + PROTO_LABELS_MAX * (6 * PROTO_LABEL_MAX + 8)];
        struct jsonw j;

        if (!json) {
                snprintf(buf, sizeof(buf), "%s\n", s->name);
                client_answer(c, FRAME_ANSWER, buf, strlen(buf));
                return;
        }
        jsonw_init_buf(&j, buf, sizeof(buf) - 1);
        session_json(&j, s);
        if (jsonw_done(&j) < 0)
                abort(); /* every field has a bound, and the buffer holds them all */
        strcpy(buf + j.len, "\n");
        client_answer(c, FRAME_ANSWER, buf, j.len + 1);
}
