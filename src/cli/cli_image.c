/*
 * image: list, pull and verify are the manager's to answer; build and remove change what the engine has beyond what the
 * config names, and are another program's, which is root's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cli/cli_board.h"
#include "cli/cli_opts.h"
#include "cli/cli_tty.h"
#include "cli/cli_words.h"
#include "common/exitcode.h"

static const char image_help[] =
        "usage: hermes-sandbox image list [--json]\n"
        "       hermes-sandbox image pull [PROFILE]...\n"
        "       hermes-sandbox image verify [--json] [PROFILE]...\n"
        "       hermes-sandbox image build [--flavour base|dev|hermes] [--suite bookworm|trixie]\n"
        "                                  [--name NAME:TAG] [--package P]... [--mirror URL]\n"
        "       hermes-sandbox image remove NAME\n"
        "\n"
        "list:   the images that the configuration names, and what the engine has of them.\n"
        "pull:   gets the images of these profiles (default: of all that you may use and that keep\n"
        "        sandboxes warm) from their registries, where they are not there yet. It changes none\n"
        "        that is there.\n"
        "verify: compares what the configuration names, what the engine has and what the sandboxes\n"
        "        were made from, with the command that mends a difference; exit status 1 then.\n"
        "build:  makes an image from Debian's signed packages, without a registry; the same packages\n"
        "        give the same image id, and a tag that exists is never moved (root).\n"
        "remove: removes an image that no container uses (root).\n"
        "        All options of these two: hermes-sandbox image build --help.\n"
        "\n"
        "options:\n"
        "  --json  JSON in place of text\n"
        "\n"
        "exit status: 0; 1 verify found a difference; 64 bad usage, or no such profile; 69 no\n"
        "manager; 77 not allowed; 125 a pull failed, or there is no engine.\n"
        "\n"
        "examples:\n"
        "  hermes-sandbox image list\n"
        "  hermes-sandbox image pull dev\n"
        "  sudo hermes-sandbox image build --name debian:bookworm-slim\n"
        "  hermes-sandbox image verify --json | jq -r '.[] | select(.state != \"ok\") | .message'\n";

enum { OPT_HELP, OPT_JSON };

/* pull has no --json. */
static const struct cli_opt opts[] = {
        { "help", 'h', false, OPT_HELP },
        { "json", 0, false, OPT_JSON },
        { .name = "" },
};
static const struct cli_opt pull_opts[] = {
        { "help", 'h', false, OPT_HELP },
        { .name = "" },
};

static const struct sub {
        char name[8];
        uint16_t op; /* 0: it is the other program's */
        bool json, profiles;
} subs[] = {
        { "list", ASK_IMAGE_LIST, true, false },
        { "pull", ASK_IMAGE_PULL, false, true },
        { "verify", ASK_IMAGE_VERIFY, true, true },
        { "build", 0, false, false },
        { "remove", 0, false, false },
};

static int usage(const char *what, const char *why) {
        cli_error("%s: %s: see hermes-sandbox image --help", what, why);
        return EXIT_USAGE;
}

static const struct sub *find(const char *name) {
        for (size_t i = 0; i < sizeof(subs) / sizeof(subs[0]); i++)
                if (strcmp(subs[i].name, name) == 0)
                        return &subs[i];
        return NULL;
}

/* The profiles, each as a label. 0, or -EINVAL and a line in *e. */
static int add_profiles(struct ask *a, const char *what, char **names, int n, struct errmsg *e) {
        static char labels[PROTO_LABELS_MAX][sizeof("profile=") + PROTO_NAME_MAX];
        int r = 0;

        if (n > PROTO_LABELS_MAX)
                return errmsg_set(e, -EINVAL, "%s: more than %d profiles", what, PROTO_LABELS_MAX);
        for (int i = 0; i < n && r == 0; i++) {
                r = cli_check_profile(what, names[i], e);
                snprintf(labels[i], sizeof(labels[i]), "profile=%s", names[i]);
                a->labels[a->n_labels++] = labels[i];
        }
        return r;
}

static int pull(const struct cli *c, const struct ask *a) {
        static struct board board;
        const char *term = getenv("TERM");
        uint16_t rows = 24, columns = 80;
        bool tty = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
        struct errmsg e;
        int r;

        if (tty && !cli_tty_size(&rows, &columns)) {
                rows = 24;
                columns = 80;
        }
        board_init(&board, tty, rows, columns);
        r = cli_ask(c, a, board_take, &board, &e);
        if (r != 0 && e.text[0] != '\0')
                cli_error("%s", e.text);
        return r;
}

static int run_image(const struct cli *c, int argc, char **argv) {
        const struct sub *s = argc > 1 ? find(argv[1]) : NULL;
        struct ask a = { .op = s ? s->op : 0 };
        struct cli_opts o;
        struct errmsg e;
        const char *value;
        char what[16];
        int id;

        if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
                return cli_say(image_help);
        if (!s)
                return usage("image", argc > 1 ? "no such subcommand" : "list, pull or verify?");
        if (!s->op)
                return cli_run_program(c, "hermes-sandbox-image", argv);
        snprintf(what, sizeof(what), "image %s", s->name);
        argc--;
        argv++;
        cli_opts_init(&o, argc, argv);
        while ((id = cli_opts_any(&o, s->json ? opts : pull_opts, &value, &e)) >= 0) {
                if (id == OPT_HELP)
                        return cli_say(image_help);
                a.form = ANSWER_JSON;
        }
        if (id == CLI_OPTS_END && o.n_operands > 0 && !s->profiles)
                id = errmsg_set(&e, -EINVAL, "unexpected argument '%.80s'", argv[1]);
        if (id != CLI_OPTS_END)
                return usage(what, e.text);
        if (add_profiles(&a, what, argv + 1, o.n_operands, &e) < 0) {
                cli_error("%s", e.text);
                return EXIT_USAGE;
        }
        return s->op == ASK_IMAGE_PULL ? pull(c, &a) : cli_ask_and_say(c, &a);
}

const struct cli_command cli_image_command = {
        .name = "image",
        .group = CLI_ADMINISTER,
        .summary = "the images of the profiles: list, pull, verify, build, remove",
        .help = image_help,
        .run = run_image,
};
