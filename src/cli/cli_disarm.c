/*
 * Text that is printed as it comes may hold what a sandbox chose: a command's name, say. The manager escapes it;
 * this is for the day that it does not.
 */
#include <string.h>

#include "cli/cli.h"
#include "common/utf8.h"

static bool harmful(uint32_t c) {
        return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) || c == 0x2028 ||
               c == 0x2029 || c == 0x200e || c == 0x200f || c == 0x061c ||
               (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t cli_disarm(char *text, size_t len) {
        uint8_t *p = (uint8_t *)text;
        size_t whole = utf8_whole(p, len);

        for (size_t i = 0, n; i < whole; i += n) {
                uint32_t c = 0;

                n = utf8_decode(p + i, whole - i, &c);
                if (n > 0 && !harmful(c))
                        continue;
                n = n > 0 ? n : 1;
                memset(p + i, '?', n);
        }
        return whole;
}
