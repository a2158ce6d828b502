/*
 * One netlink socket for the life of the manager. The kernel handles a record within the call that sends it,
 * and its acknowledgement is there when that call returns: one send, one receive, nothing to queue and nothing
 * to lose.
 *
 * libaudit opens the socket and says what is to be encoded. The messages are put together here, in the form
 * of its audit_log_user_message(): that knows success and failed only, where the end of an exec that nobody
 * saw is neither (res=unknown), and it takes two system calls more for each record.
 */
#include "manager/audit_kernel.h"

#include <errno.h>
#include <libaudit.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"

#define ACK_TIMEOUT_MS 1000

static void set_state(struct audit_kernel *k, const char *state, const char *why) {
        k->state = state;
        snprintf(k->why, sizeof(k->why), "%s", why);
}

void audit_kernel_init(struct audit_kernel *k) {
        char path[PATH_MAX];
        struct text t;
        ssize_t exe;

        /* Without it libaudit prints its own errors to stderr, or to syslog. */
        set_aumessage_mode(MSG_QUIET, DBG_NO);
        set_state(k, "unknown", "no record was sent yet");
        k->fd = audit_open();
        if (k->fd < 0)
                snprintf(k->why, sizeof(k->why), "no audit socket: %s", strerror(errno));
        if (k->fd < 0)
                k->state = "unsupported";
        exe = readlink("/proc/self/exe", path, sizeof(path));
        text_init(&t, k->exe, sizeof(k->exe));
        if (exe > 0)
                audit_kernel_encode(&t, "exe", path, (size_t)exe);
}

void audit_kernel_no_capability(struct audit_kernel *k) {
        if (k->single_user)
                set_state(k, "unsupported", "a single user's pair has no CAP_AUDIT_WRITE");
        else
                set_state(k, "disabled", "this process has no CAP_AUDIT_WRITE");
}

void audit_kernel_done(struct audit_kernel *k) {
        k->fd = close_fd(k->fd);
}

static bool have_audit_write(void) {
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { 0 };

        if (syscall(SYS_capget, &head, data) < 0)
                return false;
        return data[0].effective & (1u << CAP_AUDIT_WRITE);
}

/* The answer to message @seq: 0 or -errno, as the kernel says, or what went wrong with the socket. What else
 * the kernel may send back of the message is cut off. */
static int read_ack(int fd, uint32_t seq) {
        struct {
                struct nlmsghdr head;
                struct nlmsgerr err;
        } answer;
        struct pollfd p = { .fd = fd, .events = POLLIN };

        for (;;) {
                ssize_t n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);

                if (n < 0 && errno == EAGAIN && poll(&p, 1, ACK_TIMEOUT_MS) == 0)
                        return -ETIMEDOUT;
                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return -errno;
                if (n == sizeof(answer) && answer.head.nlmsg_seq == seq &&
                    answer.head.nlmsg_type == NLMSG_ERROR)
                        return answer.err.error;
        }
}

static int send_record(struct audit_kernel *k, int type, const char *fields, enum audit_res res,
                       const char *address) {
        static const char *const words[] = {
                [AUDIT_RES_FAILED] = "failed",
                [AUDIT_RES_SUCCESS] = "success",
                [AUDIT_RES_UNKNOWN] = "unknown",
        };
        struct {
                struct nlmsghdr head;
                char text[AUDIT_RECORD_MAX + AUDIT_EXE_MAX + 64];
        } m;
        struct text t;

        text_init(&t, m.text, sizeof(m.text));
        text_add(&t, fields, strlen(fields));
        text_add(&t, k->exe, strlen(k->exe));
        /* Host and terminal are not ours. */
        text_addf(&t, " hostname=? addr=%s terminal=? res=%s", address ? address : "?", words[res]);
        if (t.bad)
                return -EMSGSIZE;
        m.head = (struct nlmsghdr){
                .nlmsg_len = NLMSG_LENGTH((uint32_t)t.len + 1),
                .nlmsg_type = (uint16_t)type,
                .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
                .nlmsg_seq = ++k->seq,
        };
        /* Without an address it goes to the kernel. */
        if (send(k->fd, &m, m.head.nlmsg_len, 0) < 0)
                return -errno;
        return read_ack(k->fd, k->seq);
}

int audit_kernel_send(struct audit_kernel *k, int type, const char *fields, enum audit_res res,
                      const char *address) {
        bool before = strcmp(k->state, "acknowledged") == 0 || strcmp(k->state, "failing") == 0;
        int r;

        if (k->fd < 0)
                return -ENOTCONN;
        r = send_record(k, type, fields, res, address);
        if (r == 0) {
                k->state = "acknowledged";
                k->why[0] = 0;
        } else if (before) {
                k->state = "failing";
                snprintf(k->why, sizeof(k->why), "the last record was not acknowledged: %s",
                         strerror(-r));
        } else if (!have_audit_write()) {
                audit_kernel_no_capability(k);
        } else {
                k->state = "unsupported";
                snprintf(k->why, sizeof(k->why),
                         "the kernel takes no records from here (no audit support, or a user "
                         "namespace): %s",
                         strerror(-r));
        }
        return r;
}

void audit_kernel_encode(struct text *t, const char *name, const void *value, size_t len) {
        static const char digits[] = "0123456789ABCDEF";
        const uint8_t *p = value;

        /* A quote would end msg='…' for some readers; libaudit's own test does not look for it. */
        if (!memchr(value, '\'', len) && !audit_value_needs_encoding(value, (unsigned)len)) {
                text_addf(t, " %s=\"%.*s\"", name, (int)len, (const char *)value);
                return;
        }
        text_addf(t, " %s=", name);
        for (size_t i = 0; i < len; i++)
                text_add(t, (char[]){ digits[p[i] >> 4], digits[p[i] & 15] }, 2);
}
