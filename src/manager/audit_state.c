/*
 * Slot i stands at byte i * SLOT of the file: the fields (wire.h), zeros, and last the first bytes of a
 * SHA-256 over all before them. The whole file is mapped: what is stored there is in the page cache at once, and
 * stays when this process is killed, as what write() has taken would.
 *
 * The check makes a slot: it is stored after the fields, and set to zero, alone, to free it. So a process that is
 * killed in between leaves either a whole slot or a free one. One whose check is wrong was torn by a crash
 * of the machine, and is known as such.
 *
 * The blocks are taken from the file system before they are mapped: a store never finds it full. Memory holds the
 * id of each open slot.
 */
#include "manager/audit_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/sha2.h>

#include "common/cleanup.h"
#include "common/wire.h"

#define SLOT 512
#define CHECK 8
#define CHECK_AT (SLOT - CHECK)
/* The file grows by this many slots: some pages. */
#define GROW_SLOTS 64
#define UNREADABLE "?"

struct audit_state {
        int fd;
        uint8_t *map;                   /* NULL while the file is empty */
        size_t n_slots;                 /* in the file, the map and ids */
        size_t first_free;              /* no slot before it is free */
        char (*ids)[PROTO_EXEC_ID + 1]; /* "": free */
};

static uint64_t checksum(const uint8_t slot[CHECK_AT]) {
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx ctx;
        uint64_t check;

        sha256_init(&ctx);
        sha256_update(&ctx, CHECK_AT, slot);
        sha256_digest(&ctx, sizeof(digest), digest);
        memcpy(&check, digest, sizeof(check));
        return check;
}

/* The slot's last word, which makes it one; 0: it is free. */
static uint64_t *check_of(struct audit_state *s, size_t i) {
        return (uint64_t *)(void *)(s->map + i * SLOT + CHECK_AT);
}

static int slot_encode(const struct audit_open_exec *x, uint8_t slot[CHECK_AT]) {
        struct wire_out out;

        memset(slot, 0, CHECK_AT);
        wire_out_init(&out, slot, CHECK_AT);
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
        wire_put_u8(&out, x->detached);
        wire_put_u64(&out, x->begun_us);
        wire_put_blob(&out, x->caller.fp, (uint32_t)strlen(x->caller.fp));
        return out.bad ? -EMSGSIZE : 0;
}

static void get_text(struct wire_in *in, char *ret, size_t cap) {
        const char *s = wire_get_str(in, (uint32_t)cap - 1);

        if (s)
                memcpy(ret, s, strlen(s) + 1);
}

static void slot_decode(const uint8_t slot[CHECK_AT], uint64_t check, struct audit_open_exec *ret) {
        const uint8_t *command, *fp;
        struct wire_in in;
        uint32_t len = 0, fp_len = 0;

        memset(ret, 0, sizeof(*ret));
        wire_in_init(&in, slot, CHECK_AT);
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
        ret->detached = wire_get_u8(&in) == 1;
        ret->begun_us = wire_get_u64(&in);
        /* Zeros, and so none, in the slots of an earlier version. */
        fp = wire_get_blob(&in, KEYFP_LEN, &fp_len);
        if (fp)
                memcpy(ret->caller.fp, fp, fp_len);
        if (!in.bad && ret->exec_id[0] && checksum(slot) == check)
                return;
        *ret = (struct audit_open_exec){ .exec_id = UNREADABLE,
                                         .container_id = UNREADABLE,
                                         .profile = UNREADABLE };
        ret->caller.uid = ret->caller.loginuid = UINT32_MAX;
}

/* Brings file, map and ids to @n slots. */
static int resize(struct audit_state *s, size_t n) {
        void *p;
        int r;

        if (n > AUDIT_STATE_SLOTS)
                return -ENOSPC;
        p = reallocarray(s->ids, n, sizeof(*s->ids));
        if (!p)
                return -ENOMEM;
        s->ids = p;
        r = posix_fallocate(s->fd, 0, (off_t)(n * SLOT));
        if (r > 0)
                return -r;
        p = s->map ? mremap(s->map, s->n_slots * SLOT, n * SLOT, MREMAP_MAYMOVE)
                   : mmap(NULL, n * SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        s->map = p;
        memset(s->ids + s->n_slots, 0, (n - s->n_slots) * sizeof(*s->ids));
        s->n_slots = n;
        return 0;
}

/* The slots of an earlier life. */
static int load(struct audit_state *s) {
        struct audit_open_exec x;
        struct stat st;
        int r;

        if (fstat(s->fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ENOTSUP;
        r = st.st_size > 0 ? resize(s, ((size_t)st.st_size + SLOT - 1) / SLOT) : 0;
        for (size_t i = 0; r == 0 && i < s->n_slots; i++) {
                if (*check_of(s, i) == 0)
                        continue;
                slot_decode(s->map + i * SLOT, *check_of(s, i), &x);
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
        if (s->map)
                munmap(s->map, s->n_slots * SLOT);
        close_fd(s->fd);
        free(s->ids);
        free(s);
}

int audit_state_add(struct audit_state *s, const struct audit_open_exec *x) {
        uint8_t slot[CHECK_AT];
        size_t i = s->first_free;
        int r = slot_encode(x, slot);

        if (r < 0)
                return r;
        while (i < s->n_slots && s->ids[i][0])
                i++;
        s->first_free = i;
        if (i == s->n_slots)
                r = resize(s, i + GROW_SLOTS);
        if (r < 0)
                return r;
        memcpy(s->map + i * SLOT, slot, sizeof(slot));
        __atomic_store_n(check_of(s, i), checksum(slot), __ATOMIC_RELEASE);
        memcpy(s->ids[i], x->exec_id, sizeof(x->exec_id));
        s->first_free = i + 1;
        return 0;
}

void audit_state_clear(struct audit_state *s, size_t i) {
        __atomic_store_n(check_of(s, i), 0, __ATOMIC_RELEASE);
        s->ids[i][0] = 0;
        if (i < s->first_free)
                s->first_free = i;
}

int audit_state_remove(struct audit_state *s, const char *exec_id) {
        for (size_t i = 0; i < s->n_slots; i++)
                if (s->ids[i][0] && strcmp(s->ids[i], exec_id) == 0) {
                        audit_state_clear(s, i);
                        return 0;
                }
        return -ENOENT;
}

bool audit_state_next(struct audit_state *s, size_t *i, struct audit_open_exec *ret) {
        while (*i < s->n_slots && !s->ids[*i][0])
                (*i)++;
        if (*i == s->n_slots)
                return false;
        slot_decode(s->map + *i * SLOT, *check_of(s, *i), ret);
        return true;
}
