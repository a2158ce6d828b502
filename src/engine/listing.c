/*
 * A container is ours when its name is in our records and its label is ours: an image's labels become
 * the container's, and anybody may choose a name, but nobody else writes our records.
 */
#include "engine/listing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "engine/apijson.h"
#include "engine/removal.h"

/* How long a record without an id waits for a create whose answer nobody saw. */
#define ORPHAN_MS 120000

static int start_list(struct broker *b, bool urgent, const struct api_handler *handler, void *userdata,
                      struct api_call **ret) {
        struct api_request q = { .method = "GET", .urgent = urgent, .timeout_ms = API_CALL_MS };
        _cleanup_free_ char *escaped = NULL, *path = NULL;
        char filters[160];

        snprintf(filters, sizeof(filters), "{\"label\":[\"%s=%s\"]}", LABEL_INSTALLATION,
                 b->records.installation);
        escaped = api_escape(filters, "");
        path = escaped ? api_path("/containers/json?all=1&filters=%s", escaped) : NULL;
        if (!path)
                return -ENOMEM;
        q.path = path;
        return api_start(b->api, &q, handler, userdata, ret);
}

/* The entry of @rec in @list, or NULL. */
static const struct apijson_container *find(const struct broker *b, const struct record *rec,
                                            const struct apijson_container *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i].name, rec->name) == 0 &&
                    strcmp(list[i].installation, b->records.installation) == 0 &&
                    (!rec->id[0] || strcmp(list[i].id, rec->id) == 0))
                        return &list[i];
        return NULL;
}

static bool lives(const struct apijson_container *c) {
        return strcmp(c->state, "running") == 0 || strcmp(c->state, "paused") == 0;
}

/* One record against what the engine has. May drop it. */
static void compare_record(struct broker *b, struct record *rec, const struct apijson_container *list,
                           size_t n) {
        const struct apijson_container *c = find(b, rec, list, n);

        if (rec->busy)
                return;
        if (c && !rec->id[0])
                records_set_id(&b->records, rec, c->id);
        if (removal_is_under_way(b, rec) || (c && lives(c) && !rec->unwanted))
                return;
        if (rec->id[0] && !rec->died && !(c && lives(c))) {
                rec->died = true;
                serve_died(b->serve, rec->id, ENGINE_EXIT_UNKNOWN, rec->oom);
        }
        if (c)
                /* Created and never started, ended, or refused to go before: of no use to anybody. */
                removal_start(b, rec, NULL, NULL);
        else if (!rec->unsure || rec->id[0] || records_now_ms() - rec->since_ms >= ORPHAN_MS)
                removal_forget(b, rec);
}

static bool folder_wanted(void *userdata, const char *tag) {
        struct broker *b = userdata;

        for (const struct record *rec = b->records.first; rec; rec = rec->next)
                if (strcmp(record_tag(rec), tag) == 0)
                        return true;
        return false;
}

static void compare_all(struct broker *b, const struct apijson_container *list, size_t n) {
        struct record *next;

        for (struct record *rec = b->records.first; rec; rec = next) {
                next = rec->next;
                compare_record(b, rec, list, n);
        }
        sockdir_sweep(&b->sockdir, folder_wanted, b);
}

/* --- the comparison of the link
 * ---------------------------------------------------------------------- */

static void reconcile_done(void *userdata, const struct api_reply *reply) {
        struct reconcile *w = userdata;
        _cleanup_free_ struct apijson_container *list = NULL;
        struct errmsg e = { "" };
        size_t n = 0;

        if (reply->error || reply->status != 200) {
                w->done(w->userdata, reply);
                return;
        }
        if (apijson_list(reply->body, reply->len, &list, &n, &e) < 0) {
                struct api_reply bad = {
                        .error = -EPROTO, .why = e.text, .body = "", .api_version = ""
                };

                w->done(w->userdata, &bad);
                return;
        }
        compare_all(w->broker, list, n);
        w->done(w->userdata, NULL);
}

static const struct api_handler reconcile_handler = { .on_done = reconcile_done };

int listing_reconcile(struct reconcile *w, struct api_call **ret) {
        return start_list(w->broker, true, &reconcile_handler, w, ret);
}

/* --- ENGINE_LIST
 * ------------------------------------------------------------------------------------- */

