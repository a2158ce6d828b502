#include "common/utf8.h"

size_t utf8_decode(const uint8_t *p, size_t len, uint32_t *ret) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        uint32_t c;
        size_t n;

        if (len == 0)
                return 0;
        if (p[0] < 0x80) {
                *ret = p[0];
                return 1;
        }
        if ((p[0] & 0xe0) == 0xc0)
                n = 2, c = p[0] & 0x1f;
        else if ((p[0] & 0xf0) == 0xe0)
                n = 3, c = p[0] & 0x0f;
        else if ((p[0] & 0xf8) == 0xf0)
                n = 4, c = p[0] & 0x07;
        else
                return 0;
        if (n > len)
                return 0;
        for (size_t i = 1; i < n; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        *ret = c;
        return n;
}

bool utf8_valid(const void *p, size_t len) {
        const uint8_t *b = p;
        uint32_t c;

        for (size_t i = 0, n; i < len; i += n) {
                n = utf8_decode(b + i, len - i, &c);
                if (n == 0)
                        return false;
        }
        return true;
}

size_t utf8_whole(const uint8_t *p, size_t len) {
        uint32_t c;

        for (size_t back = 1; back <= 3 && back <= len; back++) {
                uint8_t lead = p[len - back];

                if ((lead & 0xc0) == 0x80)
                        continue;
                return lead >= 0xc2 && utf8_decode(p + len - back, back, &c) == 0 ? len - back : len;
        }
        return len;
}
