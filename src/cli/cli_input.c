/* The copy costs what a memcpy costs, and only a request that may have to be made again pays it. */
#include <string.h>
#include <unistd.h>

#include "cli/cli_run.h"

ssize_t cli_input_read(struct cli_input *in, size_t *pos, void *buf, size_t max) {
        ssize_t n;

        if (*pos < in->len) {
                n = (ssize_t)(in->len - *pos < max ? in->len - *pos : max);
                memcpy(buf, in->kept + *pos, (size_t)n);
                *pos += (size_t)n;
                return n;
        }
        n = read(STDIN_FILENO, buf, max);
        if (n <= 0 || in->lost)
                return n;
        if ((size_t)n > sizeof(in->kept) - in->len) {
                in->lost = true;
                return n;
        }
        memcpy(in->kept + in->len, buf, (size_t)n);
        in->len += (size_t)n;
        *pos = in->len;
        return n;
}
