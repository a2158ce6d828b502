/*
 * From fork to exec, in two halves. child_become() needs nothing of the order: it makes the process what a
 * command is. child_execute() does what the order says, with the command's own rights. The child shares the
 * agent's memory until it execs, so that a start costs the same whatever the agent's size, allocates nothing,
 * and reports a failure by writing it down; the agent sleeps for as long as the child runs.
 *
 * There are two ways to a child:
 *
 *     prepared   spare.c's process has done the first half beforehand and sleeps: a start costs a wake-up and
 *                an execve. It is the command's uid, with the agent's memory. So it is made only while the
 *                agent is alone in its sandbox, and the very next command is what it becomes: no command ever
 *                meets it, nobody is there to signal it, and nobody could trace it, as the memory is not
 *                dumpable.
 *     vfork      does both halves at once; where something else runs (a session's commands and what they
 *                left), or where the prepared child was killed.
 *
 * Where commands may have the agent's own uid, root's or any other, a vfork is out of place: one of them could stop the
 * child before its exec, and the agent with it. There a new process of spare.c's does it, whom the agent waits
 * for with a limit, wakes, and replaces where it was killed.
 *
 * While a session's command runs, the spare process is the reserve at the pids limit: no more than forked,
 * root's, out of reach for commands. It becomes the prepared child once the sandbox has emptied. A one-shot
 * command is alone, so that nothing is in reserve while it runs.
 *
 * The order of the first half matters: everything that needs a privilege, then groups, gid and uid, then the
 * proof that nothing is left, then descriptors. no-new-privileges and the seccomp filter are the agent's own
 * and inherited.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Where a child keeps its stdin until it knows whether the order wants one, and where a script goes. */
#define EXTRA_FD 3
/* Processes that may be killed before one becomes the command. */
#define EXPOSED_TRIES 5
/* Looks whether a score stands, and between two of them. */
#define SCORE_TRIES 20
#define SCORE_PAUSE_NS 50000L

void child_fail(struct child *c, uint8_t stage, int error) {
        c->stage = stage;
        c->error = error;
        _exit(127);
}

/* The memory limit shall kill a command, not the agent. Raising the score needs no privilege. In a vfork
 * child it is the child's alone, although the memory is shared. */
int child_prefer_for_oom(void) {
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = write(fd, "1000", 4);
        close(fd);
        return n == 4 ? 0 : -EIO;
}

/* The agent's own oom_score_adj, and what stands there. */
static struct {
        int fd;
        bool lent;
        char text[16];
        size_t len;
} own_score;

int child_keep_score(bool lend) {
        int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, own_score.text, sizeof(own_score.text));
        if (n <= 0) {
                close(fd);
                return -EIO;
        }
        own_score.len = (size_t)n;
        own_score.fd = fd;
        own_score.lent = lend;
        return 0;
}

bool child_score_is_lent(void) {
        return own_score.lent;
}

static int set_own_score(bool raised) {
        ssize_t n = raised ? pwrite(own_score.fd, "1000", 4, 0)
                           : pwrite(own_score.fd, own_score.text, own_score.len, 0);

        return n < 0 ? -errno : 0;
}

static bool own_score_stands(void) {
        char now[sizeof(own_score.text)];
        ssize_t n = pread(own_score.fd, now, sizeof(now), 0);

        return n == (ssize_t)own_score.len && memcmp(now, own_score.text, own_score.len) == 0;
}

/* An exec says that it gives the agent's memory up a moment before it does (exec_mmap() in Linux' fs/exec.c). In that
 * moment the two still have one score: raised is then the agent's as well. */
bool child_raise_score(int fd) {
        const struct timespec pause = { 0, SCORE_PAUSE_NS };

        for (int i = 0; i < SCORE_TRIES; i++) {
                if (pwrite(fd, "1000", 4, 0) != 4)
                        return false;
                if (own_score_stands())
                        return true;
                set_own_score(false);
                nanosleep(&pause, NULL);
        }
        return true;
}

/* Here the score of the agent has been set back, and perhaps the child's with it. It can be opened once the child is
 * the command, if that is a program which its user may read. */
