/* What may stand in a text file. */
#pragma once

#include <stddef.h>

/* Words for the first byte that may not stand in a text file (bad UTF-8, a control character other than
 * tab and line ends), with its line and column from 1; NULL when there is none. */
const char *config_utf8_problem(const void *data, size_t len, unsigned *ret_line, unsigned *ret_column);
