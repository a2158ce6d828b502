/* Bytes, rate, file; nothing for what takes less than a second. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/files/files.h"
#include "common/escape.h"
#include "common/filepath.h"

#define FIRST_MS 1000
#define EVERY_MS 200
/* Back to the front of the line, and all of it gone (ECMA-48, EL). */
#define CLEAR "\r\033[K"

static uint64_t now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void files_progress_init(struct files_progress *p) {
        p->on = isatty(STDERR_FILENO) == 1;
        p->drawn = false;
        p->begin_ms = now_ms();
        p->next_ms = p->begin_ms + FIRST_MS;
}

/* "12.3 MiB": tenths, no floating point. */
static void add_amount(struct text *t, uint64_t bytes) {
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
        uint64_t tenths = 0;
        size_t u = 0;

        for (; bytes >= 1024; u++) {
                tenths = bytes % 1024 * 10 / 1024;
                bytes /= 1024;
        }
        if (u == 0)
                text_addf(t, "%llu B", (unsigned long long)bytes);
        else
                text_addf(t, "%llu.%llu %s", (unsigned long long)bytes, (unsigned long long)tenths,
                          units[u]);
}

/* The end of the path, as much as fits: a character is one that begins here, not a byte that goes on. */
static void add_path(struct text *t, const char *path, size_t columns) {
        static char shown[4 * FILEPATH_MAX + 1];
        const char *s = shown;
        size_t chars = 0;
        struct text whole;

        text_init(&whole, shown, sizeof(shown));
        text_add_shown(&whole, path, strlen(path));
        for (size_t i = 0; i < whole.len; i++)
                chars += (shown[i] & 0xc0) != 0x80;
        if (chars > columns) {
                for (size_t drop = chars - columns + 3; *s; s++)
                        if ((*s & 0xc0) != 0x80 && drop-- == 0)
                                break;
                text_addf(t, "...");
        }
        text_add(t, s, strlen(s));
}

void files_progress_show(struct files_progress *p, const char *path, uint64_t bytes) {
        struct winsize w = { .ws_col = 80 };
        char line[1024];
        struct text t;
        uint64_t now, ms;

        if (!p->on)
                return;
        now = now_ms();
        if (now < p->next_ms)
                return;
        p->next_ms = now + EVERY_MS;
        p->drawn = true;
        if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col < 40)
                w.ws_col = 80;
        text_init(&t, line, sizeof(line));
        text_addf(&t, CLEAR);
        add_amount(&t, bytes);
        text_addf(&t, "  ");
        ms = now - p->begin_ms;
        add_amount(&t, bytes / ms * 1000 + bytes % ms * 1000 / ms);
        text_addf(&t, "/s  ");
        add_path(&t, path, (w.ws_col < 200 ? w.ws_col : 200) - 32u);
        cli_write_all(STDERR_FILENO, t.p, t.len);
}

void files_progress_clear(struct files_progress *p) {
        if (p->drawn)
                cli_write_all(STDERR_FILENO, CLEAR, sizeof(CLEAR) - 1);
        p->drawn = false;
}
