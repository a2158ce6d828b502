#include "cli/cli_paint.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_tty.h"
#include "common/utf8.h"

/* SGR parameters (ECMA-48, 8.3.117): the eight colours that every terminal has, and so its owner's choice. */
#define BOLD "\033[1m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define RED "\033[31m"
#define PLAIN "\033[0m"
#define COLUMNS_MIN 20
/* Columns of a row in which a state may stand. */
#define STATE_COLUMNS 4
#define HEADING_WORDS 2

static const struct {
        const char *word, *color;
} states[] = {
        { "active", GREEN },     { "up", GREEN },       { "warm", GREEN },      { "open", GREEN },
        { "busy", YELLOW },      { "leased", YELLOW },  { "degraded", YELLOW }, { "starting", YELLOW },
        { "scrubbing", YELLOW }, { "opening", YELLOW }, { "waiting", YELLOW },  { "disabled", YELLOW },
        { "unsupported", RED },  { "down", RED },       { "not", RED },         { "failed", RED },
        { "lost", RED },
};

bool cli_paint_wanted(int fd) {
        const char *term = getenv("TERM"), *none = getenv("NO_COLOR");

        return isatty(fd) && term && strcmp(term, "dumb") != 0 && (!none || !none[0]);
}

static const char *color_of(const char *word, size_t len) {
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
                if (strlen(states[i].word) == len && memcmp(states[i].word, word, len) == 0)
                        return states[i].color;
        return NULL;
}

/* --- one line ------------------------------------------------------------------------------------ */

struct painted {
        char *out;
        size_t len;
};

static void put(struct painted *p, const char *s, size_t len) {
        memcpy(p->out + p->len, s, len);
        p->len += len;
}

static void put_in(struct painted *p, const char *color, const char *s, size_t len) {
        put(p, color, strlen(color));
        put(p, s, len);
        put(p, PLAIN, strlen(PLAIN));
}

/* A character is taken for one column. */
static unsigned width(const char *s, size_t len) {
        unsigned n = 0;
        uint32_t c;

        for (size_t i = 0, k; i < len; i += k, n++) {
                k = utf8_decode((const uint8_t *)s + i, len - i, &c);
                k = k > 0 ? k : 1;
        }
        return n;
}

/* Where the last column begins that leaves half of the terminal to what stands in it. */
static unsigned hang(const char *line, size_t len, unsigned columns) {
        unsigned at = 2;

        for (size_t i = 2; i < len && i <= columns / 2; i++)
                if (line[i] != ' ' && line[i - 1] == ' ' && line[i - 2] == ' ')
                        at = (unsigned)i;
        return at;
}

/* The words of a line, with the spaces before each. */
struct word {
        const char *spaces, *text;
        size_t n_spaces, len;
};

static bool next_word(const char **at, const char *end, struct word *ret) {
        const char *p = *at;

        ret->spaces = p;
        while (p < end && *p == ' ')
                p++;
        ret->n_spaces = (size_t)(p - ret->spaces);
        ret->text = p;
        while (p < end && *p != ' ')
                p++;
        ret->len = (size_t)(p - ret->text);
        *at = p;
        return ret->len > 0;
}

/* How many words of a line are its heading: "engine:", "pool default:", or the names of columns. */
static unsigned heading(const char *line, size_t len) {
        const char *at = line, *end = line + len;
        struct word w;

        if (len == 0 || line[0] == ' ')
                return 0;
        for (unsigned n = 1; n <= HEADING_WORDS && next_word(&at, end, &w); n++)
                if (w.text[w.len - 1] == ':')
                        return n;
        for (size_t i = 0; i < len; i++)
                if (line[i] >= 'a' && line[i] <= 'z')
                        return 0;
        return line[0] >= 'A' && line[0] <= 'Z' ? UINT_MAX : 0;
}

static void paint_word(struct painted *p, const struct word *w, bool row, unsigned n_heading,
                       unsigned nth) {
        size_t bare = w->len;
        const char *color = NULL;

        while (bare > 0 && strchr(":,", w->text[bare - 1]))
                bare--;
        /* Behind a heading it is the next word that may be a state. */
        if (nth < n_heading)
                color = BOLD;
        else if (row ? nth < STATE_COLUMNS : nth == n_heading && n_heading > 0)
                color = color_of(w->text, bare);
        if (color)
                put_in(p, color, w->text, w->len);
        else
                put(p, w->text, w->len);
}

size_t cli_paint_line(const char *line, size_t len, unsigned columns, bool color, char *out) {
        static const char blanks[] = "                                                                ";
        const char *at = line, *end = line + len;
        struct painted p = { .out = out };
        unsigned indent, column = 0, nth = 0, n_heading = heading(line, len);
        struct word w;

        if (columns && columns < COLUMNS_MIN)
                columns = COLUMNS_MIN;
        indent = hang(line, len, columns ? columns : 80);
        if (indent >= sizeof(blanks))
                indent = 2;
        for (; next_word(&at, end, &w); nth++) {
                unsigned n = width(w.text, w.len);

                if (columns && nth > 0 && column + w.n_spaces + n > columns) {
                        put(&p, "\n", 1);
                        put(&p, blanks, indent);
                        column = indent;
                } else {
                        put(&p, w.spaces, w.n_spaces);
                        column += (unsigned)w.n_spaces;
                }
                column += n;
                if (color)
                        paint_word(&p, &w, line[0] == ' ', n_heading, nth);
                else
                        put(&p, w.text, w.len);
        }
        return p.len;
}

/* --- a text -------------------------------------------------------------------------------------- */

int cli_paint_say(const char *text, size_t len) {
        bool color = cli_paint_wanted(STDOUT_FILENO);
        uint16_t rows = 0, columns = 0;
        const char *end = text + len;
        int r = 0;

        if (!isatty(STDOUT_FILENO))
                return cli_write_all(STDOUT_FILENO, text, len);
        if (!cli_tty_size(&rows, &columns))
                columns = 80;
        while (text < end && r >= 0) {
                const char *nl = memchr(text, '\n', (size_t)(end - text));
                size_t n = (size_t)((nl ? nl : end) - text);
                char *out = malloc(CLI_PAINT_LINE(n));

                if (!out)
                        return -ENOMEM;
                n = cli_paint_line(text, n, columns, color, out);
                out[n++] = '\n';
                r = cli_write_all(STDOUT_FILENO, out, n);
                free(out);
                text = nl ? nl + 1 : end;
        }
        return r;
}
