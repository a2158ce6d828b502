/*
 * top: the manager is asked once a second. On a terminal its answer stands on the other screen, cut to size;
 * anywhere else it is printed once.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cli/cli_opts.h"
#include "cli/cli_paint.h"
#include "cli/cli_tty.h"
#include "common/exitcode.h"
#include "common/utf8.h"

#define INTERVAL_MS 1000
/* Control sequences (ECMA-48, and xterm's private modes): the other screen, without a cursor, and back; home, the
 * rest of a line, the rest of the screen. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define REST_OF_LINE "\033[K"
#define REST_OF_SCREEN "\033[J"

static const char top_help[] =
        "usage: hermes-sandbox top [--once] [--all] [--json]\n"
        "\n"
        "Shows what each sandbox uses now, and what runs in it, anew each second; q or ^C leaves.\n"
        "With --once, or where stdout is no terminal, it is printed once.\n"
        "\n"
        "options:\n"
        "  --once  print it and end\n"
        "  --all   of every user, for root\n"
        "  --json  JSON in place of text; implies --once\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox top\n"
        "  hermes-sandbox top --once --json | jq .\n";

enum { OPT_HELP, OPT_ONCE, OPT_ALL, OPT_JSON };

static const struct cli_opt top_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "once", 0, false, OPT_ONCE },
        { "all", 0, false, OPT_ALL },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};

/* More does not fit on any screen. */
struct page {
        size_t len;
        char text[256 * 1024];
};

static int keep(void *userdata, const char *text, size_t len) {
        struct page *p = userdata;
        size_t room = sizeof(p->text) - p->len;

        len = len < room ? len : room;
        memcpy(p->text + p->len, text, len);
        p->len += len;
        return 0;
}

/* A character of the text is taken for one column. Those that are wider only spoil their own line. */
static size_t cut(const char *line, size_t len, unsigned columns) {
        size_t i = 0;

        for (unsigned n = 0; i < len && n < columns; n++) {
                uint32_t c;
                size_t k = utf8_decode((const uint8_t *)line + i, len - i, &c);

                i += k > 0 ? k : 1;
        }
        return i;
}

static int draw(const struct page *p) {
        static char out[sizeof(p->text) * 2];
        const char *line = p->text, *end = p->text + p->len;
        bool color = cli_paint_wanted(STDOUT_FILENO);
        uint16_t rows = 24, columns = 80;
        size_t n = 0;

        if (!cli_tty_size(&rows, &columns)) {
                rows = 24;
                columns = 80;
        }
        n += (size_t)snprintf(out + n, sizeof(out) - n, HOME);
        for (unsigned row = 0; row + 1 < rows && line < end && n < sizeof(out) / 2; row++) {
                const char *nl = memchr(line, '\n', (size_t)(end - line));
                size_t len = (size_t)((nl ? nl : end) - line);
                size_t shown = cut(line, len, columns);

                n += cli_paint_line(line, shown, 0, color, out + n);
                n += (size_t)snprintf(out + n, sizeof(out) - n, REST_OF_LINE "\r\n");
                line += len + 1;
        }
        n += (size_t)snprintf(out + n, sizeof(out) - n, REST_OF_SCREEN);
        return cli_write_all(STDOUT_FILENO, out, n);
}

/* A manager that does not answer may do so again. */
static void ask(const struct cli *c, const struct ask *a, struct page *p) {
        struct errmsg e;

        p->len = 0;
        if (cli_ask(c, a, keep, p, &e) != 0) {
                p->len = 0;
                keep(p, e.text, strlen(e.text));
        }
}

static uint64_t now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* The window has another size. Blocked but where we wait, so that none is missed. */
static volatile sig_atomic_t resized;

static void on_resize(int signo) {
        (void)signo;
        resized = 1;
}

static int wait_for_key(uint64_t ms) {
        struct timespec ts = { .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000 };
        struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
        sigset_t none;

        sigemptyset(&none);
        return ppoll(&in, 1, &ts, &none);
}

/* Until @until_ms. True: the user leaves. */
static bool pause_until(const struct page *p, uint64_t until_ms) {
        for (uint64_t now = now_ms(); now < until_ms; now = now_ms()) {
                char keys[64];
                ssize_t n;

                if (resized) {
                        resized = 0;
                        draw(p);
                }
                if (wait_for_key(until_ms - now) <= 0)
                        continue;
                n = read(STDIN_FILENO, keys, sizeof(keys));
                if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
                        return true;
                if (n > 0 && (memchr(keys, 'q', (size_t)n) || memchr(keys, 'Q', (size_t)n)))
                        return true;
        }
        return false;
}

/* ^C is a way to leave, and no failure. */
static void on_interrupt(int signo) {
        (void)signo;
        cli_tty_leave();
        _exit(0);
}

static int view(const struct cli *c, const struct ask *a) {
        static struct page page;
        struct sigaction resize = { .sa_handler = on_resize },
                         interrupt = { .sa_handler = on_interrupt };
        struct errmsg e;
        sigset_t winch;
        int r;

        /* What is wrong from the start is said as by any command. */
        r = cli_ask(c, a, keep, &page, &e);
        if (r != 0) {
                cli_error("%s", e.text);
                return r;
        }
        r = cli_tty_enter(STDIN_FILENO, CLI_TTY_KEYS, ENTER, LEAVE);
        if (r < 0) {
                cli_error("top: stdin is no terminal: %s: give --once", strerror(-r));
                return EXIT_USAGE;
        }
        sigemptyset(&winch);
        sigaddset(&winch, SIGWINCH);
        sigprocmask(SIG_BLOCK, &winch, NULL);
        sigaction(SIGWINCH, &resize, NULL);
        sigaction(SIGINT, &interrupt, NULL);
        do {
                uint64_t next_ms = now_ms() + INTERVAL_MS;

                r = draw(&page);
                if (r < 0 || pause_until(&page, next_ms))
                        break;
                ask(c, a, &page);
        } while (true);
        cli_tty_leave();
        return r < 0 ? cli_write_failed("to the terminal", r) : 0;
}

static int run_top(const struct cli *c, int argc, char **argv) {
        struct ask a = { .op = ASK_TOP };
        bool once = !isatty(STDOUT_FILENO);
        struct cli_opts o;
        struct errmsg e;
        const char *value;
        int id;

        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_next(&o, top_opts, &value, &e)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(top_help);
                once |= id == OPT_ONCE || id == OPT_JSON;
                a.all |= id == OPT_ALL;
                if (id == OPT_JSON)
                        a.form = ANSWER_JSON;
        }
        if (id == CLI_OPTS_END && o.next < argc)
                id = errmsg_set(&e, -EINVAL, "unexpected argument '%.80s'", argv[o.next]);
        if (id != CLI_OPTS_END) {
                cli_error("top: %s: see hermes-sandbox top --help", e.text);
                return EXIT_USAGE;
        }
        return once ? cli_ask_and_say(c, &a) : view(c, &a);
}

const struct cli_command cli_top_command = {
        .name = "top",
        .group = CLI_LOOK,
        .summary = "what each sandbox uses now",
        .help = top_help,
        .run = run_top,
};
