/*
 * Two trails of every exec: records in the kernel's audit trail (libaudit) and one line in the readable
 * trail. docs/audit.md has the table of events, record types and fields.
 *
 * The kernel trail first: an exec whose start cannot be recorded, where recording is required, does not
 * run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/errmsg.h"
#include "common/keyfp.h"
#include "common/proto.h"
#include "config/config.h"
#include "manager/tally.h"

struct audit;
struct audit_open_exec; /* audit_state.h */

/* Who asked, as the kernel reports the socket's peer. */
struct audit_caller {
        uid_t uid;
        pid_t pid;
        uint32_t loginuid;      /* UINT32_MAX: unset, or not readable without a race */
        char fp[KEYFP_LEN + 1]; /* of the ssh key that the gateway speaks for (gateway.h); "": none */
};

struct audit_exec {
        const char *exec_id;      /* PROTO_EXEC_ID hex digits */
        const char *container_id; /* NULL or "": none yet */
        const char *profile;
        const char *session; /* NULL or "": one-shot */
        struct audit_caller caller;
        /* the command: the n_args strings, as they stand on the wire (wire_get_str() form) */
        const uint8_t *args_wire;
        size_t args_len;
        uint32_t n_args;
        bool shell; /* one string for sh -c */
        bool files; /* strings for the file tool */
        bool pool_hit;
        bool detached;     /* it may outlive this manager */
        uint64_t begun_us; /* CLOCK_MONOTONIC */
        const struct audit_open_exec
                *open; /* of an earlier life's: what is known of it, in place of all this */
};

struct audit_end {
        enum cause cause;
        int code; /* what the CLI exits with */
        uint64_t wall_us;
        uint64_t lines; /* of stdout */
        bool truncated;
        bool unknown; /* nobody saw the end: res=unknown */
};

/*
 * Opens both trails. *ret is audit_free()d. With audit.required true, or auto where @system (the
 * privileged system service) and the kernel audits, a kernel trail that does not acknowledge a first
 * record is -EPERM or -ENOTCONN with a line in *e; else the kernel trail is off and audit_kernel_state()
 * says why. A readable trail that cannot be opened or written is always an error.
 * @state_file keeps which execs are open, so that audit_recover() can close them.
 */
int audit_new(const struct config *c, bool system, const char *state_file, struct audit **ret,
              struct errmsg *e);
void audit_free(struct audit *a);
/* It is a single user's pair: without CAP_AUDIT_WRITE the kernel trail is unsupported, not disabled. */
void audit_single_user(struct audit *a);

/* "acknowledged", "disabled", "unsupported", …, for status; *ret_why (may be NULL) one line. */
const char *audit_kernel_state(const struct audit *a, const char **ret_why);

/* A new exec id into @id, NUL-terminated: random, never seen before. */
void audit_exec_id(char id[PROTO_EXEC_ID + 1]);

/* Before the command runs. 0, or -errno: the record was not acknowledged although it is required; the
 * command must not run. */
int audit_exec_start(struct audit *a, const struct audit_exec *x);

/* After its end, exactly once for each successful start. -errno as above, for the log. */
int audit_exec_end(struct audit *a, const struct audit_exec *x, const struct audit_end *end);

/* A request that was refused before anything ran: too long (@length > 0: bytes of the command), not
 * allowed, queue full, … @reason is one word such as "too_long", "not_allowed", "queue_full". */
int audit_rejected(struct audit *a, const struct audit_exec *x, const char *reason, uint64_t length);

/* What the proof of a scrub said (@s, the agent's word): a SCRUB line for each; where the sandbox was not
 * proved clean also a TRUSTED_APP record, op=scrub-failed, after it was thrown away. @exec_id is the exec
 * that ran in it last. 0, or -errno as above. */
int audit_scrubbed(struct audit *a, const char *container_id, const char *exec_id,
                   const struct scrubbed *s);

/* A burst of requests of one uid over limits.exec_rate that left no record of their own: one TRUSTED_APP
 * record, op=exec-suppressed, and one SUPPRESSED line with their number and the burst's length. */
int audit_suppressed(struct audit *a, uid_t uid, uint64_t requests, uint64_t duration_ms);

/* A session as the trails show it. */
struct audit_session {
        const char *name;
        const char *container_id; /* "": it never had one */
        const char *profile;
        struct audit_caller owner; /* who opened it */
};

/* A session was opened: one TRUSTED_APP record, op=session-open, and one SESSION-OPEN line. 0, or -errno as of
 * audit_exec_start(): it must not be used. */
int audit_session_opened(struct audit *a, const struct audit_session *s);

/* And closed: op=session-close, SESSION-CLOSE. @reason is one word such as "closed", "idle", "lost"; @by who asked for
 * it, or NULL. 0, or -errno as above, for the log. */
int audit_session_closed(struct audit *a, const struct audit_session *s, const char *reason,
                         const struct audit_caller *by);

/* Stopped, @processes of it ended: op=session-stop, SESSION-STOP; @by NULL: not known any more. And started again:
 * op=session-start, SESSION-START. 0, or -errno as of audit_exec_start(): then it must not be used. */
int audit_session_stopped(struct audit *a, const struct audit_session *s, uint32_t processes,
                          const struct audit_caller *by);
int audit_session_started(struct audit *a, const struct audit_session *s, const struct audit_caller *by);

/* The holder of a key has come by the gateway, from @address and @port: op=ssh-login, SSH-LOGIN. Likewise. */
int audit_ssh_login(struct audit *a, const struct audit_caller *who, const char *address, uint16_t port);

/* Pool start and stop: TRUSTED_APP records and POOL-START / POOL-STOP lines. */
int audit_pool(struct audit *a, bool start, unsigned containers);

/* Writes the missing end records (res=unknown) of execs that an earlier life left open, but for those of which @keep
 * (NULL: none) says true: they stay open. 0 or -errno. */
int audit_recover(struct audit *a, bool (*keep)(void *userdata, const struct audit_open_exec *o),
                  void *userdata);
/* The first open exec at or behind number @*i: fills *ret and sets *i to its number; false: none is left. */
bool audit_open_next(struct audit *a, size_t *i, struct audit_open_exec *ret);
/* Nobody will see the end of one that is open: records that. 0, or -errno as above. */
int audit_exec_unknown(struct audit *a, const struct audit_open_exec *o);

/* Records and lines written since the start, and what they were of: refusals and ends of sessions by reason. */
struct audit_counts {
        uint64_t kernel_records, trail_lines, failures;
        uint64_t opened; /* sessions */
        struct tally rejected, closed;
};
void audit_counts(const struct audit *a, struct audit_counts *ret);
