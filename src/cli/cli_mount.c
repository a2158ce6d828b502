/*
 * A folder is named by its descriptor, so that nobody can put another one in its place on the way, and it is
 * reached without a symbolic link, so that what was named is what is mounted. The pair is made in this process:
 * its peer's credentials, by which the broker judges, are ours.
 */
#include "cli/cli_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/exitcode.h"

/* A place of no other use; each folder there has a name of its own. */
#define ASIDE "/.hermes-folders/"

int cli_mounts_add(struct cli_mounts *m, const char *what, const char *text, struct errmsg *e) {
        struct cli_mount mount = { .text = text };
        char target[MOUNT_DST_MAX + 1];
        size_t len = strlen(text);
        const char *split = NULL, *fault;

        if (m->n == MOUNT_MAX)
                return errmsg_set(e, -EINVAL, "%s: more than %d times", what, MOUNT_MAX);
        if (len > 3 && strcmp(text + len - 3, ":ro") == 0) {
                mount.read_only = true;
                len -= 3;
        }
        /* A colon may stand in SRC, but not in DST. */
        for (size_t i = 1; i < len; i++)
                if (text[i] == ':')
                        split = text + i;
        if (!split || split[1] != '/')
                return errmsg_set(e, -EINVAL, "%s '%.80s': expected SRC:DST or SRC:DST:ro, DST absolute",
                                  what, text);
        mount.source_len = (int)(split - text);
        mount.target = mount.source_len + 1;
        mount.target_len = (int)len - mount.target;
        fault = "is longer than 1024 bytes";
        if ((size_t)snprintf(target, sizeof(target), "%.*s", mount.target_len, text + mount.target) <
            sizeof(target))
                fault = mount_dst_fault(target);
        if (fault)
                return errmsg_set(e, -EINVAL, "%s: %.*s %s", what,
                                  mount.target_len > 200 ? 200 : mount.target_len, text + mount.target,
                                  fault);
        m->of[m->n++] = mount;
        return 0;
}

/* Returns an open descriptor, or minus an exit status and a line. */
static int open_source(const char *what, const char *path, struct errmsg *e) {
        struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                .resolve = RESOLVE_NO_SYMLINKS };
        int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

        if (fd >= 0)
                return fd;
        if (errno == ELOOP)
                return errmsg_set(e, -EXIT_USAGE,
                                  "%s %.200s: a symbolic link stands in its path: give the path that "
                                  "realpath prints",
                                  what, path);
        return errmsg_set(e, errno == EACCES || errno == EPERM ? -EXIT_NOT_ALLOWED : -EXIT_USAGE,
                          "%s %.200s: %s", what, path, strerror(errno));
}

/* What place @in has below place @out in the sandbox, without the slash; NULL: none. */
static const char *rest_below(const struct cli_mount *in, const struct cli_mount *out, int *ret_len) {
        if (in->target_len <= out->target_len || in->text[in->target + out->target_len] != '/' ||
            memcmp(in->text + in->target, out->text + out->target, (size_t)out->target_len) != 0)
                return NULL;
        *ret_len = in->target_len - out->target_len - 1;
        return in->text + in->target + out->target_len + 1;
}

/* The folder that lies around it most closely, or NULL. */
static const struct cli_mount *around(const struct cli_mounts *m, const struct cli_mount *in) {
        const struct cli_mount *best = NULL;
        int len;

        for (int i = 0; i < m->n; i++)
                if (rest_below(in, &m->of[i], &len) && (!best || m->of[i].target_len > best->target_len))
                        best = &m->of[i];
        return best;
}

bool cli_mount_aside(const char *front, const char *target, int len, char ret[MOUNT_DST_MAX + 1]) {
        if (len - 1 > NAME_MAX)
                return false;
        snprintf(ret, MOUNT_DST_MAX + 1, "%s%.*s", front, len - 1, target + 1);
        for (char *p = ret + strlen(front); *p; p++)
                if (*p == '/')
                        *p = '+';
        return true;
}

/* Where a folder that is meant for a place in another one is mounted. */
static int aside(const struct cli_mount *in, const char *what, char ret[MOUNT_DST_MAX + 1],
                 struct errmsg *e) {
        if (!cli_mount_aside(ASIDE, in->text + in->target, in->target_len, ret))
                return errmsg_set(e, EXIT_USAGE, "%s %.200s: in another folder its place is too long",
                                  what, in->text);
        return 0;
}

/* What is there is empty, and of the kind that the link leads to: such is left where a mount has been. */
static int make_room(int dir, const char *name, bool folder) {
        struct stat st;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -1;
        if (folder ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode) || st.st_size > 0) {
                errno = EEXIST;
                return -1;
        }
        return unlinkat(dir, name, folder ? AT_REMOVEDIR : 0);
}

static bool leads_to(int dir, const char *name, const char *to) {
        char there[MOUNT_DST_MAX + 1];
        ssize_t n = readlinkat(dir, name, there, sizeof(there));

        return n >= 0 && (size_t)n == strlen(to) && memcmp(there, to, (size_t)n) == 0;
}

