/* Encoders and decoders. One pair each, in the order of proto_open.h. */
#include "common/proto_open.h"

#include <errno.h>
#include <string.h>

#include "common/frame.h"
#include "common/wire.h"

static void put_labels(struct wire_out *out, const char *const *labels, uint32_t n) {
        wire_put_u32(out, n);
        for (uint32_t i = 0; i < n; i++)
                wire_put_str(out, labels[i]);
}

static uint32_t get_labels(struct wire_in *in, const char **labels) {
        uint32_t n = wire_get_u32(in);

        if (n > PROTO_LABELS_MAX)
                in->bad = true;
        for (uint32_t i = 0; !in->bad && i < n; i++)
                labels[i] = wire_get_pair(in, PROTO_LABEL_MAX);
        return n;
}

ssize_t open_request_encode(const struct open_request *r, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u8(&out, r->form);
        wire_put_u8(&out, r->mounts);
        wire_put_str(&out, r->name);
        wire_put_str(&out, r->profile);
        wire_put_str(&out, r->image);
        wire_put_str(&out, r->workdir);
        wire_put_u64(&out, r->ttl_ms);
        narrow_put(&out, &r->narrow);
        put_labels(&out, r->labels, r->n_labels);
        wire_put_u32(&out, r->n_env);
        for (uint32_t i = 0; i < r->n_env; i++)
                wire_put_str(&out, r->env[i]);
        return wire_out_len(&out);
}

int open_request_decode(const void *buf, size_t len, struct open_request *ret) {
        struct open_request r = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        r.form = wire_get_u8(&in);
        r.mounts = wire_get_bool(&in);
        r.name = wire_get_str(&in, PROTO_NAME_MAX);
        r.profile = wire_get_str(&in, PROTO_NAME_MAX);
        r.image = wire_get_str(&in, PROTO_IMAGE_MAX);
        r.workdir = wire_get_str(&in, PROTO_PATH_MAX);
        r.ttl_ms = wire_get_u64(&in);
        narrow_get(&in, &r.narrow);
        r.n_labels = get_labels(&in, r.labels);
        r.n_env = wire_get_u32(&in);
        if (in.bad || r.form >= ANSWER_FORMS || r.n_env > PROTO_OPEN_ENV_MAX ||
            (r.workdir[0] && r.workdir[0] != '/'))
                return -EPROTO;
        r.env_wire = in.p;
        for (uint32_t i = 0; i < r.n_env; i++)
                (void)wire_get_pair(&in, PROTO_OPEN_ENV_BYTES);
        r.env_len = (size_t)(in.p - r.env_wire);
        if (!wire_in_done(&in) || r.env_len > PROTO_OPEN_ENV_BYTES)
                return -EPROTO;
        *ret = r;
        return 0;
}

ssize_t session_info_encode(const struct session_info *s, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_str(&out, s->id);
        wire_put_str(&out, s->name);
        wire_put_str(&out, s->profile);
        wire_put_str(&out, s->image);
        wire_put_str(&out, s->network);
        wire_put_str(&out, s->workdir);
        wire_put_u8(&out, s->status);
        wire_put_u64(&out, s->created);
        wire_put_u64(&out, s->started);
        wire_put_u64(&out, s->finished);
        wire_put_u64(&out, s->ttl_ms);
        wire_put_u32(&out, s->uid);
        wire_put_u32(&out, s->gid);
        wire_put_u64(&out, s->memory_bytes);
        wire_put_u64(&out, s->cpu_nano);
        wire_put_u64(&out, s->shm_bytes);
        wire_put_u32(&out, s->pids_limit);
        wire_put_u32(&out, s->running);
        wire_put_u8(&out, s->mounts);
        put_labels(&out, s->labels, s->n_labels);
        return wire_out_len(&out);
}

