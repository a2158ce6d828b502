/*
 * One command on its way: output, stdin, signals, until the manager's last word.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli_conn.h"
#include "common/errmsg.h"
#include "common/proto.h"

struct cli_sink {
        /* Takes @len bytes of STREAM_STDOUT or STREAM_STDERR. 0, or the exit status with which to end at once,
         * its line already said. */
        int (*take)(struct cli_sink *s, uint8_t stream, const void *p, size_t len);
        /* May move() be used for that stream? NULL: for none. */
        bool (*moves)(uint8_t stream);
        /* Takes up to @len bytes right from the socket @from. 0 and how many, 0 of them when there is nothing to
         * be had now, or the exit status as above; -ECONNRESET at the end of the socket's bytes. */
        int (*move)(uint8_t stream, int from, size_t len, size_t *ret_moved);
};

enum cli_end {
        CLI_END_RESULT,   /* .result */
        CLI_END_REJECT,   /* .reject */
        CLI_END_LOST,     /* the manager, or its mind: .error */
        CLI_END_SINK,     /* .exit_code: the output could not be delivered */
        CLI_END_DETACHED, /* it was started, and more was not asked for */
};

struct cli_outcome {
        enum cli_end end;
        int exit_code; /* of the program */
        bool started;
        /* Copied from STARTED; "" before it. */
        char exec_id[PROTO_EXEC_ID + 1];
        char container_id[PROTO_CONTAINER_ID + 1];
        char profile[PROTO_NAME_MAX + 1];
        bool pool_hit;
        bool attached;    /* CLI_ATTACH: ATTACHED has come, and said */
        uint64_t from[2]; /* where the output begins */
        /* Their strings live in the connection's buffer. */
        struct result result;
        struct reject reject;
        struct errmsg error;
};

/* What was asked for. */
enum cli_kind {
        CLI_EXEC,   /* a command, until its end */
        CLI_DETACH, /* a command, until it was started */
        CLI_ATTACH, /* the output and the end of a detached command */
        CLI_WAIT,   /* its end */
};

struct cli_way {
        enum cli_kind kind;
        bool use_stdin; /* CLI_EXEC: fd 0 is passed on */
        bool no_input;  /* CLI_EXEC: the end of the command's input is, at once */
        bool tty; /* CLI_EXEC: the command has a terminal, and its size is ours; fd 0 that is passed on is one */
        uint16_t rows, cols; /* what the manager was told of it */
        bool watch; /* CLI_EXEC: who reads stdout may go away while nothing is written: that is a SIGHUP, which ends us */
        struct cli_input *input; /* CLI_EXEC with use_stdin: fd 0 is read through it; NULL: as it is */
};

/*
 * What was read of fd 0, for a request that is made again: nothing that was sent along with a refused one is lost, as
 * a command that has not begun lets no more come than this.
 */
struct cli_input {
        size_t len;
        bool lost; /* more was read than is kept */
        uint8_t kept[FRAME_CREDIT];
};
/* As read(2) of fd 0, but for what is kept from *pos on, which comes first. *pos is where this request is in it. */
ssize_t cli_input_read(struct cli_input *in, size_t *pos, void *buf, size_t max);
/* Is something there without reading? */
static inline bool cli_input_waits(const struct cli_input *in, size_t pos) {
        return in && pos < in->len;
}

/*
 * Runs until the end, after the request was sent. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 go to
 * the command of a CLI_EXEC once it runs; before, and at a second SIGINT within a second, they do to this program
 * what they do to any. With a terminal that is passed on it is in raw mode while the command runs; SIGTSTP goes to
 * the command, too, and SIGHUP ends this program, as it does with watch.
 */
void cli_run_way(struct cli_conn *conn, const struct cli_way *way, struct cli_sink *sink,
                 struct cli_outcome *ret);
/* A CLI_EXEC without a terminal. */
void cli_run(struct cli_conn *conn, bool use_stdin, struct cli_sink *sink, struct cli_outcome *ret);

/* Connects, sends @q, and runs it until the end; what keeps it from that is a CLI_END_REJECT of our own. Once in a
 * program: the buffers are static. */
void cli_exec_send(const struct cli *c, const struct exec_request *q, const struct cli_way *way,
                   struct cli_sink *sink, struct cli_outcome *ret);

/* Output as it comes, to our own stdout and stderr. */
extern struct cli_sink cli_raw_sink;
/* The same for a command on a terminal. */
extern struct cli_sink cli_terminal_sink;

/* A refusal of our own as an outcome; the message stays the caller's. */
void cli_outcome_refused(struct cli_outcome *o, int exit_code, const char *message);
/* The line that there is to say of it, on stderr. */
void cli_outcome_say(const struct cli_outcome *o);
