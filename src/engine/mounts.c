/*
 * Who may mount what is the kernel's word, not the manager's. The manager passes on one end of a pair of sockets;
 * what it cannot do is write on the other end, or have the kernel tell another uid than the one that made the pair.
 * Both ends of a pair are unnamed. A connection to somebody's listening socket would also carry his uid, but one
 * side of it has the listener's name, and so it is refused.
 *
 * A folder is known by its descriptor from beginning to end. Names serve for the policy (allowed_file_paths) and for
 * the last comparison, never to find the folder again: its owner may put anything in the place of a name, at any
 * moment. body.c has the engine mount the descriptor.
 */
#include "engine/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/agent_args.h"
#include "common/cleanup.h"
#include "common/escape.h"
#include "engine/mountinfo.h"

struct mounts_reader {
        struct mounts_reader *next, **prev;
        struct broker *broker;
        int sock;
        sd_event_source *io, *timer;
        struct mounts *mounts; /* what has come so far */
        size_t total;          /* 0: not known yet */
        mounts_done done;
        void *userdata;
};

void mounts_free(struct mounts *m) {
        if (!m)
                return;
        for (size_t i = 0; i < m->n; i++) {
                close_fd(m->of[i].fd);
                free(m->of[i].dst);
        }
        free(m);
}

/* --- reading
 * ----------------------------------------------------------------------------------------- */

static void reader_free(struct mounts_reader *r) {
        *r->prev = r->next;
        if (r->next)
                r->next->prev = r->prev;
        sd_event_source_disable_unref(r->io);
        sd_event_source_disable_unref(r->timer);
        close_fd(r->sock);
        mounts_free(r->mounts);
        free(r);
}

/* @why NULL: all has come. */
static void finish(struct mounts_reader *r, enum engine_error error, const char *why) {
        struct mounts *m = why ? NULL : r->mounts;
        mounts_done done = r->done;
        void *userdata = r->userdata;

        if (m)
                r->mounts = NULL;
        reader_free(r);
        done(userdata, m, error, why);
}

static bool is_unnamed(int sock, int (*get_name)(int, struct sockaddr *, socklen_t *)) {
        struct sockaddr_un sa;
        socklen_t len = sizeof(sa);

        return get_name(sock, (struct sockaddr *)&sa, &len) == 0 && sa.sun_family == AF_UNIX &&
               len <= offsetof(struct sockaddr_un, sun_path);
}

static int get_int(int sock, int option) {
        socklen_t len = sizeof(int);
        int v;

        return getsockopt(sock, SOL_SOCKET, option, &v, &len) < 0 ? -1 : v;
}

/* NULL, or why this is not the end of a pair of one who may mount something. */
static const char *check_caller(const struct broker *b, int sock, struct mounts *m) {
        struct ucred peer;
        socklen_t len = sizeof(peer);

        if (get_int(sock, SO_DOMAIN) != AF_UNIX || get_int(sock, SO_TYPE) != SOCK_SEQPACKET ||
            getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
            !is_unnamed(sock, getsockname) || !is_unnamed(sock, getpeername))
                return "what came with the request is no end of a pair of packet sockets";
        if (peer.uid == 0 || peer.gid == 0)
                return "root's folders are not mounted, nor those of the group root: call as the user who "
                       "owns the folder";
        if (b->options.single_user ? peer.uid != geteuid()
                                   : peer.uid == b->manager_uid || peer.uid == geteuid())
                return "this account may mount nothing: call as the user who owns the folder";
        /* What the agent takes as numbers. */
        if (peer.uid > INT32_MAX || peer.gid > INT32_MAX)
                return "the caller's uid or gid is too large for a sandbox";
        m->uid = peer.uid;
        m->gid = peer.gid;
        return NULL;
}

