/*
 * A blocking Unix stream socket and one read buffer. Where a caller must not block, it says so with
 * MSG_DONTWAIT for each call, which saves switching the socket to non-blocking and back.
 */
#include "cli/cli_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/exitcode.h"
#include "common/proto.h"
#include "common/wire.h"

#define GROUP "hermes-sandbox"
#define CHUNKS_MAX (PROTO_EXEC_MAX / FRAME_PAYLOAD_MAX)

/* A closed standard stream would give its number to the socket. It is filled with a descriptor that
 * cannot be written: reading finds the end, writing fails with EBADF as on a closed one. */
static int stream_socket(void) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        while (fd >= 0 && fd <= STDERR_FILENO) {
                close(fd);
                if (open("/dev/null", O_RDONLY) < 0)
                        return -errno;
                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        }
        return fd < 0 ? -errno : fd;
}

static int try_connect(int fd, const char *path) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        size_t len = strlen(path);

        if (len >= sizeof(sa.sun_path))
                return -ENAMETOOLONG;
        memcpy(sa.sun_path, path, len + 1);
        while (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                if (errno != EINTR)
                        return -errno;
        return 0;
}

void cli_conn_explain_eacces(const char *group_file, const char *user, gid_t primary,
                             const gid_t *groups, size_t n_groups, const char *path, struct errmsg *e) {
        bool listed = false, known = false, has = false;
        FILE *f = fopen(group_file, "re");
        struct group *g;

        while (f && (g = fgetgrent(f))) {
                if (strcmp(g->gr_name, GROUP) != 0)
                        continue;
                known = true;
                listed = g->gr_gid == primary;
                for (char **m = g->gr_mem; *m; m++)
                        listed |= strcmp(*m, user) == 0;
                for (size_t i = 0; i < n_groups; i++)
                        has |= groups[i] == g->gr_gid;
        }
        if (f)
                fclose(f);

        if (has || !known)
                errmsg_set(e, 0, "%s: permission denied%s", path,
                           known ? ": ask the administrator who may use this socket"
                                 : " and there is no group " GROUP ": is the package installed?");
        else if (listed)
                errmsg_set(e, 0,
                           "%s joined group " GROUP " after this login: run newgrp " GROUP
                           ", or log in again and restart the agent",
                           user);
        else
                errmsg_set(e, 0, "%s is not in group " GROUP ": sudo usermod -aG " GROUP " %s", user,
                           user);
}

static void explain_eacces(const struct cli *c, const char *path, struct errmsg *e) {
        struct passwd *pw = getpwuid(geteuid());
        gid_t groups[1024];
        char number[24];
        int n = getgroups((int)(sizeof(groups) / sizeof(groups[0])) - 1, groups);

        if (n < 0)
                n = 0;
        groups[n++] = getegid();
        snprintf(number, sizeof(number), "%u", (unsigned)geteuid());
        cli_conn_explain_eacces(c->group_file, pw ? pw->pw_name : number, pw ? pw->pw_gid : (gid_t)-1,
                                groups, (size_t)n, path, e);
}

static int explain(const struct cli *c, const char *path, int r, struct errmsg *e) {
        if (r == -EACCES || r == -EPERM) {
                explain_eacces(c, path, e);
                return EXIT_NOT_ALLOWED;
        }
        if (r == -ENAMETOOLONG)
                return errmsg_set(e, EXIT_USAGE, "socket path '%.80s…' is too long", path);
        if (r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR)
                return errmsg_set(e, EXIT_NO_MANAGER,
                                  "no manager at %s: start it with sudo hermes-sandbox start, or "
                                  "systemctl start hermes-sandbox-pool.socket",
                                  path);
        return errmsg_set(e, EXIT_NO_MANAGER, "cannot connect to %s: %s", path, strerror(-r));
}

/* The socket of the user's own manager, if there can be one. */
static const char *user_socket(void) {
        static char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
        const char *dir = getenv("XDG_RUNTIME_DIR");

        if (!dir || dir[0] != '/' ||
            (size_t)snprintf(path, sizeof(path), "%s/hermes-sandbox/pool.sock", dir) >= sizeof(path))
                return NULL;
        return path;
}

