/* The kernel's audit trail by libaudit: its state, its rules, and one record. */
#include "cli/doctor/probe.h"

#include <errno.h>
#include <libaudit.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

/* The next reply to what was asked. 0, or -errno. */
static int next_reply(int fd, int64_t end_ms, struct audit_reply *ret) {
        for (;;) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                int64_t left = end_ms - doctor_now_ms();
                int r;

                if (left <= 0 || poll(&p, 1, (int)left) == 0)
                        return -ETIMEDOUT;
                r = audit_get_reply(fd, ret, GET_REPLY_NONBLOCKING, 0);
                if (r == -EAGAIN || r == -EINTR)
                        continue;
                if (r <= 0)
                        return r < 0 ? r : -EPROTO;
                if (ret->type != NLMSG_ERROR)
                        return 0;
                /* 0 acknowledges, and the answer comes behind it. */
                if (ret->error && ret->error->error < 0)
                        return ret->error->error;
        }
}

static bool same_key(const char *s, size_t len, const char *key) {
        return len == strlen(key) && memcmp(s, key, len) == 0;
}

/* The keys of one rule: the strings of its fields stand one behind the other in its buffer. */
static void count_rule(const struct audit_rule_data *rule, struct doctor_audit *ret) {
        size_t at = 0;

        for (uint32_t i = 0; i < rule->field_count && i < AUDIT_MAX_FIELDS; i++) {
                const char *s = rule->buf + at;
                size_t len = rule->values[i];

                switch (rule->fields[i] & ~(uint32_t)AUDIT_OPERATORS) {
                case AUDIT_FILTERKEY:
                        if (len > rule->buflen - at)
                                return;
                        ret->n_helper += same_key(s, len, "hermes-helper");
                        ret->n_socket += same_key(s, len, "hermes-docker-sock");
                        ret->n_config += same_key(s, len, "hermes-config");
                        at += len;
                        break;
                case AUDIT_SUBJ_USER:
                case AUDIT_SUBJ_ROLE:
                case AUDIT_SUBJ_TYPE:
                case AUDIT_SUBJ_SEN:
                case AUDIT_SUBJ_CLR:
                case AUDIT_OBJ_USER:
                case AUDIT_OBJ_ROLE:
                case AUDIT_OBJ_TYPE:
                case AUDIT_OBJ_LEV_LOW:
                case AUDIT_OBJ_LEV_HIGH:
                case AUDIT_WATCH:
                case AUDIT_DIR:
                case AUDIT_EXE:
                        if (len > rule->buflen - at)
                                return;
                        at += len;
                        break;
                default:
                        break;
                }
        }
}

static int read_state(int fd, int64_t end_ms, struct doctor_audit *ret, struct errmsg *e) {
        struct audit_reply reply;
        int r = audit_request_status(fd);

        if (r > 0)
                do
                        r = next_reply(fd, end_ms, &reply);
                while (r == 0 && reply.type != AUDIT_GET);
        if (r < 0)
                return errmsg_set(e, r, "the kernel does not tell the state of its audit: %s",
                                  strerror(-r));
        *ret = (struct doctor_audit){ .enabled = reply.status->enabled != 0, .pid = reply.status->pid };
        r = audit_request_rules_list_data(fd);
        while (r >= 0) {
                r = next_reply(fd, end_ms, &reply);
                if (r == 0 && reply.type == NLMSG_DONE)
                        return 0;
                if (r == 0 && reply.type == AUDIT_LIST_RULES)
                        count_rule(reply.ruledata, ret);
        }
        return errmsg_set(e, r, "the kernel does not tell its audit rules: %s", strerror(-r));
}

static int open_audit(struct errmsg *e) {
        int fd;

        /* Without it libaudit prints its own errors. */
        set_aumessage_mode(MSG_QUIET, DBG_NO);
        fd = audit_open();
        if (fd < 0)
                return errmsg_set(e, -errno, "no audit socket, so this kernel has no audit: %s",
                                  strerror(errno));
        return fd;
}

int probe_audit_state(int64_t end_ms, struct doctor_audit *ret, struct errmsg *e) {
        _cleanup_fd_ int fd = open_audit(e);

        return fd < 0 ? fd : read_state(fd, end_ms, ret, e);
}

int probe_audit_write(const char *fields, struct errmsg *e) {
        _cleanup_fd_ int fd = open_audit(e);
        int r;

        if (fd < 0)
                return fd;
        r = audit_log_user_message(fd, AUDIT_TRUSTED_APP, fields, NULL, NULL, NULL, 1);
        if (r <= 0)
                return errmsg_set(e, r < 0 ? r : -EPERM, "the kernel takes no audit record: %s",
                                  strerror(r < 0 ? -r : EPERM));
        return 0;
}
