/* Encoders and decoders of the payloads. One pair each, in the order of proto.h. */
#include "common/proto.h"

#include <errno.h>
#include <string.h>

#include "common/frame.h"
#include "common/wire.h"

#define HELLO_TEXT_MAX 4000

static const char *const cause_names[] = {
        [CAUSE_EXITED] = "exited",
        [CAUSE_SIGNALED] = "signaled",
        [CAUSE_TIMEOUT] = "timeout",
        [CAUSE_OOM] = "oom",
        [CAUSE_PIDS_LIMIT] = "pids_limit",
        [CAUSE_CANCELLED] = "cancelled",
        [CAUSE_SANDBOX_LOST] = "sandbox_lost",
        [CAUSE_REJECTED] = "rejected",
        [CAUSE_NOT_FOUND] = "not_found",
        [CAUSE_NOT_EXECUTABLE] = "not_executable",
};

const char *cause_name(uint8_t cause) {
        if (cause >= sizeof(cause_names) / sizeof(cause_names[0]) || !cause_names[cause])
                return "unknown";
        return cause_names[cause];
}

static const char *const scrub_check_names[SCRUB_CHECKS] = {
        [SCRUB_CLEAN] = "clean",   [SCRUB_PROCESSES] = "processes",
        [SCRUB_FILES] = "files",   [SCRUB_ATTRIBUTES] = "attributes",
        [SCRUB_BLOCKS] = "blocks", [SCRUB_SYSV_IPC] = "sysv_ipc",
        [SCRUB_QUEUES] = "queues", [SCRUB_SOCKETS] = "sockets",
        [SCRUB_MOUNTS] = "mounts", [SCRUB_UNPROVED] = "unproved",
};

const char *scrub_check_name(uint8_t check) {
        return check < SCRUB_CHECKS ? scrub_check_names[check] : "unknown";
}

static bool get_cause(struct wire_in *in, uint8_t *ret) {
        *ret = wire_get_u8(in);
        return *ret >= CAUSE_EXITED && *ret <= CAUSE_NOT_EXECUTABLE;
}

ssize_t hello_encode(const struct hello *h, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u16(&out, h->version);
        wire_put_u8(&out, h->role);
        wire_put_str(&out, h->text);
        return wire_out_len(&out);
}

int hello_decode(const void *buf, size_t len, struct hello *ret) {
        struct wire_in in;
        struct hello h;

        wire_in_init(&in, buf, len);
        h.version = wire_get_u16(&in);
        h.role = wire_get_u8(&in);
        h.text = wire_get_str(&in, HELLO_TEXT_MAX);
        if (!wire_in_done(&in) || h.role < HELLO_CLIENT || h.role > HELLO_GATEWAY)
                return -EPROTO;
        *ret = h;
        return 0;
}

size_t exec_request_size(const struct exec_request *r) {
        const char *const names[] = { r->profile, r->workdir, r->session };
        size_t n = 7 + 4 + 4 + 8 + 2 + 2 + 4 + 4;

        for (int i = 0; i < 3; i++)
                n += 4 + strlen(names[i] ? names[i] : "") + 1;

        for (uint32_t i = 0; i < r->n_args; i++)
                n += 4 + strlen(r->args[i]) + 1;
        for (uint32_t i = 0; i < r->n_env; i++)
                n += 4 + strlen(r->env[i]) + 1;
        return n;
}

ssize_t exec_request_encode(const struct exec_request *r, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u8(&out, r->use_stdin);
        wire_put_u8(&out, r->shell);
        wire_put_u8(&out, r->open);
        wire_put_u8(&out, r->detach);
        wire_put_u8(&out, r->tty);
        wire_put_u8(&out, r->files);
        wire_put_u8(&out, r->user);
        wire_put_u32(&out, r->uid);
        wire_put_u32(&out, r->gid);
        wire_put_u64(&out, r->timeout_ms);
        wire_put_u16(&out, r->rows);
        wire_put_u16(&out, r->cols);
        wire_put_u32(&out, r->n_args);
        wire_put_u32(&out, r->n_env);
        wire_put_str(&out, r->profile);
        wire_put_str(&out, r->workdir);
        wire_put_str(&out, r->session);
        for (uint32_t i = 0; i < r->n_args; i++)
                wire_put_str(&out, r->args[i]);
        for (uint32_t i = 0; i < r->n_env; i++)
                wire_put_str(&out, r->env[i]);
        return wire_out_len(&out);
}

