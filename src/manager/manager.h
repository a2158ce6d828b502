/*
 * hermes-sandboxd, the pool manager: the process that parses what callers and sandboxes send, and that
 * reaches neither docker.sock nor root.
 *
 *     main.c      options
 *     manager.c   start, signals, reload
 *     sweep.c     the broker is there, the engine is up: what an earlier life has left goes
 *     stop.c      the end: drained, then stopped
 *     lastword.c  the start has failed, and somebody asks
 *     conn.c      a framed connection; conn_passed.c: a descriptor that comes with it
 *     peer.c      who is at the other end of a socket, and may they; gateway.c: for whose key does it speak
 *     client.c    a caller's connection and its one request
 *     ask.c       the requests that run no command; open.c: that for a session
 *     request.c   a command is asked for: may it run, and where
 *     exec.c      a command (exec.h): from start to result, both trails, both ends' credit
 *     detached.c  commands that nobody waits for: their ends, and who attaches to them
 *     ps.c        what runs
 *     order.c     what the agent is told; verdict.c: what the caller is told
 *     pool.c      a profile's sandboxes: who gets which, when one goes
 *     supply.c    how many there shall be, and their making
 *     queue.c     who waits for one, in turns between users
 *     sandbox.c   one sandbox: the agent's connection, handshake, scrub, pings
 *     session.c … sandboxes that are leased under a name (session.h)
 *     rate.c      commands a second
 *     broker.c    the requests to hermes-engined
 *     status.c    what is there; layers.c: what is really enforced
 *     stats.c …   what has happened: for people, as JSON (stats_text.c), as OpenMetrics (metrics.c)
 *     image.c     the images that the config names: what the engine has (image_look.c), pulls; image_text.c: in words
 *     top.c       what each sandbox uses, out of its cgroup (usage.c)
 *     audit.c …   the two trails; logfile.c: the log; rotate.c: the files of both
 *
 * One thread, one sd-event loop, nothing blocks but the write of an audit record. Ownership: a pool owns
 * its sandboxes, the manager owns clients, execs and sessions; an exec points to its client (NULL once the
 * caller is gone, or where nobody waits), to its session (NULL: one-shot) and to its sandbox (NULL while it
 * waits).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "common/engine_msg.h"
#include "common/proto_open.h"
#include "config/config.h"
#include "manager/audit.h"
#include "manager/broker.h"
#include "manager/conn.h"
#include "manager/logfile.h"
#include "manager/peer.h"
#include "manager/rate.h"
#include "manager/stats.h"
#include "manager/usage.h"

/* Connections of one uid, and of all. */
#define CLIENTS_PER_UID 1024
#define CLIENTS_MAX 4096
/* A caller must have sent its request, and a new agent its handshake, within this time. */
#define FIRST_FRAME_MS 5000
#define HANDSHAKE_MS 15000
/* After a connection that could not be taken, for want of a descriptor: who waits in the socket is still there. */
#define ACCEPT_PACE_US 100000
#define PING_MS 5000
#define PING_LOST_MS 15000
/* The agent bounds its scrub (SCRUB_MAX_US in agent.h); this is for one that does not. */
#define SCRUB_LOST_MS 10000
/* And so does it each command, and its end when it is told to: likewise. */
#define EXEC_LATE_MS 30000
/* A sandbox that comes back is not made up for at once: a command that runs longer than this holds its
 * sandbox for good, as far as the pool's size goes. */
#define BUSY_LONG_MS 1000
/* More sandboxes than size, after a rush, are kept this long without use. */
#define SURPLUS_MS 10000
/* Creations under way at once, over all pools. */
#define CREATING_MAX 8

struct manager_options {
        const char *config_path, *config_dir;
        const char *runtime_dir;   /* pool.sock */
        const char *engine_socket; /* of hermes-engined */
        const char *state_dir;
        const char *log_dir;         /* logging.file */
        uint64_t drain_ms;           /* how long commands may go on after SIGTERM */
        const char *gateway_account; /* whose uid alone is the ssh gateway's; "": nobody's */
        bool single_user; /* no account but our own may use it, and nothing separates us from the broker */
};

