/*
 * Slot i stands at byte i * SLOT of the file: the fields (wire.h), zeros, and the first bytes of a
 * SHA-256 over all before them, so that a slot that was written in part is known as such. A free slot is
 * all zeros. Memory holds the id of each open slot; the file is read only at the start.
 */
#include "manager/audit_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/sha2.h>

#include "common/cleanup.h"
#include "common/wire.h"

#define SLOT 512
#define CHECK 8
#define UNREADABLE "?"

struct audit_state {
        int fd;
        size_t n_slots;                 /* in the file and in ids */
        size_t first_free;              /* no slot before it is free */
        char (*ids)[PROTO_EXEC_ID + 1]; /* "": free */
};

static void checksum(const uint8_t slot[SLOT], uint8_t ret[CHECK]) {
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx ctx;

        sha256_init(&ctx);
        sha256_update(&ctx, SLOT - CHECK, slot);
        sha256_digest(&ctx, sizeof(digest), digest);
        memcpy(ret, digest, CHECK);
}

static int slot_encode(const struct audit_open_exec *x, uint8_t slot[SLOT]) {
        struct wire_out out;

        memset(slot, 0, SLOT);
        wire_out_init(&out, slot, SLOT - CHECK);
        wire_put_str(&out, x->exec_id);
        wire_put_str(&out, x->container_id);
        wire_put_str(&out, x->profile);
        wire_put_str(&out, x->session);
        wire_put_u32(&out, x->caller.uid);
        wire_put_u32(&out, (uint32_t)x->caller.pid);
        wire_put_u32(&out, x->caller.loginuid);
        wire_put_u8(&out, x->pool_hit);
        wire_put_u64(&out, x->command_total);
        wire_put_blob(&out, x->command, x->command_len);
        if (out.bad)
                return -EMSGSIZE;
        checksum(slot, slot + SLOT - CHECK);
        return 0;
}

static void get_text(struct wire_in *in, char *ret, size_t cap) {
        const char *s = wire_get_str(in, (uint32_t)cap - 1);

        if (s)
                memcpy(ret, s, strlen(s) + 1);
}

static void slot_decode(const uint8_t slot[SLOT], struct audit_open_exec *ret) {
        uint8_t check[CHECK];
        const uint8_t *command;
        struct wire_in in;
        uint32_t len = 0;

        memset(ret, 0, sizeof(*ret));
        checksum(slot, check);
        wire_in_init(&in, slot, SLOT - CHECK);
        get_text(&in, ret->exec_id, sizeof(ret->exec_id));
        get_text(&in, ret->container_id, sizeof(ret->container_id));
        get_text(&in, ret->profile, sizeof(ret->profile));
        get_text(&in, ret->session, sizeof(ret->session));
        ret->caller.uid = wire_get_u32(&in);
        ret->caller.pid = (pid_t)wire_get_u32(&in);
        ret->caller.loginuid = wire_get_u32(&in);
        ret->pool_hit = wire_get_u8(&in) == 1;
        ret->command_total = wire_get_u64(&in);
        command = wire_get_blob(&in, AUDIT_STATE_COMMAND, &len);
        if (command)
                memcpy(ret->command, command, len);
        ret->command_len = (uint16_t)len;
        if (!in.bad && ret->exec_id[0] && memcmp(check, slot + SLOT - CHECK, CHECK) == 0)
                return;
        *ret = (struct audit_open_exec){ .exec_id = UNREADABLE,
                                         .container_id = UNREADABLE,
                                         .profile = UNREADABLE };
        ret->caller.uid = ret->caller.loginuid = UINT32_MAX;
}

static int slot_write(struct audit_state *s, size_t i, const uint8_t slot[SLOT]) {
        ssize_t n = pwrite(s->fd, slot, SLOT, (off_t)(i * SLOT));

        if (n < 0)
                return -errno;
        return n == SLOT ? 0 : -ENOSPC;
}

