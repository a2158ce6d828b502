/*
 * The agent: PID 1 of a sandbox. It starts commands, carries their streams, reaps, kills.
 *
 * One thread and one epoll loop over the stream to the manager, a signalfd and the commands' pipes.
 * Nothing is allocated after the start: every buffer is static and bounded, and untouched ones cost no
 * memory. The modules share the structs of this header:
 *
 *     main.c     arguments, confinement of the agent itself, the loop
 *     link.c     the stream to the manager: connect, buffers, frames
 *     start.c    an EXEC order: argv, environment, pipes; what is made ready for the next one
 *     ids.c      whom commands may run as
 *     exec.c     the table of commands: deadlines, kills, ends
 *     stream.c   a command's streams: pipes, credit, limits
 *     tty.c      a command's terminal
 *     halt.c     the end of all that runs
 *     keep.c     detached commands: what they wrote last, how they ended, what is said of them to a new manager
 *     attach.c   readers of what detached commands write
 *     child.c    from fork to exec: drop everything, then run
 *     spare.c    the process that is made beforehand, so that a start costs an exec
 *     tree.c     a command's processes, found by its supplementary gid
 *     files.c    not the agent: a command that it gives every sandbox, to move files in and out
 *     cgroup.c   what the sandbox's own cgroup counts
 *     places.c   where a command can write: the sandbox's own mount table, and how all was at the handshake
 *     scrub.c    between two commands: kill, empty, restore
 *     proof.c    is everything as it was at the handshake?
 *     seccomp.c  the agent's own filter
 *     probe.c    what the agent sees of its confinement, for the handshake
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/ids.h"
#include "common/frame.h"
#include "common/proto.h"
#include "common/proto_session.h"

/* Slots for commands: those that run, and detached ones that have ended and are kept. */
#define AGENT_EXECS PROTO_HELD_MAX
#define AGENT_RUNNING 96 /* at once */
#define AGENT_READERS 32
/* Bytes that an EXITED may have (frame.c). */
#define EXITED_MAX 256
/* And a SCRUBBED: its numbers, and a place of at most PROTO_NAME_MAX. */
#define SCRUBBED_MAX 128

/* Where a page is not written to, it costs nothing. Programs are linked with their variables sorted by section
 * name (Makefile), so that these, which are large or end in something large, stand behind all others, and
 * what of them is used all the time stands together: the top of the spare process' stack, then the agent's
 * own fields. Only the memory that the agent takes depends on it. */
#define PLACED_LIST __attribute__((section(".bss.zz.0.list")))
#define PLACED_SPARE __attribute__((section(".bss.zz.1.spare"), aligned(4096)))
#define PLACED_AGENT __attribute__((section(".bss.zz.2.agent")))
#define PLACED_SCRATCH __attribute__((section(".bss.zz.3.scratch"), aligned(4096)))
/* Gives whole pages back; they read as zeros afterwards. @p stands at the start of a page. */
void forget(void *p, size_t n);

/* A monotonic clock in milliseconds and microseconds. */
uint64_t now_us(void);

/* --- cgroup.c ---------------------------------------------------------------------------------- */

struct cgroup {
        int version; /* 1, 2; 0: not visible */
        int oom_fd;  /* memory.events or memory.oom_control */
        int pids_fd; /* pids.events */
        int peak_fd; /* memory.peak or memory.max_usage_in_bytes */
};

/* Opens the counters below @root ("/sys/fs/cgroup"); a counter that is not there stays -1. */
void cgroup_init(struct cgroup *cg, const char *root);
/* Processes killed for want of memory, forks refused at the pids limit, highest use of memory in bytes;
 * 0 where it cannot be read. */
uint64_t cgroup_oom_kills(const struct cgroup *cg);
uint64_t cgroup_pids_refused(const struct cgroup *cg);
uint64_t cgroup_peak(const struct cgroup *cg);

/* --- child.c, spare.c --------------------------------------------------------------------------- */

/* What a command is made of. The child shares the agent's memory until it execs: all of it stays until then.
 * A failure is left in @error and @stage. */
