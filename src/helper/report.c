/* What happened, to those who ask: the kernel's audit trail, syslog, the caller's terminal. */
#include <errno.h>
#include <libaudit.h>
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

/* The kernel adds the login uid. Its uid is 0 by now, so the caller's stands in the text: as uid=, where ausearch -ui
 * looks, and as ruid=, as ausearch -i shows the name of the first uid= for the second.
 * Nobody keeps records where there is no audit socket, and where libaudit says 0: it answers to nobody (auditing is
 * off since boot, or a user namespace), or we lack CAP_AUDIT_WRITE, which a container can take from a setuid program
 * and a caller cannot. */
bool report_record(const struct helper *h, const char *op, const char *reason, bool success) {
        char text[256];
        int fd, r;

        set_aumessage_mode(MSG_QUIET, DBG_NO); /* else libaudit prints errors of its own */
        fd = audit_open();
        if (fd < 0)
                return errno == EINVAL || errno == EPROTONOSUPPORT || errno == EAFNOSUPPORT;
        snprintf(text, sizeof(text),
                 "op=%s acct=\"" ACCOUNT "\" grp=\"" GROUP "\" uid=%u ruid=%u reason=%s", op,
                 (unsigned)h->caller, (unsigned)h->caller, reason);
        r = audit_log_user_message(fd, AUDIT_GRP_MGMT, text, "?", "?", "?", success);
        audit_close(fd);
        return r >= 0;
}

int report(const struct helper *h, int code, const char *reason, const char *fmt, ...) {
        struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (!report_record(h, "docker-enable", reason, code == EX_OK)) {
                strncat(text, " (the kernel refused the audit record)", sizeof(text) - strlen(text) - 1);
                code = code == EX_OK ? EX_OSERR : code;
        }
        /* Not syslog(3), which waits for ever for a daemon that does not read. Where there is none, the trail has
         * to do. */
        snprintf(to.sun_path, sizeof(to.sun_path), "%s", h->log_socket);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ .tv_sec = 1 },
                   sizeof(struct timeval));
        if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
                dprintf(fd, "<%d>hermes-docker-enable[%d]: uid %u: %s",
                        LOG_AUTHPRIV | (code == EX_OK ? LOG_NOTICE : LOG_WARNING), (int)getpid(),
                        (unsigned)h->caller, text);
        close(fd);
        if (poll(&err, 1, 1000) == 1) /* it may be a full pipe */
                dprintf(STDERR_FILENO, "hermes-docker-enable: %s\n", text);
        return code;
}