static bool is_open_path(int fd) {
        int flags = fcntl(fd, F_GETFL);
        struct stat st;

        return flags >= 0 && (flags & O_PATH) && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* NULL, or why this packet is wrong. */
static const char *take(struct mounts_reader *r, const uint8_t *buf, size_t len, int *fd) {
        struct mounts *m = r->mounts;
        struct mount_msg msg;
        char *dst;

        if (mount_msg_decode(buf, len, &msg) < 0)
                return "the caller's message is malformed: are hermes-sandbox and its daemons of one version?";
        if (msg.index != m->n || (r->total && msg.total != r->total))
                return "the caller's messages are not complete";
        if (*fd == -EMFILE)
                return "the broker has no descriptor left for the folder: raise LimitNOFILE of hermes-engined";
        if (!is_open_path(*fd))
                return "the caller's message came without a folder that was opened for its path alone";
        dst = strdup(msg.dst);
        if (!dst)
                return "out of memory";
        r->total = msg.total;
        m->of[m->n++] = (struct mount){ .fd = take_fd(fd), .read_only = msg.read_only, .dst = dst };
        return NULL;
}

/* Takes what is there. Returns true when the reader is finished, and then it is gone. */
static bool drain(struct mounts_reader *r) {
        uint8_t buf[MOUNT_MSG_MAX];
        const char *why = NULL;

        while (!why && (!r->total || r->mounts->n < r->total)) {
                _cleanup_fd_ int fd = -1;
                ssize_t n = engine_msg_recv(r->sock, buf, sizeof(buf), &fd);

                if (n == -EAGAIN)
                        return false;
                if (n <= 0)
                        why = n == 0 ? "the caller went away" : "the caller's message is malformed";
                else
                        why = take(r, buf, (size_t)n, &fd);
        }
        finish(r, ENGINE_E_REFUSED, why);
        return true;
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        (void)s;
        (void)fd;
        (void)revents;
        drain(userdata);
        return 0;
}

static int on_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        (void)s;
        (void)usec;
        finish(userdata, ENGINE_E_REFUSED, "the caller did not say in time what to mount");
        return 0;
}

static int watch(struct mounts_reader *r) {
        sd_event *event = r->broker->event;
        int q = sd_event_add_io(event, &r->io, r->sock, EPOLLIN, on_readable, r);

        if (q >= 0)
                q = sd_event_add_time_relative(event, &r->timer, CLOCK_MONOTONIC, MOUNTS_WAIT_MS * 1000,
                                               0, on_deadline, r);
        return q;
}

static size_t n_readers(const struct broker *b) {
        size_t n = 0;

        for (const struct mounts_reader *r = b->mounts_readers; r; r = r->next)
                n++;
        return n;
}

int mounts_read(struct broker *b, int sock, mounts_done done, void *userdata) {
        _cleanup_fd_ int fd = sock;
        struct mounts_reader *r;
        const char *why;

        if (n_readers(b) >= MOUNTS_READERS_MAX)
                return -EBUSY;
        r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        r->mounts = calloc(1, sizeof(*r->mounts));
        if (!r->mounts) {
                free(r);
                return -ENOMEM;
        }
        r->broker = b;
        r->sock = take_fd(&fd);
        r->done = done;
        r->userdata = userdata;
        r->next = b->mounts_readers;
        r->prev = &b->mounts_readers;
        if (r->next)
                r->next->prev = &r->next;
        b->mounts_readers = r;
        why = check_caller(b, r->sock, r->mounts);
        if (why)
                finish(r, ENGINE_E_NOT_ALLOWED, why);
        else if (!drain(r) && watch(r) < 0)
                finish(r, ENGINE_E_REFUSED, "out of memory");
        return 0;
}

void mounts_drop_all(struct broker *b) {
        while (b->mounts_readers)
                finish(b->mounts_readers, ENGINE_E_REFUSED, "the broker ends");
}

/* --- judging
 * ----------------------------------------------------------------------------------------- */

/* A path as it may stand in a line. */
struct shown {
        char text[400];
};

