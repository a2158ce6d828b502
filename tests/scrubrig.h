/*
 * places_init() and scrub() as PID 1 of namespaces of its own, with the agent's three capabilities, in a
 * read-only root with writable places. A command leaves something there; or root does, from outside. It takes
 * root; everything is private to these namespaces and goes with them.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "common/cleanup.h"

#define HOME "/home/sandbox"
#define EXEC_GID 1900000000u
#define MB (1 << 20)
/* Of a residue that this kernel does not know. */
#define UNKNOWN 77
/* linux/fs.h, whose other contents clash with sys/mount.h. */
#define SET_FLAGS _IOW('f', 2, long)
#define NODUMP_FL 0x40

static const struct agent_ids ids = { .user = { 10000, 10000 },
                                      .exec_gid_first = EXEC_GID,
                                      .exec_gid_count = 65536 };

/* What the world is like and what happens in it. */
struct play {
        void (*furnish)(const char *root); /* further mounts, before the root becomes read-only */
        void (*furnished)(void);           /* by PID 1, before places_init() */
        void (*leave)(void);               /* by a command */
        void (*meddle)(const char *root);  /* by root, from outside, after the command */
        bool writable, no_queues, spare;
};

/* What a command finds. */
struct sight {
        int entries;
        struct stat top[4];
        long blocks[3], inodes[3];
};

struct report {
        int init;
        char why[128];
        bool unknown; /* the command said so */
        struct sight before, after;
        struct {
                struct scrubbed s;
                char place[PROTO_NAME_MAX + 1];
        } scrub[2]; /* the second with nothing in between */
};

static inline void need(bool ok, const char *what) {
        if (ok)
                return;
        perror(what);
        _exit(errno == EOPNOTSUPP || errno == ENOTTY || errno == ENOSYS ? UNKNOWN : 99);
}

/* --- the world --------------------------------------------------------------------------------------- */

static inline void folder(const char *root, const char *path) {
        char full[256];

        snprintf(full, sizeof(full), "%s%s", root, path);
        need(mkdir(full, 0755) == 0 || errno == EEXIST, full);
}

static inline void put_mount(const char *root, const char *path, const char *type, const char *options) {
        char full[256];

        snprintf(full, sizeof(full), "%s%s", root, path);
        folder("", full);
        need(mount(type, full, type, MS_NOSUID | MS_NODEV, options) == 0, full);
}

