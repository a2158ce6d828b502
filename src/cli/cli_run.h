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
        CLI_END_RESULT, /* .result */
        CLI_END_REJECT, /* .reject */
        CLI_END_LOST,   /* the manager, or its mind: .error */
        CLI_END_SINK,   /* .exit_code: the output could not be delivered */
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
        /* Their strings live in the connection's buffer. */
        struct result result;
        struct reject reject;
        struct errmsg error;
};

/*
 * Runs until the end, after the request was sent. With @use_stdin fd 0 is passed on. SIGINT, SIGTERM,
 * SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 go to the command once it runs; before, and at a second SIGINT
 * within a second, they do to this program what they do to any.
 */
void cli_run(struct cli_conn *conn, bool use_stdin, struct cli_sink *sink, struct cli_outcome *ret);
