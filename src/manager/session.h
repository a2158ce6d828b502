/*
 * Sessions: sandboxes that are leased under a name to the user who opened them, for as long as they are used.
 *
 *     open.c           they are asked for
 *     session.c        owners, quotas; opening, idling, closing
 *     session_find.c   names, and who may see which
 *     session_shape.c  what their sandboxes are, and as which users commands run there
 *     session_stop.c   all that runs in one ends, and its files stay
 *     session_exec.c   the commands in them
 *     session_state.c  what is kept of each in a file, for the next manager
 *     session_list.c   what is shown of them; session_info.c: what programs are told
 *     alone.c          those whose sandboxes are made for them alone
 *     detached.c       commands in them that nobody waits for
 *     adopt.c          the sessions of an earlier life
 *
 *     OPENING   somebody waits for its sandbox, in the pool's queue, or until it is made
 *     ADOPTING  an earlier manager has opened it, its agent has not said yet what runs there
 *     OPEN      it has one, its lease is in its file and in both trails
 *     STOPPING  its file says that it is stopped, its agent ends what runs there
 *     STOPPED   nothing runs there, and no command is taken, until it is started again
 *     CLOSED    the struct goes
 *
 * Nobody hears of a session before its file is written whole. What asks for a session that is not open yet waits
 * in it, and begins or is refused with it.
 */
#pragma once

#include <stdio.h>

#include "common/agent_args.h"
#include "manager/audit_state.h"
#include "manager/exec.h"

/* Commands that run in one at once, and who attaches to them. */
#define SESSION_EXECS_MAX 96
#define SESSION_ATTACHES_MAX 32
/* The ends of detached commands that are kept. */
#define SESSION_ENDED_MAX 32
#define SESSION_BUCKETS 64

enum session_state {
        SESSION_OPENING,
        SESSION_OPEN,
        SESSION_CLOSED,
        SESSION_ADOPTING,
        SESSION_STOPPING,
        SESSION_STOPPED,
        SESSION_STATES
};

/* What its sandbox is: the profile as it was when it was made, with less where that was asked for. */
struct session_shape {
        char image[PROTO_IMAGE_MAX + 1];
        char network[PROTO_NAME_MAX + 1];
        uint64_t memory_bytes, cpu_nano, shm_bytes;
        uint32_t pids_limit;
        uint32_t n_users;                              /* 0: nothing of all this is known yet */
        struct config_user users[1 + AGENT_USERS_MAX]; /* the first: of commands that ask for none */
};

/* A detached command that has ended. */
struct ended {
        TAILQ_ENTRY(ended) link;
        char id[PROTO_EXEC_ID + 1];
        uint32_t channel;
        struct exited exited; /* as the agent said */
        bool stopped;         /* with its session */
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
        uint64_t ttl_ms;            /* 0: for ever */
        uint64_t idle_ms;           /* now_ms() when the last command in it ended */
        uint64_t opened;            /* seconds since 1970 */
        uint64_t started, finished; /* likewise: when it was last started and stopped; 0: never */
        char *workdir;              /* of commands that name none; "": the profile's */
        uint32_t n_env;             /* variables of every command in it, before the command's own */
        uint8_t *env;               /* as strings on the wire */
        size_t env_len;
        struct narrow narrow; /* what it has less of; empty: its sandbox is as any of the profile */
        char narrow_paths[NARROW_TMPFS_MAX][NARROW_PATH_MAX + 1]; /* of @narrow */
        struct session_shape shape;
        bool stopped;         /* as its file says: it is stopped, or on the way there */
        bool recorded;        /* and that it was is in the trails */
        unsigned halts;       /* that its agent has not answered */
        uint64_t halt_due_ms; /* by when its agent has ended what runs there */
        bool stop_asked;      /* in this life, and by whom first: */
        struct audit_caller stopper;
        LIST_HEAD(, client) waiting; /* who waits until it is stopped */
        bool mounts;                 /* host folders are in it */
        int mount_fd;                /* on which they were written, until the broker has it; -1 */
        struct making *making;       /* while its sandbox is made for it alone (alone.c) */
        char **labels;               /* "KEY=VALUE" */
        uint32_t n_labels;

        /* Who waits for its name; NULL where a command opens it, or the caller has gone. */
        struct client *opener;
        uint8_t opener_form;                             /* enum answer_form */
        TAILQ_HEAD(, exec) pending;                      /* commands that wait for it */
        LIST_HEAD(, exec) execs[SESSION_BUCKETS];        /* what runs in it, by channel */
        TAILQ_HEAD(, ended) ended;                       /* the oldest first */
        unsigned n_running, n_attached, n_left, n_ended; /* n_left: who attached and has gone */
        bool pool_hit;                                   /* it was there for the command that asks now */
        bool asked;                                      /* while it is adopted: the broker is */
        const char *fault_reason, *fault; /* why it cannot be opened: a word, and a line */
};