static inline void make_root(const struct play *p, const char *root) {
        char path[128];

        need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
        need(mount("root", root, "tmpfs", 0, "mode=755,size=1m") == 0, root);
        folder(root, "/proc");
        folder(root, "/home");
        put_mount(root, "/dev", "tmpfs", "mode=755,size=64k");
        snprintf(path, sizeof(path), "%s/dev/null", root);
        need(mknod(path, S_IFCHR | 0666, makedev(1, 3)) == 0 && chmod(path, 0666) == 0, path);
        put_mount(root, "/dev/shm", "tmpfs", "mode=1777,size=4m");
        put_mount(root, "/tmp", "tmpfs", "mode=1777,size=16m");
        put_mount(root, HOME, "tmpfs", "mode=700,size=16m,uid=10000,gid=10000");
        if (!p->no_queues)
                put_mount(root, "/dev/mqueue", "mqueue", NULL);
        if (p->furnish)
                p->furnish(root);
        if (!p->writable)
                need(mount(NULL, root, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0, "read-only");
}

static inline void raise_loopback(void) {
        struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        _cleanup_fd_ int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        need(s >= 0 && ioctl(s, SIOCSIFFLAGS, &r) == 0, "lo");
}

static inline void keep_capabilities(uint32_t mask) {
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct set[2] = { { mask, mask, 0 } };

        for (int i = 0; i < 64; i++)
                if (i > 31 || !(mask >> i & 1))
                        prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        need(syscall(SYS_capset, &head, set) == 0, "capset");
}

static inline int as_command(void (*fn)(void)) {
        gid_t group = EXEC_GID;
        int status = -1;
        pid_t pid = fork();

        if (pid == 0) {
                sigset_t none;

                sigemptyset(&none);
                sigprocmask(SIG_SETMASK, &none, NULL);
                need(setgroups(1, &group) == 0 && setresgid(10000, 10000, 10000) == 0 &&
                             setresuid(10000, 10000, 10000) == 0,
                     "identity");
                umask(022);
                fn();
                _exit(0);
        }
        waitpid(pid, &status, 0);
        return status;
}

static struct sight *seen; /* shared between processes */

static inline void look(void) {
        static const char *const tops[] = { "/tmp", HOME, "/dev/shm", "/dev/mqueue" };

        for (int i = 0; i < 4; i++) {
                DIR *d = opendir(tops[i]);
                struct statfs fs;

                while (d && readdir(d))
                        seen->entries++;
                if (d)
                        closedir(d);
                need(stat(tops[i], &seen->top[i]) == 0 && statfs(tops[i], &fs) == 0, tops[i]);
                seen->top[i].st_ctim = (struct timespec){ 0, 0 };
                if (i < 3) {
                        seen->blocks[i] = (long)fs.f_bfree;
                        seen->inodes[i] = (long)fs.f_ffree;
                }
        }
}

static inline struct sight look_around(void) {
        struct sight s;

        seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        need(seen != MAP_FAILED && as_command(look) == 0, "look");
        s = *seen;
        munmap(seen, sizeof(*seen));
        return s;
}

/* PID 1. A byte at the door says that the command has ended, another one that it may go on. */
static inline void live(const struct play *p, const char *root, int tell, const int door[2]) {
        static struct report r;
        sigset_t all;
        char b;

        need(chroot(root) == 0 && chdir("/") == 0 && mount("proc", "/proc", "proc", 0, NULL) == 0, root);
        if (p->furnished)
                p->furnished();
        keep_capabilities(1 << CAP_SETUID | 1 << CAP_SETGID | 1 << CAP_KILL);
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        r.init = places_init(&ids, r.why, sizeof(r.why));
        if (r.init == 0) {
                if (p->spare)
                        need(spare_make() == 0, "spare");
                r.before = look_around();
                if (p->leave) {
                        int status = as_command(p->leave);

                        r.unknown = WIFEXITED(status) && WEXITSTATUS(status) == UNKNOWN;
                        need(status == 0 || r.unknown, "the command");
                }
                need(write(door[1], "", 1) == 1 && read(door[0], &b, 1) == 1, "door");
                for (int i = 0; i < 2; i++) {
                        scrub(&ids, &r.scrub[i].s);
                        snprintf(r.scrub[i].place, sizeof(r.scrub[i].place), "%s", r.scrub[i].s.place);
                }
                r.after = look_around();
        }
        need(write(tell, &r, sizeof(r)) == sizeof(r), "report");
        _exit(0);
}

/* Outside of PID 1's world but for the mounts; what it forks is in there. */
static inline void keep(const struct play *p, const char *root, int tell) {
        int out[2], back[2], status;
        pid_t pid, r;
        char b;

        alarm(60);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        need(unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET) == 0, "unshare");
        need(pipe2(out, O_CLOEXEC) == 0 && pipe2(back, O_CLOEXEC) == 0, "door");
        make_root(p, root);
        raise_loopback();
        pid = fork();
        if (pid == 0) {
                close(out[0]);
                close(back[1]);
                live(p, root, tell, (const int[]){ back[0], out[1] });
        }
        close(out[1]);
        if (read(out[0], &b, 1) == 1) {
                if (p->meddle)
                        p->meddle(root);
                need(write(back[1], "", 1) == 1, "door");
        }
        /* PID 1 cannot end before all in its namespace are reaped, and some are not its own to reap. */
        while (read(out[0], &b, 1) > 0)
                ;
        while ((r = waitpid(-1, &status, 0)) > 0 && r != pid)
                ;
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

static inline struct report play(const struct play *p) {
        char root[] = "/tmp/test-scrub.XXXXXX";
        struct report r = { .init = 1 };
        int pipes[2], status = -1;
        pid_t pid;
        ssize_t n;

        assert_non_null(mkdtemp(root));
        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0)
                keep(p, root, pipes[1]);
        close(pipes[1]);
        n = read(pipes[0], &r, sizeof(r));
        close(pipes[0]);
        waitpid(pid, &status, 0);
        rmdir(root);
        assert_int_equal(n, sizeof(r));
        assert_int_equal(status, 0);
        return r;
}

static inline void refused(const struct play *p, const char *why) {
        struct report r = play(p);

        assert_int_equal(r.init, -ENOTSUP);
        assert_string_equal(r.why, why);
}

static inline void found(const struct play *p, uint8_t check, const char *place) {
        struct report r = play(p);

        assert_string_equal(r.why, "");
        for (int i = 0; i < 2; i++) {
                assert_string_equal(scrub_check_name(r.scrub[i].s.check), scrub_check_name(check));
                assert_string_equal(r.scrub[i].place, place);
        }
}

/* Cleaned, or clean already where @emptied is false; and a command sees nothing of it. */
static inline void cleaned(const struct play *p, bool emptied) {
        struct report r = play(p);

        assert_string_equal(r.why, "");
        assert_int_equal(r.init, 0);
        if (r.unknown) {
                print_message("this kernel does not know it\n");
                return;
        }
        assert_string_equal(scrub_check_name(r.scrub[0].s.check), "clean");
        assert_int_equal(r.scrub[0].s.emptied, emptied);
        assert_string_equal(r.scrub[0].place, "");
        assert_string_equal(scrub_check_name(r.scrub[1].s.check), "clean");
        assert_false(r.scrub[1].s.emptied);
        assert_memory_equal(&r.before, &r.after, sizeof(r.after));
}
