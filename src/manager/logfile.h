/*
 * The manager's log file: what goes to the journal or stderr stands in it, too, each line with its time and level. It is
 * a help and never a condition: whatever is wrong with it costs lines in it, one line on stderr, and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "manager/rotate.h"

/* Embedded; all 0 before the first logfile_set(). */
struct logfile {
        struct rotate file; /* path NULL: there is none */
        uint64_t lost;      /* lines that could not be written since the last one that could */
        bool busy;          /* it speaks of itself, which is for stderr alone */
};

/* Level and file as @c has them, from now on; to be called at the start and after each reload. The file is in the
 * folder @dir. @f must stay where it is until logfile_done(). */
void logfile_set(struct logfile *f, const char *dir, const struct config *c);
void logfile_done(struct logfile *f);
