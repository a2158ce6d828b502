/*
 * libyaml checks UTF-8 too, but reports an offset in bytes where a person wants a line: so the bytes are
 * checked before it sees them.
 */
#include "config/utf8.h"

#include "common/utf8.h"

const char *config_utf8_problem(const void *data, size_t len, unsigned *ret_line, unsigned *ret_column) {
        const unsigned char *p = data;
        unsigned line = 1, column = 1;

        while (len > 0) {
                const char *problem = NULL;
                uint32_t c = 0;
                size_t n = utf8_decode(p, len, &c);

                if (n == 0)
                        problem = "a byte that is not UTF-8";
                else if (c == 0)
                        problem = "a NUL byte";
                else if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
                        problem = "a control character";
                if (problem) {
                        *ret_line = line;
                        *ret_column = column;
                        return problem;
                }
                column++;
                if (c == '\n') {
                        line++;
                        column = 1;
                }
                p += n;
                len -= n;
        }
        return NULL;
}
