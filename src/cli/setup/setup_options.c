#include "cli/setup/setup_options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/exitcode.h"
#include "config/units.h"

const struct setting_info setup_settings[N_SETTINGS] = {
        [SETTING_SIZE] = { "pool-size", "size", "Warm sandboxes" },
        [SETTING_MEMORY] = { "memory", "memory_limit", "Memory of one sandbox" },
        [SETTING_RESERVE] = { "memory-reserve", "memory_reserve",
                              "Memory kept for it when memory is short" },
        [SETTING_CPUS] = { "cpus", "cpus", "CPUs of one sandbox" },
        [SETTING_NETWORK] = { "network", "network", "Network (none, bridge, or a network's name)" },
        [SETTING_READ_ONLY] = { "read-only", "read_only", "The image's own files are read-only" },
        [SETTING_IMAGE] = { "image", "image", "Image" },
};

static const char help[] =
        "usage: hermes-sandbox-setup [OPTION]...\n"
        "       hermes-sandbox setup [OPTION]...\n"
        "\n"
        "Configures the sandbox, makes sure of its image, starts or reloads the service, runs a\n"
        "command in a sandbox as a proof, and shows what is enforced. What is asked for stands in\n"
        "/etc/hermes-sandbox/sandbox.d/50-setup.yaml, the one file that it writes, beside what was\n"
        "asked for before. Said twice, it changes nothing. Without options, on a terminal, it asks.\n"
        "\n"
        "  --pool-size N          warm sandboxes (3)\n"
        "  --memory SIZE          of one sandbox, tmpfs included (128m)\n"
        "  --memory-reserve SIZE  what the kernel tries to leave it (16m); 0: none\n"
        "  --cpus N               of one sandbox, such as 0.5 (1)\n"
        "  --network NAME         none, bridge, or a network of the engine (none)\n"
        "  --read-only BOOL       the image's own files: true or false (true)\n"
        "  --image IMAGE          of the sandboxes (debian:bookworm-slim)\n"
        "  --profile NAME         of this profile, which is made if it is not there; without it: default\n"
        "\n"
        "  --user                 the pair of a single user, with a rootless engine: no root is needed\n"
        "  --add-user NAME        this user may use the sandbox: puts him into the group hermes-sandbox\n"
        "  --install-scripts      sandbox-daemon.sh and sandbox-exec.sh into ~/.hermes/scripts\n"
        "  --no-systemd           without systemd, by the supervisor\n"
        "  --no-start             writes the configuration, and leaves the daemons alone\n"
        "  --dry-run              shows the change as a diff, and changes nothing\n"
        "  --yes                  asks nothing\n"
        "\n"
        "  --config-dir DIR       DIR/sandbox.yaml and DIR/sandbox.d, for daemons that you start yourself\n"
        "  --socket PATH          of the manager that proves it\n"
        "  --pid-file FILE        of the supervisor that is told to read again\n"
        "  --help                 this text\n"
        "  --version              the version\n"
        "\n"
        "examples:\n"
        "  sudo hermes-sandbox setup\n"
        "  sudo hermes-sandbox setup --pool-size 5 --memory 256m --yes\n"
        "  sudo hermes-sandbox setup --profile dev --network bridge --image python:3.13-slim --dry-run\n"
        "  sudo hermes-sandbox setup --yes --add-user hermes --install-scripts\n"
        "  hermes-sandbox setup --user --yes\n";

