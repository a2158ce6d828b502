/*
 * A real agent as PID 1 of namespaces of its own, in a root made of bind mounts, and a manager that is
 * played by the test. Everything is private to the agent's mount namespace and goes with it.
 *
 * Takes root. Every wait has a deadline; a test that hangs is ended by alarm(2), and the agent with it.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/agent_args.h"
#include "common/cleanup.h"
#include "common/frame.h"
#include "common/proto.h"
#include "common/proto_session.h"
#include "common/wire.h"

#define RIG_TEST "/.hermes-sandbox/test"
/* CHOWN, DAC_OVERRIDE, FOWNER. */
#define RIG_CAPS "000000000000000b"
/* Of the agent in a container: the manager's. */
#define RIG_GID 995
#define RIG_WAIT_MS 30000
#define RIG_TEST_S 120

struct rig {
        char dir[64]; /* of the socket, on the host */
        pid_t keeper; /* waits for the agent and hands on its exit status */
        pid_t agent;  /* its pid on the host */
        int listen_fd, fd;
        const char *cgroup;   /* a pids cgroup (v1) to put it into, or NULL */
        const char *slow;     /* a cpu cgroup (v1), likewise */
        const char *counters; /* a folder of files that stands for a cgroup (v2), or NULL */
        bool sealed; /* a world as a container's: read-only but for a few tmpfs, a network of its own */
        uid_t as;    /* not 0: the agent and its commands have this uid and gid, and no capability */
        bool root; /* commands are root's, with RIG_CAPS, or 20000:20001's, or 10000:10001's; the agent has as
                          many capabilities as in a container */
        bool several; /* commands are 10000:10001's, or 20000:20001's */
        char hello[4096];
        uint16_t n_held; /* as it said last */
        struct {
                char exec_id[PROTO_EXEC_ID + 1];
                uint32_t channel;
                bool ended;
        } held[PROTO_HELD_MAX];
        uint8_t in[2 * FRAME_MAX];
        size_t in_len, in_used;
};

/* --- the agent's world ------------------------------------------------------------------------- */

static inline void rig_need(bool ok, const char *what) {
        if (ok)
                return;
        perror(what);
        _exit(99);
}

static inline void rig_bind(const char *from, const char *root, const char *to) {
        char path[256];

        snprintf(path, sizeof(path), "%s%s", root, to);
        mkdir(path, 0755);
        rig_need(mount(from, path, NULL, MS_BIND | MS_REC, NULL) == 0, path);
}

static inline void rig_agent_path(char *buf, size_t cap) {
        ssize_t n = readlink("/proc/self/exe", buf, cap - 1);
        const char *other = getenv("TEST_AGENT");

        buf[n > 0 ? n : 0] = '\0';
        for (int i = 0; i < 2; i++)
                if (strrchr(buf, '/'))
                        *strrchr(buf, '/') = '\0';
        strncat(buf, "/agent", cap - strlen(buf) - 1);
        if (other)
                snprintf(buf, cap, "%s", other);
}

static inline void rig_mount(const char *type, const char *root, const char *to, const char *options) {
        char path[256];

        snprintf(path, sizeof(path), "%s%s", root, to);
        mkdir(path, 0755);
        rig_need(mount(type, path, type, MS_NOSUID | MS_NODEV, options) == 0, path);
}

