/*
 * What stands in the payloads of the frames (frame.h): one struct and one encode/decode pair each.
 *
 * Every decoder checks every bound and refuses trailing bytes; strings and lists it returns point into
 * the payload, which the caller keeps for as long as it uses them. Every decoder returns 0 or -EPROTO
 * and touches *ret only on success. Every encoder returns the number of bytes written, or -EMSGSIZE
 * when @cap is too small.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A whole EXEC payload, all its frames joined: command, environment and the rest. */
#define PROTO_EXEC_MAX (4u << 20)
#define PROTO_ARGS_MAX 4096
#define PROTO_ENV_MAX 4096
#define PROTO_NAME_MAX 64
#define PROTO_CONNECTION_MAX 32 /* of a gateway's HELLO: what tells its connection from others */
#define PROTO_PATH_MAX 4096
#define PROTO_LINE_MAX 1024
/* The id of an exec: 16 lower-case hex digits. The id of a container: 64. */
#define PROTO_EXEC_ID 16
#define PROTO_CONTAINER_ID 64

/* How a command, or the attempt to run one, ended. The numbers are on the wire and in no case reused. */
enum cause {
        CAUSE_EXITED = 1,         /* it ran and called exit: code is its own */
        CAUSE_SIGNALED = 2,       /* a signal ended it */
        CAUSE_TIMEOUT = 3,        /* it ran into its time limit */
        CAUSE_OOM = 4,            /* the memory limit killed it or one of its processes */
        CAUSE_PIDS_LIMIT = 5,     /* it could not be started, or failed, at the pids limit */
        CAUSE_CANCELLED = 6,      /* its caller went away */
        CAUSE_SANDBOX_LOST = 7,   /* the sandbox ended under it: nothing is known of the command */
        CAUSE_REJECTED = 8,       /* it was never started */
        CAUSE_NOT_FOUND = 9,      /* no such program in the sandbox */
        CAUSE_NOT_EXECUTABLE = 10 /* there is one, and it cannot be executed */
};

/* The name of @cause as it stands in JSON and in the audit trail ("exited", "oom", …), "unknown" for
 * any other number. */
const char *cause_name(uint8_t cause);

enum proto_stream { STREAM_STDIN = 0, STREAM_STDOUT = 1, STREAM_STDERR = 2 };

/* HELLO, all directions. */
enum hello_role {
        HELLO_CLIENT = 1,
        HELLO_MANAGER = 2,
        HELLO_AGENT = 3,
        HELLO_GATEWAY = 4, /* a client for the holder of an ssh key: the gateway's account alone */
};

struct hello {
        uint16_t version; /* FRAME_VERSION */
        uint8_t role;     /* enum hello_role */
        const char *
                text; /* agent: what it sees of its own confinement, "key=value\n" lines (agent/probe.h);
                              gateway: "FINGERPRINT ADDRESS PORT CONNECTION", of the key and of who holds it;
                              others: program name and version; at most 4000 bytes */
};
ssize_t hello_encode(const struct hello *h, void *buf, size_t cap);
int hello_decode(const void *buf, size_t len, struct hello *ret);

/* EXEC, client -> manager. */
struct exec_request {
        bool use_stdin; /* stdin is passed on (STDIN frames follow); else /dev/null */
        bool shell;     /* args[0] is a string for sh -c, and n_args is 1 */
        bool open;      /* opens the session where there is none of that name */
        bool detach;    /* in a session alone: STARTED is the answer, nobody waits for the end */
        bool tty;       /* on a terminal of its own, of rows and cols; stdout has all output */
        bool files;     /* args are for the agent's own file tool (agent/files.h), not a program's */
        bool user; /* as uid:gid, which the profile must list, or which are its own, or the session's */
        uint32_t uid, gid;   /* 0 without user; gid UINT32_MAX: the one that goes with that uid */
        uint64_t timeout_ms; /* 0: the profile's; with detach or tty, and by the ssh gateway: none */
        uint16_t rows, cols; /* 0 without tty */
        const char *profile; /* "": the default; in a session that exists: its own, or refused */
        const char *workdir; /* "": the profile's; else absolute */
        const char *session; /* "": one-shot; else its name, or the first digits of its sandbox's id */
        uint32_t n_args;     /* 1 … PROTO_ARGS_MAX */
        uint32_t n_env;      /* 0 … PROTO_ENV_MAX */
        const char **args;   /* for encode */
        const char **env;    /* for encode: "KEY=VALUE" */
        const uint8_t *args_wire; /* after decode: n_args strings, then n_env: see exec_string() */
        size_t strings_len;
        bool login; /* not on the wire: the manager's word, of the ssh gateway's requests */
};
ssize_t exec_request_encode(const struct exec_request *r, void *buf, size_t cap);
/* Bytes that exec_request_encode() will need. */
size_t exec_request_size(const struct exec_request *r);
/* The strings are left on the wire, all checked; walk them with wire_get_str(). */
int exec_request_decode(const void *buf, size_t len, struct exec_request *ret);

