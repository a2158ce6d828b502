/* The answer to `hermes-sandbox status`: the same facts as text for people and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "common/engine_info.h"
#include "common/jsonw.h"
#include "manager/manager.h"
#include "manager/session.h"

static const char *engine_state(const struct manager *m) {
        switch (m->broker.state) {
        case ENGINE_UP:
                return "up";
        case ENGINE_NOT_ENABLED:
                return "not enabled";
        default:
                return "down";
        }
}

static void info_value(const struct manager *m, const char *key, char *buf, size_t cap) {
        size_t n = strlen(key);

        buf[0] = '\0';
        for (const char *p = m->broker.info; p && *p; p = strchr(p, '\n'), p += p != NULL)
                if (strncmp(p, key, n) == 0 && p[n] == '=') {
                        snprintf(buf, cap, "%.*s", (int)strcspn(p + n + 1, "\n"), p + n + 1);
                        return;
                }
}

/* The lines that the engine itself warns with, "WARNING: No swap limit support" and the like. */
static void warnings(const struct manager *m, void (*say)(void *userdata, const char *line),
                     void *userdata) {
        static const char key[] = ENGINE_INFO_WARNING "=";
        char line[256];

        for (const char *p = m->broker.info; p && *p; p = strchr(p, '\n'), p += p != NULL) {
                if (strncmp(p, key, strlen(key)) != 0)
                        continue;
                p += strlen(key);
                snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
                say(userdata, line);
        }
}

/* --- text --------------------------------------------------------------------------------------- */

static void say_line(void *userdata, const char *line) {
        fprintf(userdata, "  %s\n", line);
}

static void say_warning(void *userdata, const char *line) {
        fprintf(userdata, "  engine warning: %s\n", line);
}

static void text_pool(FILE *f, const struct pool *p) {
        struct layer layers[LAYERS_MAX];
        size_t n = layers_of(p, layers);
        const char *reuse;
        char why[256];

        if (!p->profile)
                return;
        reuse = pool_reuse(p, why, sizeof(why));
        fprintf(f,
                "pool %s: %u of %u warm, %u starting, %u busy, %u leased, %u waiting\n"
                "  image         %s\n"
                "  reuse         %s%s%s%s",
                p->name, p->n_warm, p->profile->size, p->n_starting + p->n_creating + p->n_alone,
                p->n_busy + p->n_scrubbing, p->n_leased, p->n_queue, p->profile->image, reuse,
                why[0] ? " (" : "", why, why[0] ? ")" : "");
        if (p->n_scrubs)
                fprintf(f, ", %" PRIu64 " scrubs, %" PRIu64 " not proved clean", p->n_scrubs,
                        p->n_scrubs_failed);
        fputc('\n', f);
        if (p->error[0])
                fprintf(f, "  last failure: %s\n", p->error);
        for (size_t i = 0; i < n; i++)
                fprintf(f, "  %-13s %-12s %s\n", layers[i].name, layer_state_name(layers[i].state),
                        layers[i].why);
}

static unsigned n_sessions(const struct manager *m) {
        const struct session *s;
        unsigned n = 0;

        TAILQ_FOREACH(s, &m->sessions, link)
        n++;
        return n;
}

/* All are counted; more of one is said to its owner, and to root. */
static bool may_see(const struct session *s, const struct peer *who) {
        return who->uid == 0 || peer_is(who, &s->owner);
}

static void text_sessions(FILE *f, const struct manager *m, const struct peer *who) {
        const struct session *s;
        bool head = false;

        fprintf(f, "sessions: %u\n", n_sessions(m));
        TAILQ_FOREACH(s, &m->sessions, link) {
                if (!may_see(s, who))
                        continue;
                fputs("  ", f);
                if (!head) {
                        session_line_head(f, true);
                        fputs("  ", f);
                }
                head = true;
                session_line(f, s, true);
        }
}

