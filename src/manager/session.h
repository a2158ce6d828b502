/*
 * Sessions: sandboxes that are leased under a name to the user who opened them, for as long as they are used.
 *
 *     session.c        names, owners, quotas; opening, idling, closing
 *     session_exec.c   the commands in them
 *     session_state.c  what is kept of each in a file, for the next manager
 *     session_list.c   what is shown of them
 *     mounted.c        those with host folders in them
 *     detached.c       commands in them that nobody waits for
 *     adopt.c          the sessions of an earlier life
 *
 *     OPENING   somebody waits for its sandbox, in the pool's queue, or until it is made
 *     ADOPTING  an earlier manager has opened it, its agent has not said yet what runs there
 *     OPEN      it has one, its lease is in its file and in both trails
 *     CLOSED    the struct goes
 *
 * Nobody hears of a session before its file is written whole. What asks for a session that is not open yet waits
 * in it, and begins or is refused with it.
 */
#pragma once

#include <stdio.h>

#include "manager/audit_state.h"
#include "manager/exec.h"

/* Commands that run in one at once, and who attaches to them. */
#define SESSION_EXECS_MAX 96
#define SESSION_ATTACHES_MAX 32
/* The ends of detached commands that are kept. */
#define SESSION_ENDED_MAX 32
#define SESSION_BUCKETS 64

enum session_state { SESSION_OPENING, SESSION_OPEN, SESSION_CLOSED, SESSION_ADOPTING, SESSION_STATES };

/* A detached command that has ended. */
struct ended {
        TAILQ_ENTRY(ended) link;
        char id[PROTO_EXEC_ID + 1];
        uint32_t channel;
        struct exited exited; /* as the agent said */
        struct result result; /* as it was judged; its strings are not there */
        uint64_t begun_us;
        uint16_t command_len;
        uint64_t command_total;
        uint8_t command[AUDIT_STATE_COMMAND];
};

struct session {
        TAILQ_ENTRY(session) link;
        struct manager *m;
        struct waiter waiter; /* while it is being opened */
        enum session_state state;
        char name[PROTO_NAME_MAX + 1];
        struct audit_caller owner; /* who opened it */
        gid_t gid;
        struct pool *pool;
        struct sandbox *sandbox; /* NULL until it has one */
        char container[ENGINE_ID_LEN + 1];
        uint64_t ttl_ms;       /* 0: for ever */
        uint64_t opened;       /* seconds since 1970 */
        uint64_t idle_ms;      /* now_ms() when the last command in it ended */
        bool mounts;           /* host folders are in it */
        int mount_fd;          /* on which they were written, until the broker has it; -1 */
        struct making *making; /* while its sandbox is made for it alone (mounted.c) */
        char **labels;         /* "KEY=VALUE" */
        uint32_t n_labels;

        struct client *
                opener; /* who waits for its name; NULL where a command opens it, or the caller has gone */
        bool opener_json;
        TAILQ_HEAD(, exec) pending;                      /* commands that wait for it */
        LIST_HEAD(, exec) execs[SESSION_BUCKETS];        /* what runs in it, by channel */
        TAILQ_HEAD(, ended) ended;                       /* the oldest first */
        unsigned n_running, n_attached, n_left, n_ended; /* n_left: who attached and has gone */
        bool pool_hit;                                   /* it was there for the command that asks now */
        bool asked;                                      /* while it is adopted: the broker is */
        const char *fault_reason, *fault; /* why it cannot be opened: a word, and a line */
};

/* Is it what a session may be called? */
bool session_name_valid(const char *name);
struct session *session_find(struct manager *m, const char *name);
/* Has @uid as many as it may have of this profile (limits.sessions)? */
bool session_over_quota(const struct pool *p, uid_t uid);
/* Asks for a sandbox for a new session @name ("": one is made up) of @c's user. @ttl_ms 0: the profile's; the
 * labels are copied. Returns it, or NULL: it is refused, and *ret_reason, *ret_line say why (they stay valid). */
struct session *session_new(struct client *c, struct pool *p, const char *name, uint64_t ttl_ms,
                            const char *const *labels, uint32_t n_labels, const char **ret_reason,
                            const char **ret_line);
/* One of an earlier life's, of which no more is known yet; and one that turns out to be none. */
struct session *session_known(struct manager *m, const char *name, const char *profile);
void session_unknow(struct session *s);
/* Its name, or what else is told of it, to the client that opens it. */
void session_answer_opened(const struct session *s, struct client *c, bool json);
/* Looks for a sandbox at once, and queues for one where there is none; may free @s. */
void session_begin(struct session *s);
/* The waiter's: a sandbox for it, or none. */
void session_assign(struct session *s, struct sandbox *sb);
void session_refuse(struct session *s, const char *reason, const char *line);
/* Its agent has said HELLO and what it holds: 0 or -errno. */
int session_held(struct session *s, const struct held *h);
/* Gives it up where it is not open yet and nobody is left who waits for it. */
void session_unwanted(struct session *s);
/* Its opener has gone. */
void session_hangup(struct session *s);
/* Ends what runs in it, throws its sandbox away, records that and frees it. @reason is a word for the trails, @by
 * who asked (NULL: nobody), @why for the log (or NULL). */