struct manager {
        struct manager_options options;
        sd_event *event;
        struct config *config;
        struct audit *audit;
        struct rate *rate;
        struct broker broker;
        struct peer_policy policy;

        int listen_fd;
        bool own_socket;   /* made here, not passed by systemd */
        bool accept_paced; /* the last caller could not be taken */
        sd_event_source *listen_source, *tick;
        uint64_t ticked_ms;        /* when the last tick was */
        sd_event_source *announce; /* sends callers the frames that still wait: client_announce() */
        bool announcing;           /* it is armed */
        sd_event_source *retire;   /* throws away the sandboxes that are spent: sandbox_retire() */
        bool retiring;             /* it is armed */
        sd_event_source *settle;   /* pools_settle() before each turn of the loop */
        unsigned n_clients;
        LIST_HEAD(, client) clients;
        LIST_HEAD(, exec) execs;
        LIST_HEAD(, making) makings; /* alone.c */
        LIST_HEAD(, pool) pools;
        LIST_HEAD(, image_job) image_jobs;
        TAILQ_HEAD(, image_look) image_looks; /* as they were asked for */
        TAILQ_HEAD(, session) sessions;       /* in the order of their opening */
        unsigned n_running;                   /* of the execs: commands that run */
        unsigned n_waiting;                   /* who waits for a sandbox, or for a session */
        unsigned n_creating;
        unsigned n_adopting; /* sessions of an earlier life whose agents have not answered yet */
        bool changed;        /* one of the pools has */
        bool swept;          /* what an earlier life left behind has been found and is being removed */
        bool draining;       /* nobody new is taken in: stop.c */
        bool refusing;       /* no command is taken */
        bool stopping;       /* and nothing runs any more */
        bool closing;        /* sessions end with us */
        uint64_t stop_at_ms; /* the end of the one or the other */
        unsigned stop_count; /* sandboxes when it began */
        char notified[160];  /* what systemd was told last */
        uint64_t started_ms;
        struct gateway_login *logins; /* of the gateway's last connections (gateway.c); NULL: none yet */
        unsigned n_logins;
        uint64_t n_done, n_rejected, n_suppressed, n_hits;
        struct logfile logfile;
};

uint64_t now_ms(void);
uint64_t now_us(void);

/* Loads the config, opens everything, serves until a signal says to end. Returns the exit status. */
int manager_run(const struct manager_options *o);

/* --- sweep.c ----------------------------------------------------------------------------------- */

extern const struct broker_events sweep_broker_events;

/* --- stop.c ------------------------------------------------------------------------------------ */

/* What those hear who come too late. */
#define STOPPING_LINE "hermes-sandboxd is stopping: ask again when it has been started"

/* The handler of SIGTERM (drains) and SIGINT (does not), and of the second of either. */
int stop_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata);
/* To be called after each turn of the loop, and every 100 ms while draining: is it time to leave the loop? */
bool stop_over(struct manager *m);

/* --- lastword.c -------------------------------------------------------------------------------- */

/* The start has failed: tells those who wait in the socket that systemd holds. */
void lastword_callers(int listen_fd, uint8_t exit_code, const char *line);

/* --- pool.c ------------------------------------------------------------------------------------ */

struct pool {
        LIST_ENTRY(pool) link;
        struct manager *m;
        char *name;
        const struct config_profile *profile;     /* the config's; NULL once a reload has dropped it */
        uint8_t recipe[CONFIG_RECIPE];            /* with the agent's hash: what a sandbox must have */
        TAILQ_HEAD(sandboxes, sandbox) sandboxes; /* the one that became warm last at the end */
        unsigned n_warm, n_creating, n_busy, n_starting, n_scrubbing, n_leased;
        unsigned n_alone;         /* being made for a session alone */
        TAILQ_HEAD(, turn) turns; /* the users that wait, the one whose turn it is first */
        unsigned n_queue;         /* who waits */
        bool changed;             /* pools_settle() is to look at it */
        bool used, shared;        /* somebody's command ran here; commands of two users did */
        uid_t first_uid;          /* whose, the first time */
        bool image_ready, image_asked;
        char image_id[ENGINE_IMAGE_ID_MAX +
                      1]; /* which one the profile's name stands for now; "": not known */
        bool image_looking;
        uint64_t image_looked_ms; /* 0: look soon */
        uint64_t retry_ms;        /* after a failure: not before */
        unsigned failures;
        uint64_t n_scrubs, n_scrubs_failed;
        struct pool_stats stats;
        char error[ERRMSG_MAX]; /* why the last attempt failed, "" when it did not */
        char probe[4096];       /* what the last agent said of its confinement */
};