struct child {
        const struct agent_ids *ids;
        const struct agent_user *user;
        gid_t exec_gid;
        int in;     /* a pipe to read from, for an order that wants stdin; -1: there is none */
        int out[2]; /* become 1 and 2 */

        /* What only child_execute() looks at. */
        bool prepared;      /* the first half was done with the fields above */
        bool use_stdin;     /* @in becomes 0, which is else /dev/null */
        const char *tty;    /* becomes 0, 1, 2 and the controlling terminal; NULL: there is none */
        const char *script; /* becomes the file 3; NULL: there is none */
        size_t script_len;
        const char *workdir;
        const char *program; /* a path, or a name to look up in @path */
        char **argv;
        char **envp;
        const char *path; /* PATH of @envp */

        int error; /* out: errno, 0 when the exec succeeded */
        uint8_t stage;
        bool from_reserve; /* out: no process could be made, and the spare one was used */
};

/* Keeps a way to the agent's own OOM score, and what stands there. With @lend each command that is started has its raised
 * one from the agent: where commands have the agent's uid, not even a child of it may raise its own, as nobody may look
 * into it. To be called while the agent is still dumpable. 0 or -errno. */
int child_keep_score(bool lend);
bool child_score_is_lent(void);
/* Raises the score of who has just executed something, through its oom_score_adj at @fd. False: it could not be. */
bool child_raise_score(int fd);

/* Starts it. Returns the pid, or -errno when no process could be made at all (the spare one included);
 * c->error tells whether the exec succeeded. Where it did not, the child is gone and reaped, and the pid
 * means nothing. */
pid_t child_start(struct child *c);

/* Inside the child: the two halves from fork to exec, and its end when one of them failed. None of them comes
 * back from a failure. (The second never comes back; to say so would make ASan speak in the command's name.) */
void child_become(struct child *c);
void child_execute(struct child *c);
_Noreturn void child_fail(struct child *c, uint8_t stage, int error);
/* Their parts that the scrub's child needs too, both 0 or -errno: the first for the memory limit, the second
 * takes ids, user and exec_gid of @c. */
int child_prefer_for_oom(void);
int child_drop_identity(const struct child *c);

/* Makes the spare process, unless there is one: the reserve at the pids limit. Safe to call at any time;
 * returns 0, or -errno when none could be made now. */
int spare_make(void);
/* Makes the spare process the prepared child of @c. No command's process may live. 0, or -errno. */
int spare_prepare(struct child *c);
bool spare_is_prepared(void);
/* Its pid; 0: there is none. */
pid_t spare_pid(void);
/* Makes it run @c, and returns as child_start() does. -EAGAIN: there is none, or it died before; -ETIMEDOUT: it was
 * held up for so long that it was killed. In both cases nothing of @c was executed. */
pid_t spare_start(struct child *c);
/* Ends it, where there is one. */
void spare_end(void);

/* --- tree.c ------------------------------------------------------------------------------------ */

/* By what a command's processes are known. */
struct tree {
        gid_t gid;          /* a supplementary group that is theirs alone; 0: there is none, but */
        pid_t sid;          /* the session that its main process has made, */
        const char *marker; /* and a variable of their environment, "NAME=VALUE" */
};

/* How many processes it has. -errno when /proc cannot be read. */
int tree_count(const struct tree *t);
/* How many processes there are in all, but for PID 1. -errno as above. */
int tree_count_all(void);
/* Sends @signo to each of them once. Returns how many there were. */
int tree_signal(const struct tree *t, int signo);
/* One round of ending the tree: stop what runs until a scan finds nothing new, then kill. Returns how
 * many processes were seen; the tree is gone when it returns 0. */
int tree_kill(const struct tree *t);

/* --- places.c, scrub.c, proof.c ----------------------------------------------------------------- */

/* Reads the mount table and opens every writable place, before the first command. Returns 0, or -ENOTSUP
 * with the reason in @why (at most @cap bytes with the NUL): this sandbox can never be proved clean, such as
 * one with a writable root file system, and is replaced after each command. */
