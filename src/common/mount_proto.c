#include "common/mount_proto.h"

#include <errno.h>
#include <string.h>

#include "common/engine_msg.h"
#include "common/utf8.h"
#include "common/wire.h"

/* Not for a terminal and not for a line of a log. */
static bool has_controls(const char *s, size_t len) {
        const uint8_t *p = (const uint8_t *)s;
        uint32_t c;

        for (size_t at = 0, n; at < len; at += n) {
                n = utf8_decode(p + at, len - at, &c);
                if (n == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029)
                        return true;
        }
        return false;
}

const char *mount_dst_fault(const char *dst) {
        size_t len = strlen(dst);

        if (dst[0] != '/')
                return "is not absolute";
        if (len > MOUNT_DST_MAX)
                return "is longer than 1024 bytes";
        if (len == 1)
                return "is the root folder";
        if (has_controls(dst, len))
                return "has control characters, or is not UTF-8";
        for (const char *p = dst; *p;) {
                size_t n = strcspn(++p, "/");

                if (n == 0 || (n <= 2 && strncmp(p, "..", n) == 0))
                        return "has an empty, \".\" or \"..\" component";
                p += n;
        }
        return NULL;
}

bool mount_path_below(const char *path, const char *top) {
        size_t n = strlen(top);

        return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_valid(const struct mount_msg *m) {
        return m->total >= 1 && m->total <= MOUNT_MAX && m->index < m->total && !mount_dst_fault(m->dst);
}

ssize_t mount_msg_encode(const struct mount_msg *m, void *buf, size_t cap) {
        struct wire_out out;

        if (!is_valid(m))
                return -EINVAL;
        wire_out_init(&out, buf, cap);
        wire_put_u16(&out, MOUNT_PROTO_VERSION);
        wire_put_u8(&out, m->index);
        wire_put_u8(&out, m->total);
        wire_put_u8(&out, m->read_only);
        wire_put_str(&out, m->dst);
        return out.bad ? -EMSGSIZE : (ssize_t)out.len;
}

int mount_msg_decode(const void *buf, size_t len, struct mount_msg *ret) {
        struct mount_msg m;
        struct wire_in in;
        uint16_t version;

        wire_in_init(&in, buf, len);
        version = wire_get_u16(&in);
        m.index = wire_get_u8(&in);
        m.total = wire_get_u8(&in);
        m.read_only = wire_get_bool(&in);
        m.dst = wire_get_str(&in, MOUNT_DST_MAX);
        if (!wire_in_done(&in) || version != MOUNT_PROTO_VERSION || !is_valid(&m))
                return -EPROTO;
        *ret = m;
        return 0;
}

int mount_msg_send(int sock, const struct mount_msg *m, int dir_fd) {
        uint8_t buf[MOUNT_MSG_MAX];
        ssize_t n = mount_msg_encode(m, buf, sizeof(buf));

        if (n < 0)
                return (int)n;
        if (dir_fd < 0)
                return -EBADF;
        return engine_msg_send(sock, buf, (size_t)n, dir_fd);
}
