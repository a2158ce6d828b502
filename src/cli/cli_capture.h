/*
 * exec, attach and wait with --json: what the command wrote is kept in memory, bounded, and comes out in one JSON object.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/cli_run.h"

/* Kept of each stream; the rest is counted and dropped. */
#define CLI_CAPTURE_MAX (16u << 20)

struct cli_captured {
        uint8_t *p;
        size_t len;
        uint64_t bytes, lines; /* all that came, kept or not */
};

struct cli_capture {
        struct cli_sink sink; /* first: the sink is the capture */
        struct cli_captured out, err;
};

/* One at a time: the buffers are static. */
void cli_capture_init(struct cli_capture *c);

/* Prints the object and a newline. The keys and their order never change; what is not known is null. @c is NULL
 * where output was not asked for. @session ("": none) is what was asked for; a result knows better. With @offsets
 * two more keys tell where the output begins. Returns 0 or -errno of the write. */
int cli_capture_print(const struct cli_capture *c, const struct cli_outcome *o, const char *session,
                      bool offsets, FILE *f);
