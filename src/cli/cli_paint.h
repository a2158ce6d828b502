/*
 * Text for people on a terminal: no line wider than the terminal, what a row continues with below its own column,
 * and colour for the words that say how things stand. A pipe or a file gets the text as it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Are colours wanted on @fd? Only on a terminal that is not "dumb", and not where NO_COLOR is set to anything
 * (no-color.org). */
bool cli_paint_wanted(int fd);

/*
 * Writes one line, without its newline, to @out, and returns how many bytes that were: at most
 * CLI_PAINT_LINE(len). @columns: the terminal's, at least 20, or 0 for no bound. A line that is too long is broken
 * at spaces, and what follows stands below its last column (a column begins behind two spaces) if that is left of
 * the middle. @color: the heading of a line that is not a row ("engine:", or the names of columns) is bold, and a state word in one of the row's first
 * columns gets its colour. The text must be harmless to a terminal already (cli_disarm()).
 */
#define CLI_PAINT_LINE(len) ((len)*8 + 256)
size_t cli_paint_line(const char *line, size_t len, unsigned columns, bool color, char *out);

/* All of @text to stdout, wrapped at the terminal's width, coloured where that is wanted. 0 or -errno. */
int cli_paint_say(const char *text, size_t len);