/* Makes pools and config agree; called at the start and at each reload. */
void pools_update(struct manager *m);
void pools_free(struct manager *m);
/* One of the config's; NULL where there is none. */
struct pool *pool_find(struct manager *m, const char *name);
/* Whatever the config says: made, where there is none. */
struct pool *pool_of(struct manager *m, const char *name);
/* Sandboxes, queue or config have changed: at the next turn of the loop, with nobody's handler on the stack, it
 * is settled who gets what, what goes and how many creations begin. */
void pool_changed(struct pool *p);
void pools_changed(struct manager *m);
/* Makes m->settle; 0 or -errno. */
int pools_attach(struct manager *m);
int pools_settle(sd_event_source *s, void *userdata);
/* The regular part of it: what has been idle for too long. */
void pool_check(struct pool *p, uint64_t now);
/* Will @sb be scrubbed after the next command, and used again? */
bool pool_scrubs(const struct pool *p, const struct sandbox *sb);
/* A warm sandbox that @uid may have: one that served this uid, else one that served nobody; or NULL. */
struct sandbox *pool_claim(struct pool *p, uid_t uid);
/* Has @uid as many sandboxes busy, over all profiles, as it may have of this one? */
bool pool_uid_full(const struct pool *p, uid_t uid);
/* Is a sandbox that this uid's commands have used busy, and coming back? */
bool pool_returns_to(const struct pool *p, uid_t uid);
/* May @uid not start one more command now (limits.execs)? */
bool pool_execs_full(const struct pool *p, uid_t uid);
/* A command of @uid is being started in one of its sandboxes. */
void pool_used_by(struct pool *p, uid_t uid);
/* "scrub" or "replace", and why it is the latter where the config says the former; else *ret_why is "". */
const char *pool_reuse(const struct pool *p, char *ret_why, size_t cap);

/* --- supply.c ---------------------------------------------------------------------------------- */

/* All that the profile has, in whatever state; of these, those that are being made. */
unsigned supply_total(const struct pool *p);
unsigned supply_coming(const struct pool *p);
/* Can one be made now? Asks for the image where that is not there yet. */
bool supply_ready(struct pool *p);
/* Starts as many creations as are wanted now. */
void supply_fill(struct pool *p);
/* An attempt failed: @line says why. Backs off, and tells those who cannot be served. */
void supply_failed(struct pool *p, const char *line);
/* Somebody waits: after a failure the next attempt is not far off. */
void supply_nudge(struct pool *p);

/* --- queue.c ----------------------------------------------------------------------------------- */

/* Part of a one-shot exec, or of a session that is being opened. */
struct waiter {
        TAILQ_ENTRY(waiter) link;
        struct turn *turn; /* NULL: it does not wait */
        bool session;      /* which of the two */
        bool cold;         /* it waits for a cold start */
        bool alone;        /* for one that is made for it alone: no other will do */
        uint64_t queued_ms;
};

/* One user's place in a pool's queue, first in first out. There is one for each uid that waits. */
struct turn {
        TAILQ_ENTRY(turn) link;
        struct pool *pool;
        uid_t uid;
        TAILQ_HEAD(, waiter) waiters;
        unsigned n_cold;    /* of these, who waits for a cold start */
        uint64_t served_ms; /* when one of them last got a sandbox, or the first came */
        sd_event_source *timer;
};