/* 0 when connected. A folder that belongs to someone else (su keeps $XDG_RUNTIME_DIR) is no socket of this
 * user. */
static int try_user_socket(int fd, const char **ret_path) {
        const char *path = user_socket();
        int r;

        if (!path)
                return -ENOENT;
        r = try_connect(fd, path);
        if (r == -ENOTDIR || r == -EACCES)
                return -ENOENT;
        *ret_path = path;
        return r;
}

bool cli_conn_is_users(const struct cli *c) {
        const char *named = c->socket ? c->socket : getenv("HERMES_SANDBOX_SOCKET");
        const char *path = user_socket();

        return (!named || named[0] == '\0') && path && access(path, F_OK) == 0;
}

int cli_conn_open(struct cli_conn *conn, const struct cli *c, struct errmsg *e) {
        const char *path = c->socket ? c->socket : getenv("HERMES_SANDBOX_SOCKET");
        _cleanup_fd_ int fd = -1;
        int r = -ENOENT;

        conn->fd = -1;
        conn->greeted = false;
        conn->gateway = NULL;
        conn->start = conn->end = 0;

        if (c->socket && c->socket[0] == '\0')
                return errmsg_set(e, EXIT_USAGE, "--socket is empty: expected a path");
        fd = stream_socket();
        if (fd < 0)
                return errmsg_set(e, EXIT_NO_MANAGER, "cannot make a socket: %s", strerror(-fd));
        if (path && path[0] != '\0')
                r = try_connect(fd, path);
        else {
                r = try_user_socket(fd, &path);
                if (r == -ENOENT) {
                        path = c->system_socket;
                        r = try_connect(fd, path);
                }
        }
        if (r < 0)
                return explain(c, path, r, e);
        conn->fd = take_fd(&fd);
        return 0;
}

/* @pass goes with the first bytes, unless it is negative. */
static int send_all(int fd, struct iovec *iov, size_t n, int pass) {
        union {
                struct cmsghdr h;
                char space[CMSG_SPACE(sizeof(int))];
        } control;

        while (n > 0) {
                struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
                ssize_t sent;

                if (pass >= 0) {
                        control.h = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                                      .cmsg_type = SCM_RIGHTS,
                                                      .cmsg_len = CMSG_LEN(sizeof(int)) };
                        memcpy(CMSG_DATA(&control.h), &pass, sizeof(int));
                        m.msg_control = &control;
                        m.msg_controllen = sizeof(control.space);
                }
                sent = sendmsg(fd, &m, MSG_NOSIGNAL);
                if (sent < 0) {
                        if (errno == EINTR)
                                continue;
                        return errno == EPIPE || errno == ECONNRESET ? 0 : -errno;
                }
                pass = -1;
                while (n > 0 && (size_t)sent >= iov->iov_len) {
                        sent -= (ssize_t)iov->iov_len;
                        iov++;
                        n--;
                }
                if (n > 0) {
                        iov->iov_base = (uint8_t *)iov->iov_base + sent;
                        iov->iov_len -= (size_t)sent;
                }
        }
        return 0;
}

int cli_conn_request(struct cli_conn *conn, uint8_t type, const void *payload, size_t len) {
        return cli_conn_request_fd(conn, type, payload, len, -1);
}

