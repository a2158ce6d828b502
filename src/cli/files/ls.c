/*
 * ls: the tool's items, sorted and shown. They are kept in two bounded places; what does not fit any more is shown
 * first, so that a folder of any size goes in constant memory and comes sorted in pieces.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_opts.h"
#include "cli/files/files.h"
#include "common/archive.h"
#include "common/escape.h"
#include "common/exitcode.h"

static const char ls_help[] =
        "usage: hermes-sandbox ls [-l] SESSION:PATH...\n"
        "\n"
        "Lists files and folders of a session's sandbox, one a line, hidden ones too. In a name, what could\n"
        "drive a terminal or end a line is shown as \\xNN or \\u{N}, and a backslash is doubled.\n"
        "\n"
        "options:\n"
        "  -l                  type and mode, links, uid, gid, size, time of the last change\n"
        "  -a, -1              nothing: it is always so\n"
        "\n"
        "exit status: 0; 1 something could not be read; else as exec's: 64, 69, 77, 125.\n"
        "\n"
        "example:\n"
        "  hermes-sandbox ls -l build1:dist\n";

enum { OPT_HELP, OPT_LONG, OPT_NOTHING };

static const struct cli_opt ls_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "long", 'l', false, OPT_LONG },
        { "all", 'a', false, OPT_NOTHING },
        { "one", '1', false, OPT_NOTHING },
        { .name = "" },
};

#define ITEMS 16384
#define STRINGS (2u << 20)

struct ls {
        struct files_run run; /* first */
        struct files_words words;
        bool details;
        bool any; /* something was shown */
        struct archive_in in;
        size_t n, used;
        struct archive_entry items[ITEMS]; /* their strings are in strings[] */
        char strings[STRINGS];
        int error; /* of stdout: -errno */
        size_t out_len;
        char out[65536];
};

static struct ls ls;

static void flush_out(void) {
        if (ls.error == 0)
                ls.error = cli_write_all(STDOUT_FILENO, ls.out, ls.out_len);
        ls.out_len = 0;
}

/* Of one line: a name and a target, four bytes for each of theirs, and numbers. */
#define LINE_BYTES (2 * 4 * ARCHIVE_TARGET_MAX + 512)

static void begin_text(struct text *t) {
        if (sizeof(ls.out) - ls.out_len < LINE_BYTES)
                flush_out();
        text_init(t, ls.out + ls.out_len, sizeof(ls.out) - ls.out_len);
}

static void end_text(const struct text *t) {
        ls.out_len += t->len;
        ls.any = true;
}

/* "rwxr-xr-x", with s and t where ls(1) has them. */
static void mode_letters(uint32_t mode, char ret[10]) {
        static const char letters[] = "rwxrwxrwx";
        static const struct {
                uint32_t bit;
                int at;
                char with, without;
        } special[] = { { 04000, 2, 's', 'S' }, { 02000, 5, 's', 'S' }, { 01000, 8, 't', 'T' } };

        for (int i = 0; i < 9; i++)
                ret[i] = mode & 0400u >> i ? letters[i] : '-';
        for (size_t i = 0; i < 3; i++)
                if (mode & special[i].bit)
                        ret[special[i].at] = ret[special[i].at] == 'x' ? special[i].with
                                                                       : special[i].without;
        ret[9] = '\0';
}

/* Widths of the columns, over all items that are shown together. */
struct widths {
        int links, uid, gid, size;
};

static int digits(uint64_t v) {
        int n = 1;

        while (v >= 10) {
                v /= 10;
                n++;
        }
        return n;
}

static void widen(int *width, uint64_t v) {
        int n = digits(v);

        if (*width < n)
                *width = n;
}

static void add_details(struct text *t, const struct archive_entry *e, const struct widths *w) {
        char mode[10], when[32] = "?";
        time_t seconds = (time_t)e->mtime_s;
        struct tm tm;

        mode_letters(e->mode, mode);
        if (localtime_r(&seconds, &tm))
                strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
        text_addf(t, "%c%s %*" PRIu32 " %*" PRIu32 " %*" PRIu32 " %*" PRIu64 " %s ", e->kind, mode,
                  w->links, e->links, w->uid, e->uid, w->gid, e->gid, w->size, e->size, when);
}

static int by_name(const void *a, const void *b) {
        return strcmp(((const struct archive_entry *)a)->name, ((const struct archive_entry *)b)->name);
}