struct listing {
        struct broker *broker;
        struct request *request;
        char after[ENGINE_ID_LEN + 1];
};

static int by_id(const void *a, const void *b) {
        return strcmp(((const struct apijson_container *)a)->id,
                      ((const struct apijson_container *)b)->id);
}

static void answer_list(struct listing *l, struct apijson_container *list, size_t n) {
        struct engine_msg m = { .type = ENGINE_LISTED };

        qsort(list, n, sizeof(*list), by_id);
        for (size_t i = 0; i < n; i++) {
                const struct record *rec = records_by_id(&l->broker->records, list[i].id);

                if (!rec || rec->busy || !lives(&list[i]) || find(l->broker, rec, &list[i], 1) == NULL ||
                    strcmp(list[i].id, l->after) <= 0)
                        continue;
                if (m.n_listed == ENGINE_LIST_MAX) {
                        m.more = true;
                        break;
                }
                m.listed[m.n_listed++] = (struct engine_listed){ list[i].id, list[i].profile,
                                                                 list[i].state };
        }
        request_answer(l->request, &m, -1);
}

static void list_done(void *userdata, const struct api_reply *reply) {
        _cleanup_free_ struct apijson_container *list = NULL;
        _cleanup_free_ struct listing *l = userdata;
        char words[400];
        struct errmsg e = { "" };
        size_t n = 0;

        if (reply->error) {
                request_fail_call(l->request, reply, "list");
        } else if (reply->status != 200) {
                apijson_message(reply->body, reply->len, words, sizeof(words));
                request_fail(l->request, ENGINE_E_REFUSED, "list: the engine says: %s", words);
        } else if (apijson_list(reply->body, reply->len, &list, &n, &e) < 0) {
                request_fail(l->request, ENGINE_E_REFUSED, "list: %s", e.text);
        } else {
                compare_all(l->broker, list, n);
                answer_list(l, list, n);
        }
}

static const struct api_handler list_handler = { .on_done = list_done };

void listing_request(struct broker *b, struct request *q, const struct engine_msg *m) {
        struct listing *l = calloc(1, sizeof(*l));

        if (l) {
                *l = (struct listing){ .broker = b, .request = q };
                snprintf(l->after, sizeof(l->after), "%s", m->container);
        }
        if (!l || start_list(b, false, &list_handler, l, NULL) < 0) {
                free(l);
                request_fail(q, ENGINE_E_REFUSED, "list: out of memory");
        }
}

/* --- ENGINE_INSPECT
 * ---------------------------------------------------------------------------------- */

static void inspect_done(void *userdata, const struct api_reply *reply) {
        struct engine_msg m = { .type = ENGINE_INSPECTED };
        struct apijson_container c;
        struct request *q = userdata;
        char words[400];
        struct errmsg e;

        if (reply->error) {
                request_fail_call(q, reply, "inspect");
        } else if (reply->status == 404) {
                m.status = "gone";
                m.exit_code = ENGINE_EXIT_UNKNOWN;
                request_answer(q, &m, -1);
        } else if (reply->status != 200) {
                apijson_message(reply->body, reply->len, words, sizeof(words));
                request_fail(q, ENGINE_E_REFUSED, "inspect: the engine says: %s", words);
        } else if (apijson_inspect(reply->body, reply->len, &c, &e) < 0) {
                request_fail(q, ENGINE_E_REFUSED, "inspect: %s", e.text);
        } else {
                m.status = c.state;
                m.pid = c.pid;
                m.exit_code = c.exit_code;
                m.oom_killed = c.oom_killed;
                request_answer(q, &m, -1);
        }
}

static const struct api_handler inspect_handler = { .on_done = inspect_done };

void listing_inspect(struct broker *b, struct request *q, const struct engine_msg *m) {
        struct api_request get = { .method = "GET", .timeout_ms = API_CALL_MS };
        char path[160];

        if (!records_by_id(&b->records, m->container)) {
                request_fail(q, ENGINE_E_NOT_OURS, "inspect: container %.12s is not one of ours",
                             m->container);
                return;
        }
        snprintf(path, sizeof(path), "/containers/%s/json", m->container);
        get.path = path;
        if (api_start(b->api, &get, &inspect_handler, q, NULL) < 0)
                request_fail(q, ENGINE_E_REFUSED, "inspect: out of memory");
}