/* Takes @n_args + @n_env strings off @in and gives back where they stand. */
static const uint8_t *get_strings(struct wire_in *in, uint32_t n_args, uint32_t n_env, bool shell,
                                  size_t *ret_len) {
        const uint8_t *start = in->p;

        if (in->bad || n_args < 1 || n_args > PROTO_ARGS_MAX || n_env > PROTO_ENV_MAX ||
            (shell && n_args != 1)) {
                in->bad = true;
                return NULL;
        }
        for (uint32_t i = 0; i < n_args; i++)
                if (!wire_get_str(in, PROTO_EXEC_MAX))
                        return NULL;
        for (uint32_t i = 0; i < n_env; i++)
                if (!wire_get_pair(in, PROTO_EXEC_MAX))
                        return NULL;
        *ret_len = (size_t)(in->p - start);
        return start;
}

int exec_request_decode(const void *buf, size_t len, struct exec_request *ret) {
        struct exec_request r = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        r.use_stdin = wire_get_bool(&in);
        r.shell = wire_get_bool(&in);
        r.open = wire_get_bool(&in);
        r.detach = wire_get_bool(&in);
        r.tty = wire_get_bool(&in);
        r.files = wire_get_bool(&in);
        r.user = wire_get_bool(&in);
        r.uid = wire_get_u32(&in);
        r.gid = wire_get_u32(&in);
        r.timeout_ms = wire_get_u64(&in);
        r.rows = wire_get_u16(&in);
        r.cols = wire_get_u16(&in);
        r.n_args = wire_get_u32(&in);
        r.n_env = wire_get_u32(&in);
        r.profile = wire_get_str(&in, PROTO_NAME_MAX);
        r.workdir = wire_get_str(&in, PROTO_PATH_MAX);
        r.session = wire_get_str(&in, PROTO_NAME_MAX);
        r.args_wire = get_strings(&in, r.n_args, r.n_env, r.shell, &r.strings_len);
        if (!wire_in_done(&in) || (r.workdir[0] != '\0' && r.workdir[0] != '/'))
                return -EPROTO;
        if (((r.open || r.detach) && r.session[0] == '\0') || (!r.user && (r.uid || r.gid)) ||
            r.uid == UINT32_MAX)
                return -EPROTO;
        if ((r.detach && (r.use_stdin || r.tty || r.files)) || (r.files && (r.shell || r.tty)) ||
            (!r.tty && (r.rows || r.cols)))
                return -EPROTO;
        *ret = r;
        return 0;
}

ssize_t exec_order_encode_head(const struct exec_order *o, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u8(&out, o->use_stdin);
        wire_put_u8(&out, o->shell);
        wire_put_u8(&out, o->one_shot);
        wire_put_u8(&out, o->scrub);
        wire_put_u8(&out, o->detached);
        wire_put_u8(&out, o->tty);
        wire_put_u8(&out, o->files);
        wire_put_u32(&out, o->uid);
        wire_put_u32(&out, o->gid);
        wire_put_u16(&out, o->rows);
        wire_put_u16(&out, o->cols);
        wire_put_str(&out, o->exec_id);
        wire_put_u64(&out, o->timeout_ms);
        wire_put_u32(&out, o->grace_ms);
        wire_put_u64(&out, o->output_bytes);
        wire_put_str(&out, o->workdir);
        wire_put_u32(&out, o->n_args);
        wire_put_u32(&out, o->n_env);
        return wire_out_len(&out);
}