int places_init(const struct agent_ids *ids, char *why, size_t cap);

/* What a scrub takes at most, but for what a busy machine adds; far below the manager's patience with a ping
 * (15 s). */
#define SCRUB_MAX_US UINT64_C(2000000)

/* Kills, empties, restores, proves; no command may be running. Blocks for SCRUB_MAX_US at most. Where the
 * first look proves the sandbox clean, nothing more is done. Fills @ret, whose place is a static string. */
void scrub(const struct agent_ids *ids, struct scrubbed *ret);

/* --- seccomp.c, probe.c ------------------------------------------------------------------------ */

/* Installs the filter for the agent and all that it starts. Returns 0 or -errno. */
int seccomp_install(void);

/* Writes "key=value\n" lines into @buf, at most @cap bytes with the NUL. Keys: seccomp, no_new_privs,
 * seccomp_filters, cap_bounding, apparmor, rootfs, network, userns, cgroup, memory_max, memory_reserve,
 * swap_max, pids_max, cpu_max, scrub ("yes", or "no: " and @no_scrub where that is not ""). */
void probe(char *buf, size_t cap, const struct cgroup *cg, const char *no_scrub);

/* --- link.c ------------------------------------------------------------------------------------ */

#define LINK_OUT (4 * FRAME_MAX)
#define LINK_IN (2 * FRAME_MAX)
/* Payload of the longest frame that link_put() takes. */
#define LINK_SMALL EXITED_MAX

struct link {
        int fd; /* -1: not connected */
        size_t out_start, out_len;
        size_t in_len;
        uint8_t in
                [LINK_IN]; /* its first bytes lie in the page of the fields above: it often needs no other */
        uint8_t out[LINK_OUT];
};

void link_init(struct link *l);
/* Connects to the socket at @path. 0, or -errno. */
int link_connect(struct link *l, const char *path);
void link_close(struct link *l);
/* Payload bytes that a further frame can have now; 0 when it would not fit. */
size_t link_room(struct link *l);
/* Where the payload of the next frame goes; valid after link_room() > 0. */
uint8_t *link_payload(struct link *l);
/* Makes the next frame of what stands at link_payload(). */
void link_commit(struct link *l, uint8_t type, uint8_t flags, uint32_t channel, uint32_t len);
/* A small frame, copied, or sent at once where nothing else waits. The caller has seen enough
 * link_room(), and @len is at most LINK_SMALL. */
void link_put(struct link *l, uint8_t type, uint32_t channel, const void *p, uint32_t len);
/* Sends what is waiting. 0 (also when the socket is full), or -errno: the connection is gone. */
int link_flush(struct link *l);
/* From @handle and link_receive(): the frame is not taken yet, as its answer finds no room. */
#define LINK_LATER 2
/* Receives what is there and calls @handle for each whole frame. 0, 1 when the socket may hold more,
 * LINK_LATER when a frame is to be offered again once there is more link_room(), or -errno: end of file
 * (-ECONNRESET), a protocol error, or what @handle returned. */
int link_receive(struct link *l, int (*handle)(void *userdata, const struct frame *f), void *userdata);

/* --- exec.c ------------------------------------------------------------------------------------ */

enum exec_state {
        EXEC_FREE,
        EXEC_RUNNING,  /* its main process lives */
        EXEC_KILLING,  /* the main process is reaped, the rest of the tree is being ended */
        EXEC_DRAINING, /* the last bytes of its streams wait for credit */
        EXEC_KEPT,     /* detached, and ended: for whoever asks */
};

struct exec_out {
        int fd; /* -1: ended */
        /* The command's end, kept open: the stream ends with the main process, and a pipe that hangs up
         * would only wake the agent before that. */
        int theirs;
        bool ready;
        bool wide;         /* the pipe was made larger */
        bool flood;        /* much came, and soon after the last time */
        uint64_t taken_us; /* the last time */
        uint64_t credit;
        int64_t final_left; /* bytes still to be taken after the main process' end; -1: until EOF */
        uint8_t *ring;    /* of a detached command, FRAME_CREDIT bytes of the agent's pool; else NULL */
        uint64_t written; /* into the ring, since the command's start */
};

