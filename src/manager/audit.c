/*
 * The order of things is what makes the trails complete. Before a command: the slot in the state file,
 * then the kernel's start record. After it: the readable line, then the kernel's end record, which names
 * that line's number and hash, then the slot is freed. Wherever a SIGKILL falls, the next life finds the
 * slot and closes what is open; at worst an end stands twice, never none.
 */
#include "manager/audit.h"

#include <errno.h>
#include <libaudit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/escape.h"
#include "manager/audit_command.h"
#include "manager/audit_kernel.h"
#include "manager/audit_line.h"
#include "manager/audit_state.h"
#include "manager/trail.h"

struct audit {
        struct audit_kernel kernel;
        struct trail *trail;
        struct audit_state *state;
        bool required;
        struct audit_counts counts;
};

/* 0 where the record is acknowledged or may be missing; *ret_acked (may be NULL) tells which. */
static int kernel_record_from(struct audit *a, int type, const struct text *fields, enum audit_res res,
                              const char *address, bool *ret_acked) {
        int r = fields->bad ? -EMSGSIZE : audit_kernel_send(&a->kernel, type, fields->p, res, address);

        if (ret_acked)
                *ret_acked = r == 0;
        if (r == 0)
                a->counts.kernel_records++;
        else if (a->required)
                a->counts.failures++;
        return a->required ? r : 0;
}

static int kernel_record(struct audit *a, int type, const struct text *fields, enum audit_res res,
                         bool *ret_acked) {
        return kernel_record_from(a, type, fields, res, NULL, ret_acked);
}

static int trail_line(struct audit *a, const struct text *body, struct trail_stamp *ret_stamp) {
        int r = body->bad ? -EMSGSIZE : trail_write(a->trail, body->p, ret_stamp);

        if (body->bad)
                *ret_stamp = (struct trail_stamp){ 0 };
        if (r < 0)
                a->counts.failures++;
        return r;
}

/* The first record of this life says where the readable trail ends: what is cut off behind it later, or
 * was before, shows. Its acknowledgement decides whether the kernel trail can be had. */
static int open_kernel(struct audit *a, enum tristate required, bool system, struct errmsg *e) {
        char buf[AUDIT_RECORD_MAX];
        struct trail_stamp tip;
        struct text fields;
        int r;

        audit_kernel_init(&a->kernel);
        trail_tip(a->trail, &tip);
        text_init(&fields, buf, sizeof(buf));
        text_addf(&fields, "op=trail-open");
        audit_fields_stamp(&fields, &tip);
        r = audit_kernel_send(&a->kernel, AUDIT_TRUSTED_APP, fields.p, AUDIT_RES_SUCCESS, NULL);
        if (r == 0)
                a->counts.kernel_records++;
        a->required = required == TRI_TRUE || (required == TRI_AUTO && system && r == 0);
        if (r < 0 && required == TRI_TRUE)
                return errmsg_set(e, r == -ENOTCONN ? -ENOTCONN : -EPERM,
                                  "audit.required is true and the kernel audit trail is %s: %s",
                                  a->kernel.state, a->kernel.why);
        return 0;
}

int audit_new(const struct config *c, bool system, const char *state_file, struct audit **ret,
              struct errmsg *e) {
        struct audit *a = calloc(1, sizeof(*a));
        int r;

        if (!a)
                return errmsg_set(e, -ENOMEM, "audit: out of memory");
        a->kernel.fd = -1;
        r = audit_state_open(state_file, &a->state, e);
        if (r == 0)
                r = trail_open(c->audit_file, c->log_backup_count, c->log_max_bytes, &a->trail, e);
        if (r == 0)
                r = open_kernel(a, c->audit_required, system, e);
        if (r < 0) {
                audit_free(a);
                return r;
        }
        *ret = a;
        return 0;
}

void audit_single_user(struct audit *a) {
        a->kernel.single_user = true;
        if (strcmp(a->kernel.state, "disabled") == 0)
                audit_kernel_no_capability(&a->kernel);
}

void audit_free(struct audit *a) {
        if (!a)
                return;
        audit_kernel_done(&a->kernel);
        trail_free(a->trail);
        audit_state_free(a->state);
        free(a);
}

const char *audit_kernel_state(const struct audit *a, const char **ret_why) {
        if (ret_why)
                *ret_why = a->kernel.why;
        return a->kernel.state;
}

void audit_exec_id(char id[PROTO_EXEC_ID + 1]) {
        static const char digits[] = "0123456789abcdef";
        uint8_t raw[PROTO_EXEC_ID / 2];
        ssize_t n;

        do
                n = getrandom(raw, sizeof(raw), 0);
        while (n < 0 && errno == EINTR);
        /* Without random numbers two execs could get one id: nothing may run then. */
        if (n != sizeof(raw))
                abort();
        for (size_t i = 0; i < sizeof(raw); i++) {
                id[2 * i] = digits[raw[i] >> 4];
                id[2 * i + 1] = digits[raw[i] & 15];
        }
        id[PROTO_EXEC_ID] = 0;
}

