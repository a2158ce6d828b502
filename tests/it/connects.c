/*
 * The ways in which a program can connect to a Unix socket, each a system call of its own to the audit trail:
 *
 *     connects connect|uring|int80|socketcall PATH
 *
 * Exit status 0: connected; 1: refused, errno on stderr; 77: this machine has no such way.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define MISSING 77

/* 0 or -errno, or MISSING, as all of them. */
static int by_connect(int fd, struct sockaddr_un *sa) {
        return connect(fd, (struct sockaddr *)sa, sizeof(*sa)) < 0 ? -errno : 0;
}

static void *ring(int fd, size_t len, uint64_t which) {
        return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)which);
}

static int by_uring(int fd, struct sockaddr_un *sa) {
        struct io_uring_params p = { 0 };
        int u = (int)syscall(SYS_io_uring_setup, 1, &p);
        struct io_uring_sqe *sqe;
        struct io_uring_cqe *cqe;
        char *sq, *cq;

        if (u < 0)
                return MISSING;
        sq = ring(u, p.sq_off.array + p.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
        cq = ring(u, p.cq_off.cqes + p.cq_entries * sizeof(*cqe), IORING_OFF_CQ_RING);
        sqe = ring(u, p.sq_entries * sizeof(*sqe), IORING_OFF_SQES);
        if (sq == MAP_FAILED || cq == MAP_FAILED || sqe == MAP_FAILED)
                return MISSING;
        *sqe = (struct io_uring_sqe){
                .opcode = IORING_OP_CONNECT, .fd = fd, .addr = (uintptr_t)sa, .off = sizeof(*sa)
        };
        __atomic_store_n((uint32_t *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
        if (syscall(SYS_io_uring_enter, u, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
                return -errno;
        cqe = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
        return cqe->res;
}

#ifdef __x86_64__
/* The calls of a 32-bit program, which a 64-bit one can make as well. */
static int call32(long nr, long a, long b, long c) {
        long r;

        __asm__ volatile("int $0x80"
                         : "=a"(r)
                         : "a"(nr), "b"(a), "c"(b), "d"(c)
                         : "memory", "r8", "r9", "r10", "r11");
        return r == -ENOSYS ? MISSING : (int)r;
}

static int by_int80(int fd, struct sockaddr_un *sa) {
        return call32(362, fd, (long)(uintptr_t)sa, sizeof(*sa));
}

static int by_socketcall(int fd, struct sockaddr_un *sa) {
        uint32_t *args = (uint32_t *)(sa + 1);

        args[0] = (uint32_t)fd;
        args[1] = (uint32_t)(uintptr_t)sa;
        args[2] = sizeof(*sa);
        return call32(102, 3, (long)(uintptr_t)args, 0);
}
#define LOW MAP_32BIT
#else
static int by_int80(int fd, struct sockaddr_un *sa) {
        (void)fd;
        (void)sa;
        return MISSING;
}
#define by_socketcall by_int80
#define LOW 0
#endif

static const struct {
        const char *name;
        int (*run)(int fd, struct sockaddr_un *sa);
} ways[] = {
        { "connect", by_connect },
        { "uring", by_uring },
        { "int80", by_int80 },
        { "socketcall", by_socketcall },
};

int main(int argc, char **argv) {
        struct sockaddr_un *sa = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | LOW, -1, 0);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r = MISSING;

        if (argc != 3 || strlen(argv[2]) >= sizeof(sa->sun_path) || sa == MAP_FAILED || fd < 0)
                return 64;
        sa->sun_family = AF_UNIX;
        strcpy(sa->sun_path, argv[2]);
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
                if (strcmp(ways[i].name, argv[1]) == 0)
                        r = ways[i].run(fd, sa);
        if (r < 0)
                fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
        return r < 0 ? 1 : r;
}