int cli_conn_request_fd(struct cli_conn *conn, uint8_t type, const void *payload, size_t len, int fd) {
        const struct hello hello = {
                .version = FRAME_VERSION,
                .role = conn->gateway ? HELLO_GATEWAY : HELLO_CLIENT,
                .text = conn->gateway ? conn->gateway : "hermes-sandbox " VERSION,
        };
        uint8_t first[FRAME_HEADER + 192], few_headers[1][FRAME_HEADER];
        struct iovec few_iov[3];
        static uint8_t many_headers[CHUNKS_MAX + 1][FRAME_HEADER];
        static struct iovec many_iov[2 * (CHUNKS_MAX + 1) + 1];
        bool one = len <= FRAME_PAYLOAD_MAX;
        uint8_t(*headers)[FRAME_HEADER] = one ? few_headers : many_headers;
        struct iovec *iov = one ? few_iov : many_iov;
        ssize_t hello_len = hello_encode(&hello, first + FRAME_HEADER, sizeof(first) - FRAME_HEADER);
        size_t n = 1, chunk = 0;

        if (hello_len < 0)
                return (int)hello_len;
        if (len > PROTO_EXEC_MAX)
                return -EMSGSIZE;
        frame_put_header(first, FRAME_HELLO, 0, 0, (uint32_t)hello_len);
        iov[0] = (struct iovec){ first, FRAME_HEADER + (size_t)hello_len };

        for (size_t off = 0; off < len; chunk++) {
                size_t take = len - off < FRAME_PAYLOAD_MAX ? len - off : FRAME_PAYLOAD_MAX;

                frame_put_header(headers[chunk], type, off + take < len ? FRAME_MORE : 0, CLI_CHANNEL,
                                 (uint32_t)take);
                iov[n++] = (struct iovec){ headers[chunk], FRAME_HEADER };
                /* sendmsg only reads it. */
                iov[n++] = (struct iovec){ (uint8_t *)(uintptr_t)payload + off, take };
                off += take;
        }
        return send_all(conn->fd, iov, n, fd);
}

int cli_conn_fill(struct cli_conn *conn, size_t max, int flags) {
        size_t space;
        ssize_t n;

        if (conn->start == conn->end)
                conn->start = conn->end = 0;
        else if (sizeof(conn->buf) - conn->start < FRAME_MAX) {
                memmove(conn->buf, conn->buf + conn->start, conn->end - conn->start);
                conn->end -= conn->start;
                conn->start = 0;
        }
        space = sizeof(conn->buf) - conn->end;
        do
                n = recv(conn->fd, conn->buf + conn->end, space < max ? space : max, flags);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        conn->end += (size_t)n;
        return n > 0;
}

/* The version stands first and is judged first: what follows it may look different in another one. */
static int check_hello(const struct frame *f, struct errmsg *e) {
        struct wire_in in;
        struct hello h;
        unsigned version;

        if (f->type != FRAME_HELLO || f->channel != 0)
                return errmsg_set(e, -EPROTO, "protocol error: the manager did not say hello");
        wire_in_init(&in, f->payload, f->len);
        version = wire_get_u16(&in);
        if (!in.bad && version != FRAME_VERSION)
                return errmsg_set(e, -EPROTO,
                                  "the manager speaks version %u of the protocol and this program "
                                  "version %d: install the same release of both and restart the manager",
                                  version, FRAME_VERSION);
        if (hello_decode(f->payload, f->len, &h) < 0 || h.role != HELLO_MANAGER)
                return errmsg_set(e, -EPROTO, "protocol error: who answers at the socket is no manager");
        return 0;
}

int cli_conn_next(struct cli_conn *conn, struct frame *ret, struct errmsg *e) {
        for (;;) {
                struct frame f;
                size_t used;
                int r = frame_parse(conn->buf + conn->start, conn->end - conn->start, FRAME_FROM_MANAGER,
                                    &f, &used);

                if (r < 0)
                        return errmsg_set(e, r,
                                          "protocol error: a frame from the manager that makes no "
                                          "sense");
                if (r == 0)
                        return 0;
                conn->start += used;
                if (conn->greeted) {
                        *ret = f;
                        return 1;
                }
                r = check_hello(&f, e);
                if (r < 0)
                        return r;
                conn->greeted = true;
        }
}

bool cli_conn_begun(const struct cli_conn *conn, struct frame *ret, size_t *ret_have) {
        struct frame f;

        if (!conn->greeted || frame_parse_header(conn->buf + conn->start, conn->end - conn->start,
                                                 FRAME_FROM_MANAGER, &f) != 1)
                return false;
        f.payload = conn->buf + conn->start + FRAME_HEADER;
        *ret_have = conn->end - conn->start - FRAME_HEADER;
        *ret = f;
        return true;
}

size_t cli_conn_missing(const struct cli_conn *conn) {
        size_t have = conn->end - conn->start;
        struct frame f;

        if (have < FRAME_HEADER)
                return FRAME_HEADER - have;
        return cli_conn_begun(conn, &f, &have) && f.len > have ? f.len - have : 1;
}

void cli_conn_cut(struct cli_conn *conn) {
        conn->start = conn->end;
}
