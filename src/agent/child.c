/*
 * From fork to exec. The child shares the agent's memory (vfork) until it execs, so that a start costs
 * the same whatever the agent's size, allocates nothing, and reports a failure by writing it down.
 *
 * The order matters: everything that needs a privilege first, then groups, gid and uid, then the proof
 * that nothing is left, then what happens with the command's own rights (working directory, PATH).
 * no-new-privileges and the seccomp filter are the agent's own and inherited.
 *
 * At the pids limit no process can be made: the spare one, made beforehand and asleep in a read, takes
 * the place of the child. It shares memory and descriptors with the agent; its own copy of the
 * descriptors is made when it is used. The kernel clears spare.tid when it execs or dies (man 2 clone,
 * CLONE_CHILD_CLEARTID), which is what the agent waits for, as vfork would. To the kernel a process that
 * shares memory without vfork has one OOM score with all others that share it: the spare's is raised by the
 * agent, after the exec.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

/* There is no page behind it that would catch an overflow; what is not touched costs nothing. */
#define SPARE_STACK 65536

static struct {
        int tid; /* 0: none; cleared by the kernel */
        int wake[2];
        int score_fd; /* its oom_score_adj */
        struct child *order;
        char stack[SPARE_STACK] __attribute__((aligned(64)));
} spare = { .wake = { -1, -1 }, .score_fd = -1 };

_Noreturn static void child_fail(struct child *c, uint8_t stage, int error) {
        c->stage = stage;
        c->error = error;
        _exit(127);
}

/* The memory limit shall kill a command, not the agent. Raising the score needs no privilege. In a vfork
 * child it is the child's alone, although the memory is shared. */
static int prefer_for_oom(void) {
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = write(fd, "1000", 4);
        close(fd);
        return n == 4 ? 0 : -EIO;
}

static int drop_identity(const struct child *c) {
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 }, now[2];

        if (syscall(SYS_setgroups, 1, &c->exec_gid) < 0 ||
            syscall(SYS_setresgid, c->ids->gid, c->ids->gid, c->ids->gid) < 0 ||
            syscall(SYS_setresuid, c->ids->uid, c->ids->uid, c->ids->uid) < 0)
                return -errno;
        /* A change of uid makes the memory, which is still the agent's, as dumpable as the machine's
         * fs.suid_dumpable says: it shall not be open to ptrace for this moment. */
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return -errno;
        /* A change of uid from 0 clears the permitted and the effective set; this clears the
         * inheritable one too, and the ambient set falls with it. */
        if (syscall(SYS_capset, &head, none) < 0)
                return -errno;
        if (syscall(SYS_capget, &head, now) < 0)
                return -errno;
        if (now[0].effective | now[1].effective | now[0].permitted | now[1].permitted |
            now[0].inheritable | now[1].inheritable)
                return -EPERM;
        /* Proof that there is no way back. */
        if (syscall(SYS_setresuid, 0, 0, 0) == 0 || syscall(SYS_setresgid, 0, 0, 0) == 0)
                return -EPERM;
        return 0;
}

/* As execvp(3), but with the new environment's PATH and without falling back to a shell. */
static int exec_in_path(const struct child *c) {
        const char *name = c->program;
        char file[PROTO_PATH_MAX + 1];
        int error = ENOENT;

        if (strchr(name, '/') || name[0] == '\0') {
                execve(name, c->argv, c->envp);
                return errno;
        }
        for (const char *p = c->path, *end; p; p = *end ? end + 1 : NULL) {
                int n;

                end = strchrnul(p, ':');
                n = snprintf(file, sizeof(file), "%.*s%s%s", (int)(end - p), p, end > p ? "/" : "",
                             name);
                if (n < 0 || (size_t)n >= sizeof(file))
                        continue;
                execve(file, c->argv, c->envp);
                if (errno == EACCES)
                        error = EACCES;
                else if (errno != ENOENT && errno != ENOTDIR)
                        return errno;
        }
        return error;
}

