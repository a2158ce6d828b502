/*
 * The agent's own filter, on top of the engine's. It is installed once, in the agent, and every command
 * inherits it, so that it costs an exec nothing. It denies what an engine's default may allow: kernel
 * keys, new user namespaces, and pushing input into a terminal. Everything else is the engine's matter.
 *
 * A system call of another ABI has other numbers: i386 on x86-64 gets a table of its own, any other
 * foreign ABI is refused.
 */
#include "agent/agent.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#else
#error "the seccomp filter does not know this architecture"
#endif

/* Linux' asm-generic/ioctls.h and linux/tiocl.h's ioctl. */
#define IOCTL_TIOCSTI 0x5412
#define IOCTL_TIOCLINUX 0x541C
/* x32 calls share AUDIT_ARCH_X86_64 and set this bit (x86's __X32_SYSCALL_BIT). */
#define X32_BIT 0x40000000
/* The same number in every ABI; older headers lack it. */
#define NR_CLONE3 435

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* The low half of an argument: seccomp_data is little-endian on both architectures here. */
#define LOAD_ARG(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define RET(v) BPF_STMT(BPF_RET | BPF_K, (v))
#define DENY(e) RET(SECCOMP_RET_ERRNO | (e))
#define IF_EQ(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (yes), (no))
#define IF_SET(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (k), (yes), (no))

/* One rule set over the numbers of one ABI; 18 instructions, ending in ALLOW. clone3 hides its flags
 * behind a pointer: ENOSYS makes every libc fall back to clone. */
/* clang-format off */
#define RULES(add_key, request_key, keyctl, clone3, clone, unshare, ioctl)                          \
        IF_EQ(add_key, 2, 0), IF_EQ(request_key, 1, 0), IF_EQ(keyctl, 0, 1), DENY(EPERM),           \
        IF_EQ(clone3, 0, 1), DENY(ENOSYS),                                                          \
        IF_EQ(clone, 1, 0), IF_EQ(unshare, 0, 4),                                                   \
        LOAD_ARG(0), IF_SET(CLONE_NEWUSER, 0, 1), DENY(EPERM), RET(SECCOMP_RET_ALLOW),              \
        IF_EQ(ioctl, 0, 4),                                                                         \
        LOAD_ARG(1), IF_EQ(IOCTL_TIOCSTI, 1, 0), IF_EQ(IOCTL_TIOCLINUX, 0, 1), DENY(EPERM),         \
        RET(SECCOMP_RET_ALLOW)
/* clang-format on */
#define RULES_LEN 18

int seccomp_install(void) {
        static struct sock_filter filter[] = {
                LOAD(arch),
#if defined(__x86_64__)
                IF_EQ(ARCH_NATIVE, RULES_LEN + 3, 0),
                IF_EQ(AUDIT_ARCH_I386, 1, 0),
                DENY(ENOSYS),
                LOAD(nr),
                RULES(286, 287, 288, NR_CLONE3, 120, 310, 54),
                LOAD(nr),
                BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
                DENY(ENOSYS),
#else
                IF_EQ(ARCH_NATIVE, 1, 0),
                DENY(ENOSYS),
                LOAD(nr),
#endif
                RULES(__NR_add_key, __NR_request_key, __NR_keyctl, NR_CLONE3, __NR_clone, __NR_unshare,
                      __NR_ioctl),
        };
        struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
                return -errno;
        return 0;
}
