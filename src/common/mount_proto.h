/*
 * What a caller's command line tells the broker of the host folders that he wants in his sandbox. He makes a pair
 * of sockets (AF_UNIX, SOCK_SEQPACKET), writes one message a folder on one end, each with the folder's O_PATH
 * descriptor, and sends the other end along with his request. Manager and broker pass it on unread: the kernel
 * tells at that end who made the pair, and only he can have written on it.
 *
 *     u16  version  MOUNT_PROTO_VERSION
 *     u8   index    0 … total - 1, in this order
 *     u8   total    1 … MOUNT_MAX
 *     bool ro       the sandbox may not write there
 *     str  dst      where the folder appears in the sandbox: see mount_dst_fault()
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MOUNT_PROTO_VERSION 1
#define MOUNT_MAX 16
#define MOUNT_DST_MAX 1024 /* bytes, without the NUL */
#define MOUNT_MSG_MAX (2 + 1 + 1 + 1 + 4 + MOUNT_DST_MAX + 1)

struct mount_msg {
        uint8_t index, total;
        bool read_only;
        const char *dst; /* decoded: lives in the buffer */
};

/* Returns the length, -EINVAL (index, total or dst is none), or -EMSGSIZE (@cap is less than that). */
ssize_t mount_msg_encode(const struct mount_msg *m, void *buf, size_t cap);

/* Returns 0, or -EPROTO: another version, a field out of its bounds, trailing bytes. *ret is set only on success. */
int mount_msg_decode(const void *buf, size_t len, struct mount_msg *ret);

/* Writes one message with the folder's descriptor, which stays the caller's. Never blocks. Returns 0 or -errno. */
int mount_msg_send(int sock, const struct mount_msg *m, int dir_fd);

/* NULL where @dst may be a destination: an absolute path that is not "/" itself, without empty, "." or ".."
 * components, in UTF-8 without control characters, of at most MOUNT_DST_MAX bytes. Else what is wrong with it, as
 * words that go behind its name: "is not absolute". */
const char *mount_dst_fault(const char *dst);

/* True where @path is @top or below it, by whole components. Both are absolute and in normal form. */
bool mount_path_below(const char *path, const char *top);
