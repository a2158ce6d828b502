/* The fields of both trails, in their fixed order: docs/audit.md is this file as a table. */
#pragma once

#include "common/escape.h"
#include "manager/audit.h"
#include "manager/audit_command.h"
#include "manager/audit_kernel.h"
#include "manager/audit_state.h"
#include "manager/trail.h"

/* An exec in the form that is kept over its life: strings cut to their slots, ids checked. */
void audit_open_exec_fill(struct audit_open_exec *o, const struct audit_exec *x,
                          const struct audit_command *c);

/* The same from the exec alone, or what an earlier life has kept of it. */
void audit_exec_shown(const struct audit_exec *x, struct audit_open_exec *ret);

/* Bodies of readable lines. */
void audit_line_end(struct text *t, const struct audit_open_exec *o, const struct audit_end *end);
void audit_line_unknown(struct text *t, const struct audit_open_exec *o);
void audit_line_rejected(struct text *t, const struct audit_open_exec *o, const char *reason,
                         uint64_t length);
void audit_line_scrub(struct text *t, const char *container_id, const char *exec_id,
                      const struct scrubbed *s);
/* What has become of a session. */
struct audit_session_event {
        enum { AUDIT_OPENED, AUDIT_STOPPED, AUDIT_STARTED, AUDIT_CLOSED } what;
        const char *reason;            /* of a close */
        uint32_t processes;            /* that a stop has ended */
        const struct audit_caller *by; /* NULL: not known, or nobody */
};
void audit_line_session(struct text *t, const struct audit_session *s,
                        const struct audit_session_event *e);
void audit_line_login(struct text *t, const struct audit_caller *who, const char *address,
                      uint16_t port);
void audit_line_suppressed(struct text *t, uid_t uid, uint64_t requests, uint64_t duration_ms);

/* Fields of kernel records. @stamp is the line that says the same. */
void audit_fields_start(struct text *t, const struct audit_open_exec *o, const struct audit_command *c);
void audit_fields_end(struct text *t, const struct audit_open_exec *o, const struct audit_end *end,
                      const struct trail_stamp *stamp);
void audit_fields_rejected(struct text *t, const struct audit_open_exec *o,
                           const struct audit_command *c, const char *reason, uint64_t length,
                           const struct trail_stamp *stamp);
void audit_fields_scrub_failed(struct text *t, const char *container_id, const char *exec_id,
                               const struct scrubbed *s, const struct trail_stamp *stamp);
void audit_fields_session(struct text *t, const struct audit_session *s,
                          const struct audit_session_event *e, const struct trail_stamp *stamp);
void audit_fields_login(struct text *t, const struct audit_caller *who, uint16_t port,
                        const struct trail_stamp *stamp);
void audit_fields_suppressed(struct text *t, uid_t uid, uint64_t requests, uint64_t duration_ms,
                             const struct trail_stamp *stamp);
void audit_fields_stamp(struct text *t, const struct trail_stamp *stamp);