int audit_exec_start(struct audit *a, const struct audit_exec *x) {
        char buf[AUDIT_RECORD_MAX];
        struct audit_open_exec o;
        struct audit_command c;
        struct text fields;
        int r;

        audit_command_read(&c, x->args_wire, x->args_len, x->n_args, x->shell, x->files);
        audit_open_exec_fill(&o, x, &c);
        /* A trail that lost its last lines takes no new exec until it can be written again. */
        r = trail_ready(a->trail);
        if (r == 0)
                r = audit_state_add(a->state, &o);
        if (r < 0) {
                a->counts.failures++;
                return r;
        }
        text_init(&fields, buf, sizeof(buf));
        audit_fields_start(&fields, &o, &c);
        r = kernel_record(a, AUDIT_USER_CMD, &fields, AUDIT_RES_SUCCESS, NULL);
        if (r < 0)
                audit_state_remove(a->state, o.exec_id);
        return r;
}

/* Line, then record. *ret_recorded: at least one of the two trails has it. Returns the first error. */
static int record_end(struct audit *a, const struct audit_open_exec *o, const struct audit_end *end,
                      bool *ret_recorded) {
        char buf[AUDIT_RECORD_MAX];
        enum audit_res res = AUDIT_RES_FAILED;
        struct trail_stamp stamp;
        struct text t;
        bool acked;
        int r, k;

        text_init(&t, buf, sizeof(buf));
        audit_line_end(&t, o, end);
        r = trail_line(a, &t, &stamp);

        if (end->unknown)
                res = AUDIT_RES_UNKNOWN;
        else if (end->cause == CAUSE_EXITED && end->code == 0)
                res = AUDIT_RES_SUCCESS;
        text_init(&t, buf, sizeof(buf));
        audit_fields_end(&t, o, end, &stamp);
        k = kernel_record(a, AUDIT_USER_CMD, &t, res, &acked);
        *ret_recorded = r == 0 || acked;
        return r < 0 ? r : k;
}

int audit_exec_end(struct audit *a, const struct audit_exec *x, const struct audit_end *end) {
        struct audit_open_exec o;
        bool recorded;
        int r, s;

        audit_exec_shown(x, &o);
        r = record_end(a, &o, end, &recorded);
        /* An end that stands nowhere stays open: the next life writes what is known of it. */
        if (!recorded)
                return r;
        s = audit_state_remove(a->state, o.exec_id);
        if (s < 0)
                a->counts.failures++;
        return r < 0 ? r : s;
}

void audit_exec_shown(const struct audit_exec *x, struct audit_open_exec *ret) {
        struct audit_command c;

        if (x->open) {
                *ret = *x->open;
                return;
        }
        audit_command_read(&c, x->args_wire, x->args_len, x->n_args, x->shell, x->files);
        audit_open_exec_fill(ret, x, &c);
}

int audit_rejected(struct audit *a, const struct audit_exec *x, const char *reason, uint64_t length) {
        char buf[AUDIT_RECORD_MAX];
        struct trail_stamp stamp;
        struct audit_open_exec o;
        struct audit_command c;
        struct text t;
        int r, k;

        tally_add(&a->counts.rejected, reason, 1);
        audit_command_read(&c, x->args_wire, x->args_len, x->n_args, x->shell, x->files);
        audit_open_exec_fill(&o, x, &c);
        text_init(&t, buf, sizeof(buf));
        audit_line_rejected(&t, &o, reason, length);
        r = trail_line(a, &t, &stamp);
        text_init(&t, buf, sizeof(buf));
        audit_fields_rejected(&t, &o, &c, reason, length, &stamp);
        k = kernel_record(a, AUDIT_TRUSTED_APP, &t, AUDIT_RES_FAILED, NULL);
        return r < 0 ? r : k;
}

int audit_scrubbed(struct audit *a, const char *container_id, const char *exec_id,
                   const struct scrubbed *s) {
        char buf[AUDIT_RECORD_MAX];
        struct trail_stamp stamp;
        struct text t;
        int r, k;

        text_init(&t, buf, sizeof(buf));
        audit_line_scrub(&t, container_id, exec_id, s);
        r = trail_line(a, &t, &stamp);
        if (s->check == SCRUB_CLEAN)
                return r;
        text_init(&t, buf, sizeof(buf));
        audit_fields_scrub_failed(&t, container_id, exec_id, s, &stamp);
        k = kernel_record(a, AUDIT_TRUSTED_APP, &t, AUDIT_RES_FAILED, NULL);
        return r < 0 ? r : k;
}

int audit_suppressed(struct audit *a, uid_t uid, uint64_t requests, uint64_t duration_ms) {
        char buf[AUDIT_RECORD_MAX];
        struct trail_stamp stamp;
        struct text t;
        int r, k;

        text_init(&t, buf, sizeof(buf));
        audit_line_suppressed(&t, uid, requests, duration_ms);
        r = trail_line(a, &t, &stamp);
        text_init(&t, buf, sizeof(buf));
        audit_fields_suppressed(&t, uid, requests, duration_ms, &stamp);
        k = kernel_record(a, AUDIT_TRUSTED_APP, &t, AUDIT_RES_FAILED, NULL);
        return r < 0 ? r : k;
}