struct exec_in {
        int fd;
        bool eof; /* close it once the buffer is empty */
        size_t start, len;
        uint32_t ungranted; /* taken, and not yet told to the sender */
        uint8_t *buf;       /* FRAME_CREDIT bytes of the agent's pool */
        uint64_t eof_us; /* a terminal's, after the end: when to look whether it is to be told again */
};

/* In the environment of each command that has no gid of its own (tree.c), before its id. */
#define EXEC_MARKER "HERMES_SANDBOX_EXEC="

struct exec {
        enum exec_state state;
        uint32_t channel;
        pid_t pid;
        const struct agent_user *user;
        struct tree tree;
        char marker[sizeof(EXEC_MARKER) + PROTO_EXEC_ID]; /* EXEC_MARKER and its id */
        bool one_shot;
        bool detached;
        bool tty;
        bool kill_now;  /* end the whole tree with the main process, or before it */
        bool abandoned; /* nobody waits for its end any more */
        bool told;      /* detached, and ended: this manager knows it */
        bool forget;    /* detached: nobody will ask for it any more */
        bool pool_used; /* more than a little of its part of the pool was written to */
        uint8_t readers;
        uint32_t ended_as; /* detached: ends have an order */
        struct exec_in in;
        struct exec_out out[2];
        bool limited;
        uint64_t output_left;
        uint64_t started_us;
        uint64_t deadline_us; /* 0: none; when it passes: TERM, then after the grace time KILL */
        uint64_t grace_us;
        bool termed;
        bool shared;       /* others' processes were in the sandbox at some time since its start */
        bool from_reserve; /* at its start no process could be made: it is the spare one */
        uint64_t oom_before, pids_before;
        struct exited end;
};

/* What an idle sandbox has ready for its next command. */
struct ready {
        bool made;
        unsigned slot; /* where it will be: a free one */
        gid_t gid;
        int in[2], out[2][2]; /* pipes: theirs of stdin, ours of the others, first */
        uint64_t oom, pids;   /* cgroup counters */
};

/* Who reads what a detached command writes. */
struct reader {
        bool used;
        bool output; /* else only the end is waited for */
        bool tell;   /* where it reads from is to be said before anything else */
        uint32_t channel;
        unsigned slot;  /* of the command */
        uint64_t at[2]; /* the next byte of stdout, stderr, counted from the command's start */
        uint64_t credit[2];
};

struct agent {
        int epoll_fd, signal_fd;
        int null_fd;
        struct agent_ids ids;
        struct cgroup cgroup;
        char **image_env; /* the agent's own environment: the image's */
        struct ready ready;
        bool link_more;  /* the socket may hold more than was taken */
        bool link_later; /* a frame waits until its answer finds room */
        bool link_hup;   /* its end has been announced */
        bool link_waits; /* for room in the socket */
        uint8_t pong[8]; /* the answer that waits for room in the link */
        uint32_t pong_len;
        bool pong_due;
        char no_scrub[128];     /* why this sandbox can never be proved clean; "": it can */
        bool scrub_due;         /* from an order with scrub until its SCRUBBED */
        uint32_t scrub_channel; /* its channel */
        bool halt_due;          /* from a HALT until the last HALTED */
        uint32_t halts;         /* that it will answer */
        uint64_t halt_kill_us;  /* when KILL follows TERM; 0: it has */
        uint64_t halt_dead_us;  /* when nothing was left to kill; 0: not yet */
        uint32_t halted;        /* how many it ends */
        uint32_t exec_serial;
        unsigned n_execs;  /* but for kept ones */
        unsigned n_untold; /* kept ones of which this manager has had no EXITED */
        unsigned n_readers;
        unsigned top;       /* all slots from here on are free */
        unsigned pump_from; /* the slot whose turn it is */
        uint32_t ends;      /* detached commands that have ended */
        bool rest;          /* all of a flood was taken out of its pipe: let it fill again */
        uint32_t order_channel;
        size_t order_len;
        /* Up to here an idle agent's memory: one page, with the start of the link's buffer. */
        struct link link;
        struct exec execs[AGENT_EXECS];
        struct reader readers[AGENT_READERS];
        /* the EXEC payload that is being received, where it has more frames than one: all of them joined */
        uint8_t order[PROTO_EXEC_MAX];
};

