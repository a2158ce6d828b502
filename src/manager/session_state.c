/*
 * A file for each session, under its name, in STATE_DIR/sessions: what the next manager has to know of it and would
 * learn from nobody who is to be believed. It is written whole under a name that no session can have, and then
 * renamed. Nothing forces it to the disk: a crash of the machine ends all sandboxes too.
 *
 * The fields (wire.h): version, name, uid, login uid, pid, gid, profile, container, ttl_ms, opened, mounts, labels; since
 * version 2 also: key, started, finished, stopped, recorded, workdir, what is narrowed, the shape (image, network, memory,
 * CPU, shm, pids, users), variables.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wire.h"
#include "common/write_all.h"
#include "manager/session.h"

#define STATE_VERSION 2
#define STATE_MAX                                                                             \
        (2048 + PROTO_LABELS_MAX * (PROTO_LABEL_MAX + 8) + PROTO_PATH_MAX + PROTO_IMAGE_MAX + \
         NARROW_TMPFS_MAX * (NARROW_PATH_MAX + 16) + PROTO_OPEN_ENV_BYTES)
/* A session's name does not begin with a dot. */
#define NEW ".new"

static int open_dir(const struct manager *m) {
        char path[4096];
        int fd;

        snprintf(path, sizeof(path), "%s/sessions", m->options.state_dir);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT && mkdir(path, 0700) == 0)
                fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static void put_shape(struct wire_out *out, const struct session_shape *shape) {
        wire_put_str(out, shape->image);
        wire_put_str(out, shape->network);
        wire_put_u64(out, shape->memory_bytes);
        wire_put_u64(out, shape->cpu_nano);
        wire_put_u64(out, shape->shm_bytes);
        wire_put_u32(out, shape->pids_limit);
        wire_put_u32(out, shape->n_users);
        for (uint32_t i = 0; i < shape->n_users; i++) {
                wire_put_u32(out, shape->users[i].uid);
                wire_put_u32(out, shape->users[i].gid);
        }
}

static size_t encode(const struct session *s, uint8_t buf[STATE_MAX]) {
        struct wire_out out;

        wire_out_init(&out, buf, STATE_MAX);
        wire_put_u16(&out, STATE_VERSION);
        wire_put_str(&out, s->name);
        wire_put_u32(&out, s->owner.uid);
        wire_put_u32(&out, s->owner.loginuid);
        wire_put_u32(&out, (uint32_t)s->owner.pid);
        wire_put_u32(&out, s->gid);
        wire_put_str(&out, s->pool->name);
        wire_put_str(&out, s->container);
        wire_put_u64(&out, s->ttl_ms);
        wire_put_u64(&out, s->opened);
        wire_put_u8(&out, s->mounts);
        wire_put_u32(&out, s->n_labels);
        for (uint32_t i = 0; i < s->n_labels; i++)
                wire_put_str(&out, s->labels[i]);
        wire_put_str(&out, s->owner.fp);
        wire_put_u64(&out, s->started);
        wire_put_u64(&out, s->finished);
        wire_put_u8(&out, s->stopped);
        wire_put_u8(&out, s->recorded);
        wire_put_str(&out, s->workdir);
        narrow_put(&out, &s->narrow);
        put_shape(&out, &s->shape);
        wire_put_u32(&out, s->n_env);
        wire_put_blob(&out, s->env, (uint32_t)s->env_len);
        if (out.bad)
                abort(); /* every field has a bound, and STATE_MAX holds them all */
        return out.len;
}

int session_state_write(const struct session *s) {
        static uint8_t buf[STATE_MAX];
        size_t len = encode(s, buf);
        _cleanup_fd_ int dir = open_dir(s->m), fd = -1;
        int r;

        if (dir < 0)
                return dir;
        fd = openat(dir, NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, buf, len);
        if (r == 0 && renameat(dir, NEW, dir, s->name) < 0)
                r = -errno;
        if (r < 0)
                unlinkat(dir, NEW, 0);
        return r;
}

void session_state_remove(const struct session *s) {
        _cleanup_fd_ int dir = open_dir(s->m);

        if (dir >= 0)
                unlinkat(dir, s->name, 0);
}

/* --- reading ------------------------------------------------------------------------------------- */

static void decode_labels(struct wire_in *in, struct session *s) {
        uint32_t n = wire_get_u32(in);

        if (in->bad || n > PROTO_LABELS_MAX) {
                in->bad = true;
                return;
        }
        s->labels = calloc(n + 1, sizeof(*s->labels));
        if (!s->labels)
                abort();
        for (; s->n_labels < n; s->n_labels++) {
                const char *label = wire_get_str(in, PROTO_LABEL_MAX);

                if (!label || !strchr(label, '='))
                        in->bad = true;
                if (in->bad)
                        return;
                if (!(s->labels[s->n_labels] = strdup(label)))
                        abort();
        }
}

static void get_text(struct wire_in *in, char *ret, size_t cap) {
        const char *s = wire_get_str(in, (uint32_t)cap - 1);

        if (s)
                memcpy(ret, s, strlen(s) + 1);
}