/* Queues @w of @uid; 0, or -ENOSPC when the queue is full, -EDQUOT when it has its share of it. */
int queue_add(struct pool *p, uid_t uid, struct waiter *w);
/* Do as many of @uid wait, over all pools, as may of this one (limits.queued)? */
bool queue_over_quota(const struct pool *p, uid_t uid);
/* Takes @w out; its turn goes with the last one. */
void queue_leave(struct waiter *w);
/* As queue_leave(), for one that has got a sandbox: the next turn is another user's. */
void queue_served(struct waiter *w);
/* A sandbox for one that waits. */
void waiter_assign(struct waiter *w, struct sandbox *sb);
/* The turn of one for which a sandbox is made: false where nothing can be done for it now. */
bool waiter_make(struct waiter *w);
/* Refuses, with this line, all that wait; without @all only those to whom no sandbox will come back. */
void queue_refuse(struct pool *p, bool all, const char *reason, const char *line);

/* --- sandbox.c --------------------------------------------------------------------------------- */

enum sandbox_state {
        SANDBOX_STARTING, /* the container runs, its agent has not said HELLO and HELD */
        SANDBOX_WARM,
        SANDBOX_BUSY,
        SANDBOX_SCRUBBING, /* its command has ended; SCRUBBED has not come */
        SANDBOX_LEASED,    /* a session's, until that is closed */
        SANDBOX_GONE,      /* being thrown away */
        SANDBOX_STATES
};

struct sandbox {
        TAILQ_ENTRY(sandbox) link;
        struct pool *pool;
        enum sandbox_state state;
        char id[ENGINE_ID_LEN + 1];
        pid_t pid; /* of its init process, as the engine says */
        uint8_t recipe[CONFIG_RECIPE];
        char image[ENGINE_IMAGE_ID_MAX + 1]; /* what its container was made from, as the engine says */
        int listen_fd;
        sd_event_source *listen_source;
        struct conn conn;
        bool connected;
        bool spent;     /* it has served, and goes at m->retire */
        bool can_scrub; /* its agent can prove it clean */
        bool returns;   /* the agent scrubs it after the command that runs */
        uint64_t born_ms, pinged_ms;
        uint64_t alive_ms; /* when its agent last sent a frame, or took of what waits for it */
        uint64_t since_ms; /* when it came into its state */
        uint32_t uses;
        uid_t owner; /* whose commands it has served; of no meaning with no uses */
        char last_exec[PROTO_EXEC_ID + 1];
        uint32_t next_channel;
        uint64_t long_order;     /* conn.out_joined behind the last long command that was sent to it */
        struct exec *exec;       /* the one that runs in it (one-shot) */
        struct session *session; /* whose it is, while it is leased */
        bool greeted;            /* its agent has said HELLO */
        bool ready;              /* and which detached commands it has */
        struct usage_sample usage;
};

/* Is it of the recipe and the image in force, and not too old? Else no command gets it any more. */
bool sandbox_fit(const struct sandbox *sb, uint64_t now);
/* A command of @x begins in it; it will be scrubbed after that where @returns. */
void sandbox_begin(struct sandbox *sb, struct exec *x, bool returns);
/* May a command with @bytes be sent to its agent now, besides what waits for that? Else session_exec_pending()
 * is called as the agent reads on. */
bool sandbox_takes(const struct sandbox *sb, size_t bytes);
/* It has been sent. */
void sandbox_took(struct sandbox *sb, size_t bytes);
/* A created container, made from @image, leased to @s from the beginning where that is not NULL: takes over @listen_fd, waits for
 * the agent. NULL when out of descriptors. */
struct sandbox *sandbox_new(struct pool *p, const char *id, const uint8_t recipe[CONFIG_RECIPE],
                            const char *image, pid_t pid, int listen_fd, struct session *s);
/* A warm one becomes @s's. */
void sandbox_lease(struct sandbox *sb, struct session *s);
/* Throws it away, and its session with it: the container goes, the struct is freed. Not from its own frame
 * handler. */
void sandbox_discard(struct sandbox *sb, const char *why);
/* The struct goes; the container stays, for the next manager. Its session has let it go. */
void sandbox_release(struct sandbox *sb);
/* The handler of m->retire. */
int sandbox_retire(sd_event_source *s, uint64_t usec, void *userdata);
/* Regular check: handshake late, ping lost. */
void sandbox_check(struct sandbox *sb, uint64_t now);
void sandbox_set_state(struct sandbox *sb, enum sandbox_state to);

/* --- client.c ---------------------------------------------------------------------------------- */

