/*
 * The messages between manager and broker. Each type's fields are read and written in one order by one
 * pair of functions; the stickiness of wire.h makes one check at the end enough.
 */
#include "common/engine_msg.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/wire.h"

bool engine_is_hex(const char *s, size_t digits) {
        return strlen(s) == digits && strspn(s, "0123456789abcdef") == digits;
}

static const char *bare(const char *id) {
        return strncmp(id, "sha256:", 7) == 0 ? id + 7 : id;
}

bool engine_same_image(const char *id, const char *other) {
        return bare(id)[0] && strcmp(bare(id), bare(other)) == 0;
}

static void put_str(struct wire_out *out, const char *s, size_t max) {
        if (s && strlen(s) > max)
                out->bad = true;
        wire_put_str(out, s);
}

/* Text for people: a cut line is better than none. Never cuts inside a UTF-8 character. */
static void put_text(struct wire_out *out, const char *s, size_t max) {
        size_t n;

        s = s ? s : "";
        n = strlen(s);
        if (n > max) {
                n = max;
                while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
                        n--;
        }
        wire_put_u32(out, (uint32_t)n + 1);
        wire_put_raw(out, s, n);
        wire_put_u8(out, 0);
}

static void put_hash(struct wire_out *out, const uint8_t *hash) {
        if (hash)
                wire_put_raw(out, hash, ENGINE_RECIPE);
        else
                out->bad = true;
}

static size_t listed_size(const struct engine_listed *l) {
        return 4 + strlen(l->container) + 1 + 4 + strlen(l->profile) + 1 + 4 + strlen(l->state) + 1;
}

static void put_listed(struct wire_out *out, const struct engine_msg *m) {
        size_t room = out->cap - out->len, used = 3;
        uint16_t n = 0;

        if (m->n_listed > ENGINE_LIST_MAX) {
                out->bad = true;
                return;
        }
        while (n < m->n_listed && used + listed_size(&m->listed[n]) <= room)
                used += listed_size(&m->listed[n++]);
        wire_put_u8(out, m->more || n < m->n_listed);
        wire_put_u16(out, n);
        for (uint16_t i = 0; i < n; i++) {
                put_str(out, m->listed[i].container, ENGINE_ID_LEN);
                put_str(out, m->listed[i].profile, ENGINE_PROFILE_MAX);
                put_str(out, m->listed[i].state, ENGINE_STATUS_MAX);
        }
}

static void put_request(struct wire_out *out, const struct engine_msg *m) {
        switch (m->type) {
        case ENGINE_HELLO:
                wire_put_u16(out, m->version);
                break;
        case ENGINE_CREATE:
        case ENGINE_CREATE_FOR:
                put_str(out, m->profile, ENGINE_PROFILE_MAX);
                put_hash(out, m->hash);
                if (m->type == ENGINE_CREATE)
                        break;
                narrow_put(out, &m->narrow);
                wire_put_u8(out, m->mounts);
                break;
        case ENGINE_REMOVE:
        case ENGINE_LIST:
        case ENGINE_INSPECT:
        case ENGINE_LISTEN:
                put_str(out, m->container, ENGINE_ID_LEN);
                break;
        case ENGINE_IMAGE:
        case ENGINE_IMAGE_LOOK:
                put_str(out, m->profile, ENGINE_PROFILE_MAX);
                break;
        case ENGINE_INFO:
                break;
        default:
                out->bad = true;
        }
}

static void put_image_is(struct wire_out *out, const struct engine_msg *m) {
        wire_put_u8(out, m->present);
        put_str(out, m->image, ENGINE_IMAGE_ID_MAX);
        put_str(out, m->digest, ENGINE_DIGEST_MAX);
        wire_put_u64(out, m->bytes);
        put_str(out, m->created, ENGINE_CREATED_MAX);
        put_str(out, m->entrypoint, ENGINE_ENTRYPOINT_MAX);
}