/* EXEC, manager -> agent: the same strings, with what policy made of the rest. */
struct exec_order {
        bool use_stdin;
        bool shell;
        bool one_shot;         /* kill what is left of the tree before EXITED */
        bool scrub;            /* one_shot, and alone: scrub and prove after EXITED, then say SCRUBBED */
        bool detached;         /* output is kept in the agent, and so is the end (EXITED is sent all the
                                     same); outlives the connection. Never with use_stdin, one_shot or tty */
        bool tty;              /* with use_stdin */
        bool files;            /* args are for the agent's own file tool */
        uint32_t uid, gid;     /* one of the pairs that the agent's arguments have */
        uint16_t rows, cols;   /* of the terminal; 0 without */
        const char *exec_id;   /* PROTO_EXEC_ID hex digits */
        uint64_t timeout_ms;   /* 0: none */
        uint32_t grace_ms;     /* between TERM and KILL */
        uint64_t output_bytes; /* of both streams together, then drained on; 0: no limit */
        const char *workdir;   /* absolute */
        uint32_t n_args;
        uint32_t n_env; /* the profile's, then the caller's; later ones win */
        const uint8_t *strings;
        size_t strings_len;
};
/* Only the part before the strings; the caller appends exactly strings_len bytes of n_args + n_env
 * strings (wire_put_str() form). */
ssize_t exec_order_encode_head(const struct exec_order *o, void *buf, size_t cap);
int exec_order_decode(const void *buf, size_t len, struct exec_order *ret);

/* WINDOW, any direction. */
struct window {
        uint8_t stream; /* enum proto_stream */
        uint32_t bytes; /* 1 … */
};
#define WINDOW_SIZE 5
void window_encode(const struct window *w, uint8_t buf[WINDOW_SIZE]);
int window_decode(const void *buf, size_t len, struct window *ret);

/* STARTED, manager -> client. */
struct started {
        const char *exec_id;      /* PROTO_EXEC_ID hex digits */
        const char *container_id; /* PROTO_CONTAINER_ID hex digits */
        const char *profile;
        bool pool_hit; /* a warm sandbox was there */
};
ssize_t started_encode(const struct started *s, void *buf, size_t cap);
int started_decode(const void *buf, size_t len, struct started *ret);

/* What could not be done, when a command could not be started (cause not_found or not_executable). */
enum start_stage {
        START_PROGRAM = 0,  /* the exec itself */
        START_WORKDIR = 1,  /* chdir to the working directory */
        START_IDENTITY = 2, /* groups, gid, uid, capabilities */
        START_PLUMBING = 3, /* pipes, script file, process */
};

/* EXITED, agent -> manager. Nothing in it is trusted: it only describes. */
struct exited {
        uint8_t cause;  /* CAUSE_EXITED, _SIGNALED, _TIMEOUT, _OOM, _PIDS_LIMIT, _CANCELLED, _NOT_FOUND,
                             _NOT_EXECUTABLE */
        uint8_t code;   /* exit code, or number of the signal, or enum start_stage where error is set */
        bool signaled;  /* code is a signal */
        bool truncated; /* output was dropped at the limit */
        int32_t error;  /* errno of a failed start, else 0 */
        uint64_t wall_us;
        uint64_t user_us;
        uint64_t system_us;
        uint64_t maxrss_bytes;       /* the largest process of the command */
        uint64_t sandbox_peak_bytes; /* the cgroup's; 0 where unknown */
        uint64_t dropped_bytes[2];   /* stdout, stderr: after truncation */
        uint64_t dropped_lines[2];
        uint32_t background_left; /* processes of the command that outlived its main process */
};
ssize_t exited_encode(const struct exited *e, void *buf, size_t cap);
int exited_decode(const void *buf, size_t len, struct exited *ret);

