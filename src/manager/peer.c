#include "manager/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* linux/asm-generic/socket.h, since Linux 6.5 */
#endif

void peer_policy_init(struct peer_policy *p, const char *gateway) {
        struct group *g = getgrnam("hermes-sandbox");
        struct passwd *pw = *gateway ? getpwnam(gateway) : NULL;

        p->have_group = g;
        p->group = g ? g->gr_gid : (gid_t)-1;
        p->have_gateway = pw && pw->pw_uid != 0 && pw->pw_uid != geteuid();
        p->gateway = p->have_gateway ? pw->pw_uid : (uid_t)-1;
}

/* The login uid belongs to the process behind the pid only while that process lives: the pidfd, which the
 * socket itself gives, is asked after the read. */
static uint32_t read_loginuid(int fd, pid_t pid) {
        static int proc = -1; /* kept open: the way from the root costs more than the rest of the path */
        _cleanup_fd_ int pidfd = -1, file = -1;
        socklen_t len = sizeof(pidfd);
        char path[64], buf[16];
        struct pollfd pfd;
        ssize_t n;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0)
                return UINT32_MAX;
        if (proc < 0)
                proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        snprintf(path, sizeof(path), "%d/loginuid", (int)pid);
        file = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
                return UINT32_MAX;
        n = read(file, buf, sizeof(buf) - 1);
        if (n <= 0)
                return UINT32_MAX;
        buf[n] = '\0';
        pfd = (struct pollfd){ .fd = pidfd, .events = POLLIN };
        if (poll(&pfd, 1, 0) != 0)
                return UINT32_MAX;
        return (uint32_t)strtoul(buf, NULL, 10);
}

int peer_get(int fd, struct peer *ret) {
        _cleanup_free_ gid_t *groups = NULL;
        gid_t few[32];
        struct ucred cred;
        socklen_t len = sizeof(cred), groups_len = sizeof(few);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
                return -errno;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &groups_len) < 0) {
                if (errno != ERANGE || groups_len > PEER_GROUPS_MAX * sizeof(gid_t))
                        return -errno;
                groups = malloc(groups_len);
                if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &groups_len) < 0)
                        return groups ? -errno : -ENOMEM;
        } else if (groups_len > 0) {
                groups = malloc(groups_len);
                if (!groups)
                        return -ENOMEM;
                for (size_t i = 0; i < groups_len / sizeof(gid_t); i++)
                        groups[i] = few[i];
        }
        *ret = (struct peer){ .uid = cred.uid,
                              .gid = cred.gid,
                              .pid = cred.pid,
                              .loginuid = read_loginuid(fd, cred.pid),
                              .groups = groups,
                              .n_groups = groups_len / sizeof(gid_t) };
        groups = NULL;
        return 0;
}

void peer_done(struct peer *p) {
        free(p->groups);
        p->groups = NULL;
        p->n_groups = 0;
}

bool peer_in_group(const struct peer *p, gid_t gid) {
        if (p->gid == gid)
                return true;
        for (size_t i = 0; i < p->n_groups; i++)
                if (p->groups[i] == gid)
                        return true;
        return false;
}

bool peer_allowed(const struct peer *p, const struct peer_policy *policy) {
        if (p->uid == 0 || p->uid == geteuid())
                return true;
        return policy->have_group && peer_in_group(p, policy->group);
}

bool peer_profile_allowed(const struct peer *p, const struct config_profile *profile) {
        if (!profile->allow_users[0] && !profile->allow_groups[0])
                return true;
        for (char **u = profile->allow_users; *u; u++) {
                struct passwd *pw = getpwnam(*u);

                if (pw && pw->pw_uid == p->uid)
                        return true;
        }
        for (char **g = profile->allow_groups; *g; g++) {
                struct group *gr = getgrnam(*g);

                if (gr && peer_in_group(p, gr->gr_gid))
                        return true;
        }
        return false;
}

struct audit_caller peer_caller(const struct peer *p) {
        struct audit_caller c = { .uid = p->uid, .pid = p->pid, .loginuid = p->loginuid };

        memcpy(c.fp, p->fp, sizeof(c.fp));
        return c;
}

bool peer_is(const struct peer *p, const struct audit_caller *who) {
        return p->uid == who->uid && strcmp(p->fp, who->fp) == 0;
}
