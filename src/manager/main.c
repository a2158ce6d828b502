/* hermes-sandboxd: options, and nothing else. */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/exitcode.h"
#include "common/log.h"
#include "config/places.h"
#include "manager/manager.h"

static const char usage[] =
        "Usage: hermes-sandboxd [OPTION]...\n"
        "The pool manager: keeps sandboxes warm and runs callers' commands in them.\n"
        "\n"
        "  --config FILE         read FILE (" CONFIG_PATH ")\n"
        "  --config-dir DIR      and the *.yaml in DIR over it (" CONFIG_DROPIN_DIR ")\n"
        "  --runtime-dir DIR     pool.sock (/run/hermes-sandbox)\n"
        "  --engine-socket PATH  of hermes-engined (/run/hermes-sandbox-engine/engine.sock)\n"
        "  --state-dir DIR       which execs are open (/var/lib/hermes-sandbox)\n"
        "  --log-dir DIR         the file that logging.file names (/var/log/hermes-sandbox)\n"
        "  --gateway-account NAME\n"
        "                        the ssh gateway's account: for whose key it asks it says itself (hermes-ssh)\n"
        "  --drain SECONDS       how long commands may go on after SIGTERM (30)\n"
        "  --user                the pair of a single user: no privilege separation, no kernel audit trail, and all\n"
        "                        places are below the XDG folders\n"
        "  --help, --version\n"
        "\n"
        "SIGHUP reads the config again. SIGTERM waits for the commands that run, removes all sandboxes and ends;\n"
        "SIGINT, or a second SIGTERM, does not wait.\n"
        "\n"
        "Example: hermes-sandboxd --config ./sandbox.yaml --runtime-dir /run/test\n";

static const struct option long_options[] = {
        { "config", required_argument, NULL, 'c' },
        { "config-dir", required_argument, NULL, 'd' },
        { "runtime-dir", required_argument, NULL, 'r' },
        { "engine-socket", required_argument, NULL, 'e' },
        { "state-dir", required_argument, NULL, 's' },
        { "log-dir", required_argument, NULL, 'l' },
        { "gateway-account", required_argument, NULL, 'g' },
        { "drain", required_argument, NULL, 't' },
        { "user", no_argument, NULL, 'U' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
};

static int bad_usage(const char *what) {
        fprintf(stderr, "hermes-sandboxd: %s: see hermes-sandboxd --help\n", what);
        return EXIT_USAGE;
}

static bool read_seconds(const char *s, uint64_t *ret_ms) {
        char *end;
        unsigned long n = strtoul(s, &end, 10);

        if (s[0] < '0' || s[0] > '9' || *end || n > 3600)
                return false;
        *ret_ms = n * 1000;
        return true;
}

/* What no option says. 0, or the exit status. */
static int fill_in(struct manager_options *o) {
        struct config_places places = { 0 };
        struct errmsg e;
        int r = config_places_find(o->single_user, &places, &e);

        o->config_path = o->config_path ?: places.config_path;
        o->config_dir = o->config_dir ?: places.config_dir;
        o->runtime_dir = o->runtime_dir ?: places.manager_run;
        o->engine_socket = o->engine_socket ?: places.engine_socket;
        o->state_dir = o->state_dir ?: places.manager_state;
        o->log_dir = o->log_dir ?: places.manager_log;
        if (r == 0 && o->single_user)
                r = config_places_make(o->runtime_dir, 0700, &e);
        if (r == 0 && o->single_user)
                r = config_places_make(o->state_dir, 0700, &e);
        if (r < 0)
                log_line(LOG_P_ERROR, "%s", e.text);
        return r < 0 ? EXIT_CONFIG : 0;
}

int main(int argc, char **argv) {
        struct manager_options o = { .drain_ms = 30000, .gateway_account = "hermes-ssh" };
        int c, r;

        while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
                switch (c) {
                case 'c':
                        o.config_path = optarg;
                        break;
                case 'd':
                        o.config_dir = optarg;
                        break;
                case 'r':
                        o.runtime_dir = optarg;
                        break;
                case 'e':
                        o.engine_socket = optarg;
                        break;
                case 's':
                        o.state_dir = optarg;
                        break;
                case 'l':
                        o.log_dir = optarg;
                        break;
                case 'g':
                        o.gateway_account = optarg;
                        break;
                case 't':
                        if (!read_seconds(optarg, &o.drain_ms))
                                return bad_usage("--drain wants whole seconds, 0 to 3600");
                        break;
                case 'U':
                        o.single_user = true;
                        break;
                case 'h':
                        fputs(usage, stdout);
                        return 0;
                case 'v':
                        puts("hermes-sandboxd " VERSION);
                        return 0;
                default:
                        return bad_usage("unknown option");
                }
        }
        if (optind != argc)
                return bad_usage("takes no operands");
        umask(0077);
        log_init("hermes-sandboxd");
        /* These are glibc's own values. Unless they are set it raises both as soon as a larger block is freed, and
         * what the config and the engine's first replies took is then kept for ever. */
        mallopt(M_MMAP_THRESHOLD, 128 * 1024);
        mallopt(M_TRIM_THRESHOLD, 128 * 1024);
        r = fill_in(&o);
        return r != 0 ? r : manager_run(&o);
}
