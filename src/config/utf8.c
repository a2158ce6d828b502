/*
 * libyaml checks UTF-8 too, but reports an offset in bytes where a person wants a line: so the bytes are
 * checked before it sees them. The form is that of RFC 3629, section 4.
 */
#include "config/utf8.h"

size_t config_utf8_get(const unsigned char *p, size_t len, uint32_t *ret) {
        static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t n;
        uint32_t c;

        if (len == 0)
                return 0;
        if (p[0] < 0x80) {
                *ret = p[0];
                return 1;
        }
        if (p[0] >= 0xf0 && p[0] < 0xf8)
                n = 4;
        else if (p[0] >= 0xe0 && p[0] < 0xf0)
                n = 3;
        else if (p[0] >= 0xc0 && p[0] < 0xe0)
                n = 2;
        else
                return 0;
        if (len < n)
                return 0;
        c = p[0] & (0x7fu >> n);
        for (size_t i = 1; i < n; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        if (c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        *ret = c;
        return n;
}

const char *config_utf8_problem(const void *data, size_t len, unsigned *ret_line, unsigned *ret_column) {
        const unsigned char *p = data;
        unsigned line = 1, column = 1;

        while (len > 0) {
                const char *problem = NULL;
                uint32_t c = 0;
                size_t n = config_utf8_get(p, len, &c);

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
