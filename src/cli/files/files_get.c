/*
 * Out of a sandbox: its stream goes through common/unpack.c, under the strictest of its rules. Top names are those
 * that were asked for, in that order; no links; no bit beyond rwx; and an amount that leaves half of what is free.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/files/files.h"
#include "common/exitcode.h"
#include "common/pack.h"
#include "common/unpack.h"

/* Where a file system does not say what is free. */
#define BUDGET_UNKNOWN (UINT64_C(1) << 30)

struct get {
        struct files_copy *copy;
        int next; /* the first source that has not come */
        bool quiet;
};

static struct unpack unpack;

static bool expected(void *userdata, const char *name) {
        struct get *g = userdata;

        while (g->next < g->copy->n_sources) {
                char asked[ARCHIVE_NAME_MAX + 1];
                const char *path = strchr(g->copy->sources[g->next++], ':') + 1;

                if (pack_name(path, asked) && strcmp(asked, name) == 0)
                        return true;
        }
        return false;
}

static void say(void *userdata, const char *what, const char *path, const char *why) {
        struct get *g = userdata;

        if (!g->quiet)
                files_local_say(g->copy, what, path, why);
}

static void progress(void *userdata, const char *path, uint64_t bytes) {
        struct get *g = userdata;

        files_progress_show(&g->copy->progress, path, bytes);
}

static void clear_line(struct files_run *r) {
        files_progress_clear(&((struct files_copy *)r)->progress);
}

static int status_of(int r) {
        return r == -EPROTO || r == -EPIPE ? EXIT_SANDBOX : r != 0;
}

static int take(struct files_run *r, const void *p, size_t len) {
        (void)r;
        return status_of(unpack_feed(&unpack, p, len));
}

static void on_signal(int signo) {
        unpack_abandon();
        raise(signo);
}

/* Those that the loop does not pass on, or not any more, end this program: the file that is half written goes, too. */
static void catch_signals(void) {
        static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
                struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND }, before;

                if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
                        sigaction(ends[i], &sa, NULL);
        }
}

static uint64_t half_of_free(int dir) {
        struct statvfs fs;
        uint64_t half;

        if (fstatvfs(dir, &fs) < 0)
                return BUDGET_UNKNOWN;
        half = (uint64_t)fs.f_bavail * fs.f_frsize / 2;
        return half > 0 ? half : 1;
}

static int run(struct get *g, const struct cli *c) {
        struct files_run *r = &g->copy->run;
        int status = files_connect(r, c), done;

        if (status != 0)
                return status;
        catch_signals();
        files_progress_init(&g->copy->progress);
        r->before_line = clear_line;
        r->take = take;
        status = files_go(r);
        /* Where the tool did not end by itself, there is a line already that says why the stream is cut. */
        g->quiet = r->outcome.end != CLI_END_RESULT || status > 1;
        done = unpack_done(&unpack);
        return status != 0 ? status : status_of(done);
}

int files_get(struct files_copy *copy, const struct cli *c) {
        static struct unpack_seen seen;
        struct get g = { .copy = copy };
        struct unpack_rules rules = {
                .mode_bits = 0777,
                .budget = copy->max_bytes,
                .expected = expected,
                .progress = progress,
                .say = say,
                .userdata = &g,
                .seen = &seen,
        };
        struct unpack_target target;
        const char *why;
        int status;

        if (unpack_target_open(copy->target, copy->n_sources > 1, &target, &why) < 0) {
                files_local_say(copy, "cannot copy to", copy->target, why);
                return 1;
        }
        if (rules.budget == 0)
                rules.budget = half_of_free(target.dir);
        unpack_init(&unpack, &target, copy->target, &rules);
        status = run(&g, c);
        close(target.dir);
        return status;
}
