/*
 * Leaves one kind of residue in a sandbox, or prints all that a command can see of what was there before it.
 *
 *     canary leave NAME… [END]   0: all of it is there; 77: this kernel does not know such a thing
 *         END is stay (says "left" and does not end), or takes memory until it is killed: gorge, gorge-shm (System V
 *         segments), gorge-files
 *     canary look                two looks at a sandbox are equal unless something was left
 *     canary list                the names
 *
 * Linked statically, so that it runs in any image and reads no file of it.
 */
#include "canary.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_UNSUPPORTED 77

_Noreturn void give_up(const char *what) {
        int e = errno;

        fprintf(stderr, "canary: %s: %s\n", what, strerror(e));
        exit(e == ENOTSUP || e == ENOTTY || e == ENOSYS || e == EAFNOSUPPORT ? EXIT_UNSUPPORTED : 1);
}

void need(bool ok, const char *what) {
        if (!ok)
                give_up(what);
}

void check(bool ok, const char *what) {
        if (ok)
                return;
        errno = EPROTO;
        give_up(what);
}

/* --- IPC --------------------------------------------------------------------------------------------- */

#define KEY 0x63616e61

static void sysv_shm(const char *unused) {
        int id = shmget(KEY, 4 * MB, IPC_CREAT | IPC_EXCL | 0600);
        char *p = shmat(id, NULL, 0);

        (void)unused;
        need(id >= 0 && p != (void *)-1, "shmget");
        memset(p, 'x', 4 * MB);
}

/* It is another one's then, and its maker may still remove it. */
static void sysv_shm_given(const char *unused) {
        int id = shmget(KEY, 4096, IPC_CREAT | IPC_EXCL | 0600);
        struct shmid_ds ds;

        (void)unused;
        need(id >= 0 && shmctl(id, IPC_STAT, &ds) == 0, "shmget");
        ds.shm_perm.uid = 1;
        ds.shm_perm.gid = 1;
        ds.shm_perm.mode = 0;
        need(shmctl(id, IPC_SET, &ds) == 0, "IPC_SET");
}

static void sysv_msg(const char *unused) {
        struct {
                long type;
                char text[6];
        } m = { 1, "canary" };
        int id = msgget(KEY, IPC_CREAT | IPC_EXCL | 0600);

        (void)unused;
        need(id >= 0 && msgsnd(id, &m, sizeof(m.text), 0) == 0, "msgget");
}

static void sysv_sem(const char *unused) {
        struct sembuf up = { 0, 7, 0 };
        int id = semget(KEY, 3, IPC_CREAT | IPC_EXCL | 0600);

        (void)unused;
        need(id >= 0 && semop(id, &up, 1) == 0, "semget");
}

static void sysv_many(const char *unused) {
        (void)unused;
        for (int i = 0; i < 500; i++)
                need(shmget(IPC_PRIVATE, 4096, 0) >= 0 && msgget(IPC_PRIVATE, 0) >= 0 &&
                             semget(IPC_PRIVATE, 1, 0) >= 0,
                     "IPC_PRIVATE");
}

static mqd_t queue_of(const char *name) {
        struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };

        return mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0, &attr);
}

static void queue(const char *name) {
        mqd_t q = queue_of(name);

        need(q >= 0 && mq_send(q, "canary", 6, 0) == 0, "mq_open");
}

/* As many as a user may have. */
static void queues(const char *unused) {
        char name[16];
        int i = 0;

        (void)unused;
        do
                snprintf(name, sizeof(name), "/%d", i);
        while (queue_of(name) >= 0 && ++i);
        check(i > 10, "few queues");
}

static void posix_sem(const char *unused) {
        (void)unused;
        need(sem_open("/canary-sem", O_CREAT | O_EXCL, 0600, 3) != SEM_FAILED, "sem_open");
}

/* --- processes --------------------------------------------------------------------------------------- */

static int ready[2];

static void say_ready(void) {
        need(write(ready[1], "", 1) == 1, "ready");
}

_Noreturn static void sleep_on(void) {
        for (;;)
                pause();
}

/* @body in a session of its own, an orphan, once it has said that it is ready. */
static void in_background(void (*body)(void)) {
        char b;

        need(pipe2(ready, O_CLOEXEC) == 0, "pipe");
        if (fork() == 0) {
                setsid();
                if (fork() != 0)
                        _exit(0);
                body();
                sleep_on();
        }
        close(ready[1]);
        need(read(ready[0], &b, 1) == 1, "the background process");
        while (wait(NULL) > 0)
                ;
}

static int unlinked(void) {
        int dir = open_dir("/tmp"), fd = make_file(dir, "unlinked");

        need(unlinkat(dir, "unlinked", 0) == 0 && posix_fallocate(fd, 0, 8 * MB) == 0, "unlinked");
        return fd;
}

