#include "cli/cli_board.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/utf8.h"

/* Up, down, the rest of the line (ECMA-48: CUU, CUD, EL). */
#define UP "\033[%zuA"
#define DOWN "\033[%zuB"
#define REST_OF_LINE "\033[K"

void board_init(struct board *b, bool tty, unsigned rows, unsigned columns) {
        memset(b, 0, sizeof(*b));
        b->tty = tty;
        b->rows = rows > 2 ? rows - 2 : 1;
        b->columns = columns > 1 ? columns - 1 : 1;
        if (b->rows > BOARD_LAYERS)
                b->rows = BOARD_LAYERS;
}

static int put(const char *text, size_t len) {
        int r = cli_write_all(STDOUT_FILENO, text, len);

        return r < 0 ? cli_write_failed("to stdout", r) : 0;
}

static bool is_layer(const char *line) {
        return strspn(line, "0123456789abcdef") == 12 && line[12] == ':' && line[13] == ' ';
}

/* The layer's place, BOARD_LAYERS for one too many. */
static size_t find(struct board *b, const char *line) {
        for (size_t i = 0; i < b->n; i++)
                if (memcmp(b->of[i].id, line, 12) == 0)
                        return i;
        if (b->n == BOARD_LAYERS)
                return b->n;
        memcpy(b->of[b->n].id, line, 12);
        return b->n++;
}

/* A character has at most as many columns as bytes. */
static size_t cut(const struct board *b, const char *line) {
        size_t len = strlen(line);

        return len <= b->columns ? len : utf8_whole((const uint8_t *)line, b->columns);
}

static int redraw(struct board *b, size_t i, bool is_new, const char *line) {
        size_t up = b->n - i;
        char out[1300];
        int n;

        if (i >= b->rows)
                return 0;
        if (b->n > b->rows)
                up = b->rows - i;
        if (is_new)
                n = snprintf(out, sizeof(out), "%.*s\n", (int)cut(b, line), line);
        else
                n = snprintf(out, sizeof(out), UP "\r%.*s" REST_OF_LINE DOWN "\r", up, (int)cut(b, line),
                             line, up);
        return put(out, (size_t)n);
}

/* Bytes come often, words seldom: a line without a terminal has none of the numbers. */
static int list(struct board *b, size_t i, const char *line) {
        size_t len = 14 + strcspn(line + 14, "0123456789");
        char out[128];
        int n;

        while (len > 14 && line[len - 1] == ' ')
                len--;
        n = snprintf(out, sizeof(out) - 1, "%.*s", (int)(len < 77 ? len : 77), line);
        if (b->of[i].lines == BOARD_LINES || strcmp(out + 14, b->of[i].words) == 0)
                return 0;
        b->of[i].lines++;
        snprintf(b->of[i].words, sizeof(b->of[i].words), "%.63s", out + 14);
        out[n++] = '\n';
        return put(out, (size_t)n);
}

static int take_line(struct board *b) {
        size_t n = b->n, i;
        int r;

        if (!is_layer(b->line)) {
                b->line[b->len] = '\n';
                r = put(b->line, b->len + 1);
                /* What stands above it stays as it is. */
                b->n = 0;
                memset(b->of, 0, sizeof(b->of));
                return r;
        }
        i = find(b, b->line);
        if (i == BOARD_LAYERS)
                return 0;
        return b->tty ? redraw(b, i, b->n > n, b->line) : list(b, i, b->line);
}

int board_take(void *board, const char *text, size_t len) {
        struct board *b = board;

        for (size_t i = 0; i < len; i++) {
                int r;

                if (text[i] != '\n') {
                        /* Of a line that is too long the end is left out. */
                        if (b->len + 2 < sizeof(b->line))
                                b->line[b->len++] = text[i];
                        continue;
                }
                b->line[b->len] = '\0';
                r = take_line(b);
                b->len = 0;
                if (r != 0)
                        return r;
        }
        return 0;
}