/* What was bound so far cannot be written to any more; over it come the places that can. */
static inline void rig_seal(const char *root) {
        static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };
        struct mount_attr a = { .attr_set = MOUNT_ATTR_RDONLY };
        char from[64], path[256];

        rig_need(syscall(SYS_mount_setattr, -1, root, AT_RECURSIVE, &a, sizeof(a)) == 0, "read-only");
        snprintf(path, sizeof(path), "%s/dev", root);
        rig_need(mount("dev", path, "tmpfs", MS_NOSUID, "mode=755,size=64k") == 0, path);
        for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
                struct stat st;

                snprintf(from, sizeof(from), "/dev/%s", devices[i]);
                snprintf(path, sizeof(path), "%s%s", root, from);
                rig_need(stat(from, &st) == 0 && mknod(path, S_IFCHR | 0666, st.st_rdev) == 0 &&
                                 chmod(path, 0666) == 0,
                         path);
        }
        snprintf(path, sizeof(path), "%s/dev/fd", root);
        rig_need(symlink("/proc/self/fd", path) == 0, path);
        snprintf(path, sizeof(path), "%s/dev/stderr", root);
        rig_need(symlink("/proc/self/fd/2", path) == 0, path);
        snprintf(path, sizeof(path), "%s/dev/ptmx", root);
        rig_need(symlink("pts/ptmx", path) == 0, path);
        rig_mount("tmpfs", root, "/dev/shm", "mode=1777,size=4m");
        rig_mount("mqueue", root, "/dev/mqueue", NULL);
        rig_mount("tmpfs", root, "/tmp", "mode=1777,size=16m");
}

static inline void rig_make_root(const struct rig *r, const char *root) {
        static const char *const links[] = { "bin", "sbin", "lib", "lib32", "lib64" };
        char path[256], target[64], agent[256], self[256];

        rig_agent_path(agent, sizeof(agent));
        rig_need(mount("rig", root, "tmpfs", 0, "mode=755,size=64m") == 0, "tmpfs");
        for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
                snprintf(path, sizeof(path), "%s/%s", root, links[i]);
                snprintf(target, sizeof(target), "usr/%s", links[i]);
                rig_need(symlink(target, path) == 0, path);
        }
        rig_bind("/usr", root, "/usr");
        rig_bind("/etc", root, "/etc");
        rig_bind("/dev", root, "/dev");
        snprintf(path, sizeof(path), "%s/.hermes-sandbox", root);
        mkdir(path, 0755);
        rig_bind(r->dir, root, "/.hermes-sandbox/stream");
        snprintf(path, sizeof(path), "%s" AGENT_PATH, root);
        close_fd(open(path, O_CREAT | O_CLOEXEC | O_WRONLY, 0755));
        rig_need(mount(agent, path, NULL, MS_BIND, NULL) == 0, agent);
        /* The test itself, for commands that must be fast. */
        snprintf(path, sizeof(path), "%s" RIG_TEST, root);
        close_fd(open(path, O_CREAT | O_CLOEXEC | O_WRONLY, 0755));
        memset(self, 0, sizeof(self));
        rig_need(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0 &&
                         mount(self, path, NULL, MS_BIND, NULL) == 0,
                 path);
        snprintf(path, sizeof(path), "%s/tmp", root);
        mkdir(path, 0);
        chmod(path, 01777);
        snprintf(path, sizeof(path), "%s/proc", root);
        mkdir(path, 0755);
        for (const char *p = "/sys\0/sys/fs\0/sys/fs/cgroup\0"; *p; p += strlen(p) + 1) {
                snprintf(path, sizeof(path), "%s%s", root, p);
                mkdir(path, 0755);
        }
        if (r->counters)
                rig_bind(r->counters, root, "/sys/fs/cgroup");
        if (r->cgroup)
                rig_bind(r->cgroup, root, "/sys/fs/cgroup/pids");
        if (r->sealed)
                rig_seal(root);
        /* As engines mount it. */
        snprintf(path, sizeof(path), "%s/dev/pts", root);
        mkdir(path, 0755);
        rig_need(mount("devpts", path, "devpts", MS_NOSUID | MS_NOEXEC,
                       "newinstance,ptmxmode=0666,mode=0620,gid=5") == 0,
                 path);
}

static inline void rig_join_cgroup(const char *cgroup) {
        char path[256];
        int fd;

        if (!cgroup)
                return;
        snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        rig_need(fd >= 0 && write(fd, "0", 1) == 1, path);
        close(fd);
}