static void put_answer(struct wire_out *out, const struct engine_msg *m) {
        switch (m->type) {
        case ENGINE_WELCOME:
                wire_put_u16(out, m->version);
                put_str(out, m->installation, ENGINE_INSTALLATION_LEN);
                put_hash(out, m->hash);
                break;
        case ENGINE_CREATED:
                put_str(out, m->container, ENGINE_ID_LEN);
                wire_put_u32(out, m->pid);
                put_str(out, m->image, ENGINE_IMAGE_ID_MAX);
                break;
        case ENGINE_LISTENING:
                wire_put_u32(out, m->pid);
                put_str(out, m->image, ENGINE_IMAGE_ID_MAX);
                break;
        case ENGINE_DONE:
                break;
        case ENGINE_LISTED:
                put_listed(out, m);
                break;
        case ENGINE_INSPECTED:
                put_str(out, m->status, ENGINE_STATUS_MAX);
                wire_put_u32(out, m->pid);
                wire_put_u32(out, m->exit_code);
                wire_put_u8(out, m->oom_killed);
                break;
        case ENGINE_IMAGE_READY:
                put_str(out, m->image, ENGINE_IMAGE_ID_MAX);
                wire_put_u8(out, m->pulled);
                break;
        case ENGINE_IMAGE_IS:
                put_image_is(out, m);
                break;
        case ENGINE_INFO_IS:
                put_text(out, m->text, ENGINE_INFO_MAX);
                break;
        case ENGINE_FAILED:
                wire_put_u16(out, m->error);
                put_text(out, m->text, ENGINE_TEXT_MAX);
                break;
        case ENGINE_PROGRESS:
                put_str(out, m->layer, ENGINE_LAYER_MAX);
                put_text(out, m->text, ENGINE_TEXT_MAX);
                wire_put_u64(out, m->done);
                wire_put_u64(out, m->total);
                break;
        case ENGINE_STATE:
                wire_put_u8(out, m->state);
                put_text(out, m->text, ENGINE_TEXT_MAX);
                break;
        case ENGINE_DIED:
                put_str(out, m->container, ENGINE_ID_LEN);
                wire_put_u32(out, m->exit_code);
                wire_put_u8(out, m->oom_killed);
                break;
        default:
                out->bad = true;
        }
}

ssize_t engine_msg_encode(const struct engine_msg *m, void *buf, size_t cap) {
        struct wire_out out;

        wire_out_init(&out, buf, cap);
        wire_put_u32(&out, m->id);
        wire_put_u16(&out, m->type);
        if (m->type < ENGINE_WELCOME)
                put_request(&out, m);
        else
                put_answer(&out, m);
        return out.bad ? -EMSGSIZE : (ssize_t)out.len;
}

static void get_listed(struct wire_in *in, struct engine_msg *m) {
        m->more = wire_get_bool(in);
        m->n_listed = wire_get_u16(in);
        if (m->n_listed > ENGINE_LIST_MAX) {
                in->bad = true;
                return;
        }
        for (uint16_t i = 0; i < m->n_listed; i++) {
                m->listed[i].container = wire_get_hex(in, ENGINE_ID_LEN);
                m->listed[i].profile = wire_get_str(in, ENGINE_PROFILE_MAX);
                m->listed[i].state = wire_get_str(in, ENGINE_STATUS_MAX);
        }
}

static void get_request(struct wire_in *in, struct engine_msg *m) {
        switch (m->type) {
        case ENGINE_HELLO:
                m->version = wire_get_u16(in);
                break;
        case ENGINE_CREATE:
        case ENGINE_CREATE_FOR:
                m->profile = wire_get_str(in, ENGINE_PROFILE_MAX);
                m->hash = wire_get_raw(in, ENGINE_RECIPE);
                if (m->type == ENGINE_CREATE)
                        break;
                narrow_get(in, &m->narrow);
                m->mounts = wire_get_bool(in);
                break;
        case ENGINE_REMOVE:
        case ENGINE_INSPECT:
        case ENGINE_LISTEN:
                m->container = wire_get_hex(in, ENGINE_ID_LEN);
                break;
        case ENGINE_LIST:
                m->container = wire_get_str(in, ENGINE_ID_LEN);
                if (m->container && m->container[0] && !engine_is_hex(m->container, ENGINE_ID_LEN))
                        in->bad = true;
                break;
        case ENGINE_IMAGE:
        case ENGINE_IMAGE_LOOK:
                m->profile = wire_get_str(in, ENGINE_PROFILE_MAX);
                break;
        case ENGINE_INFO:
                break;
        default:
                in->bad = true;
        }
}

static void get_image_is(struct wire_in *in, struct engine_msg *m) {
        m->present = wire_get_bool(in);
        m->image = wire_get_str(in, ENGINE_IMAGE_ID_MAX);
        m->digest = wire_get_str(in, ENGINE_DIGEST_MAX);
        m->bytes = wire_get_u64(in);
        m->created = wire_get_str(in, ENGINE_CREATED_MAX);
        m->entrypoint = wire_get_str(in, ENGINE_ENTRYPOINT_MAX);
}

