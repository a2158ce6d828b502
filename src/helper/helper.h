/*
 * hermes-docker-enable, the one program of ours that a caller can make run as root: it puts one account into one
 * group, by shadow's own tool. Nothing comes from its caller: no argument, no variable, no descriptor, no limit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sysexits.h> /* what it exits with; hermes-docker-enable(8) says when */

/* Every constant. main() fills it, tests fill it otherwise. All that it points to stays the caller's. */
struct helper {
        const char *caller_group;                  /* whose members may call, beside root */
        const char *account, *group;               /* who becomes a member of what */
        const char *etc;                           /* the folder of group, gshadow and passwd */
        uid_t owner;                               /* whose these files must be */
        const char *tool;                          /* shadow's tool */
        const char *const *tool_argv, *const *env; /* its arguments; its environment and ours */
        const char *log_socket;                    /* syslog's */
        int deadline_ms;                           /* from the start until the tool is killed */
        int retry_ms;           /* the pause after a run that found the files locked */
        unsigned last_resort_s; /* when the whole program ends, whatever it waits for */
};

/* prologue.c: shakes off what a caller can hand down. Exits with EX_OSERR where it cannot. */
void helper_prologue(const struct helper *h);

/* helper.c: all the rest. Returns what the program exits with. */
int helper_run(const struct helper *h, int argc);

/* privs.c */

/* Every uid and gid becomes 0, every other group goes. 0, -errno. */
int privs_become_root(void);
/* Keeps CAP_CHOWN and, where it is held, CAP_AUDIT_WRITE; what is executed later gets CAP_CHOWN at most, for ever.
 * Reads it all back from the kernel. 0; -EPERM: something is missing, was left, or could be had again. */
int privs_drop(void);
/* Whether @cap is a permitted one now. */
bool privs_have(unsigned cap);

/* accounts.c */

enum { ACCOUNTS_NONE, ACCOUNTS_THERE, ACCOUNTS_MEMBER };

/* Looks for the first line of @entry in @file (group, gshadow, passwd) of the open folder @etc, and for @member (or
 * NULL) in its fourth field. ACCOUNTS_*; -ENOENT: no such file; -EPERM: it is no plain file of @owner, or others
 * may write it; -EBADMSG: @ret_gid (or NULL), the third field, is no gid; or -errno of reading it. */
int accounts_look(int etc, const char *file, uid_t owner, const char *entry, const char *member,
                  gid_t *ret_gid);

/* tool.c */

/* Milliseconds on a clock that nobody sets. */
int64_t tool_clock_ms(void);
/* Runs the tool until @until on that clock, unlocks what a killed one has locked in the folder @etc, and returns its
 * status as wait(2) has it: exit status 127 is "cannot be executed". -ETIME: it was killed at @until. -errno. */
int tool_run(const struct helper *h, int etc, int64_t until);

/* report.c */

struct report {
        const struct helper *h;
        uid_t caller; /* the real uid that called */
        int audit_fd; /* or -errno */
};

void report_begin(struct report *r, const struct helper *h, uid_t caller);
/* A record in the kernel's trail; @reason is one word. 1: acknowledged; 0: nobody keeps records of this process;
 * -errno: it was refused. */
int report_record(const struct report *r, const char *op, const char *reason, bool success);
/* The result's record, and one line to syslog and stderr. Returns @code, or EX_OSERR for a success whose record
 * was refused. */
__attribute__((format(printf, 4, 5))) int report_end(const struct report *r, int code,
                                                     const char *reason, const char *fmt, ...);