int exec_order_decode(const void *buf, size_t len, struct exec_order *ret) {
        struct exec_order o = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        o.use_stdin = wire_get_bool(&in);
        o.shell = wire_get_bool(&in);
        o.one_shot = wire_get_bool(&in);
        o.scrub = wire_get_bool(&in);
        o.detached = wire_get_bool(&in);
        o.tty = wire_get_bool(&in);
        o.files = wire_get_bool(&in);
        o.uid = wire_get_u32(&in);
        o.gid = wire_get_u32(&in);
        o.rows = wire_get_u16(&in);
        o.cols = wire_get_u16(&in);
        o.exec_id = wire_get_hex(&in, PROTO_EXEC_ID);
        o.timeout_ms = wire_get_u64(&in);
        o.grace_ms = wire_get_u32(&in);
        o.output_bytes = wire_get_u64(&in);
        o.workdir = wire_get_str(&in, PROTO_PATH_MAX);
        o.n_args = wire_get_u32(&in);
        o.n_env = wire_get_u32(&in);
        o.strings = get_strings(&in, o.n_args, o.n_env, o.shell, &o.strings_len);
        if (!wire_in_done(&in) || o.workdir[0] != '/' || (o.scrub && !o.one_shot))
                return -EPROTO;
        if ((o.detached && (o.use_stdin || o.one_shot || o.tty || o.files)) || (o.tty && !o.use_stdin) ||
            (o.files && (o.shell || o.tty)) || (!o.tty && (o.rows || o.cols)))
                return -EPROTO;
        *ret = o;
        return 0;
}

void window_encode(const struct window *w, uint8_t buf[WINDOW_SIZE]) {
        struct wire_out out;

        wire_out_init(&out, buf, WINDOW_SIZE);
        wire_put_u8(&out, w->stream);
        wire_put_u32(&out, w->bytes);
}

int window_decode(const void *buf, size_t len, struct window *ret) {
        struct wire_in in;
        struct window w;

        wire_in_init(&in, buf, len);
        w.stream = wire_get_u8(&in);
        w.bytes = wire_get_u32(&in);
        if (!wire_in_done(&in) || w.stream > STREAM_STDERR || w.bytes == 0)
                return -EPROTO;
        *ret = w;
        return 0;
}

ssize_t started_encode(const struct started *s, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_str(&out, s->exec_id);
        wire_put_str(&out, s->container_id);
        wire_put_str(&out, s->profile);
        wire_put_u8(&out, s->pool_hit);
        return wire_out_len(&out);
}

int started_decode(const void *buf, size_t len, struct started *ret) {
        struct wire_in in;
        struct started s;

        wire_in_init(&in, buf, len);
        s.exec_id = wire_get_hex(&in, PROTO_EXEC_ID);
        s.container_id = wire_get_hex(&in, PROTO_CONTAINER_ID);
        s.profile = wire_get_str(&in, PROTO_NAME_MAX);
        s.pool_hit = wire_get_bool(&in);
        if (!wire_in_done(&in))
                return -EPROTO;
        *ret = s;
        return 0;
}

ssize_t exited_encode(const struct exited *e, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u8(&out, e->cause);
        wire_put_u8(&out, e->code);
        wire_put_u8(&out, e->signaled);
        wire_put_u8(&out, e->truncated);
        wire_put_u32(&out, (uint32_t)e->error);
        wire_put_u64(&out, e->wall_us);
        wire_put_u64(&out, e->user_us);
        wire_put_u64(&out, e->system_us);
        wire_put_u64(&out, e->maxrss_bytes);
        wire_put_u64(&out, e->sandbox_peak_bytes);
        for (int i = 0; i < 2; i++) {
                wire_put_u64(&out, e->dropped_bytes[i]);
                wire_put_u64(&out, e->dropped_lines[i]);
        }
        wire_put_u32(&out, e->background_left);
        return wire_out_len(&out);
}

int exited_decode(const void *buf, size_t len, struct exited *ret) {
        struct wire_in in;
        struct exited e;
        bool cause_ok;

        wire_in_init(&in, buf, len);
        cause_ok = get_cause(&in, &e.cause);
        e.code = wire_get_u8(&in);
        e.signaled = wire_get_bool(&in);
        e.truncated = wire_get_bool(&in);
        e.error = (int32_t)wire_get_u32(&in);
        e.wall_us = wire_get_u64(&in);
        e.user_us = wire_get_u64(&in);
        e.system_us = wire_get_u64(&in);
        e.maxrss_bytes = wire_get_u64(&in);
        e.sandbox_peak_bytes = wire_get_u64(&in);
        for (int i = 0; i < 2; i++) {
                e.dropped_bytes[i] = wire_get_u64(&in);
                e.dropped_lines[i] = wire_get_u64(&in);
        }
        e.background_left = wire_get_u32(&in);
        if (!wire_in_done(&in) || !cause_ok || e.cause == CAUSE_SANDBOX_LOST ||
            e.cause == CAUSE_REJECTED || e.error < 0 || (e.signaled && (e.code == 0 || e.code > 64)))
                return -EPROTO;
        *ret = e;
        return 0;
}

