/* What happened, to those who ask: the kernel's audit trail, syslog, the caller's terminal. */
#include <errno.h>
#include <libaudit.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "helper/helper.h"

void report_begin(struct report *r, const struct helper *h, uid_t caller) {
        set_aumessage_mode(MSG_QUIET, DBG_NO); /* else libaudit prints errors of its own */
        *r = (struct report){ .h = h, .caller = caller, .audit_fd = audit_open() };
        if (r->audit_fd < 0)
                r->audit_fd = -errno;
}

/* The kernel adds the login uid. Its uid is 0 by now, so the caller's stands in the text: as uid=, where ausearch -ui
 * looks, and as ruid=, as ausearch -i shows the name of the first uid= for the second.
 * Nobody keeps records where there is no audit socket, where it answers to nobody (0, by libaudit: auditing is off
 * since boot, or a user namespace), or without CAP_AUDIT_WRITE, which a container can take from a setuid program and
 * a caller cannot. */
int report_record(const struct report *r, const char *op, const char *reason, bool success) {
        char text[256];
        int n;

        if (r->audit_fd == -EINVAL || r->audit_fd == -EPROTONOSUPPORT || r->audit_fd == -EAFNOSUPPORT)
                return 0;
        if (r->audit_fd < 0)
                return r->audit_fd;
        snprintf(text, sizeof(text), "op=%s acct=\"%s\" grp=\"%s\" uid=%u ruid=%u reason=%s", op,
                 r->h->account, r->h->group, (unsigned)r->caller, (unsigned)r->caller, reason);
        errno = 0;
        n = audit_log_user_message(r->audit_fd, AUDIT_GRP_MGMT, text, "?", "?", "?", success);
        if (n >= 0)
                return n > 0;
        if (errno == EPERM && !privs_have(CAP_AUDIT_WRITE))
                return 0;
        return errno > 0 ? -errno : -EPERM;
}

/* Not syslog(), which waits for ever for a daemon that does not read. Where there is none, the trail has to do. */
static void to_syslog(const struct report *r, int priority, const char *text) {
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        snprintf(to.sun_path, sizeof(to.sun_path), "%s", r->h->log_socket);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ .tv_sec = 1 },
                   sizeof(struct timeval));
        if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
                dprintf(fd, "<%d>hermes-docker-enable[%d]: uid %u: %s", LOG_AUTHPRIV | priority,
                        (int)getpid(), (unsigned)r->caller, text);
        close(fd);
}

int report_end(const struct report *r, int code, const char *reason, const char *fmt, ...) {
        struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (report_record(r, "docker-enable", reason, code == EX_OK) < 0) {
                strncat(text, " (the kernel refused the audit record)", sizeof(text) - strlen(text) - 1);
                code = code == EX_OK ? EX_OSERR : code;
        }
        to_syslog(r, code == EX_OK ? LOG_NOTICE : LOG_WARNING, text);
        if (poll(&err, 1, 1000) == 1) /* it may be a full pipe */
                dprintf(STDERR_FILENO, "hermes-docker-enable: %s\n", text);
        return code;
}
