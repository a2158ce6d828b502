/* Encoders and decoders. One pair each, in the order of proto_session.h. */
#include "common/proto_session.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "common/wire.h"

void resize_encode(const struct resize *r, uint8_t buf[RESIZE_SIZE]) {
        struct wire_out out;

        wire_out_init(&out, buf, RESIZE_SIZE);
        wire_put_u16(&out, r->rows);
        wire_put_u16(&out, r->cols);
}

int resize_decode(const void *buf, size_t len, struct resize *ret) {
        struct resize r = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        r.rows = wire_get_u16(&in);
        r.cols = wire_get_u16(&in);
        if (!wire_in_done(&in))
                return -EPROTO;
        *ret = r;
        return 0;
}

ssize_t ask_encode(const struct ask *a, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u16(&out, a->op);
        wire_put_u8(&out, a->form);
        wire_put_u8(&out, a->all);
        wire_put_u8(&out, a->signal);
        wire_put_str(&out, a->name);
        wire_put_str(&out, a->profile);
        wire_put_u64(&out, a->grace_ms);
        wire_put_u32(&out, a->n_labels);
        for (uint32_t i = 0; i < a->n_labels; i++)
                wire_put_str(&out, a->labels[i]);
        return wire_out_len(&out);
}

int ask_decode(const void *buf, size_t len, struct ask *ret) {
        struct ask a = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        a.op = wire_get_u16(&in);
        a.form = wire_get_u8(&in);
        a.all = wire_get_bool(&in);
        a.signal = wire_get_u8(&in);
        a.name = wire_get_str(&in, PROTO_NAME_MAX);
        a.profile = wire_get_str(&in, PROTO_NAME_MAX);
        a.grace_ms = wire_get_u64(&in);
        a.n_labels = wire_get_u32(&in);
        if (in.bad || a.n_labels > PROTO_LABELS_MAX || a.signal > 64 || a.form >= ANSWER_FORMS)
                return -EPROTO;
        for (uint32_t i = 0; i < a.n_labels; i++) {
                a.labels[i] = wire_get_pair(&in, PROTO_LABEL_MAX);
                if (!a.labels[i])
                        return -EPROTO;
        }
        if (!wire_in_done(&in))
                return -EPROTO;
        *ret = a;
        return 0;
}

ssize_t attach_encode(const struct attach *a, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_str(&out, a->exec_id);
        wire_put_u8(&out, a->output);
        wire_put_u64(&out, a->offset[0]);
        wire_put_u64(&out, a->offset[1]);
        return wire_out_len(&out);
}

int attach_decode(const void *buf, size_t len, struct attach *ret) {
        struct attach a = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        a.exec_id = wire_get_hex(&in, PROTO_EXEC_ID);
        a.output = wire_get_bool(&in);
        a.offset[0] = wire_get_u64(&in);
        a.offset[1] = wire_get_u64(&in);
        if (!wire_in_done(&in))
                return -EPROTO;
        *ret = a;
        return 0;
}

ssize_t attach_order_encode(const struct attach_order *a, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u32(&out, a->target);
        wire_put_u8(&out, a->output);
        wire_put_u64(&out, a->offset[0]);
        wire_put_u64(&out, a->offset[1]);
        return wire_out_len(&out);
}

int attach_order_decode(const void *buf, size_t len, struct attach_order *ret) {
        struct attach_order a = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        a.target = wire_get_u32(&in);
        a.output = wire_get_bool(&in);
        a.offset[0] = wire_get_u64(&in);
        a.offset[1] = wire_get_u64(&in);
        if (!wire_in_done(&in))
                return -EPROTO;
        *ret = a;
        return 0;
}

void attached_encode(const struct attached *a, uint8_t buf[ATTACHED_SIZE]) {
        struct wire_out out;

        wire_out_init(&out, buf, ATTACHED_SIZE);
        wire_put_u64(&out, a->from[0]);
        wire_put_u64(&out, a->from[1]);
}

int attached_decode(const void *buf, size_t len, struct attached *ret) {
        struct attached a = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        a.from[0] = wire_get_u64(&in);
        a.from[1] = wire_get_u64(&in);
        if (!wire_in_done(&in))
                return -EPROTO;
        *ret = a;
        return 0;
}

ssize_t held_encode(const struct held *h, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u16(&out, h->n);
        for (uint16_t i = 0; i < h->n; i++) {
                wire_put_str(&out, h->of[i].exec_id);
                wire_put_u32(&out, h->of[i].channel);
                wire_put_u8(&out, h->of[i].ended);
        }
        return wire_out_len(&out);
}

int held_decode(const void *buf, size_t len, struct held *ret) {
        struct held h = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        h.n = wire_get_u16(&in);
        if (h.n > PROTO_HELD_MAX)
                return -EPROTO;
        for (uint16_t i = 0; i < h.n; i++) {
                h.of[i].exec_id = wire_get_hex(&in, PROTO_EXEC_ID);
                h.of[i].channel = wire_get_u32(&in);
                h.of[i].ended = wire_get_bool(&in);
        }
        if (!wire_in_done(&in))
                return -EPROTO;
        *ret = h;
        return 0;
}
