/* What our programs exit with when it is not the command's own code. The table stands in README.md. */
#pragma once

enum exit_code {
        EXIT_USAGE = 64,        /* bad usage, or a command longer than the limit */
        EXIT_NO_MANAGER = 69,   /* nobody answers at the socket */
        EXIT_OS = 71,           /* the system refused: a read or write failed */
        EXIT_NOT_ALLOWED = 77,  /* not allowed */
        EXIT_CONFIG = 78,       /* bad config */
        EXIT_TIMED_OUT = 124,   /* the command ran into its time limit */
        EXIT_SANDBOX = 125,     /* the sandbox failed: nothing is known of the command */
        EXIT_CANNOT_EXEC = 126, /* the command is there and cannot be executed */
        EXIT_NOT_FOUND = 127,   /* no such command */
        EXIT_SIGNAL = 128       /* plus the number of the signal that ended it */
};
