/*
 * A command (exec.c), and how it is asked for (request.c). What attaches to a detached command is one of these, too,
 * that is none.
 */
#pragma once

#include "manager/manager.h"

enum exec_state { EXEC_WAITING, EXEC_RUNNING, EXEC_ENDED };

struct exec {
        LIST_ENTRY(exec) link;
        struct waiter waiter;
        struct manager *m;
        enum exec_state state;
        struct client *client;
        struct pool *pool;
        struct sandbox *sandbox;
        struct session *session;     /* NULL: one-shot */
        TAILQ_ENTRY(exec) pending;   /* of the session's, while that is not there yet */
        LIST_ENTRY(exec) in_session; /* of the session's, while it runs */
        bool is_pending;
        bool pool_hit;
        bool attach;           /* no command, but what reads the output and the end of a detached one */
        bool output;           /* of these, both */
        uint64_t hung_ms;      /* when its reader went away */
        bool unrecorded;       /* of an earlier life's, which has recorded its end already */
        const char *cancelled; /* "by …": who has ended it, other than its caller */
        bool stopped;          /* its session is being stopped */
        uint8_t *payload;      /* owns the strings of @request */
        size_t payload_len;
        struct exec_request request;
        size_t args_len; /* of request.args_wire: the arguments alone */
        struct audit_exec audit;
        struct audit_open_exec *open; /* what audit.open points to */
        char id[PROTO_EXEC_ID + 1];
        char container[ENGINE_ID_LEN + 1];
        char profile[PROTO_NAME_MAX + 1];
        uint64_t begun_us;
        uint32_t client_channel, channel;
        uint64_t credit[2], bytes[2], lines[2]; /* stdout, stderr: what the agent may still send */
        uint64_t stdin_credit;                  /* what the client may still send */
        bool stdin_ended;
        uint64_t output_limit; /* limits.output_bytes when it began; 0: none */
        uint64_t due_ms;       /* by when the agent has ended it; 0: whenever it ends */
        uint64_t due_bytes;    /* of output, when that was looked at last */
};

/* A whole request has come (request.c). Takes over @payload. Answers the client in every case. */
void exec_request(struct client *c, uint8_t *payload, size_t len);
/* May @c's user ask for one more command or session now, as far as @p's limits.exec_rate goes? False: it is refused.
 * NULL: the default profile's. */
bool request_within_rate(struct client *c, const struct pool *p);

/* A request that runs no command was refused: a record and a line as of a refused command, with @what ("session
 * close") in the command's place, at most 59 bytes. @session is the caller's text and may be anything. */
void request_refused(struct client *c, const char *what, const char *session, const char *profile,
                     const char *reason);
/* The same where the caller may not, and his answer: 77, "WHAT: " and the line. Over the rate it leaves no record. */
__attribute__((format(printf, 5, 6))) void request_not_allowed(struct client *c, const char *what,
                                                               const char *session, const char *profile,
                                                               const char *fmt, ...);
/* As it begins: owns @payload, of which @r and @a are, and waits. */
struct exec *exec_new(struct client *c, struct pool *p, uint8_t *payload, const struct exec_request *r,
                      const struct audit_exec *a);
/* A sandbox for a waiting exec: its session's, or one for it alone. */
void exec_assign(struct exec *x, struct sandbox *sb);
/* It cannot be served: the line goes to the caller, exit code 125. */
void exec_refuse(struct exec *x, const char *reason, const char *line);
/* The caller has gone. */
void exec_hangup(struct exec *x);
/* Frames for it: from its client, from its agent. 0 or -EPROTO. */
int exec_client_frame(struct exec *x, const struct frame *f);
int exec_agent_frame(struct exec *x, const struct frame *f);
/* Its sandbox has gone under it. */
void exec_lost(struct exec *x, const char *why);
/* This manager ends, and its session does not: who waits for the command is told, a detached one goes on. */
void exec_leave(struct exec *x);
/* Its session is stopped: its agent has ended it by @due_ms. */
void exec_stopped(struct exec *x, uint64_t due_ms);
/* Has the agent, which ends it at its time-out and when it is told to, not done so for far too long? */
bool exec_overdue(struct exec *x, uint64_t now);
/* @signal 0: ends the whole tree. */
void exec_kill(struct exec *x, uint8_t signal);
/* STDOUT (@i 0) or STDERR (1) of it, on its way to its client. 0 or -EPROTO. */
int exec_output(struct exec *x, const struct frame *f, int i);
/* The end of one that is no command any more, or never was. */
void exec_free(struct exec *x);
/* Tells the client that it runs, with the next frame or soon. */
void exec_tell_started(struct exec *x);
