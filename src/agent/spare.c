/*
 * The one process that is made beforehand: a reserve, and the next command of an idle sandbox (child.c).
 *
 * It shares memory and, until it is more than a reserve, descriptors with the agent. It sleeps on spare.call;
 * the agent sleeps on spare.tid while it works, so that the two never run at once: they share errno and the
 * rest of the C library's state. The kernel clears spare.tid when it execs or dies (man 2 clone,
 * CLONE_CHILD_CLEARTID), which is what vfork's end is to a vfork.
 *
 * Where a command has its uid (ids_exposed()), it can be stopped or killed before it is one. The agent wakes it again and
 * again, and ends it after a while: well before the manager's patience with a ping does (15 s). A signal that the kernel
 * allowed while it was root can reach it as the command: that is then stopped or killed as by any other signal.
 *
 * To the kernel a process that shares memory without vfork has one OOM score with all others that share it:
 * the command's is raised by the agent, after the exec.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"

/* There is no page behind it that would catch an overflow; what is not touched costs nothing. It ends within a
 * page, so that the little that a sleeping process needs of it shares one with the fields behind it. */
#define SPARE_STACK (65536 + 1536)
/* In spare.tid: it has done the first half. Above every pid (PID_MAX_LIMIT, linux/threads.h). */
#define PREPARED (1 << 30)

/* Between two wake-ups of one that may have been stopped, and the most that it gets. What takes long may be a busy
 * machine, or its disk. */
#define STUCK_RETRY_US UINT64_C(20000)
#define STUCK_MAX_US UINT64_C(8000000)

/* What clone() is in musl and in glibc. musl's clone() itself refuses CLONE_CHILD_CLEARTID since 1.2.5, with EINVAL, because
 * it knows no use of it but for threads. Both take flags, argument, and then ptid, tls and ctid (man 2 clone). */
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

enum call { CALL_NONE, CALL_PREPARE, CALL_RUN };

static struct {
        char stack[SPARE_STACK];
        int tid;      /* 0: none */
        int call;     /* enum call */
        int score_fd; /* its oom_score_adj; 0: none */
        struct child *order;
} spare PLACED_SPARE;

/* Sleeps while *@word is @value, for as long as @limit says (NULL: no limit). What ends the sleep is seen in the word. */
static void sleep_for(int *word, int value, const struct timespec *limit) {
        syscall(SYS_futex, word, FUTEX_WAIT, value, limit, NULL, 0);
}

static void sleep_on(int *word, int value) {
        sleep_for(word, value, NULL);
}

static void set(int *word, int value) {
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int get(const int *word) {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static int spare_main(void *unused) {
        (void)unused;
        while (get(&spare.call) == CALL_NONE)
                sleep_on(&spare.call, CALL_NONE);
        /* From here on the descriptors are its own. */
        if (syscall(SYS_close_range, ~0u - 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
                child_fail(spare.order, START_PLUMBING, errno);
        child_become(spare.order);
        if (get(&spare.call) == CALL_PREPARE)
                set(&spare.tid, spare.tid | PREPARED);
        while (get(&spare.call) == CALL_PREPARE)
                sleep_on(&spare.call, CALL_PREPARE);
        child_execute(spare.order);
        return 0;
}

/* Opened while the spare is the agent's like: later its files in /proc are not root's. */
static int open_score(int pid) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
        return open(path, O_WRONLY | O_CLOEXEC);
}

pid_t spare_pid(void) {
        return get(&spare.tid) & ~PREPARED;
}

bool spare_is_prepared(void) {
        return get(&spare.tid) & PREPARED;
}

int spare_make(void) {
        int pid;

        if (get(&spare.tid) != 0)
                return 0;
        while (waitpid(-1, NULL, WNOHANG | __WCLONE) > 0)
                ;
#ifdef __SANITIZE_ADDRESS__
        /* The last one left its frames marked when it exec'd. */
        __asan_unpoison_memory_region(spare.stack, sizeof(spare.stack));
#endif
        spare.call = CALL_NONE;
        /* No signal at its end: an ordinary wait neither counts nor reaps it, until it execs. */
        pid = __clone(spare_main, spare.stack + sizeof(spare.stack),
                      CLONE_VM | CLONE_FILES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID |
                              CLONE_PARENT_SETTID,
                      NULL, &spare.tid, NULL, &spare.tid);
        if (pid < 0)
                return -errno;
        if (spare.score_fd > 0)
                close(spare.score_fd);
        spare.score_fd = child_score_is_lent() ? 0 : open_score(pid);
        return 0;
}

static void wait_for_end(void) {
        int tid;

        while ((tid = get(&spare.tid)) != 0)
                sleep_on(&spare.tid, tid);
}

void spare_end(void) {
        pid_t pid = spare_pid();

        if (pid == 0)
                return;
        kill(pid, SIGKILL);
        wait_for_end();
        waitpid(pid, NULL, __WCLONE);
}

/* Until it has the bits @until in spare.tid, or has ended: 0. -ETIMEDOUT: it was killed for not coming to that.
 * *@ret_late: the agent slept to a limit, so that an ETIMEDOUT in the errno that the two share may be its own. */
static int wait_for_it(int until, bool *ret_late) {
        const struct timespec limit = { 0, STUCK_RETRY_US * 1000 };
        uint64_t begun = now_us(), past = 0;
        pid_t pid = spare_pid();
        int tid;

        while ((tid = get(&spare.tid)) != 0 && !(tid & until) && past < STUCK_MAX_US) {
                sleep_for(&spare.tid, tid, &limit);
                past = now_us() - begun;
                *ret_late |= past >= STUCK_RETRY_US;
                if (*ret_late && get(&spare.tid) == tid)
                        kill(pid, SIGCONT);
        }
        if (tid == 0 || tid & until)
                return 0;
        kill(pid, SIGKILL);
        wait_for_end();
        return -ETIMEDOUT;
}

int spare_prepare(struct child *c) {
        bool late = false;
        int r;

        if (spare_is_prepared())
                spare_end(); /* for another command */
        r = spare_make();
        if (r < 0)
                return r;
        c->error = 0;
        spare.order = c;
        set(&spare.call, CALL_PREPARE);
        r = wait_for_it(PREPARED, &late);
        if (r == 0 && !spare_is_prepared())
                return c->error ? -c->error : -EAGAIN;
        return r;
}

/* It has ended before its exec. */
static pid_t failed(struct child *c, int r, bool late) {
        if (c->error && !(late && c->error == ETIMEDOUT))
                return 0;
        c->error = 0;
        return r < 0 ? r : -EAGAIN;
}

pid_t spare_start(struct child *c) {
        pid_t pid = spare_pid();
        bool late = false;
        int r;

        /* One that is prepared for another command is none for this. */
        if (spare_is_prepared() && !c->prepared)
                return -EAGAIN;
        if (pid == 0 || (spare.score_fd <= 0 && !child_score_is_lent()))
                return -EAGAIN;
        spare.order = c;
        set(&spare.call, CALL_RUN);
        r = wait_for_it(0, &late);
        /* The exec made an ordinary child of it. If it is none, it has died before, and no other wait
         * would ever see it: it has no signal at its end. */
        if (waitpid(pid, NULL, __WCLONE) == pid)
                return failed(c, r, late);
        if (spare.score_fd > 0 && !child_raise_score(spare.score_fd))
                kill(pid, SIGKILL);
        return pid;
}
