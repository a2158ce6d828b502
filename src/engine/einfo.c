#include "engine/einfo.h"

#include "engine/apijson.h"

static void info_done(void *userdata, const struct api_reply *reply) {
        struct engine_msg m = { .type = ENGINE_INFO_IS };
        char text[ENGINE_INFO_MAX + 1], words[400];
        struct request *q = userdata;
        bool cgroup_v2;
        struct errmsg e;

        if (reply->error) {
                request_fail_call(q, reply, "info");
        } else if (reply->status != 200) {
                apijson_message(reply->body, reply->len, words, sizeof(words));
                request_fail(q, ENGINE_E_REFUSED, "info: the engine says: %s", words);
        } else if (apijson_info(reply->body, reply->len, api_version(q->broker->api), &cgroup_v2, text,
                                sizeof(text), &e) < 0) {
                request_fail(q, ENGINE_E_REFUSED, "info: %s", e.text);
        } else {
                m.text = text;
                request_answer(q, &m, -1);
        }
}

static const struct api_handler info_handler = { .on_done = info_done };

void einfo_request(struct broker *b, struct request *q, const struct engine_msg *m) {
        struct api_request get = { .method = "GET", .path = "/info", .timeout_ms = API_CALL_MS };

        (void)m;
        if (api_start(b->api, &get, &info_handler, q, NULL) < 0)
                request_fail(q, ENGINE_E_REFUSED, "info: out of memory");
}