static void raise_lent_score(pid_t pid) {
        const struct timespec pause = { 0, SCORE_PAUSE_NS };
        char path[64], now[sizeof(own_score.text)];

        snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
        for (int i = 0; i < SCORE_TRIES; i++) {
                _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
                _cleanup_fd_ int to = -1;

                if (fd < 0 || (read(fd, now, sizeof(now)) >= 4 && memcmp(now, "1000", 4) == 0))
                        return;
                to = open(path, O_WRONLY | O_CLOEXEC);
                if (to >= 0) {
                        child_raise_score(to);
                        return;
                }
                nanosleep(&pause, NULL);
        }
}

/* What is raised without privilege may be lowered again to what it was. A fork inherits it, and who shares memory
 * shares it until the exec. */
static int lend(bool on) {
        return child_score_is_lent() ? set_own_score(on) : 0;
}

/* Exactly @caps, and none to hand on: then the ambient set is empty, too. An exec does not add to them, not even root's,
 * as under no-new-privileges it keeps what was permitted before (man 7 capabilities). */
static int take_caps(uint64_t caps) {
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct now[2], want[2] = { 0 };

        for (int i = 0; i < 2; i++)
                want[i].effective = want[i].permitted = (uint32_t)(caps >> 32 * i);
        if (syscall(SYS_capset, &head, want) < 0 || syscall(SYS_capget, &head, now) < 0)
                return -errno;
        return memcmp(now, want, sizeof(now)) == 0 ? 0 : -EPERM;
}

/* None of these may work any more. Who is root may well become root: hence ids that it has not. */
static int prove_no_way_back(const struct child *c) {
        const uid_t uid = c->user->uid ^ 1;
        const gid_t gid = c->user->gid ^ 1;

        if (syscall(SYS_setgroups, 1, &gid) == 0 || syscall(SYS_setresgid, gid, gid, gid) == 0 ||
            syscall(SYS_setresuid, uid, uid, uid) == 0)
                return -EPERM;
        if ((c->user->gid && syscall(SYS_setresgid, 0, 0, 0) == 0) ||
            (c->user->uid && syscall(SYS_setresuid, 0, 0, 0) == 0))
                return -EPERM;
        return 0;
}

/* Who has the agent's uid, as root in a sandbox has, and everybody in one without exec_gids: what can it do to the
 * agent? Its place in the scheduler (nice, affinity), its OOM score and, with its gid, its limits (man 2 prlimit) are
 * open. That costs the sandbox of that command. Its memory and descriptors are not open, as it is not dumpable and
 * has capabilities that no command has, nor do signals reach it, as it is PID 1. */
int child_drop_identity(const struct child *c) {
        const struct agent_user *u = c->user;
        int r;

        if ((c->exec_gid && syscall(SYS_setgroups, 1, &c->exec_gid) < 0) ||
            syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ||
            syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0)
                return -errno;
        /* A change of uid makes the memory, which is still the agent's, as dumpable as the machine's
         * fs.suid_dumpable says: it shall not be open to ptrace for this moment. */
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return -errno;
        r = take_caps(u->uid == 0 ? c->ids->caps : 0);
        return r < 0 ? r : prove_no_way_back(c);
}

/* 0 is /dev/null already, as the agent's own is. No source stands where a target goes, but for @in. */
static int take_descriptors(const struct child *c) {
        bool in = c->in >= 0;

        if (dup2(c->out[0], 1) < 0 || dup2(c->out[1], 2) < 0)
                return -errno;
        if (in && c->in != EXTRA_FD && dup3(c->in, EXTRA_FD, O_CLOEXEC) < 0)
                return -errno;
        if (syscall(SYS_close_range, in ? EXTRA_FD + 1 : EXTRA_FD, ~0u, 0) < 0)
                return -errno;
        return 0;
}