static void text(FILE *f, struct manager *m, const struct peer *who) {
        char version[128], api[32];
        struct pool *p;

        info_value(m, ENGINE_INFO_VERSION, version, sizeof(version));
        info_value(m, ENGINE_INFO_API, api, sizeof(api));
        fprintf(f,
                "hermes-sandboxd %s, up %" PRIu64 " s: %" PRIu64 " commands (%" PRIu64 " warm), %" PRIu64
                " rejected",
                VERSION, (now_ms() - m->started_ms) / 1000, m->n_done, m->n_hits, m->n_rejected);
        if (m->n_suppressed)
                fprintf(f, " (%" PRIu64 " over limits.exec_rate)", m->n_suppressed);
        fprintf(f, ", %u callers connected\n", m->n_clients);
        /* The broker's line for "not enabled" begins with just these words. */
        if (m->broker.state == ENGINE_NOT_ENABLED)
                fprintf(f, "engine: %s", m->broker.state_text);
        else
                fprintf(f, "engine: %s%s%s", engine_state(m), m->broker.state_text[0] ? ": " : "",
                        m->broker.state_text);
        if (version[0])
                fprintf(f, ", version %s, API %s", version, api);
        fputc('\n', f);
        if (m->options.single_user)
                fputs("no privilege separation: manager and broker are one user's processes\n", f);
        warnings(m, say_warning, f);
        LIST_FOREACH(p, &m->pools, link)
        text_pool(f, p);
        text_sessions(f, m, who);
        fputs("accepted, not enforced in this version:\n", f);
        config_unenforced(m->config, say_line, f);
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void jsonw_line(void *userdata, const char *line) {
        jsonw_str(userdata, line);
}

static void jsonw_pool(struct jsonw *j, const struct pool *p) {
        struct layer layers[LAYERS_MAX];
        size_t n = layers_of(p, layers);
        const char *reuse;
        char why[256];

        if (!p->profile)
                return;
        reuse = pool_reuse(p, why, sizeof(why));
        jsonw_object(j);
        jsonw_key_str(j, "profile", p->name);
        jsonw_key_str(j, "image", p->profile->image);
        jsonw_key_str(j, "reuse", reuse);
        jsonw_key_str(j, "reuse_why", why[0] ? why : NULL);
        jsonw_key_count(j, "size", p->profile->size);
        jsonw_key_count(j, "warm", p->n_warm);
        jsonw_key_count(j, "starting", p->n_starting + p->n_creating + p->n_alone);
        jsonw_key_count(j, "busy", p->n_busy);
        jsonw_key_count(j, "scrubbing", p->n_scrubbing);
        jsonw_key_count(j, "leased", p->n_leased);
        jsonw_key_count(j, "waiting", p->n_queue);
        jsonw_key_count(j, "scrubs", p->n_scrubs);
        jsonw_key_count(j, "scrubs_failed", p->n_scrubs_failed);
        jsonw_key_str(j, "last_failure", p->error[0] ? p->error : NULL);
        jsonw_key(j, "layers");
        jsonw_object(j);
        for (size_t i = 0; i < n; i++) {
                jsonw_key(j, layers[i].name);
                jsonw_object(j);
                jsonw_key_str(j, "state", layer_state_name(layers[i].state));
                jsonw_key_str(j, "why", layers[i].why);
                jsonw_object_end(j);
        }
        jsonw_object_end(j);
        jsonw_object_end(j);
}

static void as_json(struct jsonw *j, struct manager *m, const struct peer *who) {
        const struct session *s;
        char version[128], api[32];
        struct audit_counts counts;
        struct pool *p;

        info_value(m, ENGINE_INFO_VERSION, version, sizeof(version));
        info_value(m, ENGINE_INFO_API, api, sizeof(api));
        audit_counts(m->audit, &counts);
        jsonw_object(j);
        jsonw_key_str(j, "version", VERSION);
        jsonw_key_count(j, "uptime_seconds", (now_ms() - m->started_ms) / 1000);
        jsonw_key_count(j, "commands", m->n_done);
        jsonw_key_count(j, "commands_warm", m->n_hits);
        jsonw_key_count(j, "rejected", m->n_rejected);
        jsonw_key_count(j, "suppressed", m->n_suppressed);
        jsonw_key_count(j, "callers", m->n_clients);
        jsonw_key(j, "privilege_separation");
        jsonw_bool(j, !m->options.single_user);
        jsonw_key(j, "engine");
        jsonw_object(j);
        jsonw_key_str(j, "state", engine_state(m));
        jsonw_key_str(j, "why", m->broker.state_text[0] ? m->broker.state_text : NULL);
        jsonw_key_str(j, "version", version[0] ? version : NULL);
        jsonw_key_str(j, "api_version", api[0] ? api : NULL);
        jsonw_key(j, "warnings");
        jsonw_array(j);
        warnings(m, jsonw_line, j);
        jsonw_array_end(j);
        jsonw_object_end(j);
        jsonw_key(j, "audit");
        jsonw_object(j);
        jsonw_key_str(j, "kernel", audit_kernel_state(m->audit, NULL));
        jsonw_key_count(j, "kernel_records", counts.kernel_records);
        jsonw_key_count(j, "trail_lines", counts.trail_lines);
        jsonw_key_count(j, "failures", counts.failures);
        jsonw_object_end(j);
        jsonw_key(j, "pools");
        jsonw_array(j);
        LIST_FOREACH(p, &m->pools, link)
        jsonw_pool(j, p);
        jsonw_array_end(j);
        jsonw_key_count(j, "sessions_open", n_sessions(m));
        jsonw_key(j, "sessions");
        jsonw_array(j);
        TAILQ_FOREACH(s, &m->sessions, link)
        if (may_see(s, who))
                session_json(j, s);
        jsonw_array_end(j);
        jsonw_key(j, "unenforced");
        jsonw_array(j);
        config_unenforced(m->config, jsonw_line, j);
        jsonw_array_end(j);
        jsonw_object_end(j);
        jsonw_done(j);
}

/* --- systemd ------------------------------------------------------------------------------------ */

void status_notify(struct manager *m) {
        unsigned warm = 0, busy = 0, waiting = 0;
        char line[sizeof(m->notified)];
        const struct pool *p;

        LIST_FOREACH(p, &m->pools, link) {
                warm += p->n_warm;
                busy += p->n_busy + p->n_scrubbing;
                waiting += p->n_queue;
        }
        if (m->draining)
                snprintf(line, sizeof(line), "stopping, %u busy", busy);
        else if (m->broker.state != ENGINE_UP)
                snprintf(line, sizeof(line), "%u warm, %u busy, %u waiting; %.100s", warm, busy, waiting,
                         m->broker.state_text);
        else
                snprintf(line, sizeof(line), "%u warm, %u busy, %u waiting", warm, busy, waiting);
        if (strcmp(line, m->notified) == 0)
                return;
        memcpy(m->notified, line, sizeof(line));
        sd_notifyf(0, "STATUS=%s", line);
}

char *status_text(struct manager *m, const struct peer *who, bool json, size_t *ret_len) {
        char *buf = NULL;
        struct jsonw j;
        FILE *f = open_memstream(&buf, ret_len);

        if (!f)
                return NULL;
        if (json) {
                jsonw_init_file(&j, f);
                as_json(&j, m, who);
                fputc('\n', f);
        } else
                text(f, m, who);
        if (fclose(f) != 0) {
                free(buf);
                return NULL;
        }
        return buf;
}
