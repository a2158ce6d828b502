/* Whatever comes in: the output is printable, has no quote of its own, and gives the source back. */
#include <stdlib.h>
#include <string.h>

#include "common/escape.h"
#include "unescape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t cap = 4 * size + 1;
        char *out = malloc(cap);
        uint8_t *back = malloc(cap);
        struct text t;

        if (!out || !back)
                abort();
        text_init(&t, out, cap);
        text_add_escaped(&t, data, size);
        if (t.bad || strlen(out) != t.len)
                abort();
        for (const char *p = out; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '"')
                        abort();
        if (strstr(out, "\xc2\x85") || strstr(out, "\xe2\x80\xa8") || strstr(out, "\xe2\x80\xa9"))
                abort();
        if (unescape(out, back) != size || (size > 0 && memcmp(back, data, size) != 0))
                abort();
        text_init(&t, out, cap);
        text_add_cut(&t, data, size, size, size / 2); /* its bounds, for the sanitizers */
        free(out);
        free(back);
        return 0;
}