static void body_plain(void) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        say_ready();
}

static void body_disguised(void) {
        prctl(PR_SET_NAME, "agent");
        say_ready();
}

static void body_stopped(void) {
        say_ready();
        kill(getpid(), SIGSTOP);
}

static void body_mapped(void) {
        char *p = mmap(NULL, 8 * MB, PROT_READ | PROT_WRITE, MAP_SHARED, unlinked(), 0);

        need(p != MAP_FAILED, "mmap");
        memset(p, 'x', 8 * MB);
        say_ready();
}

static void body_holding(void) {
        (void)unlinked();
        (void)shmctl(shmget(IPC_PRIVATE, MB, 0600), IPC_RMID, NULL);
        say_ready();
}

/* It is never the same process when somebody looks twice. */
static void body_respawning(void) {
        say_ready();
        for (;;)
                if (fork() != 0)
                        _exit(0);
}

static void body_traced(void) {
        pid_t pid = fork();

        if (pid == 0) {
                ptrace(PTRACE_TRACEME, 0, 0, 0);
                raise(SIGSTOP);
                sleep_on();
        }
        waitpid(pid, NULL, 0);
        say_ready();
}

/* Its parent waits in the kernel, where only a fatal signal reaches it. */
static void body_vforked(void) {
        if (vfork() == 0) {
                say_ready();
                sleep_on();
        }
}

static void *thread(void *unused) {
        (void)unused;
        say_ready();
        sleep_on();
}

/* To /proc its state is that of a zombie, and a thread runs on. */
static void body_leaderless(void) {
        pthread_t t;

        need(pthread_create(&t, NULL, thread, NULL) == 0, "pthread_create");
        syscall(SYS_exit, 0);
}

static void body_crowd(void) {
        for (int i = 0; i < 150; i++) {
                pid_t pid = fork();

                need(pid >= 0, "fork");
                if (pid == 0)
                        sleep_on();
        }
        say_ready();
}

static void body_abstract(void) {
        struct sockaddr_un sun = { AF_UNIX, "\0canary" };
        int s = socket(AF_UNIX, SOCK_STREAM, 0);

        need(s >= 0 && bind(s, (struct sockaddr *)&sun, sizeof(sun)) == 0 && listen(s, 1) == 0, "bind");
        say_ready();
}

static void body_listening(void) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        int s = socket(AF_INET, SOCK_STREAM, 0);

        need(s >= 0 && bind(s, (struct sockaddr *)&in, sizeof(in)) == 0 && listen(s, 1) == 0, "listen");
        say_ready();
}

/* --- what outlives its process in the kernel --------------------------------------------------------- */

/* Both ends of a pair of sockets are in flight in each other, and a file with them. */
static void in_flight(const char *unused) {
        int pair[2];

        (void)unused;
        need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0, "socketpair");
        for (int i = 0; i < 2; i++) {
                char b[CMSG_SPACE(2 * sizeof(int))] __attribute__((aligned(8)));
                int fds[2] = { unlinked(), pair[1 - i] };
                struct iovec one = { (char[]){ 'x' }, 1 };
                struct msghdr m = {
                        .msg_iov = &one, .msg_iovlen = 1, .msg_control = b, .msg_controllen = sizeof(b)
                };
                struct cmsghdr *c = CMSG_FIRSTHDR(&m);

                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(fds));
                memcpy(CMSG_DATA(c), fds, sizeof(fds));
                need(sendmsg(pair[i], &m, 0) == 1, "sendmsg");
        }
}

static int lines_with(const char *path, const char *word) {
        FILE *f = fopen(path, "re");
        char line[1024];
        int n = 0;

        need(f, path);
        while (fgets(line, sizeof(line), f))
                n += strstr(line, word) != NULL;
        fclose(f);
        return n;
}

/* The end that closes first stays in TIME_WAIT for a minute. @table is where the kernel shows it. */
static void time_wait(const char *table) {
        bool six = strchr(table, '6');
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
        socklen_t len = sizeof(in);
        int l = socket(AF_INET, SOCK_STREAM, 0), s = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM, 0), a;
        char b;

        need(s >= 0 && bind(l, (struct sockaddr *)&in, sizeof(in)) == 0 && listen(l, 1) == 0 &&
                     getsockname(l, (struct sockaddr *)&in, &len) == 0,
             "listen");
        in6.sin6_port = in.sin_port;
        memcpy(in6.sin6_addr.s6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
        if (six)
                need(connect(s, (struct sockaddr *)&in6, sizeof(in6)) == 0, "connect");
        else
                need(connect(s, (struct sockaddr *)&in, sizeof(in)) == 0, "connect");
        a = accept(l, NULL, NULL);
        close(s);
        need(a >= 0 && read(a, &b, 1) == 0, "accept");
        close(a);
        check(lines_with(table, " 06 00000000:") > 0, "no TIME_WAIT");
}