struct client {
        LIST_ENTRY(client) link;
        struct manager *m;
        struct conn conn;
        struct peer peer;
        bool greeted;
        bool answered;     /* the final frame is sent; only the rest of the queue is waited for */
        uint64_t since_ms; /* when it connected, its command began, or it was answered */
        uint32_t channel;  /* of its request */
        uint8_t *request;  /* the EXEC payload so far, joined */
        size_t request_len;
        uint64_t request_total; /* also what was not kept */
        struct exec *exec;
        struct session *opening;  /* which it waits for */
        struct session *stopping; /* until which is stopped it waits */
        bool starts;              /* to start it then */
        uint8_t form;             /* of that answer: enum answer_form */
        LIST_ENTRY(client) stop_link;
        struct image_job *images; /* likewise */
        uint8_t later;            /* type of its request, which is handled once every session is there */
};

/* Takes one that waits; false: that could not be, such as for want of a descriptor. */
bool client_accept(struct manager *m);
/* HELLO and STARTED wait for the frame behind them: the first output, or the result. Where none comes for a while
 * they are sent by the handler of m->announce, which this arms. */
void client_announce_later(struct manager *m);
int client_announce(sd_event_source *s, uint64_t usec, void *userdata);
/* The last frame; the connection ends when the caller closes it, or after a while. */
void client_finish(struct client *c, uint8_t type, const void *payload, size_t len);
/* The same for an answer of any length (STATUS, ANSWER). */
void client_answer(struct client *c, uint8_t type, const char *text, size_t len);
/* Ends an answered one's connection at once and frees @c, unless a part of the answer still waits: what was sent
 * the caller can read all the same. Not from @c's own frame handler. */
void client_leave(struct client *c);
__attribute__((format(printf, 3, 4))) void client_reject(struct client *c, uint8_t exit_code,
                                                         const char *fmt, ...);
/* The same where a program shall know why: @word is one of the trails' words for it, of which those that have a number
 * (enum reject_reason) are told with it. */
__attribute__((format(printf, 4, 5))) void client_refuse(struct client *c, uint8_t exit_code,
                                                         const char *word, const char *fmt, ...);
void clients_check(struct manager *m, uint64_t now);
/* What was put off until every session is there. */
void clients_resume(struct manager *m);

/* --- open.c, ask.c ----------------------------------------------------------------------------- */

/* A whole OPEN, a whole ASK has come: 0 or -EPROTO. */
int open_handle(struct client *c, const struct frame *f);
int ask_handle(struct client *c, const struct frame *f);
/* Is it about commands of sessions? */
bool ask_needs_sessions(const struct frame *f);

/* --- image.c ----------------------------------------------------------------------------------- */

/* The ASKs about images and profiles: answers in every case, then or later. */
void image_ask(struct client *c, const struct ask *a);
/* Its caller has gone. */
void image_hangup(struct image_job *job);
/* Who waits is told that there will be no answer. */
void image_refuse_all(struct manager *m);
void image_free_all(struct manager *m);
/* What the name of the profile's image stands for now: sandboxes of another one go, once they are idle. */
void image_is(struct pool *p, const char *id);
/* A sandbox was made from that one. */
void image_seen(struct pool *p, const char *id);
/* Regular check: has a tag been moved? */
void image_check(struct manager *m, uint64_t now);

/* --- status.c, layers.c ------------------------------------------------------------------------ */

/* The whole answer to @who, allocated; NULL when out of memory. */
char *status_text(struct manager *m, const struct peer *who, bool as_json, size_t *ret_len);
/* One line for systemctl status, where systemd runs and it has changed. */
void status_notify(struct manager *m);

enum layer_state { LAYER_ACTIVE, LAYER_DEGRADED, LAYER_DISABLED, LAYER_UNSUPPORTED };
struct layer {
        const char *name;
        enum layer_state state;
        char why[200];
};
#define LAYERS_MAX 10
/* What is really enforced in the pool's sandboxes, by what their agents saw. Returns how many of @ret are
 * filled; 0 when no agent has spoken yet. */
size_t layers_of(const struct pool *p, struct layer ret[LAYERS_MAX]);
const char *layer_state_name(enum layer_state s);