static const char *show(struct shown *s, const char *path) {
        struct text t;

        text_init(&t, s->text, sizeof(s->text));
        text_add_shown(&t, path, strnlen(path, 90));
        return s->text;
}

/* Where the folder lies now, as far as its name goes. */
static int path_of(int fd, char ret[PATH_MAX], struct errmsg *e) {
        static const char deleted[] = " (deleted)";
        size_t tail = sizeof(deleted) - 1;
        char link[64];
        struct stat st;
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, ret, PATH_MAX);
        if (n < 0 || n >= PATH_MAX || fstat(fd, &st) < 0)
                return errmsg_set(e, -EPERM, "mount: the folder's path cannot be read, or is too long");
        ret[n] = '\0';
        /* The kernel's mark, and a folder that only looks so: neither can be told from the other. */
        if (ret[0] != '/' || st.st_nlink == 0 ||
            ((size_t)n >= tail && strcmp(ret + (size_t)n - tail, deleted) == 0))
                return errmsg_set(e, -EPERM,
                                  "mount: the folder is no more, or not on this machine's tree");
        return 0;
}

static int is_allowed(const struct config *c, const char *path, struct errmsg *e) {
        struct shown s;

        for (char **allowed = c->allowed_file_paths; *allowed; allowed++)
                if (mount_path_below(path, *allowed))
                        return 0;
        return errmsg_set(
                e, -EPERM,
                "mount of %s: not below allowed_file_paths: the administrator can add its folder there, "
                "in sandbox.yaml",
                show(&s, path));
}

/* The mount that the folder is on. The engine, as this machine's init, must have it too: else it could not mount
 * from there, and a name would mean something else to it. */
static int mount_under(int fd, const char *path, struct mountinfo *ret, struct errmsg *e) {
        int id = mountinfo_of_fd(fd);
        struct shown s;

        if (id >= 0 && (mountinfo_by_id(1, id, ret) == 0 || mountinfo_by_id(0, id, ret) == 0))
                return 0;
        return errmsg_set(
                e, -EPERM,
                "mount of %s: the caller sees other mounts than this machine's init: call from outside of "
                "unshare, bwrap or a unit with PrivateTmp= or ProtectSystem=",
                show(&s, path));
}

static bool overlap(const char *a, const char *b) {
        return mount_path_below(a, b) || mount_path_below(b, a);
}

/* What a folder of the caller's would hide, or in which the engine or the kernel would have to make an entry for what
 * is mounted below it. In a tmpfs of the profile it does, before anything runs there. */
static const char *hidden_by(const char *dst, const struct config_profile *p) {
        static const char *const own[] = { "/proc",           "/sys",       "/dev",
                                           AGENT_DIR,         "/etc/hosts", "/etc/hostname",
                                           "/etc/resolv.conf" };

        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
                if (overlap(dst, own[i]))
                        return own[i];
        /* In the very place of a tmpfs it is instead of it. */
        for (size_t i = 0; i < p->n_tmpfs; i++)
                if (strcmp(dst, p->tmpfs[i].path) != 0 && mount_path_below(p->tmpfs[i].path, dst))
                        return p->tmpfs[i].path;
        return NULL;
}

/* Where an image has links as a rule (file-hierarchy(7), a merged /usr, /var/run): the path behind it into @ret. */
static void follow(const char *dst, char *ret, size_t cap) {
        static const char *const links[][2] = {
                { "/bin", "/usr/bin" },     { "/sbin", "/usr/sbin" },     { "/lib", "/usr/lib" },
                { "/lib32", "/usr/lib32" }, { "/lib64", "/usr/lib64" },   { "/libx32", "/usr/libx32" },
                { "/var/run", "/run" },     { "/var/lock", "/run/lock" },
        };

        snprintf(ret, cap, "%s", dst);
        for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
                if (mount_path_below(dst, links[i][0]))
                        snprintf(ret, cap, "%s%s", links[i][1], dst + strlen(links[i][0]));
}