/* What epoll's data says: a kind and an index. */
enum agent_event { EVENT_LINK, EVENT_SIGNAL, EVENT_STDIN, EVENT_STDOUT, EVENT_STDERR };
#define AGENT_EVENT(kind, index) ((uint64_t)(kind) << 32 | (uint32_t)(index))

/* The handlers of the manager's frames return 0 or -EPROTO. */
int exec_signal_frame(struct agent *a, const struct frame *f);
int exec_cancel_frame(struct agent *a, const struct frame *f);
/* Reaps every child that has ended. */
void exec_reap(struct agent *a);
/* Moves what can be moved: output into the link, deadlines, kills, ends. Returns true when more could
 * be moved at once. */
bool exec_advance(struct agent *a);
/* Where the last order asked for it, and its EXITED is on its way: scrubs, and adds SCRUBBED to the link. */
void exec_scrub(struct agent *a);
/* Milliseconds until exec_advance() must run again; -1: no deadline. */
int exec_timeout(const struct agent *a);
/* The manager has gone: ends what somebody was attached to. */
void exec_abandon(struct agent *a);

/* The command of @channel, or NULL. One that was abandoned is no manager's any more. */
struct exec *exec_find(struct agent *a, uint32_t channel);
/* A slot for a new command, RUNNING and with everything but its process and descriptors; NULL when all
 * are taken. */
struct exec *exec_take(struct agent *a, uint32_t channel, const struct exec_order *o,
                       const struct agent_user *user);
/* A start that failed before there was a process: EXITED will say so. */
void exec_failed(struct agent *a, struct exec *x, uint8_t cause, uint8_t stage, int error);

/* Is there any child, dead or alive, and so any command's process? The spare one does not count (spare.c). */
bool exec_children_left(void);
/* The only command that runs is a one-shot's: no other comes before its end. */
bool exec_alone(const struct agent *a);
/* The supplementary gid of the next command; 0: commands have none. */
gid_t exec_next_gid(struct agent *a);
/* A slot that is free; AGENT_EXECS: there is none. */
unsigned exec_free_slot(const struct agent *a);
/* The one place that assigns a slot's state. */
void exec_move(struct agent *a, struct exec *x, enum exec_state to);
/* EXITED of a command, on its own channel or on a reader's. There is room for EXITED_MAX. */
void exec_send_exited(struct agent *a, const struct exec *x, uint32_t channel);
/* Gives the slot back, with what it had open. */
void exec_free(struct agent *a, struct exec *x);

/* --- halt.c ------------------------------------------------------------------------------------ */

/* 0 or -EPROTO. */
int halt_frame(struct agent *a, const struct frame *f);
/* The next step of a HALT that is under way, after all others of the loop. Returns true when the next is due at once. */
bool halt_advance(struct agent *a);
/* When the next is due, on now_us()'s clock; 0: at an event, or there is none. */
uint64_t halt_next_us(const struct agent *a);
/* The manager has gone that sent it: what is still there is ended without further grace, and nobody is told. */
void halt_abandon(struct agent *a);

/* --- stream.c ---------------------------------------------------------------------------------- */

int stream_stdin_frame(struct agent *a, const struct frame *f);
int stream_window_frame(struct agent *a, const struct frame *f);
/* A pipe has become ready. */
void stream_event(struct agent *a, enum agent_event kind, unsigned index);
/* Moves output of all commands and of all readers into the link. Returns true when more could be moved at
 * once. */
bool stream_pump(struct agent *a);
/* Tells the sender of what stdin took while the link had no room. */
void stream_grant(struct agent *a, struct exec *x);
/* The main process has ended: all that the streams hold now belongs to the command; what a background
 * process adds later does not. */
