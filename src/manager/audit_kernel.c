/*
 * One netlink socket for the life of the manager. Each record waits for the kernel's acknowledgement,
 * which comes back within the same system call's work: there is nothing to queue and nothing to lose.
 *
 * libaudit's calls know two results, success and failed. The end of an exec that nobody saw has neither,
 * so that one record (res=unknown) is put on libaudit's socket by hand, in the same form.
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
        /* Without it libaudit prints its own errors to stderr, or to syslog. */
        set_aumessage_mode(MSG_QUIET, DBG_NO);
        set_state(k, "unknown", "no record was sent yet");
        k->fd = audit_open();
        if (k->fd < 0)
                snprintf(k->why, sizeof(k->why), "no audit socket: %s", strerror(errno));
        if (k->fd < 0)
                k->state = "unsupported";
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

static int read_ack(int fd, uint32_t seq) {
        struct {
                struct nlmsghdr head;
                struct nlmsgerr err;
                char echo[NLMSG_SPACE(AUDIT_RECORD_MAX)];
        } answer;
        struct pollfd p = { .fd = fd, .events = POLLIN };

        for (;;) {
                ssize_t n;
                int r = poll(&p, 1, ACK_TIMEOUT_MS);

                if (r < 0 && errno == EINTR)
                        continue;
                if (r <= 0)
                        return r < 0 ? -errno : -ETIMEDOUT;
                n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
                if (n < 0 && (errno == EINTR || errno == EAGAIN))
                        continue;
                if (n < 0)
                        return -errno;
                if ((size_t)n < sizeof(answer.head) + sizeof(answer.err) ||
                    answer.head.nlmsg_seq != seq || answer.head.nlmsg_type != NLMSG_ERROR)
                        continue;
                return answer.err.error;
        }
}

static int send_unknown(struct audit_kernel *k, int type, const char *fields) {
        static uint32_t seq = 0x40000000; /* apart from libaudit's own count */
        struct {
                struct nlmsghdr head;
                char text[AUDIT_RECORD_MAX];
        } m = { 0 };
        struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
        char exe[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe));
        struct text t;

        text_init(&t, m.text, sizeof(m.text));
        text_addf(&t, "%s", fields);
        if (n > 0)
                audit_kernel_encode(&t, "exe", exe, (size_t)n);
        text_addf(&t, " hostname=? addr=? terminal=? res=unknown");
        if (t.bad)
                return -EMSGSIZE;
        m.head.nlmsg_len = NLMSG_LENGTH((uint32_t)t.len + 1);
        m.head.nlmsg_type = (uint16_t)type;
        m.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
        m.head.nlmsg_seq = ++seq;
        if (sendto(k->fd, &m, m.head.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
                return -errno;
        return read_ack(k->fd, seq);
}

static int send_record(struct audit_kernel *k, int type, const char *fields, enum audit_res res) {
        int r;

        if (res == AUDIT_RES_UNKNOWN)
                return send_unknown(k, type, fields);
        errno = 0;
        /* Host, address and terminal are not ours: "?" spares libaudit the search for them. */
        r = audit_log_user_message(k->fd, type, fields, "?", "?", "?", res);
        if (r > 0)
                return 0;
        return r < 0 && errno > 0 ? -errno : -EPERM;
}

int audit_kernel_send(struct audit_kernel *k, int type, const char *fields, enum audit_res res) {
        bool before = strcmp(k->state, "acknowledged") == 0 || strcmp(k->state, "failing") == 0;
        int r;

        if (k->fd < 0)
                return -ENOTCONN;
        r = send_record(k, type, fields, res);
        if (r == 0) {
                k->state = "acknowledged";
                k->why[0] = 0;
        } else if (before) {
                k->state = "failing";
                snprintf(k->why, sizeof(k->why), "the last record was not acknowledged: %s",
                         strerror(-r));
        } else if (!have_audit_write()) {
                set_state(k, "disabled", "this process has no CAP_AUDIT_WRITE");
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