static inline void rig_become(uid_t uid) {
        rig_need(syscall(SYS_setgroups, 0, NULL) == 0 && setresgid(uid, uid, uid) == 0 &&
                         setresuid(uid, uid, uid) == 0,
                 "another uid");
}

/* Root as an engine makes it: the agent's three, and those that commands may have. */
static inline void rig_become_engine_root(void) {
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct caps[2] = { 0 };

        caps[0].permitted = caps[0].effective = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_KILL |
                                                0xb;
        for (int i = 0; i <= CAP_LAST_CAP; i++)
                if (i > 31 || !(caps[0].permitted & 1u << i))
                        prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        rig_need(setresgid(RIG_GID, RIG_GID, RIG_GID) == 0 && syscall(SYS_capset, &head, caps) == 0,
                 "capset");
}

/* PID 1 of the new namespace. */
static inline void rig_become_agent(const struct rig *r, const char *root, const char *reconnect_ms) {
        char uid[16];
        char *args[] = { (char *)AGENT_PATH,
                         (char *)"10000",
                         (char *)"10001",
                         (char *)"1900000000",
                         (char *)"65536",
                         (char *)reconnect_ms,
                         (char *)(r->root ? RIG_CAPS : "0000000000000000"),
                         (char *)"20000:20001",
                         (char *)"10000:10001",
                         NULL };
        /* LeakSanitizer looks for leaks by ptrace, which the agent allows nobody. */
        char *env[] = { (char *)"IMAGE=yes", (char *)"BOTH=image", (char *)"ASAN_OPTIONS=detect_leaks=0",
                        NULL };

        rig_need(getpid() == 1, "pid namespace");
        rig_join_cgroup(r->cgroup);
        rig_join_cgroup(r->slow);
        rig_need(chroot(root) == 0 && chdir("/") == 0, "chroot");
        rig_need(mount("proc", "/proc", "proc", 0, NULL) == 0, "proc");
        if (!r->root && !r->several)
                args[7] = NULL;
        if (r->root) {
                args[1] = args[2] = (char *)"0";
                rig_become_engine_root();
        }
        if (r->as) {
                snprintf(uid, sizeof(uid), "%u", (unsigned)r->as);
                args[1] = args[2] = uid;
                args[3] = args[4] = (char *)"0";
                rig_become(r->as);
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execve(args[0], args, env);
        rig_need(false, args[0]);
}

static inline void rig_keep(struct rig *r, const char *reconnect_ms, int tell) {
        char root[96];
        int status;
        pid_t pid;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(0);
        rig_need(unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | (r->sealed ? CLONE_NEWNET : 0)) ==
                         0,
                 "unshare");
        rig_need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
        snprintf(root, sizeof(root), "%s.root", r->dir);
        rig_make_root(r, root);
        pid = fork();
        if (pid == 0)
                rig_become_agent(r, root, reconnect_ms);
        rig_need(pid > 0 && write(tell, &pid, sizeof(pid)) == sizeof(pid), "fork");
        close(tell);
        close_fd(r->listen_fd);
        waitpid(pid, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static inline void rig_start(struct rig *r, const char *reconnect_ms) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        char root[96];
        int p[2];

        alarm(RIG_TEST_S);
        strcpy(r->dir, "/tmp/test-agent.XXXXXX");
        assert_non_null(mkdtemp(r->dir));
        chmod(r->dir, 0755);
        snprintf(root, sizeof(root), "%s.root", r->dir);
        assert_int_equal(mkdir(root, 0755), 0);
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/" AGENT_SOCKET, r->dir);
        r->fd = -1;
        r->in_len = r->in_used = 0;
        r->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(r->listen_fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        assert_int_equal(listen(r->listen_fd, 8), 0);
        assert_int_equal(chmod(sa.sun_path, r->as ? 0666 : 0600), 0);
        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        r->keeper = fork();
        if (r->keeper == 0)
                rig_keep(r, reconnect_ms, p[1]);
        close(p[1]);
        assert_int_equal(read(p[0], &r->agent, sizeof(r->agent)), sizeof(r->agent));
        close(p[0]);
}

/* Whether the agent finds the socket. */
static inline void rig_listen(const struct rig *r, bool on) {
        char here[128], away[128];

        snprintf(here, sizeof(here), "%s/" AGENT_SOCKET, r->dir);
        snprintf(away, sizeof(away), "%s/away", r->dir);
        assert_int_equal(rename(on ? away : here, on ? here : away), 0);
}

/* The agent's exit status, once it has ended by itself; it must do so in time. */
static inline int rig_status(struct rig *r) {
        int status = -1;

        for (int i = 0; i < RIG_WAIT_MS && waitpid(r->keeper, &status, WNOHANG) == 0; i++)
                poll(NULL, 0, 1);
        assert_true(WIFEXITED(status));
        r->keeper = 0;
        return WEXITSTATUS(status);
}

static inline void rig_stop(struct rig *r) {
        char path[128];

        if (r->keeper > 0) {
                kill(r->agent, SIGKILL);
                waitpid(r->keeper, NULL, 0);
        }
        r->fd = close_fd(r->fd);
        r->listen_fd = close_fd(r->listen_fd);
        snprintf(path, sizeof(path), "%s/" AGENT_SOCKET, r->dir);
        unlink(path);
        rmdir(r->dir);
        snprintf(path, sizeof(path), "%s.root", r->dir);
        rmdir(path);
        alarm(0);
}

/* --- frames ------------------------------------------------------------------------------------ */

static inline void rig_write(struct rig *r, const void *p, size_t len) {
        while (len > 0) {
                ssize_t n = send(r->fd, p, len, MSG_NOSIGNAL);

                assert_true(n > 0);
                p = (const uint8_t *)p + n;
                len -= (size_t)n;
        }
}

static inline void rig_send(struct rig *r, uint8_t type, uint8_t flags, uint32_t channel, const void *p,
                            size_t len) {
        uint8_t frame[FRAME_MAX];

        frame_put_header(frame, type, flags, channel, (uint32_t)len);
        if (len > 0)
                memcpy(frame + FRAME_HEADER, p, len);
        rig_write(r, frame, FRAME_HEADER + len);
}

/* The next frame; it stands until the next call. False: the agent has closed the connection. */
static inline bool rig_try_next(struct rig *r, struct frame *f) {
        r->in_len -= r->in_used;
        memmove(r->in, r->in + r->in_used, r->in_len);
        r->in_used = 0;
        for (;;) {
                struct pollfd pfd = { .fd = r->fd, .events = POLLIN };
                int ok = frame_parse(r->in, r->in_len, FRAME_FROM_AGENT, f, &r->in_used);
                ssize_t n;

                assert_true(ok >= 0);
                if (ok)
                        return true;
                r->in_used = 0;
                assert_int_equal(poll(&pfd, 1, RIG_WAIT_MS), 1);
                n = recv(r->fd, r->in + r->in_len, sizeof(r->in) - r->in_len, 0);
                if (n <= 0)
                        return false;
                r->in_len += (size_t)n;
        }
}

static inline void rig_next(struct rig *r, struct frame *f) {
        assert_true(rig_try_next(r, f));
}

static inline void rig_take_held(struct rig *r, const struct frame *f) {
        struct held h;

        assert_int_equal(f->type, FRAME_HELD);
        assert_int_equal(f->channel, 0);
        assert_int_equal(held_decode(f->payload, f->len, &h), 0);
        r->n_held = h.n;
        for (uint16_t i = 0; i < h.n; i++) {
                strcpy(r->held[i].exec_id, h.of[i].exec_id);
                r->held[i].channel = h.of[i].channel;
                r->held[i].ended = h.of[i].ended;
        }
}

/* The agent's connection, its HELLO and its HELD. */
static inline void rig_accept(struct rig *r) {
        struct pollfd pfd = { .fd = r->listen_fd, .events = POLLIN };
        struct hello h = { FRAME_VERSION, HELLO_MANAGER, "test" };
        uint8_t buf[64];
        struct frame f;

        assert_int_equal(poll(&pfd, 1, RIG_WAIT_MS), 1);
        r->fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        assert_true(r->fd >= 0);
        r->in_len = r->in_used = 0;
        rig_send(r, FRAME_HELLO, 0, 0, buf, (size_t)hello_encode(&h, buf, sizeof(buf)));
        rig_next(r, &f);
        assert_int_equal(f.type, FRAME_HELLO);
        assert_int_equal(hello_decode(f.payload, f.len, &h), 0);
        assert_int_equal(h.role, HELLO_AGENT);
        snprintf(r->hello, sizeof(r->hello), "%s", h.text);
        rig_next(r, &f);
        rig_take_held(r, &f);
}

static inline void rig_grant(struct rig *r, uint32_t channel, uint8_t stream, uint32_t bytes) {
        uint8_t buf[WINDOW_SIZE];

        window_encode(&(struct window){ stream, bytes }, buf);
        rig_send(r, FRAME_WINDOW, 0, channel, buf, sizeof(buf));
}

/* An order as @o says; its counts and strings are filled in from the two lists, which end with NULL. Without ids it is
 * for the agent's first user. */
static inline void rig_order(struct rig *r, uint32_t channel, struct exec_order o,
                             const char *const *args, const char *const *env) {
        uint8_t *buf = malloc(PROTO_EXEC_MAX);
        struct wire_out out;
        size_t done = 0;
        ssize_t n;

        assert_non_null(buf);
        for (o.n_args = 0; args[o.n_args]; o.n_args++)
                ;
        for (o.n_env = 0; env && env[o.n_env]; o.n_env++)
                ;
        if (o.uid == 0 && o.gid == 0 && !r->root) {
                o.uid = r->as ? r->as : 10000;
                o.gid = r->as ? r->as : 10001;
        }
        if (!o.workdir)
                o.workdir = "/";
        if (!o.exec_id)
                o.exec_id = "0123456789abcdef";
        n = exec_order_encode_head(&o, buf, PROTO_EXEC_MAX);
        assert_true(n > 0);
        wire_out_init(&out, buf + n, PROTO_EXEC_MAX - (size_t)n);
        for (uint32_t i = 0; i < o.n_args; i++)
                wire_put_str(&out, args[i]);
        for (uint32_t i = 0; i < o.n_env; i++)
                wire_put_str(&out, env[i]);
        assert_false(out.bad);
        for (out.len += (size_t)n; out.len - done > FRAME_PAYLOAD_MAX; done += FRAME_PAYLOAD_MAX)
                rig_send(r, FRAME_EXEC, FRAME_MORE, channel, buf + done, FRAME_PAYLOAD_MAX);
        rig_send(r, FRAME_EXEC, 0, channel, buf + done, out.len - done);
        free(buf);
}

static inline void rig_sh(struct rig *r, uint32_t channel, struct exec_order o, const char *script) {
        const char *args[] = { script, NULL };

        o.shell = true;
        rig_order(r, channel, o, args, NULL);
}

/* --- for main(): is this machine fit? ---------------------------------------------------------- */

/* 0, or 77 with the reason printed. */
static inline int rig_unfit(void) {
        char agent[256];
        pid_t pid;
        int status;

        if (geteuid() != 0) {
                puts("namespaces, bind mounts and another uid take root");
                return 77;
        }
        rig_agent_path(agent, sizeof(agent));
        if (access(agent, X_OK) < 0) {
                printf("%s is not built\n", agent);
                return 77;
        }
        pid = fork();
        if (pid == 0)
                _exit(unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET) < 0);
        if (waitpid(pid, &status, 0) < 0 || status != 0) {
                puts("this machine lets root make no namespaces");
                return 77;
        }
        return 0;
}