void stream_drain(struct exec *x);
/* Adds @n bytes, and the lines in them, to what EXITED tells as dropped. */
void stream_count_unsent(struct exec *x, int i, const uint8_t *p, size_t n);
/* Nothing more of it will be sent. */
bool stream_done(const struct exec_out *o);
void stream_end(struct exec_out *o);

/* --- tty.c --------------------------------------------------------------------------------------- */

/* What a terminal may still hold of a command that has ended, and more: a pty takes 8192 bytes on their way
 * (tty_buffer_set_limit() in Linux' drivers/tty/pty.c), and 4096 that have arrived (N_TTY_BUF_SIZE). */
#define TTY_HELD_MAX 32768

/* The name of a terminal: "/dev/pts/4294967295". */
#define TTY_NAME 24

/* Makes a terminal of the command's uid, of the order's size, and fills the slot with the agent's ends of it.
 * 0 and its name, or -errno. */
int tty_open(struct agent *a, struct exec *x, const struct exec_order *o, char ret_name[TTY_NAME]);
int tty_resize_frame(struct agent *a, const struct frame *f);
/* Whoever reads from the terminal next shall meet the end of its input. */
void tty_end_input(struct exec *x, uint64_t now);
/* As when a line drops: the kernel sends SIGHUP to the command's session. */
void tty_hang_up(struct exec *x);

/* --- keep.c -------------------------------------------------------------------------------------- */

/* Each slot's part of a pool: a command's stdin, or two rings. */
uint8_t *keep_pool(unsigned slot);
/* @n bytes have come into the ring. */
void keep_written(struct exec *x, int i, size_t n);
/* The oldest byte that is there. */
uint64_t keep_oldest(const struct exec_out *o);
/* A detached command has ended, and all its output is there. */
void keep_ended(struct agent *a, struct exec *x);
/* Says what ended and was not said yet, as far as there is room. */
void keep_tell(struct agent *a);
/* Gives up the oldest one that nobody reads, for its slot. False: there is none. */
bool keep_evict(struct agent *a);
/* Gives it up if it has ended, nobody will ask, and nobody reads. */
void keep_release(struct agent *a, struct exec *x);
int keep_forget_frame(struct agent *a, const struct frame *f);
/* HELD for a new manager, at @buf: the payload's length, or -EMSGSIZE. */
ssize_t keep_held(struct agent *a, void *buf, size_t cap);

/* --- attach.c ------------------------------------------------------------------------------------ */

/* 0, LINK_LATER or -EPROTO. */
int attach_frame(struct agent *a, const struct frame *f);
/* The reader of @channel, or NULL. */
struct reader *attach_find(struct agent *a, uint32_t channel);
void attach_drop(struct agent *a, struct reader *r);
/* The manager has gone, and all readers with it. */
void attach_abandon(struct agent *a);
/* Moves a chunk for each reader. Returns true when one was moved and more may follow at once. */
bool attach_pump(struct agent *a);
/* Ends readers that have read all of a command that has ended. */
void attach_advance(struct agent *a);

/* --- start.c ----------------------------------------------------------------------------------- */

/* The agent takes the command's place, and its own again: who makes a pipe or a terminal owns it. The second
 * returns 0 or -errno. */
void start_as_command(const struct agent_user *user);
int start_as_agent(void);
/* Epoll tells of @fd as @kind, edge-triggered. 0 or -errno. */
int start_watch(struct agent *a, int fd, uint32_t events, enum agent_event kind, unsigned index);

/* Says on @channel that there is nothing of it: 0, or LINK_LATER. */
int start_refuse(struct agent *a, uint32_t channel, uint8_t cause, int error);

/* Adds the frame to the order and, with the last one, starts the command. 0, LINK_LATER or -EPROTO. */
int start_order_frame(struct agent *a, const struct frame *f);

/* Runs an empty shell once, before the handshake: a fresh container's mounts have looked no name up yet,
 * and the first command would pay for that. An image without a shell is no error. */
void start_warm_up(struct agent *a);

/* Between two turns of the loop: has ready what the next command, or the pids limit, will need. */
void start_ready(struct agent *a);
