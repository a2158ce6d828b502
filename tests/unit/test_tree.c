/* A command's tree: found by its gid whatever it does, stopped and killed. Takes root for setgroups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"

void forget(void *p, size_t n) {
        memset(p, 0, n);
}

uint64_t now_us(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* In nobody's use: each test takes the next. */
static gid_t gid = 1900070000;
static int ready[2];

static void say_ready(void) {
        if (write(ready[1], "x", 1) != 1)
                _exit(1);
}

static void wait_ready(int n) {
        char c;

        while (n-- > 0)
                assert_int_equal(read(ready[0], &c, 1), 1);
}

static void sleep_on(void) {
        for (;;)
                pause();
}

/* A child that carries the gid, and runs @what. */
static pid_t spawn(void (*what)(void)) {
        pid_t pid = fork();

        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (setgroups(1, &gid) < 0 || setresgid(10001, 10001, 10001) < 0 ||
                    setresuid(10000, 10000, 10000) < 0)
                        _exit(1);
                what();
                _exit(0);
        }
        assert_true(pid > 0);
        return pid;
}

static void plain(void) {
        say_ready();
        sleep_on();
}

/* Four that live: the child, and behind a double fork and a session of its own each, another. */
static void runaways(void) {
        for (int i = 0; i < 3; i++)
                if (fork() == 0) {
                        setsid();
                        if (fork() != 0)
                                _exit(0);
                        signal(SIGTERM, SIG_IGN);
                        signal(SIGHUP, SIG_IGN);
                        plain();
                }
        plain();
}

/* Forks for as long as it lives, each child the next. */
static void breeder(void) {
        say_ready();
        for (;;)
                if (fork() > 0) {
                        poll(NULL, 0, 1);
                        _exit(0);
                }
}

static int thread_main(void *unused) {
        (void)unused;
        poll(NULL, 0, 50);
        plain();
        return 0;
}

/* Its first thread ends and another goes on: /proc says Z, and it lives. */
static void headless(void) {
        char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (stack == MAP_FAILED ||
            clone(thread_main, stack + 65536,
                  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, NULL) < 0)
                _exit(1);
        syscall(SYS_exit, 0);
}

static void zombie(void) {
        say_ready();
}

static void kill_all(void) {
        int n = 1;

        for (int i = 0; i < 5000 && n > 0; i++) {
                n = tree_kill(&(struct tree){ .gid = gid });
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ;
                poll(NULL, 0, 1);
        }
        assert_int_equal(n, 0);
        assert_int_equal(tree_count(&(struct tree){ .gid = gid }), 0);
}

static int begin(void **state) {
        (void)state;
        gid++;
        return pipe(ready);
}

static int end(void **state) {
        (void)state;
        /* A case that failed leaves its processes. */
        for (int i = 0; i < 5000 && tree_kill(&(struct tree){ .gid = gid }) > 0; i++)
                poll(NULL, 0, 1);
        close(ready[0]);
        close(ready[1]);
        while (waitpid(-1, NULL, 0) > 0)
                ;
        return 0;
}

static void one(void **state) {
        pid_t pid;
        int status;

        (void)state;
        assert_int_equal(tree_count(&(struct tree){ .gid = gid }), 0);
        assert_int_equal(tree_kill(&(struct tree){ .gid = gid }), 0);
        pid = spawn(plain);
        wait_ready(1);
        assert_int_equal(tree_count(&(struct tree){ .gid = gid }), 1);
        assert_int_equal(tree_count(&(struct tree){ .gid = gid + 1 }), 0);
        assert_int_equal(tree_count(&(struct tree){ .gid = gid / 10 }), 0); /* the number as a whole */
        assert_int_equal(tree_signal(&(struct tree){ .gid = gid }, SIGTERM), 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WTERMSIG(status), SIGTERM);
        assert_int_equal(tree_signal(&(struct tree){ .gid = gid }, SIGTERM), 0);
}

static void found_wherever_they_go(void **state) {
        (void)state;
        spawn(runaways);
        wait_ready(4);
        /* The three in between are ending, and may not have ended yet. */
        for (int i = 0; i < 5000 && tree_count(&(struct tree){ .gid = gid }) != 4; i++)
                poll(NULL, 0, 1);
        assert_int_equal(tree_count(&(struct tree){ .gid = gid }), 4);
        assert_int_equal(tree_signal(&(struct tree){ .gid = gid }, SIGTERM), 4);
        kill_all();
}

static void breeding(void **state) {
        (void)state;
        spawn(breeder);
        wait_ready(1);
        kill_all();
        poll(NULL, 0, 20);
        assert_int_equal(tree_count(&(struct tree){ .gid = gid }), 0);
}

static void without_its_first_thread(void **state) {
        (void)state;
        spawn(headless);
        wait_ready(1);
        assert_int_equal(tree_count(&(struct tree){ .gid = gid }), 1);
        kill_all();
}

static void the_dead_do_not_count(void **state) {
        pid_t pid = spawn(zombie);
        siginfo_t si;

        (void)state;
        wait_ready(1);
        waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT);
        assert_int_equal(tree_count(&(struct tree){ .gid = gid }), 0);
        assert_int_equal(tree_kill(&(struct tree){ .gid = gid }), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

static int cases(void) {
        const struct CMUnitTest tests[] = {
                CASE(one),
                CASE(found_wherever_they_go),
                CASE(breeding),
                CASE(without_its_first_thread),
                CASE(the_dead_do_not_count),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* As in a sandbox: /proc has nobody else, and orphans come to PID 1, which this is. */
static int in_namespace(int (*what)(void)) {
        int status;
        pid_t pid;

        if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
                return 1;
        pid = fork();
        if (pid == 0) {
                if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                    mount("proc", "/proc", "proc", 0, NULL) < 0)
                        _exit(1);
                exit(what());
        }
        return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void) {
        if (geteuid() != 0) {
                puts("giving a process a group takes root");
                return 77;
        }
        /* Without what a sanitizer does at the end, which takes a process: here none can be made any more. */
        fflush(NULL);
        _exit(in_namespace(cases));
}
