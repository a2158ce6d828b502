/*
 * hermes-docker-enable, the one program of ours that a caller can make run as root: it puts one account into one
 * group, by shadow's own tool. Nothing comes from its caller: no argument, no variable, no descriptor, no limit.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <sysexits.h> /* what it exits with; hermes-docker-enable(8) says when */

#define ACCOUNT "_hermes-engine" /* becomes a member of: */
#define GROUP "docker"

/* What tests fill in otherwise. */
struct helper {
        const char *etc;                     /* the folder of group, gshadow and passwd */
        const char *tool, *const *tool_argv; /* which shadow's tool changes */
        const char *log_socket;              /* syslog's */
        uid_t caller;                        /* the real uid that called */
};

/* Shakes off what a caller can hand down. Exits with EX_OSERR where it cannot. */
void privs_prologue(void);
/* Every id becomes 0, every group goes; CAP_CHOWN stays and, where it is held, CAP_AUDIT_WRITE. What is executed later
 * gets CAP_CHOWN at most. False: something is missing, was left, or could be had again. */
bool privs_drop(void);

enum { ACCOUNTS_NONE, ACCOUNTS_THERE, ACCOUNTS_MEMBER };

/* Looks for the first line of @entry in the file @path (group, gshadow, passwd), and for @member (or NULL) in its
 * fourth field. ACCOUNTS_*; NONE, too, if there is no such file; -EPERM: it is no plain file of @owner, or others may
 * write it; -EBADMSG: @ret_gid (or NULL), the third field, is no gid; or -errno of reading it. */
int accounts_look(const char *path, uid_t owner, const char *entry, const char *member, gid_t *ret_gid);
/* Runs the tool, unlocks what a killed one has locked, and returns its status as wait(2) has it: exit status 127 is
 * "cannot be executed". -EBUSY: it could not lock the files (its 1 or 10, usermod(8)); -ETIME: it was killed after @ms
 * milliseconds; or -errno. */
int accounts_change(const struct helper *h, int ms);

/* A record in the kernel's trail; @reason is one word. False: it was refused. True, too, where nobody keeps records. */
bool report_record(const struct helper *h, const char *op, const char *reason, bool success);
/* The result's record, and one line to syslog and stderr. Returns @code, or EX_OSERR for a success whose record was
 * refused. */
__attribute__((format(printf, 4, 5))) int report(const struct helper *h, int code, const char *reason,
                                                 const char *fmt, ...);