static int slot_read(struct audit_state *s, size_t i, uint8_t slot[SLOT]) {
        memset(slot, 0, SLOT);
        return pread(s->fd, slot, SLOT, (off_t)(i * SLOT)) < 0 ? -errno : 0;
}

static int grow(struct audit_state *s, size_t n) {
        void *p;

        if (n > AUDIT_STATE_SLOTS)
                return -ENOSPC;
        p = reallocarray(s->ids, n, sizeof(*s->ids));
        if (!p)
                return -ENOMEM;
        s->ids = p;
        memset(s->ids + s->n_slots, 0, (n - s->n_slots) * sizeof(*s->ids));
        s->n_slots = n;
        return 0;
}

/* The slots of an earlier life. */
static int load(struct audit_state *s) {
        static const uint8_t zeros[SLOT];
        struct audit_open_exec x;
        uint8_t slot[SLOT];
        struct stat st;
        int r;

        if (fstat(s->fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ENOTSUP;
        r = grow(s, ((size_t)st.st_size + SLOT - 1) / SLOT);
        for (size_t i = 0; r == 0 && i < s->n_slots; i++) {
                r = slot_read(s, i, slot);
                if (r < 0 || memcmp(slot, zeros, SLOT) == 0)
                        continue;
                slot_decode(slot, &x);
                memcpy(s->ids[i], x.exec_id, sizeof(x.exec_id));
        }
        return r;
}

int audit_state_open(const char *path, struct audit_state **ret, struct errmsg *e) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        struct audit_state *s = calloc(1, sizeof(*s));
        int r = 0;

        if (!s)
                return errmsg_set(e, -ENOMEM, "state file %s: out of memory", path);
        s->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
        /* The lock belongs to the process: a reload may open a second one beside the first. */
        if (s->fd < 0)
                r = -errno;
        else if (fcntl(s->fd, F_SETLK, &lock) < 0)
                r = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
        else
                r = load(s);
        if (r < 0) {
                audit_state_free(s);
                if (r == -EBUSY)
                        return errmsg_set(e, r, "state file %s: another hermes-sandboxd uses it", path);
                return errmsg_set(e, r, "state file %s: %s", path, strerror(-r));
        }
        *ret = s;
        return 0;
}

void audit_state_free(struct audit_state *s) {
        if (!s)
                return;
        close_fd(s->fd);
        free(s->ids);
        free(s);
}

int audit_state_add(struct audit_state *s, const struct audit_open_exec *x) {
        uint8_t slot[SLOT];
        size_t i = s->first_free;
        int r = slot_encode(x, slot);

        if (r < 0)
                return r;
        while (i < s->n_slots && s->ids[i][0])
                i++;
        s->first_free = i;
        if (i == s->n_slots)
                r = grow(s, i + 1);
        if (r == 0)
                r = slot_write(s, i, slot);
        if (r < 0)
                return r;
        memcpy(s->ids[i], x->exec_id, sizeof(x->exec_id));
        s->first_free = i + 1;
        return 0;
}

int audit_state_clear(struct audit_state *s, size_t i) {
        static const uint8_t zeros[SLOT];
        int r = slot_write(s, i, zeros);

        if (r < 0)
                return r;
        s->ids[i][0] = 0;
        if (i < s->first_free)
                s->first_free = i;
        return 0;
}

int audit_state_remove(struct audit_state *s, const char *exec_id) {
        for (size_t i = 0; i < s->n_slots; i++)
                if (s->ids[i][0] && strcmp(s->ids[i], exec_id) == 0)
                        return audit_state_clear(s, i);
        return -ENOENT;
}

int audit_state_next(struct audit_state *s, size_t *i, struct audit_open_exec *ret) {
        uint8_t slot[SLOT];
        int r;

        while (*i < s->n_slots && !s->ids[*i][0])
                (*i)++;
        if (*i == s->n_slots)
                return 0;
        r = slot_read(s, *i, slot);
        if (r < 0)
                return r;
        slot_decode(slot, ret);
        return 1;
}
