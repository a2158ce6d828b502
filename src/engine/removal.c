/*
 * DELETE with force, then, where the engine says that a removal is going on already (auto-remove and
 * ours meet), asking until the container is really gone. Each removal keeps the name and id itself: the
 * record may be dropped meanwhile by an event.
 */
#include "engine/removal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "engine/apijson.h"
#include "engine/elink.h"

#define GONE_DEADLINE_MS 30000
#define ASK_AGAIN_MS 50

struct removal {
        struct removal *next, **prev;
        struct broker *broker;
        char name[RECORD_NAME_LEN + 1];
        char id[ENGINE_ID_LEN + 1];
        uint64_t deadline_ms;
        sd_event_source *timer;
        struct api_call *call;
        void (*done)(void *userdata, int error, const char *text);
        void *userdata;
};

static void removal_free(struct removal *m) {
        *m->prev = m->next;
        if (m->next)
                m->next->prev = m->prev;
        sd_event_source_disable_unref(m->timer);
        api_cancel(m->call);
        free(m);
}

void removal_forget(struct broker *b, struct record *rec) {
        sockdir_remove(&b->sockdir, record_tag(rec));
        records_drop(&b->records, rec);
}

static void finish(struct removal *m, int error, const char *text) {
        struct record *rec = records_by_name(&m->broker->records, m->name);

        /* One that may appear yet: comparisons look after it. */
        if (error == 0 && rec && (!rec->unsure || m->id[0]))
                removal_forget(m->broker, rec);
        /* And after one whose start, or the end of it, the engine still has before it. */
        if (error && rec) {
                rec->unwanted = true;
                elink_look_again(m->broker->link);
        }
        if (error)
                log_line(LOG_P_WARNING, "%s", text);
        if (m->done)
                m->done(m->userdata, error, text);
        removal_free(m);
}

static void finish_call(struct removal *m, const struct api_reply *reply) {
        char text[ENGINE_TEXT_MAX + 1], words[400];

        if (reply->error) {
                snprintf(text, sizeof(text),
                         "removal of container %.12s: the engine does not answer (%s): it is "
                         "tried again when the engine is back",
                         m->id[0] ? m->id : m->name, reply->why);
                finish(m, ENGINE_E_UNREACHABLE, text);
                return;
        }
        apijson_message(reply->body, reply->len, words, sizeof(words));
        snprintf(text, sizeof(text),
                 "removal of container %.12s: the engine says: %s: try docker rm -f %.12s",
                 m->id[0] ? m->id : m->name, words, m->id[0] ? m->id : m->name);
        finish(m, ENGINE_E_REFUSED, text);
}

static void ask(struct removal *m);

static int on_ask_again(sd_event_source *s, uint64_t usec, void *userdata) {
        (void)s;
        (void)usec;
        ask(userdata);
        return 0;
}

static void asked(void *userdata, const struct api_reply *reply) {
        struct removal *m = userdata;

        m->call = NULL;
        if (reply->error == 0 && reply->status == 404) {
                finish(m, 0, "");
        } else if (reply->error || reply->status != 200) {
                finish_call(m, reply);
        } else if (records_now_ms() >= m->deadline_ms) {
                char text[160];

                snprintf(text, sizeof(text),
                         "removal of container %.12s: still there after %d s: try docker rm "
                         "-f %.12s",
                         m->id[0] ? m->id : m->name, GONE_DEADLINE_MS / 1000, m->id);
                finish(m, ENGINE_E_REFUSED, text);
        } else {
                m->timer = sd_event_source_disable_unref(m->timer);
                if (sd_event_add_time_relative(m->broker->event, &m->timer, CLOCK_MONOTONIC,
                                               ASK_AGAIN_MS * 1000, 0, on_ask_again, m) < 0)
                        finish(m, ENGINE_E_REFUSED, "removal of a container: out of memory");
        }
}

static const struct api_handler asked_handler = { .on_done = asked };

