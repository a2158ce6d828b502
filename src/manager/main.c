/* hermes-sandboxd: options, and nothing else. */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/exitcode.h"
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
        "  --help, --version\n"
        "\n"
        "SIGHUP reads the config again, SIGTERM removes all sandboxes and ends.\n"
        "\n"
        "Example: hermes-sandboxd --config ./sandbox.yaml --runtime-dir /run/test\n";

static const struct option long_options[] = {
        { "config", required_argument, NULL, 'c' },
        { "config-dir", required_argument, NULL, 'd' },
        { "runtime-dir", required_argument, NULL, 'r' },
        { "engine-socket", required_argument, NULL, 'e' },
        { "state-dir", required_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
};

static int bad_usage(const char *what) {
        fprintf(stderr, "hermes-sandboxd: %s: see hermes-sandboxd --help\n", what);
        return EXIT_USAGE;
}

int main(int argc, char **argv) {
        struct manager_options o = {
                .config_path = CONFIG_PATH,
                .config_dir = CONFIG_DROPIN_DIR,
                .runtime_dir = "/run/hermes-sandbox",
                .engine_socket = "/run/hermes-sandbox-engine/engine.sock",
                .state_dir = "/var/lib/hermes-sandbox",
        };
        int c;

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
        /* These are glibc's own values. Unless they are set it raises both as soon as a larger block is freed, and
         * what the config and the engine's first replies took is then kept for ever. */
        mallopt(M_MMAP_THRESHOLD, 128 * 1024);
        mallopt(M_TRIM_THRESHOLD, 128 * 1024);
        return manager_run(&o);
}
