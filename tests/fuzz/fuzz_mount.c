/*
 * What the broker reads from a caller's own pair of sockets, and from the kernel's tables of mounts: what is taken is
 * within its bounds and encodes to the same bytes, a destination is one that no other spelling has, and a root that was
 * put together is found below the mount's own.
 */
#include <stdio.h>
#include <string.h>

#include "common/mount_proto.h"
#include "engine/mountinfo.h"
#include "fuzz/decoders.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void message(const uint8_t *p, size_t len) {
        uint8_t again[MOUNT_MSG_MAX];
        struct mount_msg m;

        if (mount_msg_decode(p, len, &m) < 0)
                return;
        check(m.total >= 1 && m.total <= MOUNT_MAX && m.index < m.total && m.dst[0] == '/' && m.dst[1]);
        check(!strstr(m.dst, "//") && !strstr(m.dst, "/../") && !strstr(m.dst, "/./"));
        check(mount_path_below(m.dst, m.dst) && !mount_path_below("/", m.dst));
        check_same(p, len, again, mount_msg_encode(&m, again, sizeof(again)));
}

static void line(const uint8_t *p, size_t len) {
        char *text = strndup((const char *)p, len), *path, root[PATH_MAX];
        struct mountinfo m;

        check(text);
        if (mountinfo_parse(text, &m) == 0) {
                check(strlen(m.root) > 0 && strlen(m.point) > 0);
                check(asprintf(&path, "%s/x", strcmp(m.point, "/") == 0 ? "" : m.point) > 0);
                if (mountinfo_root_of(&m, path, root) == 0)
                        check(mount_path_below(root, strcmp(m.root, "/") == 0 ? "" : m.root));
                free(path);
        }
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size > 0 && data[0] == 'm')
                message(data + 1, size - 1);
        else if (size > 0)
                line(data + 1, size - 1);
        return 0;
}
