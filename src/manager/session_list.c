/* What is shown of sessions in lists: the answer to session list, and their part of status. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/escape.h"
#include "common/jsonw.h"
#include "manager/session.h"

const char *session_state_name(const struct session *s) {
        static const char *const names[SESSION_STATES] = {
                [SESSION_OPENING] = "opening", [SESSION_ADOPTING] = "adopting",
                [SESSION_OPEN] = "open",       [SESSION_STOPPING] = "stopping",
                [SESSION_STOPPED] = "stopped", [SESSION_CLOSED] = "closed",
        };

        return names[s->state];
}

/* Milliseconds since nothing runs in it. */
static uint64_t idle(const struct session *s) {
        bool counts = s->state == SESSION_OPEN || s->state == SESSION_STOPPED;

        return counts && s->n_running + s->n_attached == 0 ? now_ms() - s->idle_ms : 0;
}

static void json_time(struct jsonw *j, const char *key, uint64_t seconds) {
        char when[32];

        session_when(seconds, when);
        jsonw_key_str(j, key, seconds ? when : NULL);
}

static void json_shape(struct jsonw *j, const struct session_shape *shape) {
        bool known = shape->n_users > 0;
        char user[24];

        snprintf(user, sizeof(user), "%u:%u", shape->users[0].uid, shape->users[0].gid);
        jsonw_key_str(j, "image", known ? shape->image : NULL);
        jsonw_key_str(j, "network", known ? shape->network : NULL);
        jsonw_key_str(j, "user", known ? user : NULL);
        jsonw_key_uint(j, "memory_bytes", known, shape->memory_bytes);
        jsonw_key_uint(j, "cpu_nano", known, shape->cpu_nano);
        jsonw_key_uint(j, "shm_bytes", known, shape->shm_bytes);
        jsonw_key_uint(j, "pids_limit", known, shape->pids_limit);
}

void session_json(struct jsonw *j, const struct session *s) {
        jsonw_object(j);
        jsonw_key(j, "session");
        jsonw_str(j, s->name);
        jsonw_key_uint(j, "uid", true, s->owner.uid);
        if (s->owner.fp[0])
                jsonw_key_str(j, "key", s->owner.fp);
        jsonw_key(j, "profile");
        jsonw_str(j, s->pool->name);
        jsonw_key(j, "state");
        jsonw_str(j, session_state_name(s));
        jsonw_key(j, "sandbox");
        jsonw_str(j, s->container[0] ? s->container : NULL);
        json_time(j, "opened", s->opened);
        json_time(j, "started", s->started);
        json_time(j, "stopped", s->finished);
        jsonw_key_uint(j, "ttl_ms", s->ttl_ms > 0, s->ttl_ms);
        jsonw_key_uint(j, "idle_ms", s->state == SESSION_OPEN || s->state == SESSION_STOPPED, idle(s));
        jsonw_key_uint(j, "running", true, s->n_running);
        json_shape(j, &s->shape);
        jsonw_key_str(j, "workdir", s->workdir && s->workdir[0] ? s->workdir : NULL);
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

        session_when(s->opened, opened);
        if (s->ttl_ms)
                duration(s->ttl_ms, ttl);
        snprintf(uid, sizeof(uid), "%u", (unsigned)s->owner.uid);
        snprintf(running, sizeof(running), "%u", s->n_running);
        snprintf(idle_for, sizeof(idle_for), "%" PRIu64 "s", idle(s) / 1000);
        line(f, s->name, uid, s->pool->name, session_state_name(s), s->container[0] ? s->container : "-",
             running, idle_for, ttl, brief);
        if (!brief)
                fprintf(f, "  %-20s", s->opened ? opened : "-");
        if (!brief && s->owner.fp[0])
                fprintf(f, " key=%s", s->owner.fp);
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

static void list_json(FILE *f, const struct manager *m, const struct peer *who, bool all) {
        const struct session *s;
        struct jsonw j;

        jsonw_init_file(&j, f);
        jsonw_array(&j);
        TAILQ_FOREACH(s, &m->sessions, link)
        if (all || peer_is(who, &s->owner))
                session_json(&j, s);
        jsonw_array_end(&j);
        fputc('\n', f);
}

char *session_list(struct manager *m, const struct peer *who, bool all, uint8_t form, size_t *ret_len) {
        const struct session *s;
        char *buf = NULL;
        FILE *f = open_memstream(&buf, ret_len);

        if (!f)
                return NULL;
        if (form == ANSWER_JSON)
                list_json(f, m, who, all);
        else {
                if (form == ANSWER_TEXT)
                        session_line_head(f, false);
                TAILQ_FOREACH(s, &m->sessions, link)
                if (!all && !peer_is(who, &s->owner))
                        continue;
                else if (form == ANSWER_RECORDS)
                        session_record(f, s);
                else
                        session_line(f, s, false);
        }
        if (fclose(f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}
