/*
 * The caller's terminal: its size, and other modes for a while, which are undone on every way out, a signal's
 * included.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum cli_tty_mode {
        /* In neither a byte of the output is changed. */
        CLI_TTY_RAW, /* every key is a byte for somebody else */
        CLI_TTY_KEYS /* every key at once and unseen; ^C and ^Z are what they always are */
};

/* The size of the first standard stream that is a terminal. False, and zeros, where none is or it has none. */
bool cli_tty_size(uint16_t *ret_rows, uint16_t *ret_cols);

/*
 * Puts the terminal behind @fd into that mode, and writes @on to stdout (or nothing: ""). From now on a signal that
 * would end the program, of those that are not ignored, does so only after the terminal is as it was and @off is
 * written; SIGPIPE is ignored; in CLI_TTY_KEYS a stop leaves, and going on enters again. One at a time; the
 * strings stay the caller's and must stay there. Returns 0 or -errno.
 */
int cli_tty_enter(int fd, enum cli_tty_mode mode, const char *on, const char *off);
/* Once more, after somebody else had the terminal: a shell, while we were stopped. */
void cli_tty_again(void);
/* As it was. Does nothing where nothing was entered. Keeps the handlers. */
void cli_tty_leave(void);
