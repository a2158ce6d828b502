/* What exec, attach and wait do alike: the output as it comes, and the last word. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_run.h"

static int fd_of(uint8_t stream) {
        return stream == STREAM_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
}

static int output_failed(uint8_t stream, int r) {
        return cli_write_failed(
                stream == STREAM_STDOUT ? "the command's stdout" : "the command's stderr", r);
}

static int take_raw(struct cli_sink *s, uint8_t stream, const void *p, size_t len) {
        int r = cli_write_all(fd_of(stream), p, len);

        (void)s;
        return r < 0 ? output_failed(stream, r) : 0;
}

static bool moves_raw(uint8_t stream) {
        return cli_write_is_pipe(fd_of(stream));
}

static int move_raw(uint8_t stream, int from, size_t len, size_t *ret_moved) {
        ssize_t n = cli_write_move(fd_of(stream), from, len);

        if (n == 0 || n == -ECONNRESET)
                return -ECONNRESET;
        if (n < 0 && n != -EAGAIN)
                return output_failed(stream, (int)n);
        *ret_moved = n > 0 ? (size_t)n : 0;
        return 0;
}

static int take_terminal(struct cli_sink *s, uint8_t stream, const void *p, size_t len) {
        int r = cli_write_terminal(fd_of(stream), p, len);

        (void)s;
        return r < 0 ? output_failed(stream, r) : 0;
}

struct cli_sink cli_terminal_sink = { .take = take_terminal };

struct cli_sink cli_raw_sink = { .take = take_raw, .moves = moves_raw, .move = move_raw };

void cli_outcome_refused(struct cli_outcome *o, int exit_code, const char *message) {
        memset(o, 0, sizeof(*o));
        o->end = CLI_END_REJECT;
        o->exit_code = exit_code;
        o->reject.exit_code = (uint8_t)exit_code;
        o->reject.message = message;
}

void cli_outcome_say(const struct cli_outcome *o) {
        switch (o->end) {
        case CLI_END_RESULT:
                if (o->result.message[0] != '\0')
                        cli_error("%s", o->result.message);
                return;
        case CLI_END_REJECT:
                cli_error("%s", o->reject.message);
                return;
        case CLI_END_LOST:
                cli_error("%s", o->error.text);
                return;
        case CLI_END_SINK:
        case CLI_END_DETACHED:
                return;
        }
}