/* --- session_find.c ----------------------------------------------------------------------------- */

/* Is it what a session may be called? */
bool session_name_valid(const char *name);
struct session *session_find(struct manager *m, const char *name);
/* One of @p's own of that name, else the one of his whose sandbox's id begins with @text, else another's of that name, to
 * be refused. 0 and it, or REJECT_NO_SESSION, REJECT_AMBIGUOUS. */
uint8_t session_lookup(struct manager *m, const struct peer *p, const char *text, struct session **ret);
/* The same for request @what, and root may have everybody's. NULL: it was refused, with a record where it is another's. */
struct session *session_for(struct client *c, const char *what, const char *text);

/* --- session_shape.c ---------------------------------------------------------------------------- */

/* Its sandbox is made now, or is one of the pool's as they are now: fills s->shape. 0, or -EINVAL and why not in *e. */
int session_shape_take(struct session *s, struct errmsg *e);
/* Of a file that does not say: what is known of it now. */
void session_shape_guess(struct session *s);
/* As whom the command of @r runs: of profile @p, in @s (NULL: in none). False: it may not be that user. */
bool session_user(const struct session *s, const struct config_profile *p, const struct exec_request *r,
                  struct config_user *ret);
/* Is its sandbox made for it alone? */
bool session_alone(const struct session *s);

/* --- session.c ---------------------------------------------------------------------------------- */

/* Has @uid as many as it may have of this profile (limits.sessions)? */
bool session_over_quota(const struct pool *p, uid_t uid);
/* A new session of @c's user, as @r asks for it, of which all is copied. Returns it, or NULL: it is refused, and
 * *ret_reason, *ret_line say why (they stay valid). */
struct session *session_new(struct client *c, struct pool *p, const struct open_request *r,
                            const char **ret_reason, const char **ret_line);
/* One of an earlier life's, of which no more is known yet; and one that turns out to be none. */
struct session *session_known(struct manager *m, const char *name, const char *profile);
void session_unknow(struct session *s);
/* Goes into another state: a move that is not in the table ends the program. */
void session_move(struct session *s, enum session_state to);
/* As the trails show it. */
struct audit_session session_recorded(const struct session *s);
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

/* A command of it begins at once where it is open and its agent takes one, else waits for that. Answers its client. */
void session_exec(struct session *s, struct exec *x);
/* Those that have waited begin, as many as can, or are refused. Each may end in here; none can end the session. */
void session_exec_pending(struct session *s);
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

/* --- session_stop.c ----------------------------------------------------------------------------- */

/* Answers @c once nothing runs in it any more, or at once why that cannot be. @grace_ms between TERM and KILL, 0: the
 * profile's. */
void session_stop(struct session *s, struct client *c, uint64_t grace_ms);
/* Answers @c, at once where it is not being stopped. */
void session_start(struct session *s, struct client *c);
/* Its agent is back, and its file says that it is stopped: what may still run there is ended. */
void session_stop_again(struct session *s);
/* HALTED of its agent: 0 or -EPROTO. */
int session_halted(struct session *s, const struct frame *f);
/* Those who wait until it is stopped hear that it will not be: @reason is a word, @line why. */
void session_stop_given_up(struct session *s, const char *reason, const char *line);
/* One who waits for that has been answered, or has gone. */
void session_stop_left(struct client *c);

/* --- alone.c ---------------------------------------------------------------------------------- */

/* It is the turn of @s, which waits for a sandbox of its own: begins to make it, or makes room for it. False: nothing
 * can be done now. */
bool alone_step(struct pool *p, struct session *s);
/* It is not wanted any more. */
void alone_give_up(struct session *s);
/* Is what came with a request one end of a pair of packet sockets that @uid has made? */
bool alone_is_callers(int fd, uid_t uid);

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

/* Commands of @who, or with @all everybody's, that run or have ended detached; of @session alone where that is not
 * NULL. The whole answer, allocated; NULL when out of memory. */
char *ps_text(struct manager *m, const struct peer *who, bool all, const struct session *session,
              bool json, size_t *ret_len);

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
/* The sessions of @who, or with @all everybody's, in that form (enum answer_form): the whole answer, allocated; NULL when
 * out of memory. */
char *session_list(struct manager *m, const struct peer *who, bool all, uint8_t form, size_t *ret_len);

/* --- session_info.c ----------------------------------------------------------------------------- */

/* What is told of one, in that form: to who asks; to the client that has opened it, who as text gets its name alone. */
void session_answer_info(const struct session *s, struct client *c, uint8_t form);
void session_answer_opened(const struct session *s, struct client *c, uint8_t form);
/* One record of an answer (proto_open.h). */
void session_record(FILE *f, const struct session *s);
/* "running", "stopped" and the like, as it stands in lists. */
const char *session_state_name(const struct session *s);
/* An absolute time in UTC, "?" for none that can be shown. */
void session_when(uint64_t seconds, char ret[32]);