void session_close(struct session *s, const char *reason, const struct audit_caller *by,
                   const char *why);
/* A new manager will come: lets go of all, whose sandboxes and files stay. What waits for an answer gets one. */
void sessions_leave(struct manager *m);
/* Those that have been idle for too long, and who has waited in them for too long. */
void sessions_check(struct manager *m, uint64_t now);
/* Lets go of all at the end, without a word to anybody. */
void sessions_free(struct manager *m);

/* A command of it begins at once where it is open, else waits for it. Answers its client. */
void session_exec(struct session *s, struct exec *x);
/* Does that command run in it? */
bool session_has(const struct session *s, const char *exec_id);
/* Is one of its commands (exec.h)? */
bool session_overdue(struct session *s, uint64_t now);
/* The running command under that channel, or NULL. */
struct exec *session_exec_at(struct session *s, uint32_t channel);
/* It runs from now on; it has ended. */
void session_exec_begun(struct session *s, struct exec *x);
void session_exec_ended(struct session *s, struct exec *x);
/* Refuses those that have waited for too long. */
void session_refuse_late(struct session *s, uint64_t now);
/* One that waits goes away. */
void session_exec_left(struct session *s, struct exec *x);

/* --- mounted.c ---------------------------------------------------------------------------------- */

/* It is the turn of @s, which waits for a sandbox of its own: begins to make it, or makes room for it. False: nothing
 * can be done now. */
bool mounted_step(struct pool *p, struct session *s);
/* It is not wanted any more. */
void mounted_give_up(struct session *s);
/* Is it one end of a pair of packet sockets that @uid has made? */
bool mounted_is_callers(int fd, uid_t uid);

/* --- detached.c --------------------------------------------------------------------------------- */

/* A detached command of it has ended, just so. */
void session_keep_end(struct session *s, const struct exec *x, const struct exited *e);
/* The end of that command, where it is kept; or NULL. */
struct ended *session_ended(struct session *s, const char *exec_id);
void session_drop_ends(struct session *s);
/* A whole ATTACH has come: 0 or -EPROTO. */
int attach_handle(struct client *c, const struct frame *f);
/* Of what is attached: a frame of its agent's, 0 or -EPROTO; its end, which tells its client and frees it; its client
 * has gone. */
int attach_agent_frame(struct exec *x, const struct frame *f);
void attach_end(struct exec *x, const struct exited *e);
void attach_hangup(struct exec *x);
/* Those whose client has gone so long ago that nothing more comes for them. */
void attaches_check(struct session *s, uint64_t now);

/* --- ps.c --------------------------------------------------------------------------------------- */

/* Commands of @uid, or with @all everybody's, that run or have ended detached; of @session alone where that is not
 * "". The whole answer, allocated; NULL when out of memory. */
char *ps_text(struct manager *m, uid_t uid, bool all, const char *session, bool json, size_t *ret_len);

/* --- session_state.c ---------------------------------------------------------------------------- */

/* 0 or -errno: then there is no file of it. */
int session_state_write(const struct session *s);
void session_state_remove(const struct session *s);
/* Makes the sessions whose files there are, to be adopted. One that cannot be read is logged and removed. 0 or -errno. */
int session_state_load(struct manager *m);

/* --- adopt.c ------------------------------------------------------------------------------------ */

/* Before anything else: reads the files, and completes the records of what cannot be alive. 0, or -errno and a line. */
int adopt_begin(struct manager *m, struct errmsg *e);
/* The broker is there, the engine is up: asks for the sandboxes of those that wait for that. */
void adopt_ask(struct manager *m);
/* What the agent holds becomes commands of @s: 0 or -EPROTO. */
int adopt_held(struct session *s, const struct held *h);
/* Records the end of those of its commands that are open since an earlier life and that it does not run. */
void adopt_forget(struct session *s);

/* --- session_list.c ----------------------------------------------------------------------------- */

struct jsonw;
/* One as an object, all that is known of it. */
void session_json(struct jsonw *j, const struct session *s);
/* One as a line, and the names of its columns. @brief: what 78 columns have room for. */
void session_line(FILE *f, const struct session *s, bool brief);
void session_line_head(FILE *f, bool brief);
/* The sessions of @uid, or with @all everybody's: the whole answer, allocated; NULL when out of memory. */
char *session_list(struct manager *m, uid_t uid, bool all, bool json, size_t *ret_len);