int session_info_decode(const void *buf, size_t len, struct session_info *ret) {
        struct session_info s = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        s.id = wire_get_str(&in, PROTO_CONTAINER_ID);
        s.name = wire_get_str(&in, PROTO_NAME_MAX);
        s.profile = wire_get_str(&in, PROTO_NAME_MAX);
        s.image = wire_get_str(&in, PROTO_IMAGE_MAX);
        s.network = wire_get_str(&in, PROTO_NAME_MAX);
        s.workdir = wire_get_str(&in, PROTO_PATH_MAX);
        s.status = wire_get_u8(&in);
        s.created = wire_get_u64(&in);
        s.started = wire_get_u64(&in);
        s.finished = wire_get_u64(&in);
        s.ttl_ms = wire_get_u64(&in);
        s.uid = wire_get_u32(&in);
        s.gid = wire_get_u32(&in);
        s.memory_bytes = wire_get_u64(&in);
        s.cpu_nano = wire_get_u64(&in);
        s.shm_bytes = wire_get_u64(&in);
        s.pids_limit = wire_get_u32(&in);
        s.running = wire_get_u32(&in);
        s.mounts = wire_get_bool(&in);
        s.n_labels = get_labels(&in, s.labels);
        if (!wire_in_done(&in) || s.status < SESSION_IS_OPENING || s.status > SESSION_IS_STOPPED)
                return -EPROTO;
        *ret = s;
        return 0;
}

ssize_t image_info_encode(const struct image_info *i, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_str(&out, i->profile);
        wire_put_str(&out, i->name);
        wire_put_u8(&out, i->present);
        wire_put_str(&out, i->id);
        wire_put_str(&out, i->digest);
        wire_put_u64(&out, i->bytes);
        wire_put_str(&out, i->created);
        wire_put_str(&out, i->entrypoint);
        wire_put_str(&out, i->network);
        wire_put_u32(&out, i->uid);
        wire_put_u32(&out, i->gid);
        wire_put_u64(&out, i->memory_bytes);
        wire_put_u64(&out, i->cpu_nano);
        wire_put_u64(&out, i->shm_bytes);
        wire_put_u32(&out, i->pids_limit);
        wire_put_u64(&out, i->capabilities);
        wire_put_str(&out, i->workdir);
        wire_put_u8(&out, i->read_only);
        wire_put_u8(&out, i->n_tmpfs);
        for (uint8_t t = 0; t < i->n_tmpfs; t++) {
                wire_put_str(&out, i->tmpfs[t].path);
                wire_put_u64(&out, i->tmpfs[t].bytes);
        }
        return wire_out_len(&out);
}

int image_info_decode(const void *buf, size_t len, struct image_info *ret) {
        struct image_info i = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        i.profile = wire_get_str(&in, PROTO_NAME_MAX);
        i.name = wire_get_str(&in, PROTO_IMAGE_MAX);
        i.present = wire_get_bool(&in);
        i.id = wire_get_str(&in, PROTO_IMAGE_MAX);
        i.digest = wire_get_str(&in, PROTO_IMAGE_MAX);
        i.bytes = wire_get_u64(&in);
        i.created = wire_get_str(&in, PROTO_NAME_MAX);
        i.entrypoint = wire_get_str(&in, PROTO_ENTRYPOINT_MAX);
        i.network = wire_get_str(&in, PROTO_NAME_MAX);
        i.uid = wire_get_u32(&in);
        i.gid = wire_get_u32(&in);
        i.memory_bytes = wire_get_u64(&in);
        i.cpu_nano = wire_get_u64(&in);
        i.shm_bytes = wire_get_u64(&in);
        i.pids_limit = wire_get_u32(&in);
        i.capabilities = wire_get_u64(&in);
        i.workdir = wire_get_str(&in, PROTO_PATH_MAX);
        i.read_only = wire_get_bool(&in);
        i.n_tmpfs = wire_get_u8(&in);
        in.bad |= i.n_tmpfs > NARROW_TMPFS_MAX;
        for (uint8_t t = 0; !in.bad && t < i.n_tmpfs; t++) {
                i.tmpfs[t].path = wire_get_str(&in, NARROW_PATH_MAX);
                i.tmpfs[t].bytes = wire_get_u64(&in);
        }
        if (!wire_in_done(&in))
                return -EPROTO;
        *ret = i;
        return 0;
}

int record_next(const uint8_t **p, size_t *left, const uint8_t **ret, size_t *ret_len) {
        const uint8_t *record;
        struct wire_in in;
        uint32_t len;

        if (*left == 0)
                return 0;
        wire_in_init(&in, *p, *left);
        record = wire_get_blob(&in, FRAME_PAYLOAD_MAX, &len);
        if (!record)
                return -EPROTO;
        *p = in.p;
        *left = in.left;
        *ret = record;
        *ret_len = len;
        return 1;
}