static void decode_shape(struct wire_in *in, struct session_shape *ret) {
        get_text(in, ret->image, sizeof(ret->image));
        get_text(in, ret->network, sizeof(ret->network));
        ret->memory_bytes = wire_get_u64(in);
        ret->cpu_nano = wire_get_u64(in);
        ret->shm_bytes = wire_get_u64(in);
        ret->pids_limit = wire_get_u32(in);
        ret->n_users = wire_get_u32(in);
        if (ret->n_users > 1 + AGENT_USERS_MAX) {
                ret->n_users = 0;
                in->bad = true;
        }
        for (uint32_t i = 0; i < ret->n_users; i++) {
                ret->users[i].uid = wire_get_u32(in);
                ret->users[i].gid = wire_get_u32(in);
        }
}

static void decode_env(struct wire_in *in, struct session *s) {
        struct wire_in strings;
        const uint8_t *env;
        uint32_t len = 0;

        s->n_env = wire_get_u32(in);
        env = wire_get_blob(in, PROTO_OPEN_ENV_BYTES, &len);
        if (!env || s->n_env > PROTO_OPEN_ENV_MAX) {
                in->bad = true;
                return;
        }
        wire_in_init(&strings, env, len);
        for (uint32_t i = 0; i < s->n_env; i++)
                (void)wire_get_pair(&strings, PROTO_OPEN_ENV_BYTES);
        in->bad |= !wire_in_done(&strings);
        s->env = malloc(len + 1);
        if (!s->env)
                abort();
        memcpy(s->env, env, len);
        s->env_len = len;
}

/* What the first version did not have. */
static void decode_second(struct wire_in *in, struct session *s) {
        const char *workdir;
        struct narrow narrow;

        get_text(in, s->owner.fp, sizeof(s->owner.fp));
        s->started = wire_get_u64(in);
        s->finished = wire_get_u64(in);
        s->stopped = wire_get_bool(in);
        s->recorded = wire_get_bool(in);
        workdir = wire_get_str(in, PROTO_PATH_MAX);
        s->workdir = workdir ? strdup(workdir) : NULL;
        if (workdir && !s->workdir)
                abort();
        narrow_get(in, &narrow);
        narrow_copy(&narrow, &s->narrow, s->narrow_paths);
        decode_shape(in, &s->shape);
        decode_env(in, s);
}

/* What this program has written, in this or in another life; anything else is refused whole. */
static int decode(struct manager *m, const char *name, const uint8_t *buf, size_t len) {
        const char *own, *profile, *container;
        struct audit_caller owner = { 0 };
        struct session *s;
        struct wire_in in;
        uint16_t version;
        gid_t gid;

        wire_in_init(&in, buf, len);
        version = wire_get_u16(&in);
        if (version < 1 || version > STATE_VERSION)
                return -EPROTO;
        own = wire_get_str(&in, PROTO_NAME_MAX);
        owner.uid = wire_get_u32(&in);
        owner.loginuid = wire_get_u32(&in);
        owner.pid = (pid_t)wire_get_u32(&in);
        gid = wire_get_u32(&in);
        profile = wire_get_str(&in, PROTO_NAME_MAX);
        container = wire_get_hex(&in, ENGINE_ID_LEN);
        if (in.bad || strcmp(own, name) != 0 || session_find(m, name) || !profile[0])
                return -EPROTO;
        s = session_known(m, name, profile);
        s->owner = owner;
        s->gid = gid;
        snprintf(s->container, sizeof(s->container), "%s", container);
        s->ttl_ms = wire_get_u64(&in);
        s->opened = wire_get_u64(&in);
        s->mounts = wire_get_bool(&in);
        decode_labels(&in, s);
        s->started = s->opened;
        if (version > 1)
                decode_second(&in, s);
        if (wire_in_done(&in))
                return 0;
        session_unknow(s);
        return -EPROTO;
}

static int load_one(struct manager *m, int dir, const char *name) {
        _cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        static uint8_t buf[STATE_MAX + 1];
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ENOTSUP;
        n = read(fd, buf, sizeof(buf));
        return n < 0 ? -errno : decode(m, name, buf, (size_t)n);
}

int session_state_load(struct manager *m) {
        int fd = open_dir(m);
        struct dirent *entry;
        DIR *d;

        if (fd < 0)
                return fd;
        d = fdopendir(fd);
        if (!d) {
                close_fd(fd);
                return -errno;
        }
        while ((entry = readdir(d))) {
                int r;

                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                r = session_name_valid(entry->d_name) ? load_one(m, fd, entry->d_name) : -EPROTO;
                if (r == 0)
                        continue;
                log_line(LOG_P_ERROR, "state file sessions/%s: %s: removed, and the session with it",
                         entry->d_name, strcmp(entry->d_name, NEW) == 0 ? "not finished" : strerror(-r));
                unlinkat(fd, entry->d_name, 0);
        }
        closedir(d);
        return 0;
}
