/* What all of our command lines say, under the name of the program that says it. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/exitcode.h"

static char program[16] = "hermes-sandbox";

void cli_error_name(const char *name) {
        snprintf(program, sizeof(program), "%s", name);
}

/* In one write. @start: bytes of @line that are there already. */
__attribute__((format(printf, 4, 0))) static void say(char *line, size_t start, size_t cap,
                                                      const char *fmt, va_list ap) {
        size_t len;

        vsnprintf(line + start, cap - start - 1, fmt, ap);
        len = strlen(line);
        for (size_t i = start; i < len; i++)
                if (line[i] == '\n' || line[i] == '\t')
                        line[i] = '?';
        cli_disarm(line + start, len - start);
        line[len] = '\n';
        cli_write_all(STDERR_FILENO, line, len + 1);
}

void cli_error(const char *fmt, ...) {
        char line[1280];
        va_list ap;

        snprintf(line, sizeof(line), "%s: ", program);
        va_start(ap, fmt);
        say(line, strlen(line), sizeof(line), fmt, ap);
        va_end(ap);
}

void cli_line(const char *fmt, ...) {
        char line[1280];
        va_list ap;

        va_start(ap, fmt);
        say(line, 0, sizeof(line), fmt, ap);
        va_end(ap);
}

int cli_write_failed(const char *what, int r) {
        if (r == -EPIPE)
                return EXIT_SIGNAL + SIGPIPE;
        cli_error("cannot write %s: %s", what, strerror(-r));
        return EXIT_SANDBOX;
}

int cli_say(const char *text) {
        int r = cli_write_all(STDOUT_FILENO, text, strlen(text));

        return r < 0 ? cli_write_failed("to stdout", r) : 0;
}