static int call(struct removal *m, const char *method, const char *suffix, const struct api_handler *h) {
        struct api_request q = { .method = method, .timeout_ms = API_START_MS };
        char path[160];

        snprintf(path, sizeof(path), "/containers/%s%s", m->id[0] ? m->id : m->name, suffix);
        q.path = path;
        return api_start(m->broker->api, &q, h, m, &m->call);
}

static void ask(struct removal *m) {
        if (call(m, "GET", "/json", &asked_handler) < 0)
                finish(m, ENGINE_E_REFUSED, "removal of a container: out of memory");
}

static void deleted(void *userdata, const struct api_reply *reply) {
        struct removal *m = userdata;

        m->call = NULL;
        if (reply->error == 0 && reply->status == 404)
                finish(m, 0, "");
        else if (reply->error == 0 && (reply->status == 204 || reply->status == 409))
                ask(m);
        else
                finish_call(m, reply);
}

static const struct api_handler deleted_handler = { .on_done = deleted };

static int start(struct broker *b, const char *name, const char *id,
                 void (*done)(void *userdata, int error, const char *text), void *userdata,
                 struct removal **ret) {
        struct removal *m = calloc(1, sizeof(*m));

        if (!m)
                return -ENOMEM;
        m->broker = b;
        snprintf(m->name, sizeof(m->name), "%s", name);
        snprintf(m->id, sizeof(m->id), "%s", id);
        m->deadline_ms = records_now_ms() + GONE_DEADLINE_MS;
        m->done = done;
        m->userdata = userdata;
        m->next = b->removals;
        m->prev = &b->removals;
        if (m->next)
                m->next->prev = &m->next;
        b->removals = m;
        *ret = m;
        return 0;
}

bool removal_is_under_way(const struct broker *b, const struct record *rec) {
        for (const struct removal *m = b->removals; m; m = m->next)
                if (strcmp(m->name, rec->name) == 0)
                        return true;
        return false;
}

int removal_start(struct broker *b, const struct record *rec,
                  void (*done)(void *userdata, int error, const char *text), void *userdata) {
        struct removal *m;
        int r = start(b, rec->name, rec->id, done, userdata, &m);

        if (r < 0)
                return r;
        r = call(m, "DELETE", "?force=1&v=1", &deleted_handler);
        if (r < 0)
                removal_free(m);
        return r;
}

void removal_drop_all(struct broker *b) {
        while (b->removals)
                finish(b->removals, ENGINE_E_UNREACHABLE, "remove: the broker ends");
}

/* --- ENGINE_REMOVE
 * ----------------------------------------------------------------------------------- */

static void request_done(void *userdata, int error, const char *text) {
        struct engine_msg m = { .type = ENGINE_DONE };

        if (error)
                request_fail(userdata, (enum engine_error)error, "%s", text);
        else
                request_answer(userdata, &m, -1);
}

/* No record has this id. Gone is a success (its end, seen here, dropped the record); one that is there
 * belongs to somebody else. */
static void stranger_done(void *userdata, const struct api_reply *reply) {
        struct engine_msg m = { .type = ENGINE_DONE };
        struct request *q = userdata;

        if (reply->error)
                request_fail_call(q, reply, "remove");
        else if (reply->status == 404)
                request_answer(q, &m, -1);
        else
                request_fail(q, ENGINE_E_NOT_OURS,
                             "remove: that container is not one of ours: it stays as it is");
}

static const struct api_handler stranger_handler = { .on_done = stranger_done };

void removal_request(struct broker *b, struct request *q, const struct engine_msg *m) {
        const struct record *rec = records_by_id(&b->records, m->container);
        struct api_request get = { .method = "GET", .timeout_ms = API_CALL_MS };
        char path[160];
        int r;

        if (rec && rec->busy) {
                request_fail(q, ENGINE_E_NOT_OURS, "remove: that container is still being created");
                return;
        }
        snprintf(path, sizeof(path), "/containers/%s/json", m->container);
        get.path = path;
        r = rec ? removal_start(b, rec, request_done, q)
                : api_start(b->api, &get, &stranger_handler, q, NULL);
        if (r < 0)
                request_fail(q, ENGINE_E_REFUSED, "remove: %s", strerror(-r));
}
