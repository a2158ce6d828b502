/*
 * A question to the manager that runs no command, and its answer: as text for people, or as the bytes that came.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"
#include "common/errmsg.h"
#include "common/proto_session.h"

/* Where an answer goes, piece by piece, with nothing in it that could drive a terminal. 0 to go on, or the exit
 * status with which to end, its line already said. */
typedef int cli_take(void *userdata, const char *text, size_t len);

/* To stdout. */
int cli_take_say(void *userdata, const char *text, size_t len);

struct cli_question {
        uint8_t type; /* FRAME_STATUS, FRAME_ASK, FRAME_OPEN */
        const void *payload;
        size_t len;
        int fd; /* sent along, unless it is negative; stays the caller's */
};

/* Where the bytes of an answer go, a frame's at a time. 0 to go on, or the exit status with which to end, its line said
 * or in the struct errmsg of the question. */
typedef int cli_take_bytes(void *userdata, const uint8_t *p, size_t len, bool last);

/*
 * Connects, asks, and hands the answer to @take as it came. Returns the exit status of the program, 0 when all of the
 * answer was taken; *e has the line to say, or is empty where none is to be said. *ret_reason is an enum reject_reason
 * where the manager refused, else REJECT_OTHER.
 */
int cli_ask_bytes(const struct cli *c, const struct cli_question *q, cli_take_bytes *take,
                  void *userdata, uint8_t *ret_reason, struct errmsg *e);

/*
 * Connects, asks with one frame of @type, and hands the answer to @take. @fd is sent along, unless it is negative,
 * and stays the caller's. Returns the exit status of the program, 0 when all of the answer was taken; *e has the
 * line to say, or is empty where none is to be said.
 */
int cli_ask_frame(const struct cli *c, uint8_t type, const void *payload, size_t len, int fd,
                  cli_take *take, void *userdata, struct errmsg *e);
/* The same with an ASK. Its strings may be NULL, which is "". */
int cli_ask(const struct cli *c, const struct ask *a, cli_take *take, void *userdata, struct errmsg *e);

/* The same: the answer goes to stdout and what went wrong to stderr. */
int cli_ask_and_say(const struct cli *c, const struct ask *a);