_Noreturn static void child_run(struct child *c) {
        sigset_t none;
        int fds[3], r;

        sigemptyset(&none);
        if (setsid() < 0)
                child_fail(c, START_PLUMBING, errno);
        /* The agent's descriptors 0 to 2 are /dev/null, so that no source stands where a target goes. */
        memcpy(fds, c->fds, sizeof(fds));
        for (int i = 0; i < 3; i++)
                if (dup2(fds[i], i) < 0)
                        child_fail(c, START_PLUMBING, errno);
        if (c->script_fd >= 0 && c->script_fd != 3 && dup2(c->script_fd, 3) < 0)
                child_fail(c, START_PLUMBING, errno);
        if (c->script_fd == 3 && fcntl(3, F_SETFD, 0) < 0)
                child_fail(c, START_PLUMBING, errno);
        /* All of the agent's descriptors are close-on-exec; this holds if one should not be. */
        syscall(SYS_close_range, c->script_fd >= 0 ? 4 : 3, ~0u, CLOSE_RANGE_CLOEXEC);
        r = drop_identity(c);
        if (r < 0)
                child_fail(c, START_IDENTITY, -r);
        if (chdir(c->workdir) < 0)
                child_fail(c, START_WORKDIR, errno);
        umask(022);
        sigprocmask(SIG_SETMASK, &none, NULL);
        r = exec_in_path(c);
        child_fail(c, START_PROGRAM, r);
}

static int spare_main(void *unused) {
        char b;

        (void)unused;
        if (syscall(SYS_read, spare.wake[0], &b, 1) != 1)
                _exit(0);
        /* From here on the descriptors are its own. */
        if (syscall(SYS_close_range, ~0u - 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
                child_fail(spare.order, START_PLUMBING, errno);
        child_run(spare.order);
}

/* Opened while the spare is the agent's like: once it runs a command, its files in /proc are not root's. */
static int open_score(int pid) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
        return open(path, O_WRONLY | O_CLOEXEC);
}

int child_spare(void) {
        int pid;

        if (__atomic_load_n(&spare.tid, __ATOMIC_ACQUIRE) != 0)
                return 0;
        while (waitpid(-1, NULL, WNOHANG | __WCLONE) > 0)
                ;
        if (spare.wake[0] < 0 && pipe2(spare.wake, O_CLOEXEC) < 0)
                return -errno;
#ifdef __SANITIZE_ADDRESS__
        /* The last one left its frames marked when it exec'd. */
        __asan_unpoison_memory_region(spare.stack, sizeof(spare.stack));
#endif
        /* No signal at its end: an ordinary wait neither counts nor reaps it, until it execs. */
        pid = clone(spare_main, spare.stack + sizeof(spare.stack),
                    CLONE_VM | CLONE_FILES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID |
                            CLONE_PARENT_SETTID,
                    NULL, &spare.tid, NULL, &spare.tid);
        if (pid < 0)
                return -errno;
        close_fd(spare.score_fd);
        spare.score_fd = open_score(pid);
        return 0;
}

static pid_t spare_start(struct child *c) {
        pid_t pid = __atomic_load_n(&spare.tid, __ATOMIC_ACQUIRE);
        int tid;

        if (pid == 0 || spare.score_fd < 0)
                return -EAGAIN;
        spare.order = c;
        if (write(spare.wake[1], "", 1) != 1)
                return -errno;
        while ((tid = __atomic_load_n(&spare.tid, __ATOMIC_ACQUIRE)) != 0)
                syscall(SYS_futex, &spare.tid, FUTEX_WAIT, tid, NULL, NULL, 0);
        /* The exec made an ordinary child of it. If it is none, it has died before, and no other wait
         * would ever see it: it has no signal at its end. */
        if (waitpid(pid, NULL, __WCLONE) == pid)
                return c->error ? 0 : -EAGAIN;
        if (write(spare.score_fd, "1000", 4) != 4)
                kill(pid, SIGKILL);
        return pid;
}

/* vfork(2) in a function of its own: nothing that it returns into is used by the child. */
static pid_t fork_child(struct child *c) {
        pid_t pid = vfork();

        if (pid == 0) {
                int r = prefer_for_oom();

                if (r < 0)
                        child_fail(c, START_PLUMBING, -r);
                child_run(c);
        }
        return pid < 0 ? -errno : pid;
}

pid_t child_start(struct child *c) {
        pid_t pid;

        c->error = 0;
        c->stage = 0;
        pid = fork_child(c);
        if (pid == -EAGAIN || pid == -ENOMEM)
                pid = spare_start(c);
        /* It never became the command: nobody else waits for it. */
        if (pid > 0 && c->error)
                waitpid(pid, NULL, 0);
        return pid;
}