static int session_event(struct audit *a, const struct audit_session *s,
                         const struct audit_session_event *e, enum audit_res res) {
        char buf[AUDIT_RECORD_MAX];
        struct trail_stamp stamp;
        struct text t;
        int r, k;

        text_init(&t, buf, sizeof(buf));
        audit_line_session(&t, s, e);
        r = trail_line(a, &t, &stamp);
        text_init(&t, buf, sizeof(buf));
        audit_fields_session(&t, s, e, &stamp);
        k = kernel_record(a, AUDIT_TRUSTED_APP, &t, res, NULL);
        return r < 0 ? r : k;
}

/* One whose loss is noticed before anything follows from it. */
static int session_begins(struct audit *a, const struct audit_session *s,
                          const struct audit_session_event *e) {
        int r = trail_ready(a->trail);

        if (r < 0) {
                a->counts.failures++;
                return r;
        }
        return session_event(a, s, e, AUDIT_RES_SUCCESS);
}

int audit_session_opened(struct audit *a, const struct audit_session *s) {
        int r = session_begins(a, s, &(struct audit_session_event){ .what = AUDIT_OPENED });

        a->counts.opened += r == 0;
        return r;
}

int audit_session_started(struct audit *a, const struct audit_session *s,
                          const struct audit_caller *by) {
        return session_begins(a, s, &(struct audit_session_event){ .what = AUDIT_STARTED, .by = by });
}

int audit_session_stopped(struct audit *a, const struct audit_session *s, uint32_t processes,
                          const struct audit_caller *by) {
        const struct audit_session_event e = { .what = AUDIT_STOPPED, .processes = processes, .by = by };

        return session_event(a, s, &e, AUDIT_RES_SUCCESS);
}

int audit_session_closed(struct audit *a, const struct audit_session *s, const char *reason,
                         const struct audit_caller *by) {
        const struct audit_session_event e = { .what = AUDIT_CLOSED, .reason = reason, .by = by };

        tally_add(&a->counts.closed, reason, 1);
        return session_event(a, s, &e,
                             strcmp(reason, "lost") == 0 ? AUDIT_RES_FAILED : AUDIT_RES_SUCCESS);
}

int audit_ssh_login(struct audit *a, const struct audit_caller *who, const char *address,
                    uint16_t port) {
        char buf[AUDIT_RECORD_MAX];
        struct trail_stamp stamp;
        struct text t;
        int r = trail_ready(a->trail), k;

        if (r < 0) {
                a->counts.failures++;
                return r;
        }
        text_init(&t, buf, sizeof(buf));
        audit_line_login(&t, who, address, port);
        r = trail_line(a, &t, &stamp);
        text_init(&t, buf, sizeof(buf));
        audit_fields_login(&t, who, port, &stamp);
        k = kernel_record_from(a, AUDIT_TRUSTED_APP, &t, AUDIT_RES_SUCCESS, address, NULL);
        return r < 0 ? r : k;
}

int audit_pool(struct audit *a, bool start, unsigned containers) {
        char buf[AUDIT_RECORD_MAX];
        struct trail_stamp stamp;
        struct text t;
        int r, k;

        text_init(&t, buf, sizeof(buf));
        text_addf(&t, "%s containers=%u", start ? "POOL-START" : "POOL-STOP", containers);
        r = trail_line(a, &t, &stamp);
        text_init(&t, buf, sizeof(buf));
        text_addf(&t, "op=%s containers=%u", start ? "pool-start" : "pool-stop", containers);
        audit_fields_stamp(&t, &stamp);
        k = kernel_record(a, AUDIT_TRUSTED_APP, &t, AUDIT_RES_SUCCESS, NULL);
        return r < 0 ? r : k;
}

bool audit_open_next(struct audit *a, size_t *i, struct audit_open_exec *ret) {
        return audit_state_next(a->state, i, ret);
}

int audit_recover(struct audit *a, bool (*keep)(void *userdata, const struct audit_open_exec *o),
                  void *userdata) {
        const struct audit_end end = { .unknown = true };
        struct audit_open_exec o;
        bool recorded;

        for (size_t i = 0; audit_state_next(a->state, &i, &o); i++) {
                int r;

                if (keep && keep(userdata, &o))
                        continue;
                r = record_end(a, &o, &end, &recorded);
                if (r < 0)
                        return r;
                audit_state_clear(a->state, i);
        }
        return 0;
}

int audit_exec_unknown(struct audit *a, const struct audit_open_exec *o) {
        const struct audit_end end = { .unknown = true };
        bool recorded;
        int r = record_end(a, o, &end, &recorded);

        if (recorded)
                audit_state_remove(a->state, o->exec_id);
        return r;
}

void audit_counts(const struct audit *a, struct audit_counts *ret) {
        *ret = a->counts;
        ret->trail_lines = trail_lines(a->trail);
}