/* What the proof of a scrub found; the numbers are on the wire and in no case reused. */
enum scrub_check {
        SCRUB_CLEAN = 0,      /* all is as it was at the handshake */
        SCRUB_PROCESSES = 1,  /* a process lives that is not the agent's */
        SCRUB_FILES = 2,      /* a writable place holds something */
        SCRUB_ATTRIBUTES = 3, /* mode, owner, times, flags or extended attributes of a place's top */
        SCRUB_BLOCKS = 4,     /* free blocks or inodes of a file system in memory */
        SCRUB_SYSV_IPC = 5,   /* a System V shared memory segment, message queue or semaphore set */
        SCRUB_QUEUES = 6,     /* a POSIX message queue */
        SCRUB_SOCKETS = 7,    /* a TCP connection that outlives its process */
        SCRUB_MOUNTS = 8,     /* the mount table is not that of the handshake */
        SCRUB_UNPROVED = 9    /* a check could not be made, or took too long */
};
#define SCRUB_CHECKS 10

/* The name of @check as it stands in JSON and in the trails ("clean", "processes", …), "unknown" for any
 * other number. */
const char *scrub_check_name(uint8_t check);

/* SCRUBBED, agent -> manager: once for each exec_order.scrub, after its EXITED. Without a SCRUB_CLEAN the
 * sandbox is thrown away. */
struct scrubbed {
        uint8_t check;     /* enum scrub_check */
        bool emptied;      /* there was something to remove */
        uint64_t us;       /* what it took */
        const char *place; /* which writable place, "" where that says nothing; at most 64 bytes, the
                              agent's word: shown escaped only */
};
ssize_t scrubbed_encode(const struct scrubbed *s, void *buf, size_t cap);
int scrubbed_decode(const void *buf, size_t len, struct scrubbed *ret);

/* RESULT, manager -> client: the end of an exec that was started. */
struct result {
        uint8_t cause;     /* enum cause */
        uint8_t exit_code; /* what the CLI exits with (DESIGN.md's table) */
        uint8_t code;      /* the command's own exit code or signal number */
        bool signaled;
        bool truncated;
        bool pool_hit;
        bool reused;   /* the sandbox served others before: sandbox_peak_bytes is not this command's */
        int32_t error; /* errno of a failed start */
        uint64_t wall_us; /* from the request to the end, as the manager saw it */
        uint64_t user_us;
        uint64_t system_us;
        uint64_t maxrss_bytes;
        uint64_t sandbox_peak_bytes; /* 0: unknown */
        uint64_t bytes[2];           /* stdout, stderr: all that the command wrote */
        uint64_t lines[2];
        uint32_t background_left;
        const char *exec_id;
        const char *container_id;
        const char *profile;
        const char *session; /* "": one-shot */
        const char *message; /* one line, or "" */
};
ssize_t result_encode(const struct result *r, void *buf, size_t cap);
int result_decode(const void *buf, size_t len, struct result *ret);

/* Why, for a program that goes on by itself. The numbers are on the wire and in no case reused. */
enum reject_reason {
        REJECT_OTHER = 0,
        REJECT_NO_SESSION = 1, /* none of that name or id is the caller's */
        REJECT_STOPPED = 2,    /* the session is stopped */
        REJECT_NAME_TAKEN = 3,
        REJECT_AMBIGUOUS = 4,   /* several ids begin so */
        REJECT_NO_PROFILE = 5,  /* no such profile in the config */
        REJECT_OTHER_IMAGE = 6, /* the profile has another; the message ends in its name, in quotes */
        REJECT_NO_USER = 7,     /* commands may not run as that user there */
};

/* REJECT, manager -> client: the request was refused; no command ran. */
struct reject {
        uint8_t exit_code;   /* 1, 64, 69, 77, 78, 125 */
        uint8_t reason;      /* enum reject_reason */
        const char *message; /* one line: what failed, on what, why, what mends it */
};
ssize_t reject_encode(const struct reject *r, void *buf, size_t cap);
int reject_decode(const void *buf, size_t len, struct reject *ret);

/* STATUS request, client -> manager: one byte, 0 = text for people, 1 = JSON. The answer is the text
 * itself in STATUS frames, the last without FRAME_MORE. */
