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
 *     exec.c     the table of commands: deadlines, kills, ends
 *     stream.c   a command's streams: pipes, credit, limits
 *     child.c    from fork to exec: drop everything, then run
 *     spare.c    the process that is made beforehand, so that a start costs an exec
 *     tree.c     a command's processes, found by its supplementary gid
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

#include "common/frame.h"
#include "common/proto.h"

#define AGENT_EXECS 128
/* Bytes that an EXITED may have (frame.c). */
#define EXITED_MAX 256
/* And a SCRUBBED: its numbers, and a place of at most PROTO_NAME_MAX. */
#define SCRUBBED_MAX 128

/* What the broker wrote into the arguments (common/agent_args.h). */
struct agent_ids {
        uid_t uid;
        gid_t gid;
        gid_t exec_gid_first;
        uint32_t exec_gid_count;
};

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
        gid_t exec_gid;
        int in;     /* a pipe to read from, for an order that wants stdin; -1: there is none */
        int out[2]; /* become 1 and 2 */

        /* What only child_execute() looks at. */
        bool prepared;      /* the first half was done with the fields above */
        bool use_stdin;     /* @in becomes 0, which is else /dev/null */
        const char *script; /* becomes the file 3; NULL: there is none */
        size_t script_len;
        const char *workdir;
        const char *program; /* a path, or a name to look up in @path */
        char **argv;
        char **envp;
        const char *path; /* PATH of @envp */

        int error; /* out: errno, 0 when the exec succeeded */
        uint8_t stage;
};

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
 * takes ids and exec_gid of @c. */
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
/* Makes it run @c, and returns as child_start() does; -EAGAIN: there is none, or it died before. */
pid_t spare_start(struct child *c);

/* --- tree.c ------------------------------------------------------------------------------------ */

/* How many processes carry @gid as a supplementary group. -errno when /proc cannot be read. */
int tree_count(gid_t gid);
/* Sends @signo to each of them once. Returns how many there were. */
int tree_signal(gid_t gid, int signo);
/* One round of ending the tree: stop what runs until a scan finds nothing new, then kill. Returns how
 * many processes were seen; the tree is gone when it returns 0. */
int tree_kill(gid_t gid);

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
/* Receives what is there and calls @handle for each whole frame. 0, 1 when the socket may hold more, or
 * -errno: end of file (-ECONNRESET), a protocol error, or what @handle returned. */
int link_receive(struct link *l, int (*handle)(void *userdata, const struct frame *f), void *userdata);

/* --- exec.c ------------------------------------------------------------------------------------ */

enum exec_state {
        EXEC_FREE,
        EXEC_RUNNING,  /* its main process lives */
        EXEC_KILLING,  /* the main process is reaped, the rest of the tree is being ended */
        EXEC_DRAINING, /* the last bytes of its streams wait for credit */
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
};

struct exec_in {
        int fd;
        bool eof; /* close it once the buffer is empty */
        size_t start, len;
        uint32_t ungranted; /* taken, and not yet told to the sender */
        uint8_t *buf;       /* FRAME_CREDIT bytes of the agent's static pool */
};

struct exec {
        enum exec_state state;
        uint32_t channel;
        pid_t pid;
        gid_t gid;
        bool one_shot;
        bool kill_now;  /* end the whole tree with the main process, or before it */
        bool abandoned; /* nobody waits for its end any more */
        struct exec_in in;
        struct exec_out out[2];
        bool limited;
        uint64_t output_left;
        uint64_t started_us;
        uint64_t deadline_us; /* 0: none; when it passes: TERM, then after the grace time KILL */
        uint64_t grace_us;
        bool termed;
        uint64_t oom_before, pids_before;
        struct exited end;
};

/* What an idle sandbox has ready for its next command: in slot 0, as no other is taken then. */
struct ready {
        bool made;
        gid_t gid;
        int in[2], out[2][2]; /* pipes: theirs of stdin, ours of the others, first */
        uint64_t oom, pids;   /* cgroup counters */
};

struct agent {
        int epoll_fd, signal_fd;
        int null_fd;
        struct agent_ids ids;
        struct cgroup cgroup;
        char **image_env; /* the agent's own environment: the image's */
        struct ready ready;
        bool link_more;  /* the socket may hold more than was taken */
        bool link_hup;   /* its end has been announced */
        bool link_waits; /* for room in the socket */
        uint8_t pong[8]; /* the answer that waits for room in the link */
        uint32_t pong_len;
        bool pong_due;
        char no_scrub[128];     /* why this sandbox can never be proved clean; "": it can */
        bool scrub_due;         /* from an order with scrub until its SCRUBBED */
        uint32_t scrub_channel; /* its channel */
        uint32_t exec_serial;
        unsigned n_execs;
        unsigned pump_from; /* the slot whose turn it is */
        bool rest;          /* all of a flood was taken out of its pipe: let it fill again */
        uint32_t order_channel;
        size_t order_len;
        /* Up to here an idle agent's memory: one page, with the start of the link's buffer. */
        struct link link;
        struct exec execs[AGENT_EXECS];
        /* the EXEC payload that is being received, where it has more frames than one: all of them joined */
        uint8_t order[PROTO_EXEC_MAX];
        uint8_t stdin_pool[AGENT_EXECS][FRAME_CREDIT];
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
/* The manager has gone: ends what ran for one-shot callers. */
void exec_abandon(struct agent *a);

/* The command of @channel, or NULL. One that was abandoned is no manager's any more. */
struct exec *exec_find(struct agent *a, uint32_t channel);
/* A slot for a new command, RUNNING and with everything but its process and descriptors; NULL when all
 * are taken. */
struct exec *exec_take(struct agent *a, uint32_t channel, const struct exec_order *o);
/* A start that failed before there was a process: EXITED will say so. */
void exec_failed(struct agent *a, struct exec *x, uint8_t cause, uint8_t stage, int error);

/* Is there any child, dead or alive, and so any command's process? The spare one does not count (spare.c). */
bool exec_children_left(void);
/* The only command that runs is a one-shot's: no other comes before its end. */
bool exec_alone(const struct agent *a);
/* The supplementary gid of the next command. */
gid_t exec_next_gid(struct agent *a);

/* --- stream.c ---------------------------------------------------------------------------------- */

int stream_stdin_frame(struct agent *a, const struct frame *f);
int stream_window_frame(struct agent *a, const struct frame *f);
/* A pipe has become ready. */
void stream_event(struct agent *a, enum agent_event kind, unsigned index);
/* Moves output of all commands into the link. Returns true when more could be moved at once. */
bool stream_pump(struct agent *a);
/* Tells the sender of what stdin took while the link had no room. */
void stream_grant(struct agent *a, struct exec *x);
/* The main process has ended: all that the streams hold now belongs to the command; what a background
 * process adds later does not. */
void stream_drain(struct exec *x);
/* Nothing more of it will be sent. */
bool stream_done(const struct exec_out *o);
void stream_end(struct exec_out *o);

/* --- start.c ----------------------------------------------------------------------------------- */

/* Adds the frame to the order and, with the last one, starts the command. 0 or -EPROTO. */
int start_order_frame(struct agent *a, const struct frame *f);

/* Runs an empty shell once, before the handshake: a fresh container's mounts have looked no name up yet,
 * and the first command would pay for that. An image without a shell is no error. */
void start_warm_up(struct agent *a);

/* Between two turns of the loop: has ready what the next command, or the pids limit, will need. */
void start_ready(struct agent *a);
