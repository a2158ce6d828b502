/* hermes-engined: options, and nothing else. */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/exitcode.h"
#include "common/log.h"
#include "config/places.h"
#include "engine/engined.h"

static const char usage[] =
        "Usage: hermes-engined [OPTION]...\n"
        "The engine broker: creates and removes sandboxes for hermes-sandboxd, from the config alone.\n"
        "\n"
        "  --config FILE        read FILE (" CONFIG_PATH ")\n"
        "  --config-dir DIR     and the *.yaml in DIR over it (" CONFIG_DROPIN_DIR ")\n"
        "  --runtime-dir DIR    engine.sock and the sandboxes' folders (/run/hermes-sandbox-engine)\n"
        "  --state-dir DIR      records of containers (/var/lib/hermes-sandbox-engine)\n"
        "  --agent PATH         the agent binary (" LIBEXEC "/agent)\n"
        "  --manager-user NAME  the account that may ask (_hermes-sandbox)\n"
        "  --user               the pair of a single user: manager and broker are one account, and all places\n"
        "                       are below the XDG folders\n"
        "  --help, --version\n"
        "\n"
        "SIGHUP reads the config again, SIGTERM ends.\n"
        "\n"
        "Example: hermes-engined --config ./sandbox.yaml --runtime-dir /run/test\n";

static const struct option long_options[] = {
        { "config", required_argument, NULL, 'c' },
        { "config-dir", required_argument, NULL, 'd' },
        { "runtime-dir", required_argument, NULL, 'r' },
        { "state-dir", required_argument, NULL, 's' },
        { "agent", required_argument, NULL, 'a' },
        { "manager-user", required_argument, NULL, 'u' },
        { "user", no_argument, NULL, 'U' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
};

static int bad_usage(const char *what) {
        fprintf(stderr, "hermes-engined: %s: see hermes-engined --help\n", what);
        return EXIT_USAGE;
}

/* What no option says. 0, or the exit status. */
static int fill_in(struct engined_options *o) {
        struct config_places places = { 0 };
        struct errmsg e;
        int r = config_places_find(o->single_user, &places, &e);

        o->config_path = o->config_path ?: places.config_path;
        o->config_dir = o->config_dir ?: places.config_dir;
        o->runtime_dir = o->runtime_dir ?: places.engine_run;
        o->state_dir = o->state_dir ?: places.engine_state;
        /* The group of what is in the first is the user's own. */
        if (r == 0 && o->single_user)
                r = config_places_make(o->runtime_dir, 0700, &e);
        if (r == 0 && o->single_user)
                r = config_places_make(o->state_dir, 0700, &e);
        if (r < 0)
                log_line(LOG_P_ERROR, "%s", e.text);
        return r < 0 ? EXIT_CONFIG : 0;
}

int main(int argc, char **argv) {
        struct engined_options o = { .agent_path = LIBEXEC "/agent", .manager_user = "_hermes-sandbox" };
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
                case 's':
                        o.state_dir = optarg;
                        break;
                case 'a':
                        o.agent_path = optarg;
                        break;
                case 'u':
                        o.manager_user = optarg;
                        break;
                case 'U':
                        o.single_user = true;
                        break;
                case 'h':
                        fputs(usage, stdout);
                        return 0;
                case 'v':
                        puts("hermes-engined " VERSION);
                        return 0;
                default:
                        return bad_usage("unknown option");
                }
        }
        if (optind != argc)
                return bad_usage("takes no operands");
        if (o.agent_path[0] != '/')
                return bad_usage("--agent wants an absolute path");
        umask(0077);
        /* These are glibc's own values. Unless they are set it raises both as soon as a larger block is freed, and
         * what the config and the engine's first replies took is then kept for ever. */
        mallopt(M_MMAP_THRESHOLD, 128 * 1024);
        mallopt(M_TRIM_THRESHOLD, 128 * 1024);
        log_init("hermes-engined");
        r = fill_in(&o);
        return r != 0 ? r : engined_run(&o);
}