/* What is kept, sorted; then nothing is. */
static void show(void) {
        struct widths w = { 1, 1, 1, 1 };

        qsort(ls.items, ls.n, sizeof(ls.items[0]), by_name);
        for (size_t i = 0; i < ls.n; i++) {
                widen(&w.links, ls.items[i].links);
                widen(&w.uid, ls.items[i].uid);
                widen(&w.gid, ls.items[i].gid);
                widen(&w.size, ls.items[i].size);
        }
        for (size_t i = 0; i < ls.n; i++) {
                const struct archive_entry *e = &ls.items[i];
                struct text t;

                begin_text(&t);
                if (ls.details)
                        add_details(&t, e, &w);
                text_add_shown(&t, e->name, strlen(e->name));
                if (ls.details && e->target[0]) {
                        text_addf(&t, " -> ");
                        text_add_shown(&t, e->target, strlen(e->target));
                }
                text_addf(&t, "\n");
                end_text(&t);
        }
        ls.n = ls.used = 0;
}

static void show_heading(const char *folder) {
        bool first = !ls.any && ls.n == 0;
        struct text t;

        show();
        begin_text(&t);
        text_addf(&t, "%s%s:", first ? "" : "\n", ls.words.session);
        text_add_shown(&t, folder, strlen(folder));
        text_addf(&t, ":\n");
        end_text(&t);
}

static const char *keep_string(const char *s) {
        char *p = ls.strings + ls.used;

        strcpy(p, s);
        ls.used += strlen(s) + 1;
        return p;
}

static void keep(const struct archive_entry *e) {
        if (ls.n == ITEMS || STRINGS - ls.used < strlen(e->name) + strlen(e->target) + 2)
                show();
        ls.items[ls.n] = *e;
        ls.items[ls.n].name = keep_string(e->name);
        ls.items[ls.n].target = keep_string(e->target);
        ls.n++;
}

static int take(struct files_run *r, const void *bytes, size_t len) {
        const uint8_t *p = bytes;
        struct archive_step s;
        int n;

        while ((n = archive_next(&ls.in, &p, &len, &s)) > 0) {
                if (s.type == ARCHIVE_END)
                        show();
                else if (s.entry.name[0] == '\0')
                        show_heading(s.entry.target);
                else
                        keep(&s.entry);
        }
        if (n < 0) {
                cli_error("ls: what came from %s is no listing: %s", r->words->session, ls.in.why);
                return EXIT_SANDBOX;
        }
        return ls.error < 0 ? cli_write_failed("to stdout", ls.error) : 0;
}

static int list(const struct cli *c) {
        int status = files_connect(&ls.run, c);

        if (status != 0)
                return status;
        archive_in_init(&ls.in, ARCHIVE_OF_ITEMS);
        status = files_go(&ls.run);
        if (!archive_ended(&ls.in) && (ls.run.outcome.end == CLI_END_RESULT && status <= 1)) {
                cli_error("ls: what came from %s is not all of it", ls.words.session);
                status = status ? status : EXIT_SANDBOX;
        }
        show();
        flush_out();
        return ls.error < 0 ? cli_write_failed("to stdout", ls.error) : status;
}

static int run_ls(const struct cli *c, int argc, char **argv) {
        const char *value;
        struct cli_opts o;
        struct errmsg e, why;
        int id;

        ls.run = (struct files_run){ .verb = "ls", .words = &ls.words, .take = take };
        files_add(&ls.words, "ls", "ls", &e);
        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, ls_opts, &value, &why)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(ls_help);
                ls.details |= id == OPT_LONG;
        }
        if (id != CLI_OPTS_END || o.n_operands == 0) {
                errmsg_set(&e, 0, "ls: %s: see hermes-sandbox ls --help",
                           id != CLI_OPTS_END ? why.text : "expected SESSION:PATH");
                return files_bad_usage(&e);
        }
        for (int i = 1; i <= o.n_operands; i++)
                if (files_add_place(&ls.words, "ls", argv[i], &e) < 0)
                        return files_bad_usage(&e);
        return list(c);
}

const struct cli_command cli_ls_command = {
        .name = "ls",
        .group = CLI_FILES,
        .summary = "list files of a session's sandbox",
        .help = ls_help,
        .run = run_ls,
};