static const struct option long_options[] = {
        /* the settings first: their place in the enum */
        { "pool-size", required_argument, NULL, SETTING_SIZE },
        { "memory", required_argument, NULL, SETTING_MEMORY },
        { "memory-reserve", required_argument, NULL, SETTING_RESERVE },
        { "cpus", required_argument, NULL, SETTING_CPUS },
        { "network", required_argument, NULL, SETTING_NETWORK },
        { "read-only", required_argument, NULL, SETTING_READ_ONLY },
        { "image", required_argument, NULL, SETTING_IMAGE },
        { "profile", required_argument, NULL, 'p' },
        { "add-user", required_argument, NULL, 'a' },
        { "config-dir", required_argument, NULL, 'c' },
        { "socket", required_argument, NULL, 's' },
        { "pid-file", required_argument, NULL, 'P' },
        { "user", no_argument, NULL, 'u' },
        { "no-systemd", no_argument, NULL, 'n' },
        { "no-start", no_argument, NULL, 'N' },
        { "dry-run", no_argument, NULL, 'd' },
        { "yes", no_argument, NULL, 'y' },
        { "install-scripts", no_argument, NULL, 'i' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
};

static int usage(const char *problem, const char *what) {
        return setup_fail(EXIT_USAGE, "%s%s: see " SETUP_PROGRAM " --help", problem, what);
}

static int say(const char *text) {
        fputs(text, stdout);
        return fflush(stdout) != 0 || ferror(stdout) ? EXIT_OS : 0;
}

static const char **text_of(struct setup_options *o, int c) {
        switch (c) {
        case 'p':
                return &o->profile;
        case 'a':
                return &o->add_user;
        case 'c':
                return &o->config_dir;
        case 's':
                return &o->socket;
        case 'P':
                return &o->pid_file;
        default:
                return c >= 0 && c < N_SETTINGS ? &o->values[c] : NULL;
        }
}

static bool *flag_of(struct setup_options *o, int c) {
        switch (c) {
        case 'u':
                return &o->single_user;
        case 'n':
                return &o->no_systemd;
        case 'N':
                return &o->no_start;
        case 'd':
                return &o->dry_run;
        case 'y':
                return &o->yes;
        case 'i':
                return &o->install_scripts;
        default:
                return NULL;
        }
}

static void take(struct setup_options *o, int c, const char *value) {
        const char **text = text_of(o, c);
        bool *flag = flag_of(o, c);

        if (text)
                *text = value;
        else if (flag)
                *flag = true;
}

/* What excludes what. */
static int agree(const struct setup_options *o) {
        if (o->single_user && o->add_user)
                return usage("--user is for yourself alone, and --add-user for the system's service",
                             "");
        if (o->single_user && o->config_dir)
                return usage("--user and --config-dir exclude each other", "");
        if (o->pid_file && !o->config_dir)
                return usage("--pid-file goes with --config-dir", "");
        if (o->profile && !o->profile[0])
                return usage("--profile takes a name", "");
        return -1;
}

int setup_options_parse(int argc, char **argv, struct setup_options *ret) {
        struct setup_options o = { 0 };
        int c;

        optind = 0; /* glibc: start anew, so that a test can call this twice */
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
                if (c == 'h')
                        return say(help);
                if (c == 'v')
                        return say(SETUP_PROGRAM " " VERSION "\n");
                if (c == ':')
                        return usage("a value is missing behind ", argv[optind - 1]);
                if (c == '?')
                        return usage("unknown option, or a value where none belongs: ",
                                     argv[optind - 1]);
                take(&o, c, optarg);
        }
        if (optind < argc)
                return usage("unexpected argument ", argv[optind]);
        c = agree(&o);
        if (c < 0)
                *ret = o;
        return c;
}

bool setup_asks(const struct setup_options *o) {
        for (size_t i = 0; i < N_SETTINGS; i++)
                if (o->values[i])
                        return true;
        return false;
}

const char *setup_in_force(const struct config_profile *p, enum setting s, char buf[SETTING_TEXT]) {
        switch (s) {
        case SETTING_SIZE:
                snprintf(buf, SETTING_TEXT, "%" PRIu32, p->size);
                return buf;
        case SETTING_MEMORY:
                return config_format_size(p->memory_bytes, buf);
        case SETTING_RESERVE:
                return config_format_size(p->memory_reserve_bytes, buf);
        case SETTING_CPUS:
                return config_format_cpus(p->cpu_nano, buf);
        case SETTING_NETWORK:
                return p->network;
        case SETTING_READ_ONLY:
                return p->read_only ? "true" : "false";
        default:
                return p->image;
        }
}

bool setup_is_in_force(const struct config_profile *p, enum setting s, const char *asked) {
        char buf[SETTING_TEXT];
        uint64_t v;

        if (s == SETTING_SIZE)
                return config_parse_u64(asked, &v) == 0 && v == p->size;
        if (s == SETTING_MEMORY)
                return config_parse_size(asked, &v) == 0 && v == p->memory_bytes;
        if (s == SETTING_RESERVE)
                return config_parse_size(asked, &v) == 0 && v == p->memory_reserve_bytes;
        if (s == SETTING_CPUS)
                return config_parse_cpus(asked, &v) == 0 && v == p->cpu_nano;
        return strcmp(setup_in_force(p, s, buf), asked) == 0;
}
