/*
 * Inspect first, and the socket only for what runs: its pid is what the manager will know the agent by.
 * The folder is found by the record's tag below the runtime folder, never by what a message says, and the
 * record is looked up again behind the inspection, as its container may have ended meanwhile.
 */
#include "engine/relisten.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "engine/apijson.h"

struct relisten {
        struct broker *broker;
        struct request *request;
        char id[ENGINE_ID_LEN + 1];
};

static bool is_running(const struct broker *b, const struct record *rec,
                       const struct apijson_container *seen) {
        return strcmp(seen->id, rec->id) == 0 && strcmp(seen->name, rec->name) == 0 &&
               strcmp(seen->installation, b->records.installation) == 0 && seen->running &&
               seen->pid >= 2;
}

static void listen_anew(struct relisten *l, const struct record *rec,
                        const struct apijson_container *seen) {
        struct engine_msg m = { .type = ENGINE_LISTENING, .pid = seen->pid, .image = seen->image };
        _cleanup_fd_ int fd = -1;
        int r;

        if (request_orphaned(l->request)) {
                request_fail(l->request, ENGINE_E_REFUSED, "listen: the manager went away");
                return;
        }
        r = sockdir_listen_again(&l->broker->sockdir, record_tag(rec), &fd);
        if (r < 0)
                request_fail(
                        l->request, ENGINE_E_REFUSED,
                        "listen: folder of container %.12s in %s: %s: the sandbox cannot be reached "
                        "any more",
                        l->id, l->broker->sockdir.path, strerror(-r));
        else
                request_answer(l->request, &m, fd);
}

static void inspected(void *userdata, const struct api_reply *reply) {
        _cleanup_free_ struct relisten *l = userdata;
        const struct record *rec = records_by_id(&l->broker->records, l->id);
        struct apijson_container seen;
        char words[400];
        struct errmsg e;

        if (reply->error) {
                request_fail_call(l->request, reply, "listen");
        } else if (reply->status == 404 || !rec) {
                request_fail(l->request, ENGINE_E_NOT_OURS, "listen: container %.12s is gone", l->id);
        } else if (reply->status != 200) {
                apijson_message(reply->body, reply->len, words, sizeof(words));
                request_fail(l->request, ENGINE_E_REFUSED, "listen: the engine says: %s", words);
        } else if (apijson_inspect(reply->body, reply->len, &seen, &e) < 0) {
                request_fail(l->request, ENGINE_E_REFUSED, "listen: %s", e.text);
        } else if (!is_running(l->broker, rec, &seen)) {
                request_fail(l->request, ENGINE_E_NOT_OURS,
                             "listen: container %.12s does not run (state %s)", l->id, seen.state);
        } else {
                listen_anew(l, rec, &seen);
        }
}

static const struct api_handler inspected_handler = { .on_done = inspected };

void relisten_request(struct broker *b, struct request *q, const struct engine_msg *m) {
        const struct record *rec = records_by_id(&b->records, m->container);
        struct api_request get = { .method = "GET", .timeout_ms = API_CALL_MS };
        struct relisten *l;
        char path[160];

        if (!rec) {
                request_fail(q, ENGINE_E_NOT_OURS, "listen: container %.12s is not one of ours",
                             m->container);
                return;
        }
        if (rec->busy) {
                request_fail(q, ENGINE_E_NOT_OURS, "listen: container %.12s is still being created",
                             m->container);
                return;
        }
        l = calloc(1, sizeof(*l));
        if (l) {
                *l = (struct relisten){ .broker = b, .request = q };
                snprintf(l->id, sizeof(l->id), "%s", rec->id);
        }
        snprintf(path, sizeof(path), "/containers/%s/json", rec->id);
        get.path = path;
        if (!l || api_start(b->api, &get, &inspected_handler, l, NULL) < 0) {
                free(l);
                request_fail(q, ENGINE_E_REFUSED, "listen: out of memory");
        }
}
