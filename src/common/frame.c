/*
 * One table says, for each frame type, who may send it and how large it may be. Everything else is a
 * protocol error, found before a byte of the payload is looked at.
 */
#include "common/frame.h"

#include <errno.h>

#include "common/wire.h"

#define BY_CLIENT (1u << FRAME_FROM_CLIENT)
#define BY_MANAGER (1u << FRAME_FROM_MANAGER)
#define BY_AGENT (1u << FRAME_FROM_AGENT)

static const struct {
        uint8_t by;
        uint8_t flags;
        uint32_t max;
} rules[] = {
        [FRAME_HELLO] = { BY_CLIENT | BY_MANAGER | BY_AGENT, 0, 4096 },
        [FRAME_EXEC] = { BY_CLIENT | BY_MANAGER, FRAME_MORE, FRAME_PAYLOAD_MAX },
        [FRAME_STDIN] = { BY_CLIENT | BY_MANAGER, FRAME_EOF, FRAME_PAYLOAD_MAX },
        [FRAME_STDOUT] = { BY_AGENT | BY_MANAGER, 0, FRAME_PAYLOAD_MAX },
        [FRAME_STDERR] = { BY_AGENT | BY_MANAGER, 0, FRAME_PAYLOAD_MAX },
        [FRAME_WINDOW] = { BY_CLIENT | BY_MANAGER | BY_AGENT, 0, 5 },
        [FRAME_SIGNAL] = { BY_CLIENT | BY_MANAGER, 0, 1 },
        [FRAME_RESIZE] = { BY_CLIENT | BY_MANAGER, 0, 4 },
        [FRAME_STARTED] = { BY_MANAGER, 0, 512 },
        [FRAME_EXITED] = { BY_AGENT, 0, 256 },
        [FRAME_RESULT] = { BY_MANAGER, 0, 2048 },
        [FRAME_REJECT] = { BY_MANAGER, 0, 2048 },
        [FRAME_CANCEL] = { BY_MANAGER, 0, 0 },
        [FRAME_PING] = { BY_MANAGER, 0, 8 },
        [FRAME_PONG] = { BY_AGENT, 0, 8 },
        [FRAME_STATUS] = { BY_CLIENT | BY_MANAGER, FRAME_MORE, FRAME_PAYLOAD_MAX },
        [FRAME_BYE] = { BY_MANAGER, 0, 0 },
        [FRAME_SCRUBBED] = { BY_AGENT, 0, 128 },
        [FRAME_ASK] = { BY_CLIENT, 0, 16384 },
        [FRAME_ANSWER] = { BY_MANAGER, FRAME_MORE, FRAME_PAYLOAD_MAX },
        [FRAME_ATTACH] = { BY_CLIENT | BY_MANAGER, 0, 64 },
        [FRAME_ATTACHED] = { BY_AGENT | BY_MANAGER, 0, 16 },
        [FRAME_HELD] = { BY_AGENT, 0, 8192 },
        [FRAME_FORGET] = { BY_MANAGER, 0, 0 },
        [FRAME_OPEN] = { BY_CLIENT, 0, FRAME_PAYLOAD_MAX },
        [FRAME_HALT] = { BY_MANAGER, 0, 4 },
        [FRAME_HALTED] = { BY_AGENT, 0, 4 },
};

int frame_parse_header(const uint8_t *buf, size_t len, enum frame_from from, struct frame *ret) {
        struct wire_in in;
        struct frame f = { 0 };

        if (len < FRAME_HEADER)
                return 0;

        wire_in_init(&in, buf, FRAME_HEADER);
        f.len = wire_get_u32(&in);
        f.channel = wire_get_u32(&in);
        f.type = wire_get_u8(&in);
        f.flags = wire_get_u8(&in);
        if (wire_get_u16(&in) != 0)
                return -EPROTO;
        if (f.type >= sizeof(rules) / sizeof(rules[0]) || !(rules[f.type].by & 1u << from))
                return -EPROTO;
        if (f.len > rules[f.type].max || (f.flags & ~rules[f.type].flags))
                return -EPROTO;
        *ret = f;
        return 1;
}

int frame_parse(const uint8_t *buf, size_t len, enum frame_from from, struct frame *ret,
                size_t *ret_used) {
        struct frame f;
        int r = frame_parse_header(buf, len, from, &f);

        if (r <= 0)
                return r;
        if (len - FRAME_HEADER < f.len)
                return 0;

        f.payload = buf + FRAME_HEADER;
        *ret = f;
        *ret_used = FRAME_HEADER + f.len;
        return 1;
}

void frame_put_header(uint8_t buf[FRAME_HEADER], uint8_t type, uint8_t flags, uint32_t channel,
                      uint32_t len) {
        struct wire_out out;

        wire_out_init(&out, buf, FRAME_HEADER);
        wire_put_u32(&out, len);
        wire_put_u32(&out, channel);
        wire_put_u8(&out, type);
        wire_put_u8(&out, flags);
        wire_put_u16(&out, 0);
}
