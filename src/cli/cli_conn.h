/*
 * The connection to the manager: finding its socket, the first frames, and frames as they come in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "common/errmsg.h"
#include "common/frame.h"

/* Holds any frame, and a second one behind it, so that few reads and few moves are needed. */
#define CLI_CONN_BUFFER (2 * FRAME_PAYLOAD_MAX)
/* The one channel that a client uses. */
#define CLI_CHANNEL 1

struct cli_conn {
        int fd;
        bool greeted; /* the manager's HELLO was read */
        /* What a HELLO_GATEWAY says (proto.h), set after cli_conn_open(); NULL: a HELLO_CLIENT. */
        const char *gateway;
        size_t start, end;
        uint8_t buf[CLI_CONN_BUFFER];
};

/*
 * Connects, close-on-exec and to a number above 2 even when a standard stream is closed. Returns 0 and
 * an open c->fd, or the exit status of the program (EXIT_NO_MANAGER, EXIT_NOT_ALLOWED, EXIT_USAGE) and
 * one line in *e that says what mends it.
 */
int cli_conn_open(struct cli_conn *conn, const struct cli *c, struct errmsg *e);

/* Sends HELLO and one request, split over frames of @type with FRAME_MORE, in one go, waiting as long
 * as it takes. Returns 0, also when the manager has closed its end meanwhile: what it said before can
 * still be read. */
int cli_conn_request(struct cli_conn *conn, uint8_t type, const void *payload, size_t len);
/* The same, and @fd is passed along unless it is negative. It stays the caller's. */
int cli_conn_request_fd(struct cli_conn *conn, uint8_t type, const void *payload, size_t len, int fd);

/* Reads what is there, at most @max bytes, with the flags of recv(2). Returns 1, 0 at the end of the stream,
 * -EAGAIN or another -errno. Frames given out before are gone after it. */
int cli_conn_fill(struct cli_conn *conn, size_t max, int flags);

/* The next frame after the HELLO, which is checked and swallowed here. Returns 1, 0 when more bytes are
 * needed, or -EPROTO and one line in *e. */
int cli_conn_next(struct cli_conn *conn, struct frame *ret, struct errmsg *e);

/* The frame that cli_conn_next() needs more bytes for, and how much of its payload the buffer holds. False where
 * not even its header is there. */
bool cli_conn_begun(const struct cli_conn *conn, struct frame *ret, size_t *ret_have);
/* Bytes that the header of the next frame lacks, or else its payload; at least 1. */
size_t cli_conn_missing(const struct cli_conn *conn);
/* Forgets what the buffer holds of it: the caller reads the rest from the socket. */
void cli_conn_cut(struct cli_conn *conn);

/* Is the manager that the user's own one, whose socket $XDG_RUNTIME_DIR has? What neither --socket nor the
 * environment names is looked for there first. */
bool cli_conn_is_users(const struct cli *c);

/* One line on why EACCES: the caller, who is not in the group or only not yet. Exposed for tests:
 * @groups are the process's own. */
void cli_conn_explain_eacces(const char *group_file, const char *user, gid_t primary,
                             const gid_t *groups, size_t n_groups, const char *path, struct errmsg *e);
