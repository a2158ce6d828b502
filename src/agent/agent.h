/*
 * The agent: PID 1 of a sandbox. It starts commands, carries their streams, reaps, kills.
 *
 * One thread and one epoll loop over the stream to the manager, a signalfd and the commands' pipes.
 * Nothing is allocated after the start: every buffer is static and bounded, and untouched ones cost no
 * memory. The modules share the structs of this header:
 *
 *     main.c     arguments, confinement of the agent itself, the loop
 *     link.c     the stream to the manager: connect, buffers, frames
 *     start.c    an EXEC order: argv, environment, pipes
 *     exec.c     the table of commands: streams, deadlines, end
 *     child.c    from fork to exec: drop everything, then run
 *     tree.c     a command's processes, found by its supplementary gid
 *     cgroup.c   what the sandbox's own cgroup counts
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

/* What the broker wrote into the arguments (common/agent_args.h). */
struct agent_ids {
        uid_t uid;
        gid_t gid;
        gid_t exec_gid_first;
        uint32_t exec_gid_count;
};

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

/* --- child.c ----------------------------------------------------------------------------------- */

/* Everything between fork and exec, prepared beforehand: the child shares the agent's memory until it
 * execs, allocates nothing, and leaves its failure in @error and @stage. */
struct child {
        const struct agent_ids *ids;
        gid_t exec_gid;
        int fds[3];    /* become 0, 1 and 2 */
        int script_fd; /* becomes 3 where a script was too long for an argument; else -1 */
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

/* Keeps one process in reserve that child_start() uses when the pids limit refuses a new one. Safe to
 * call at any time; returns 0, or -errno when none could be made now. */
int child_spare(void);

/* --- tree.c ------------------------------------------------------------------------------------ */

/* How many processes carry @gid as a supplementary group. -errno when /proc cannot be read. */
int tree_count(gid_t gid);
/* Sends @signo to each of them once. Returns how many there were. */
int tree_signal(gid_t gid, int signo);
/* One round of ending the tree: stop what runs until a scan finds nothing new, then kill. Returns how
 * many processes were seen; the tree is gone when it returns 0. */
int tree_kill(gid_t gid);

/* --- seccomp.c, probe.c ------------------------------------------------------------------------ */

/* Installs the filter for the agent and all that it starts. Returns 0 or -errno. */
int seccomp_install(void);

/* Writes "key=value\n" lines into @buf, at most @cap bytes with the NUL. Keys: seccomp, no_new_privs,
 * seccomp_filters, cap_bounding, apparmor, rootfs, network, userns, cgroup, memory_max, swap_max, pids_max,
 * cpu_max. */
void probe(char *buf, size_t cap, const struct cgroup *cg);

/* --- link.c ------------------------------------------------------------------------------------ */

#define LINK_OUT (4 * FRAME_MAX)
#define LINK_IN (2 * FRAME_MAX)

struct link {
        int fd; /* -1: not connected */
        size_t out_start, out_len;
        size_t in_len;
        uint8_t out[LINK_OUT];
        uint8_t in[LINK_IN];
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
/* A small frame, copied. The caller has seen enough link_room(). */
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
        bool ready;
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

struct agent {
        int epoll_fd, signal_fd;
        int null_fd;
        struct agent_ids ids;
        struct cgroup cgroup;
        char **image_env; /* the agent's own environment: the image's */
        struct link link;
        bool link_more;  /* the socket may hold more than was taken */
        bool link_hup;   /* its end has been announced */
        uint8_t pong[8]; /* the answer that waits for room in the link */
        uint32_t pong_len;
        bool pong_due;
        uint32_t exec_serial;
        unsigned n_execs;
        unsigned pump_from; /* the slot whose turn it is */
        struct exec execs[AGENT_EXECS];
        /* the EXEC payload that is being received, all its frames joined */
        uint32_t order_channel;
        size_t order_len;
        uint8_t order[PROTO_EXEC_MAX];
        uint8_t stdin_pool[AGENT_EXECS][FRAME_CREDIT];
};

/* What epoll's data says: a kind and an index. */
enum agent_event { EVENT_LINK, EVENT_SIGNAL, EVENT_STDIN, EVENT_STDOUT, EVENT_STDERR };
#define AGENT_EVENT(kind, index) ((uint64_t)(kind) << 32 | (uint32_t)(index))

/* The handlers of the manager's frames return 0 or -EPROTO. */
int exec_stdin_frame(struct agent *a, const struct frame *f);
int exec_window_frame(struct agent *a, const struct frame *f);
int exec_signal_frame(struct agent *a, const struct frame *f);
int exec_cancel_frame(struct agent *a, const struct frame *f);
/* A pipe has become ready. */
void exec_event(struct agent *a, enum agent_event kind, unsigned index);
/* Reaps every child that has ended. */
void exec_reap(struct agent *a);
/* Moves what can be moved: output into the link, deadlines, kills, ends. Returns true when more could
 * be moved at once. */
bool exec_advance(struct agent *a);
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

/* --- start.c ----------------------------------------------------------------------------------- */

/* Adds the frame to the order and, with the last one, starts the command. 0 or -EPROTO. */
int start_order_frame(struct agent *a, const struct frame *f);

/* Runs an empty shell once, before the handshake: a fresh container's mounts have looked no name up yet,
 * and the first command would pay for that. An image without a shell is no error. */
void start_warm_up(struct agent *a);