void child_become(struct child *c) {
        sigset_t none;
        int r;

        sigemptyset(&none);
        if (setsid() < 0)
                child_fail(c, START_PLUMBING, errno);
        r = child_drop_identity(c);
        if (r < 0)
                child_fail(c, START_IDENTITY, -r);
        r = take_descriptors(c);
        if (r < 0)
                child_fail(c, START_PLUMBING, -r);
        umask(022);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A script as an unchangeable file that has no name, at EXTRA_FD. */
static int script_file(const char *script, size_t len) {
        int fd = memfd_create("script", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -errno;
        while (len > 0) {
                ssize_t n = write(fd, script, len);

                if (n < 0)
                        return -errno;
                script += n;
                len -= (size_t)n;
        }
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                return -errno;
        /* It goes with the exec, but for the copy that has no such flag. */
        if (fd == EXTRA_FD)
                return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
        return dup2(fd, EXTRA_FD) < 0 ? -errno : 0;
}

/* As execvp(3), but with the new environment's PATH and without falling back to a shell. */
__attribute__((noinline)) static int exec_in_path(const struct child *c) {
        char file[PROTO_PATH_MAX + 1];
        int error = ENOENT;

        for (const char *p = c->path, *end; p; p = *end ? end + 1 : NULL) {
                int n;

                end = strchrnul(p, ':');
                n = snprintf(file, sizeof(file), "%.*s%s%s", (int)(end - p), p, end > p ? "/" : "",
                             c->program);
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

/* It is opened by name, as the prepared child has had its descriptors from before. As the command's leader has
 * a session of its own, and no terminal yet, this one becomes its. */
static int take_terminal(const char *name) {
        int fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);

        if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) < 0)
                return -errno;
        for (int i = 0; i < 3; i++)
                if (dup2(fd, i) < 0)
                        return -errno;
        return 0;
}

void child_execute(struct child *c) {
        int r;

        if (c->tty) {
                r = take_terminal(c->tty);
                if (r < 0)
                        child_fail(c, START_PLUMBING, -r);
        } else if (c->use_stdin && dup2(EXTRA_FD, 0) < 0)
                child_fail(c, START_PLUMBING, errno);
        if (c->script) {
                r = script_file(c->script, c->script_len);
                if (r < 0)
                        child_fail(c, START_PLUMBING, -r);
        }
        if (chdir(c->workdir) < 0)
                child_fail(c, START_WORKDIR, errno);
        if (strchr(c->program, '/') || c->program[0] == '\0') {
                execve(c->program, c->argv, c->envp);
                r = errno;
        } else
                r = exec_in_path(c);
        child_fail(c, START_PROGRAM, r);
}

/* vfork(2) in a function of its own: nothing that it returns into is used by the child. */
static pid_t fork_child(struct child *c) {
        pid_t pid = vfork();

        if (pid == 0) {
                int r = child_score_is_lent() ? 0 : child_prefer_for_oom();

                if (r < 0)
                        child_fail(c, START_PLUMBING, -r);
                child_become(c);
                child_execute(c);
        }
        return pid < 0 ? -errno : pid;
}

/* That a process was killed before it was the command is no end of the command. */
static pid_t start_exposed(struct child *c) {
        for (int i = 0; i < EXPOSED_TRIES; i++) {
                pid_t pid = spare_make();

                if (pid < 0)
                        return pid;
                pid = spare_start(c);
                if (pid != -EAGAIN)
                        return pid;
        }
        return -EINTR;
}

static pid_t start(struct child *c) {
        pid_t pid = -EAGAIN;

        if (c->prepared)
                pid = spare_start(c);
        if (ids_exposed(c->ids))
                return pid == -EAGAIN ? start_exposed(c) : pid;
        if (pid == -EAGAIN)
                pid = fork_child(c);
        if (pid == -EAGAIN || pid == -ENOMEM) {
                c->from_reserve = true;
                pid = spare_start(c);
        }
        return pid;
}

pid_t child_start(struct child *c) {
        pid_t pid;
        int r;

        c->error = 0;
        c->stage = 0;
        c->from_reserve = false;
        r = lend(true);
        if (r < 0)
                return r;
        pid = start(c);
        lend(false);
        if (child_score_is_lent() && pid > 0 && !c->error)
                raise_lent_score(pid);
        /* It never became the command: nobody else waits for it. */
        if (pid > 0 && c->error)
                waitpid(pid, NULL, 0);
        return pid;
}
