/* What every decoder of proto.h promises about what it takes, for the targets that feed them. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/proto.h"
#include "common/proto_open.h"
#include "common/wire.h"

static inline void check(bool ok) {
        if (!ok)
                abort();
}

static inline void check_hex(const char *s, size_t n) {
        check(strlen(s) == n && strspn(s, "0123456789abcdef") == n);
}

/* What was taken encodes to the same bytes. */
static inline void check_same(const void *p, size_t len, const void *again, ssize_t n) {
        check(n == (ssize_t)len && memcmp(p, again, len) == 0);
}

static inline void check_strings(const uint8_t *p, size_t len, uint32_t n_args, uint32_t n_env) {
        struct wire_in in;

        check(n_args >= 1 && n_args <= PROTO_ARGS_MAX && n_env <= PROTO_ENV_MAX);
        wire_in_init(&in, p, len);
        for (uint32_t i = 0; i < n_args; i++)
                check(wire_get_str(&in, PROTO_EXEC_MAX));
        for (uint32_t i = 0; i < n_env; i++) {
                const char *s = wire_get_str(&in, PROTO_EXEC_MAX);

                check(s && s[0] != '=' && strchr(s, '='));
        }
        check(wire_in_done(&in));
}

static inline void decode_hello(const uint8_t *p, size_t len) {
        uint8_t again[4200];
        struct hello h;

        if (hello_decode(p, len, &h) == 0)
                check_same(p, len, again, hello_encode(&h, again, sizeof(again)));
}

static inline void decode_window(const uint8_t *p, size_t len) {
        uint8_t again[WINDOW_SIZE];
        struct window w;

        if (window_decode(p, len, &w) < 0)
                return;
        check(w.stream <= STREAM_STDERR && w.bytes > 0);
        window_encode(&w, again);
        check_same(p, len, again, WINDOW_SIZE);
}

static inline void decode_request(const uint8_t *p, size_t len) {
        struct exec_request r;

        if (exec_request_decode(p, len, &r) < 0)
                return;
        check(strlen(r.profile) <= PROTO_NAME_MAX && strlen(r.workdir) <= PROTO_PATH_MAX);
        check(!r.shell || r.n_args == 1);
        check_strings(r.args_wire, r.strings_len, r.n_args, r.n_env);
}

static inline void decode_order(const uint8_t *p, size_t len) {
        uint8_t head[PROTO_PATH_MAX + 128];
        struct exec_order o;
        ssize_t n;

        if (exec_order_decode(p, len, &o) < 0)
                return;
        check(o.workdir[0] == '/' && (!o.shell || o.n_args == 1) && (!o.scrub || o.one_shot));
        check_strings(o.strings, o.strings_len, o.n_args, o.n_env);
        n = exec_order_encode_head(&o, head, sizeof(head));
        check_same(p, len - o.strings_len, head, n);
}

static inline void decode_started(const uint8_t *p, size_t len) {
        uint8_t again[1024];
        struct started s;

        if (started_decode(p, len, &s) < 0)
                return;
        check_hex(s.exec_id, PROTO_EXEC_ID);
        check_hex(s.container_id, PROTO_CONTAINER_ID);
        check_same(p, len, again, started_encode(&s, again, sizeof(again)));
}

static inline void decode_exited(const uint8_t *p, size_t len) {
        uint8_t again[256];
        struct exited e;

        if (exited_decode(p, len, &e) < 0)
                return;
        check(strcmp(cause_name(e.cause), "unknown") != 0 &&
              (!e.signaled || (e.code > 0 && e.code <= 64)));
        check_same(p, len, again, exited_encode(&e, again, sizeof(again)));
}

static inline void decode_scrubbed(const uint8_t *p, size_t len) {
        uint8_t again[128];
        struct scrubbed s;

        if (scrubbed_decode(p, len, &s) < 0)
                return;
        check(strcmp(scrub_check_name(s.check), "unknown") != 0 && strlen(s.place) <= PROTO_NAME_MAX);
        check_same(p, len, again, scrubbed_encode(&s, again, sizeof(again)));
}

static inline void decode_result(const uint8_t *p, size_t len) {
        uint8_t again[4096];
        struct result r;

        if (result_decode(p, len, &r) < 0)
                return;
        check_hex(r.exec_id, PROTO_EXEC_ID);
        check_hex(r.container_id, PROTO_CONTAINER_ID);
        check(strlen(r.message) <= PROTO_LINE_MAX && strlen(r.session) <= PROTO_NAME_MAX);
        check_same(p, len, again, result_encode(&r, again, sizeof(again)));
}

static inline void decode_reject(const uint8_t *p, size_t len) {
        uint8_t again[2048];
        struct reject r;

        if (reject_decode(p, len, &r) < 0)
                return;
        check(r.exit_code != 0);
        check_same(p, len, again, reject_encode(&r, again, sizeof(again)));
}

static inline void decode_resize(const uint8_t *p, size_t len) {
        uint8_t again[RESIZE_SIZE];
        struct resize r;

        if (resize_decode(p, len, &r) < 0)
                return;
        resize_encode(&r, again);
        check_same(p, len, again, RESIZE_SIZE);
}

