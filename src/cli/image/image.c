#include "cli/image/image.h"

#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/image/image_run.h"
#include "common/cleanup.h"
#include "common/exitcode.h"
#include "config/config.h"

#define PROGRAM "hermes-sandbox image"

static int complain(FILE *err, int code, const char *text) {
        fprintf(err, PROGRAM ": %s\n", text);
        return code;
}

static int exit_code(int r) {
        if (r == -ECONNREFUSED)
                return EXIT_NO_MANAGER;
        return r < 0 ? EXIT_SANDBOX : r > 0 ? EXIT_SIGNAL + r : 0;
}

/* Signals are asked for where something takes long, so that each way out cleans up. */
static int signals(void) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
        sigaddset(&set, SIGQUIT);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
        return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(const struct image_paths *p, const struct image_options *o, const char *socket, FILE *out,
               FILE *err) {
        _cleanup_fd_ int signal_fd = signals();
        struct image_engine *g = NULL;
        struct errmsg e;
        int r;

        if (signal_fd < 0)
                return complain(err, EXIT_OS, "no signalfd");
        r = image_engine_open(socket, signal_fd, &g, &e);
        if (r == 0)
                r = o->verb == IMAGE_BUILD ? image_build(p, o, g, signal_fd, out, err, &e)
                                           : image_remove(o, g, out, &e);
        image_engine_close(g);
        if (r == -EINTR && (r = image_run_signal(signal_fd)) == 0)
                r = SIGINT;
        if (r != 0)
                complain(err, 0, r > 0 ? "interrupted: nothing is left of it" : e.text);
        else if (fflush(out) != 0 || ferror(out))
                return complain(err, EXIT_OS, "cannot write to stdout");
        return exit_code(r);
}

int image_command(const struct image_paths *p, int argc, char **argv, FILE *out, FILE *err) {
        struct image_options o;
        struct config *c = NULL;
        struct errmsg e;
        int r;

        if (image_options_parse(&o, argc, argv, &e) < 0) {
                fprintf(err, PROGRAM ": %s: try " PROGRAM " --help\n", e.text);
                return EXIT_USAGE;
        }
        if (o.help) {
                fputs(image_help, out);
                return fflush(out) != 0 || ferror(out) ? EXIT_OS : 0;
        }
        if (geteuid() != 0)
                return complain(err, EXIT_NOT_ALLOWED,
                                "build and remove reach the engine, which is root's: run it with sudo");
        if (!o.engine_socket && config_load(p->config, p->dropins, &c, &e) < 0)
                return complain(err, EXIT_CONFIG, e.text);
        r = run(p, &o, o.engine_socket ? o.engine_socket : c->engine_socket, out, err);
        config_free(c);
        return r;
}