/* A link of that name to that place, which is a folder's or a file's. 0, or -1 and errno. */
static int link_to(int dir, const char *name, const char *to, bool folder) {
        int why;

        if (leads_to(dir, name, to) || symlinkat(to, dir, name) == 0)
                return 0;
        /* Another run may do the same at this moment. */
        if (errno == EEXIST && (make_room(dir, name, folder) == 0 || errno == ENOENT) &&
            symlinkat(to, dir, name) == 0)
                return 0;
        why = errno;
        if (leads_to(dir, name, to))
                return 0;
        errno = why;
        return -1;
}

/* @name is to be made, or given up for a link, in the folder @source, and errno says why it cannot be. */
static int no_place(const char *what, const char *text, const char *source, const char *name,
                    struct errmsg *e) {
        int r = errno;
        char mend[256] = "";

        /* Such is left where the genuine docker has made a place for a mount. */
        if (r == EACCES || r == EPERM)
                snprintf(mend, sizeof(mend), ": it is another user's: sudo chown -R %u:%u %.200s",
                         getuid(), getgid(), source);
        return errmsg_set(e, EXIT_USAGE, "%s %.200s: no place for it in %.200s: %s: %s%s", what, text,
                          source, name, strerror(r), mend);
}

/* The place that @in has in folder @out becomes a link to @to, made with the caller's rights. No link is followed on the
 * way. 0, or an exit status and a line. */
static int make_link(const struct cli_mount *out, const struct cli_mount *in, const char *to,
                     bool folder, const char *what, struct errmsg *e) {
        char source[4096], rest[MOUNT_DST_MAX + 1], *next = rest, *name;
        const char *below_out;
        _cleanup_fd_ int fd = -1;
        int len = 0;

        below_out = rest_below(in, out, &len);
        snprintf(rest, sizeof(rest), "%.*s", len, below_out);
        snprintf(source, sizeof(source), "%.*s", out->source_len, out->text);
        fd = open_source(what, source, e);
        if (fd < 0)
                return -fd;
        while ((name = strsep(&next, "/"))) {
                int below = -1;

                if (!next && link_to(fd, name, to, folder) == 0)
                        return 0;
                if (next && (mkdirat(fd, name, 0755) == 0 || errno == EEXIST))
                        below = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (below < 0)
                        return no_place(what, in->text, source, name, e);
                close(fd);
                fd = below;
        }
        return 0;
}

/*
 * A folder that is meant for a place in another one is mounted aside, and the other one has a link to it there: the engine
 * would go to that place as root, through a folder that others may change under its feet, and so the broker refuses it.
 */
static int link_folder(const struct cli_mounts *m, const struct cli_mount *in, const char *what,
                       struct errmsg *e) {
        const struct cli_mount *out = around(m, in);
        char to[MOUNT_DST_MAX + 1];
        int r = out ? aside(in, what, to, e) : 0;

        return out && r == 0 ? make_link(out, in, to, true, what, e) : r;
}

int cli_mounts_link(const struct cli_mounts *m, const char *target, const char *to, const char *what,
                    struct errmsg *e) {
        const struct cli_mount in = { .text = target, .target_len = (int)strlen(target) };
        const struct cli_mount *out = around(m, &in);

        return out ? make_link(out, &in, to, false, what, e) : 0;
}

static int send_mount(const struct cli_mounts *m, int i, const char *what, int sock, struct errmsg *e) {
        const struct cli_mount *of = &m->of[i];
        char source[4096], target[MOUNT_DST_MAX + 1];
        struct mount_msg msg = {
                .index = (uint8_t)i, .total = (uint8_t)m->n, .read_only = of->read_only, .dst = target
        };
        _cleanup_fd_ int fd = -1;
        int r;

        if ((size_t)snprintf(source, sizeof(source), "%.*s", of->source_len, of->text) >= sizeof(source))
                return errmsg_set(e, EXIT_USAGE, "%s: %s", what, strerror(ENAMETOOLONG));
        snprintf(target, sizeof(target), "%.*s", of->target_len, of->text + of->target);
        r = around(m, of) ? aside(of, what, target, e) : 0;
        if (r != 0)
                return r;
        fd = open_source(what, source, e);
        if (fd < 0)
                return -fd;
        r = mount_msg_send(sock, &msg, fd);
        return r < 0 ? errmsg_set(e, EXIT_OS, "%s: cannot write to a socket: %s", what, strerror(-r))
                     : 0;
}

int cli_mounts_open(const struct cli_mounts *m, const char *what, int *ret_fd, struct errmsg *e) {
        _cleanup_fd_ int ours = -1, theirs = -1;
        int pair[2], r = 0;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return errmsg_set(e, EXIT_OS, "%s: cannot make a socket: %s", what, strerror(errno));
        ours = pair[0];
        theirs = pair[1];
        for (int i = 0; i < m->n && r == 0; i++)
                r = link_folder(m, &m->of[i], what, e);
        for (int i = 0; i < m->n && r == 0; i++)
                r = send_mount(m, i, what, ours, e);
        if (r == 0)
                *ret_fd = take_fd(&theirs);
        return r;
}