static inline void decode_ask(const uint8_t *p, size_t len) {
        static uint8_t again[16384];
        struct ask a;

        if (ask_decode(p, len, &a) < 0)
                return;
        check(strlen(a.name) <= PROTO_NAME_MAX && a.n_labels <= PROTO_LABELS_MAX && a.signal <= 64);
        check_same(p, len, again, ask_encode(&a, again, sizeof(again)));
}

static inline void decode_open(const uint8_t *p, size_t len) {
        static uint8_t again[FRAME_PAYLOAD_MAX];
        static const char *env[PROTO_OPEN_ENV_MAX];
        struct open_request r;
        struct wire_in in;

        if (open_request_decode(p, len, &r) < 0)
                return;
        check(strlen(r.name) <= PROTO_NAME_MAX && r.n_labels <= PROTO_LABELS_MAX);
        check(r.n_env <= PROTO_OPEN_ENV_MAX && r.env_len <= PROTO_OPEN_ENV_BYTES);
        wire_in_init(&in, r.env_wire, r.env_len);
        for (uint32_t i = 0; i < r.n_env; i++)
                env[i] = wire_get_str(&in, PROTO_OPEN_ENV_BYTES);
        check(wire_in_done(&in));
        r.env = env;
        check_same(p, len, again, open_request_encode(&r, again, sizeof(again)));
}

static inline void decode_records(const uint8_t *p, size_t len) {
        static uint8_t again[FRAME_PAYLOAD_MAX];
        const uint8_t *record;
        size_t record_len;

        while (record_next(&p, &len, &record, &record_len) > 0) {
                struct session_info s;
                struct image_info i;

                if (session_info_decode(record, record_len, &s) == 0)
                        check_same(record, record_len, again,
                                   session_info_encode(&s, again, sizeof(again)));
                if (image_info_decode(record, record_len, &i) == 0)
                        check_same(record, record_len, again,
                                   image_info_encode(&i, again, sizeof(again)));
        }
}

static inline void decode_attach(const uint8_t *p, size_t len) {
        uint8_t again[64];
        struct attach_order o;
        struct attach a;

        if (attach_decode(p, len, &a) == 0) {
                check_hex(a.exec_id, PROTO_EXEC_ID);
                check_same(p, len, again, attach_encode(&a, again, sizeof(again)));
        }
        if (attach_order_decode(p, len, &o) == 0)
                check_same(p, len, again, attach_order_encode(&o, again, sizeof(again)));
}

static inline void decode_attached(const uint8_t *p, size_t len) {
        uint8_t again[ATTACHED_SIZE];
        struct attached a;

        if (attached_decode(p, len, &a) < 0)
                return;
        attached_encode(&a, again);
        check_same(p, len, again, ATTACHED_SIZE);
}

static inline void decode_held(const uint8_t *p, size_t len) {
        static uint8_t again[8192];
        static struct held h;

        if (held_decode(p, len, &h) < 0)
                return;
        check(h.n <= PROTO_HELD_MAX);
        for (uint16_t i = 0; i < h.n; i++)
                check_hex(h.of[i].exec_id, PROTO_EXEC_ID);
        check_same(p, len, again, held_encode(&h, again, sizeof(again)));
}

/* Every payload that may stand in a frame of this type. */
static inline void decode(const struct frame *f) {
        switch (f->type) {
        case FRAME_RESIZE:
                decode_resize(f->payload, f->len);
                break;
        case FRAME_ASK:
                decode_ask(f->payload, f->len);
                break;
        case FRAME_OPEN:
                decode_open(f->payload, f->len);
                break;
        case FRAME_ANSWER:
                decode_records(f->payload, f->len);
                break;
        case FRAME_ATTACH:
                decode_attach(f->payload, f->len);
                break;
        case FRAME_ATTACHED:
                decode_attached(f->payload, f->len);
                break;
        case FRAME_HELD:
                decode_held(f->payload, f->len);
                break;
        case FRAME_HELLO:
                decode_hello(f->payload, f->len);
                break;
        case FRAME_EXEC:
                decode_request(f->payload, f->len);
                decode_order(f->payload, f->len);
                break;
        case FRAME_WINDOW:
                decode_window(f->payload, f->len);
                break;
        case FRAME_STARTED:
                decode_started(f->payload, f->len);
                break;
        case FRAME_EXITED:
                decode_exited(f->payload, f->len);
                break;
        case FRAME_SCRUBBED:
                decode_scrubbed(f->payload, f->len);
                break;
        case FRAME_RESULT:
                decode_result(f->payload, f->len);
                break;
        case FRAME_REJECT:
                decode_reject(f->payload, f->len);
                break;
        }
}

/* A whole stream of one sender, in buffers of exactly what has come: an offset at which a frame is not
 * whole must give 0, and the whole then 1. */
static inline void stream(const uint8_t *data, size_t size, enum frame_from from) {
        while (size > 0) {
                struct frame f, g;
                size_t used, unused = 0;
                int r = frame_parse(data, size, from, &f, &used);

                if (r <= 0)
                        return;
                check(used == FRAME_HEADER + f.len && used <= size && f.payload == data + FRAME_HEADER);
                check(frame_parse(data, used - 1, from, &g, &unused) == 0 && unused == 0);
                decode(&f);
                data += used;
                size -= used;
        }
}