static void get_answer(struct wire_in *in, struct engine_msg *m) {
        switch (m->type) {
        case ENGINE_WELCOME:
                m->version = wire_get_u16(in);
                m->installation = wire_get_hex(in, ENGINE_INSTALLATION_LEN);
                m->hash = wire_get_raw(in, ENGINE_RECIPE);
                break;
        case ENGINE_CREATED:
                m->container = wire_get_hex(in, ENGINE_ID_LEN);
                m->pid = wire_get_u32(in);
                m->image = wire_get_str(in, ENGINE_IMAGE_ID_MAX);
                break;
        case ENGINE_LISTENING:
                m->pid = wire_get_u32(in);
                m->image = wire_get_str(in, ENGINE_IMAGE_ID_MAX);
                break;
        case ENGINE_DONE:
                break;
        case ENGINE_LISTED:
                get_listed(in, m);
                break;
        case ENGINE_INSPECTED:
                m->status = wire_get_str(in, ENGINE_STATUS_MAX);
                m->pid = wire_get_u32(in);
                m->exit_code = wire_get_u32(in);
                m->oom_killed = wire_get_bool(in);
                break;
        case ENGINE_IMAGE_READY:
                m->image = wire_get_str(in, ENGINE_IMAGE_ID_MAX);
                m->pulled = wire_get_bool(in);
                break;
        case ENGINE_IMAGE_IS:
                get_image_is(in, m);
                break;
        case ENGINE_INFO_IS:
                m->text = wire_get_str(in, ENGINE_INFO_MAX);
                break;
        case ENGINE_FAILED:
                m->error = wire_get_u16(in);
                m->text = wire_get_str(in, ENGINE_TEXT_MAX);
                break;
        case ENGINE_PROGRESS:
                m->layer = wire_get_str(in, ENGINE_LAYER_MAX);
                m->text = wire_get_str(in, ENGINE_TEXT_MAX);
                m->done = wire_get_u64(in);
                m->total = wire_get_u64(in);
                break;
        case ENGINE_STATE:
                m->state = wire_get_u8(in);
                m->text = wire_get_str(in, ENGINE_TEXT_MAX);
                if (m->state < ENGINE_UP || m->state > ENGINE_NOT_ENABLED)
                        in->bad = true;
                break;
        case ENGINE_DIED:
                m->container = wire_get_hex(in, ENGINE_ID_LEN);
                m->exit_code = wire_get_u32(in);
                m->oom_killed = wire_get_bool(in);
                break;
        default:
                in->bad = true;
        }
}

int engine_msg_decode(const void *buf, size_t len, enum engine_from from, struct engine_msg *ret) {
        struct engine_msg m = { 0 };
        struct wire_in in;

        wire_in_init(&in, buf, len);
        m.id = wire_get_u32(&in);
        m.type = wire_get_u16(&in);
        if (from == ENGINE_FROM_MANAGER)
                get_request(&in, &m);
        else
                get_answer(&in, &m);
        if (!wire_in_done(&in))
                return -EPROTO;
        *ret = m;
        return 0;
}

int engine_msg_send(int sock, const void *buf, size_t len, int pass_fd) {
        struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
        union {
                char bytes[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = { 0 };
        struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (pass_fd >= 0) {
                struct cmsghdr *c;

                mh.msg_control = control.bytes;
                mh.msg_controllen = sizeof(control.bytes);
                c = CMSG_FIRSTHDR(&mh);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(c), &pass_fd, sizeof(int));
        }
        while (sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                if (errno != EINTR)
                        return -errno;
        return 0;
}

/*
 * Takes the one descriptor out of @mh. Whatever else came is closed and makes it -EPROTO. Cut off and
 * nothing there: the first of them did not fit in our table, as unix(7) has it.
 */
static int take_descriptor(struct msghdr *mh, int *ret_fd) {
        bool lost = (mh->msg_flags & MSG_CTRUNC) && !CMSG_FIRSTHDR(mh) && ret_fd;
        int got = lost ? -EMFILE : -1;
        int r = (mh->msg_flags & (lost ? MSG_TRUNC : MSG_TRUNC | MSG_CTRUNC)) ? -EPROTO : 0;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
                size_t n = c->cmsg_len - CMSG_LEN(0);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
                        r = -EPROTO;
                        continue;
                }
                for (size_t at = 0; at + sizeof(int) <= n; at += sizeof(int)) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + at, sizeof(int));
                        if (got >= 0 || !ret_fd) {
                                close(fd);
                                r = -EPROTO;
                        } else {
                                got = fd;
                        }
                }
        }
        if (r < 0) {
                close_fd(got);
                return r;
        }
        if (ret_fd)
                *ret_fd = got;
        return 0;
}

ssize_t engine_msg_recv(int sock, void *buf, size_t cap, int *ret_fd) {
        struct iovec iov = { .iov_base = buf, .iov_len = cap };
        union {
                char bytes[CMSG_SPACE(4 * sizeof(int))];
                struct cmsghdr align;
        } control;
        struct msghdr mh = { .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes) };
        ssize_t n;
        int r;

        do
                n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        r = take_descriptor(&mh, ret_fd);
        return r < 0 ? r : n;
}