ssize_t scrubbed_encode(const struct scrubbed *s, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u8(&out, s->check);
        wire_put_u8(&out, s->emptied);
        wire_put_u64(&out, s->us);
        wire_put_str(&out, s->place);
        return wire_out_len(&out);
}

int scrubbed_decode(const void *buf, size_t len, struct scrubbed *ret) {
        struct scrubbed s = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        s.check = wire_get_u8(&in);
        s.emptied = wire_get_bool(&in);
        s.us = wire_get_u64(&in);
        s.place = wire_get_str(&in, PROTO_NAME_MAX);
        if (!wire_in_done(&in) || s.check >= SCRUB_CHECKS)
                return -EPROTO;
        *ret = s;
        return 0;
}

ssize_t result_encode(const struct result *r, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u8(&out, r->cause);
        wire_put_u8(&out, r->exit_code);
        wire_put_u8(&out, r->code);
        wire_put_u8(&out, r->signaled);
        wire_put_u8(&out, r->truncated);
        wire_put_u8(&out, r->pool_hit);
        wire_put_u8(&out, r->reused);
        wire_put_u32(&out, (uint32_t)r->error);
        wire_put_u64(&out, r->wall_us);
        wire_put_u64(&out, r->user_us);
        wire_put_u64(&out, r->system_us);
        wire_put_u64(&out, r->maxrss_bytes);
        wire_put_u64(&out, r->sandbox_peak_bytes);
        for (int i = 0; i < 2; i++) {
                wire_put_u64(&out, r->bytes[i]);
                wire_put_u64(&out, r->lines[i]);
        }
        wire_put_u32(&out, r->background_left);
        wire_put_str(&out, r->exec_id);
        wire_put_str(&out, r->container_id);
        wire_put_str(&out, r->profile);
        wire_put_str(&out, r->session);
        wire_put_str(&out, r->message);
        return wire_out_len(&out);
}

int result_decode(const void *buf, size_t len, struct result *ret) {
        struct wire_in in;
        struct result r;
        bool cause_ok;

        wire_in_init(&in, buf, len);
        cause_ok = get_cause(&in, &r.cause);
        r.exit_code = wire_get_u8(&in);
        r.code = wire_get_u8(&in);
        r.signaled = wire_get_bool(&in);
        r.truncated = wire_get_bool(&in);
        r.pool_hit = wire_get_bool(&in);
        r.reused = wire_get_bool(&in);
        r.error = (int32_t)wire_get_u32(&in);
        r.wall_us = wire_get_u64(&in);
        r.user_us = wire_get_u64(&in);
        r.system_us = wire_get_u64(&in);
        r.maxrss_bytes = wire_get_u64(&in);
        r.sandbox_peak_bytes = wire_get_u64(&in);
        for (int i = 0; i < 2; i++) {
                r.bytes[i] = wire_get_u64(&in);
                r.lines[i] = wire_get_u64(&in);
        }
        r.background_left = wire_get_u32(&in);
        r.exec_id = wire_get_hex(&in, PROTO_EXEC_ID);
        r.container_id = wire_get_hex(&in, PROTO_CONTAINER_ID);
        r.profile = wire_get_str(&in, PROTO_NAME_MAX);
        r.session = wire_get_str(&in, PROTO_NAME_MAX);
        r.message = wire_get_str(&in, PROTO_LINE_MAX);
        if (!wire_in_done(&in) || !cause_ok || r.error < 0)
                return -EPROTO;
        *ret = r;
        return 0;
}

ssize_t reject_encode(const struct reject *r, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u8(&out, r->exit_code);
        wire_put_u8(&out, r->reason);
        wire_put_str(&out, r->message);
        return wire_out_len(&out);
}

int reject_decode(const void *buf, size_t len, struct reject *ret) {
        struct wire_in in;
        struct reject r;

        wire_in_init(&in, buf, len);
        r.exit_code = wire_get_u8(&in);
        r.reason = wire_get_u8(&in);
        r.message = wire_get_str(&in, PROTO_LINE_MAX);
        if (!wire_in_done(&in) || r.exit_code == 0)
                return -EPROTO;
        *ret = r;
        return 0;
}
