/*
 * What a hostile caller does that no shell can. attack WHAT COMMAND…
 *
 *   argv-empty, argv-null   executes COMMAND[0] with an argv without an entry, or without an argv
 *   inherit                 hands down timers, ignored, blocked and pending signals, and a timer slack of a century
 *   traced                  executes it while it is traced, as a debugger does
 *   signals N SIGNAL        runs it N times and sends SIGNAL after a time that grows from run to run
 *   stop N                  the same with SIGSTOP, and SIGCONT 5 ms later
 *   unheard                 executes it where the audit socket is refused, though the kernel audits (takes root)
 *   seize                   while it runs, tries to trace it and to kill it; tells what the kernel said
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int end_of(pid_t pid) {
        int status;

        if (waitpid(pid, &status, 0) < 0)
                return 99;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t start(char **command) {
        pid_t pid = fork();

        if (pid == 0) {
                execv(command[0], command);
                _exit(98);
        }
        return pid;
}

static void inherit(void) {
        struct itimerval soon = { .it_value = { .tv_usec = 2000 }, .it_interval = { .tv_usec = 1000 } };
        void (*const ignore[8])(int) = { SIG_IGN }, (*const deflt[8])(int) = { SIG_DFL };
        sigset_t all;

        /* By system calls: the C library keeps 32 and 33 for itself. */
        for (int n = 1; n < NSIG; n++)
                syscall(SYS_rt_sigaction, n, n == SIGALRM || n == SIGVTALRM ? deflt : ignore, NULL, 8);
        memset(&all, 0xff, sizeof(all));
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
        raise(SIGALRM);
        raise(SIGTERM);
        setitimer(ITIMER_REAL, &soon, NULL);
        setitimer(ITIMER_VIRTUAL, &soon, NULL);
        setitimer(ITIMER_PROF, &soon, NULL);
        prctl(PR_SET_TIMERSLACK, 3000000000000000000UL);
}

static void unheard(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
                exit(95);
}

static int traced(char **command) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                ptrace(PTRACE_TRACEME, 0, NULL, NULL);
                execv(command[0], command);
                _exit(98);
        }
        while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
                ptrace(PTRACE_CONT, pid, NULL, NULL);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int signals(int runs, int number, char **command) {
        int codes[256] = { 0 };

        for (int i = 0; i < runs; i++) {
                pid_t pid = start(command);

                usleep((useconds_t)(i * 12000 / runs));
                kill(pid, number);
                if (number == SIGSTOP) {
                        usleep(5000);
                        kill(pid, SIGCONT);
                }
                codes[end_of(pid) & 255]++;
        }
        for (int i = 0; i < 256; i++)
                if (codes[i])
                        printf("%d runs ended with %d\n", codes[i], i);
        return 0;
}

static int seize(char **command) {
        static const int tried[] = { SIGKILL, SIGSTOP, SIGALRM, SIGTERM };
        pid_t pid = start(command);

        usleep(500000);
        printf("trace: %s\n", ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? "allowed" : strerror(errno));
        for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++)
                printf("signal %d: %s\n", tried[i],
                       kill(pid, tried[i]) == 0 ? "allowed" : strerror(errno));
        return end_of(pid);
}

int main(int argc, char **argv) {
        const char *none[] = { NULL }, *env[] = { "A=1", NULL };

        if (argc < 3)
                return 97;
        if (strcmp(argv[1], "argv-empty") == 0)
                syscall(SYS_execve, argv[2], none, env);
        else if (strcmp(argv[1], "argv-null") == 0)
                syscall(SYS_execve, argv[2], NULL, env);
        else if (strcmp(argv[1], "inherit") == 0) {
                inherit();
                execv(argv[2], argv + 2);
        } else if (strcmp(argv[1], "unheard") == 0) {
                unheard();
                execv(argv[2], argv + 2);
        } else if (strcmp(argv[1], "traced") == 0)
                return traced(argv + 2);
        else if (strcmp(argv[1], "signals") == 0 && argc > 4)
                return signals(atoi(argv[2]), atoi(argv[3]), argv + 4);
        else if (strcmp(argv[1], "stop") == 0 && argc > 3)
                return signals(atoi(argv[2]), SIGSTOP, argv + 3);
        else if (strcmp(argv[1], "seize") == 0)
                return seize(argv + 2);
        return 96;
}