/* What a process can change of itself alone. */
static void self(const char *unused) {
        struct rlimit r = { 11, 11 };

        (void)unused;
        need(setenv("CANARY", "1", 1) == 0 && chdir("/tmp") == 0 && prctl(PR_SET_NAME, "canary") == 0 &&
                     prctl(PR_SET_TIMERSLACK, 1234567) == 0 && setrlimit(RLIMIT_NOFILE, &r) == 0 &&
                     setpriority(PRIO_PROCESS, 0, 7) == 0 && signal(SIGUSR1, SIG_IGN) != SIG_ERR,
             "self");
        umask(0);
}

/* --- the table --------------------------------------------------------------------------------------- */

static const struct residue residues[] = {
        { "sysv-shm", sysv_shm, NULL, NULL },
        { "sysv-shm-given", sysv_shm_given, NULL, NULL },
        { "sysv-msg", sysv_msg, NULL, NULL },
        { "sysv-sem", sysv_sem, NULL, NULL },
        { "sysv-many", sysv_many, NULL, NULL },
        { "queue", queue, "/canary", NULL },
        { "queue-odd", queue, "/-a\nb\xff", NULL },
        { "queues", queues, NULL, NULL },
        { "posix-sem", posix_sem, NULL, NULL },
        { "process", NULL, NULL, body_plain },
        { "process-disguised", NULL, NULL, body_disguised },
        { "process-stopped", NULL, NULL, body_stopped },
        { "process-mapped", NULL, NULL, body_mapped },
        { "process-holding", NULL, NULL, body_holding },
        { "process-respawning", NULL, NULL, body_respawning },
        { "process-traced", NULL, NULL, body_traced },
        { "process-vforked", NULL, NULL, body_vforked },
        { "process-leaderless", NULL, NULL, body_leaderless },
        { "processes", NULL, NULL, body_crowd },
        { "socket-abstract", NULL, NULL, body_abstract },
        { "socket-listening", NULL, NULL, body_listening },
        { "in-flight", in_flight, NULL, NULL },
        { "time-wait", time_wait, "/proc/net/tcp", NULL },
        { "time-wait-6", time_wait, "/proc/net/tcp6", NULL },
        { "self", self, NULL, NULL },
        { NULL, NULL, NULL, NULL },
};
static const struct residue *const tables[] = { file_residues, residues };

static void leave(const char *name) {
        for (int t = 0; t < 2; t++)
                for (const struct residue *r = tables[t]; r->name; r++) {
                        if (strcmp(r->name, name) != 0)
                                continue;
                        if (r->body)
                                in_background(r->body);
                        else
                                r->leave(r->arg);
                        return;
                }
        errno = EINVAL;
        give_up(name);
}

static void list(void) {
        for (int t = 0; t < 2; t++)
                for (const struct residue *r = tables[t]; r->name; r++)
                        puts(r->name);
}

/* --- what does not end by itself --------------------------------------------------------------------- */

_Noreturn static void stay(void) {
        puts("left");
        fflush(stdout);
        sleep_on();
}

_Noreturn static void gorge(void) {
        for (;;)
                mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
                     0);
}

/* No limit of a file system holds it, and its end frees nothing. */
_Noreturn static void gorge_shm(void) {
        for (;;) {
                char *p = shmat(shmget(IPC_PRIVATE, MB, 0600), NULL, 0);

                need(p != (void *)-1, "shmget");
                memset(p, 'x', MB);
        }
}

/* Empty ones take no block. */
_Noreturn static void gorge_files(void) {
        int top = open_dir("/tmp");
        char name[16];

        for (int i = 0;; i++) {
                snprintf(name, sizeof(name), "%d", i);
                close(openat(top, name, O_CREAT | O_WRONLY, 0));
        }
}

static const struct {
        const char *name;
        void (*fn)(void);
} endless[] = {
        { "stay", stay },
        { "gorge", gorge },
        { "gorge-shm", gorge_shm },
        { "gorge-files", gorge_files },
};

int main(int argc, char **argv) {
        if (argc == 2 && strcmp(argv[1], "look") == 0) {
                look();
                return 0;
        }
        if (argc == 2 && strcmp(argv[1], "list") == 0) {
                list();
                return 0;
        }
        if (argc < 3 || strcmp(argv[1], "leave") != 0)
                return 64;
        for (int i = 2; i < argc; i++) {
                for (size_t n = 0; n < sizeof(endless) / sizeof(endless[0]); n++)
                        if (strcmp(argv[i], endless[n].name) == 0)
                                endless[n].fn();
                leave(argv[i]);
        }
        return 0;
}