/*
 * None may lie in another one. The way to the inner one's place would lead through a folder that its owner changes at
 * any moment, and the engine goes it as root: by a link in it, it makes the place in whatever else is mounted, puts the
 * folder over the sandbox's /dev or /etc and fills it, and, where the link comes between its look and its mkdir
 * (CVE-2024-45310: a few tries with runc 1.1.5), makes folders anywhere on this machine. mounts_verify() comes too late
 * for all of that. cli_mount.c has another way to the same.
 */
static bool may_meet(const char *a, const char *b) {
        char x[MOUNT_DST_MAX + 16], y[MOUNT_DST_MAX + 16];

        follow(a, x, sizeof(x));
        follow(b, y, sizeof(y));
        return overlap(x, y);
}

static int check_dst(const struct mounts *m, size_t at, const struct config_profile *p,
                     struct errmsg *e) {
        const char *dst = m->of[at].dst, *own = hidden_by(dst, p);
        struct shown s, t;

        if (own)
                return errmsg_set(e, -EINVAL,
                                  "mount at %s: %s is the sandbox's own: choose another place",
                                  show(&s, dst), own);
        for (size_t i = 0; i < at; i++)
                if (may_meet(dst, m->of[i].dst))
                        return errmsg_set(e, -EINVAL, "mount at %s: it overlaps the one at %s",
                                          show(&s, dst), show(&t, m->of[i].dst));
        return 0;
}

int mounts_check(const struct mounts *m, const struct config *c, const struct config_profile *p,
                 struct errmsg *e) {
        _cleanup_free_ struct mountinfo *on = malloc(sizeof(*on));
        char path[PATH_MAX];

        if (!on)
                return errmsg_set(e, -ENOMEM, "mount: out of memory");
        for (size_t i = 0; i < m->n; i++) {
                int r = check_dst(m, i, p, e);

                if (r < 0)
                        return r;
                if (path_of(m->of[i].fd, path, e) < 0 || is_allowed(c, path, e) < 0 ||
                    mount_under(m->of[i].fd, path, on, e) < 0)
                        return -EPERM;
        }
        return 0;
}

/* --- after the start
 * --------------------------------------------------------------------------------- */

static int verify_one(const struct mount *mount, const struct config *c, pid_t pid, struct mountinfo *on,
                      struct mountinfo *in, struct errmsg *e) {
        char path[PATH_MAX], want[PATH_MAX];
        struct shown s, t;
        int r;

        if (path_of(mount->fd, path, e) < 0 || is_allowed(c, path, e) < 0 ||
            mount_under(mount->fd, path, on, e) < 0)
                return -EPERM;
        if (mountinfo_root_of(on, path, want) < 0)
                return errmsg_set(e, -EPERM,
                                  "mount of %s: the folder was moved to another place meanwhile",
                                  show(&s, path));
        r = mountinfo_by_point(pid, mount->dst, in);
        if (r < 0)
                return errmsg_set(e, -EIO, "mount at %s: not found in the sandbox: %s",
                                  show(&s, mount->dst),
                                  r == -ENOENT ? "the image has a symbolic link there" : strerror(-r));
        if (in->major != on->major || in->minor != on->minor || strcmp(in->root, want) != 0 ||
            in->read_only < mount->read_only)
                return errmsg_set(e, -EPERM,
                                  "mount of %s at %s: the sandbox has got another folder there",
                                  show(&s, path), show(&t, mount->dst));
        return 0;
}

int mounts_verify(const struct mounts *m, const struct config *c, pid_t pid, struct errmsg *e) {
        _cleanup_free_ struct mountinfo *two = calloc(2, sizeof(*two));

        if (!two)
                return errmsg_set(e, -ENOMEM, "mount: out of memory");
        for (size_t i = 0; i < m->n; i++) {
                int r = verify_one(&m->of[i], c, pid, &two[0], &two[1], e);

                if (r < 0)
                        return r;
        }
        return 0;
}
