/*
 * How a pull goes on, on stdout: on a terminal one row for each layer, written anew in its place; anywhere else a line
 * whenever a layer has come further by a word. Whatever the text says, no more than so many rows and lines are written
 * of layers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define BOARD_LAYERS 64
#define BOARD_LINES 16 /* of one layer, where it is no terminal */

struct board {
        bool tty;
        unsigned rows, columns; /* of the terminal: a row for each layer, as far as they go */
        size_t n;               /* layers that are known */
        struct {
                char id[13];
                char words[64]; /* what was written last */
                unsigned lines;
        } of[BOARD_LAYERS];
        size_t len; /* of a line whose end has not come */
        char line[1200];
};

/* @tty: stdout is a terminal, of that size. */
void board_init(struct board *b, bool tty, unsigned rows, unsigned columns);

/* The next piece of the text, of any length. A line such as "0123456789ab: Downloading 1 of 2 kB" is a layer's, any
 * other is itself. It is cli_take of cli_ask.h: 0, or an exit status. */
int board_take(void *board, const char *text, size_t len);
