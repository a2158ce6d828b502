#include "common/narrow.h"

#include <stdio.h>

void narrow_put(struct wire_out *out, const struct narrow *n) {
        wire_put_u64(out, n->memory_bytes);
        wire_put_u64(out, n->cpu_nano);
        wire_put_u32(out, n->pids_limit);
        wire_put_u64(out, n->shm_bytes);
        wire_put_u8(out, n->no_network);
        wire_put_u8(out, n->user);
        wire_put_u32(out, n->uid);
        wire_put_u32(out, n->gid);
        wire_put_u8(out, n->n_tmpfs);
        for (uint8_t i = 0; i < n->n_tmpfs; i++) {
                wire_put_str(out, n->tmpfs[i].path);
                wire_put_u64(out, n->tmpfs[i].bytes);
        }
}

void narrow_get(struct wire_in *in, struct narrow *ret) {
        struct narrow n = { 0 };

        n.memory_bytes = wire_get_u64(in);
        n.cpu_nano = wire_get_u64(in);
        n.pids_limit = wire_get_u32(in);
        n.shm_bytes = wire_get_u64(in);
        n.no_network = wire_get_bool(in);
        n.user = wire_get_bool(in);
        n.uid = wire_get_u32(in);
        n.gid = wire_get_u32(in);
        n.n_tmpfs = wire_get_u8(in);
        if (n.n_tmpfs > NARROW_TMPFS_MAX || (!n.user && (n.uid || n.gid)) || n.uid == UINT32_MAX ||
            n.gid == UINT32_MAX)
                in->bad = true;
        for (uint8_t i = 0; !in->bad && i < n.n_tmpfs; i++) {
                n.tmpfs[i].path = wire_get_str(in, NARROW_PATH_MAX);
                n.tmpfs[i].bytes = wire_get_u64(in);
                if (!n.tmpfs[i].path || n.tmpfs[i].path[0] != '/' || n.tmpfs[i].bytes == 0)
                        in->bad = true;
        }
        *ret = in->bad ? (struct narrow){ 0 } : n;
}

bool narrow_is_empty(const struct narrow *n) {
        return !n->memory_bytes && !n->cpu_nano && !n->pids_limit && !n->shm_bytes && !n->no_network &&
               !n->user && n->n_tmpfs == 0;
}

void narrow_copy(const struct narrow *n, struct narrow *ret,
                 char paths[NARROW_TMPFS_MAX][NARROW_PATH_MAX + 1]) {
        *ret = *n;
        for (uint8_t i = 0; i < n->n_tmpfs; i++) {
                snprintf(paths[i], NARROW_PATH_MAX + 1, "%s", n->tmpfs[i].path);
                ret->tmpfs[i].path = paths[i];
        }
}
