/* What is told of one session: to a program as a record (proto_open.h), to people line by line. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/escape.h"
#include "common/jsonw.h"
#include "common/wire.h"
#include "manager/session.h"

void session_when(uint64_t seconds, char ret[32]) {
        time_t t = (time_t)seconds;
        struct tm tm;

        if (!gmtime_r(&t, &tm) || strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
                snprintf(ret, 32, "?");
}

static uint8_t status(const struct session *s) {
        switch (s->state) {
        case SESSION_OPEN:
        case SESSION_STOPPING:
                return SESSION_IS_RUNNING;
        case SESSION_STOPPED:
                return SESSION_IS_STOPPED;
        default:
                return SESSION_IS_OPENING;
        }
}

static const char *workdir(const struct session *s) {
        const struct config_profile *p = s->pool->profile;

        return s->workdir && s->workdir[0] ? s->workdir : p ? p->workdir : "";
}

void session_record(FILE *f, const struct session *s) {
        static uint8_t buf[4 + FRAME_PAYLOAD_MAX];
        const struct session_shape *shape = &s->shape;
        struct session_info i = {
                .id = s->container,
                .name = s->name,
                .profile = s->pool->name,
                .image = shape->image,
                .network = shape->network,
                .workdir = workdir(s),
                .status = status(s),
                .created = s->opened,
                .started = s->started,
                .finished = s->finished,
                .ttl_ms = s->ttl_ms,
                .uid = shape->users[0].uid,
                .gid = shape->users[0].gid,
                .memory_bytes = shape->memory_bytes,
                .cpu_nano = shape->cpu_nano,
                .shm_bytes = shape->shm_bytes,
                .pids_limit = shape->pids_limit,
                .running = s->n_running + s->n_attached,
                .mounts = s->mounts,
                .n_labels = s->n_labels,
        };
        struct wire_out out;
        ssize_t len;

        for (uint32_t k = 0; k < s->n_labels; k++)
                i.labels[k] = s->labels[k];
        len = session_info_encode(&i, buf + 4, sizeof(buf) - 4);
        if (len < 0)
                abort(); /* every field has a bound, and a payload holds them all */
        wire_out_init(&out, buf, 4);
        wire_put_u32(&out, (uint32_t)len);
        fwrite(buf, 1, 4 + (size_t)len, f);
}

static void text_line(FILE *f, const char *key, const char *value) {
        char shown[4 * PROTO_PATH_MAX + 1];
        struct text t;

        text_init(&t, shown, sizeof(shown));
        text_add_shown(&t, value, strlen(value));
        fprintf(f, "%-10s %s\n", key, shown);
}

static void text_limits(FILE *f, const struct session_shape *shape) {
        fprintf(f,
                "%-10s memory %" PRIu64 " MiB, %" PRIu64 ".%02" PRIu64
                " CPUs, %u processes, shm %" PRIu64 " MiB\n",
                "limits", shape->memory_bytes >> 20, shape->cpu_nano / 1000000000,
                shape->cpu_nano % 1000000000 / 10000000, shape->pids_limit, shape->shm_bytes >> 20);
        fprintf(f, "%-10s %u:%u\n", "user", shape->users[0].uid, shape->users[0].gid);
}

static void text(FILE *f, const struct session *s) {
        char when[32];

        text_line(f, "session", s->name);
        text_line(f, "sandbox", s->container[0] ? s->container : "-");
        text_line(f, "state", session_state_name(s));
        text_line(f, "profile", s->pool->name);
        text_line(f, "image", s->shape.image);
        text_line(f, "network", s->shape.network);
        text_line(f, "workdir", workdir(s));
        if (s->shape.n_users > 0)
                text_limits(f, &s->shape);
        session_when(s->opened, when);
        text_line(f, "opened", s->opened ? when : "-");
        session_when(s->started, when);
        text_line(f, "started", s->started ? when : "-");
        session_when(s->finished, when);
        text_line(f, "stopped", s->finished ? when : "never");
        fprintf(f, "%-10s %u\n", "running", s->n_running);
        for (uint32_t i = 0; i < s->n_labels; i++)
                text_line(f, "label", s->labels[i]);
}

void session_answer_info(const struct session *s, struct client *c, uint8_t form) {
        _cleanup_free_ char *buf = NULL;
        struct jsonw j;
        size_t len;
        FILE *f = open_memstream(&buf, &len);

        if (!f)
                abort();
        if (form == ANSWER_RECORDS)
                session_record(f, s);
        else if (form == ANSWER_JSON) {
                jsonw_init_file(&j, f);
                session_json(&j, s);
                fputc('\n', f);
        } else
                text(f, s);
        if (fclose(f) != 0)
                abort();
        client_answer(c, FRAME_ANSWER, buf, len);
}

void session_answer_opened(const struct session *s, struct client *c, uint8_t form) {
        char buf[PROTO_NAME_MAX + 2];

        if (form != ANSWER_TEXT) {
                session_answer_info(s, c, form);
                return;
        }
        snprintf(buf, sizeof(buf), "%s\n", s->name);
        client_answer(c, FRAME_ANSWER, buf, strlen(buf));
}
