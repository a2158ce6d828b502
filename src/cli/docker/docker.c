/* The table of subcommands, and what they share. Whatever is not in it is refused by name. */
#include "cli/docker/docker.h"

#include <stdio.h>
#include <string.h>

#include "common/escape.h"
#include "common/proto.h"

/* The first one is what is called all the time. */
static const struct docker_command commands[] = {
        { "exec", "CONTAINER COMMAND [ARG...]", "run a command in a sandbox", docker_exec },
        { "run", "IMAGE [COMMAND] [ARG...]", "open a session (-d), or run one command (--rm)",
          docker_run },
        { "create", "IMAGE [COMMAND] [ARG...]", "refused: run -d opens a session in one go",
          docker_create },
        { "start", "CONTAINER [CONTAINER...]", "let commands run again in a stopped sandbox",
          docker_start },
        { "stop", "CONTAINER [CONTAINER...]", "end all that runs, keep all files", docker_stop },
        { "rm", "CONTAINER [CONTAINER...]", "close a session, throw its sandbox away", docker_rm },
        { "ps", "", "your sessions", docker_ps },
        { "inspect", "NAME|ID [NAME|ID...]", "what is known of sandboxes and images", docker_inspect },
        { "image", "COMMAND", "image inspect, image ls, image pull", docker_image },
        { "images", "", "the images of the profiles", docker_images },
        { "pull", "IMAGE", "fetch a profile's image", docker_pull },
        { "info", "", "what is there", docker_info },
        { "version", "", "which versions, and whether it works", docker_version },
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct docker_command *find(const char *name) {
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        return NULL;
}

int docker_fail(const char *message) {
        cli_error("%s", message);
        return DOCKER_FAILED;
}

int docker_too_few(const char *command, int needed) {
        const struct docker_command *c = find(command);

        cli_line("\"docker %s\" requires at least %d argument%s.", command, needed,
                 needed == 1 ? "" : "s");
        cli_line("See 'docker %s --help': docker %s [OPTIONS] %s", command, command,
                 c ? c->operands : "");
        return DOCKER_FAILED;
}

int docker_bad_words(const char *command, const struct errmsg *e) {
        cli_line("%s", e->text);
        cli_line("See 'docker %s --help'.", command);
        return DOCKER_USAGE;
}

int docker_help(const char *command, const char *more) {
        const struct docker_command *c = find(command);
        char line[160];
        int r;

        snprintf(line, sizeof(line), "usage: docker %s [OPTIONS] %s\n\n%s\n", command,
                 c ? c->operands : "", c ? c->summary : "");
        r = cli_say(line);
        return r != 0 || !more ? r : cli_say(more);
}

void docker_say_refusal(uint8_t reason, const char *message, const char *word) {
        switch (reason) {
        case REJECT_NO_SESSION:
                cli_line("Error response from daemon: No such container: %s", word);
                return;
        case REJECT_STOPPED:
                cli_line("Error response from daemon: Container %s is not running", word);
                return;
        case REJECT_AMBIGUOUS:
                cli_line("Error response from daemon: Multiple IDs found with provided prefix: %s",
                         word);
                return;
        default:
                cli_error("%s", message);
        }
}

static int overview(void) {
        char buf[2048];
        struct text t;

        text_init(&t, buf, sizeof(buf));
        text_addf(
                &t,
                "usage: docker COMMAND ...\n"
                "\n"
                "hermes-sandbox under the name of docker: a container is a session of the profile that\n"
                "$HERMES_SANDBOX_PROFILE names (hermes), and no engine's socket is needed.\n"
                "\n"
                "commands:\n");
        for (size_t i = 0; i < N_COMMANDS; i++)
                text_addf(&t, "  %-9s%s\n", commands[i].name, commands[i].summary);
        text_addf(&t,
                  "\n"
                  "What becomes of each flag of run: docker run --help, hermes-sandbox-docker(1).\n");
        return cli_say(buf);
}

/* docker's own long names: container run, container ls. */
static void skip_container(int *argc, char ***argv) {
        static char ps[] = "ps";

        if (*argc < 3 || strcmp((*argv)[1], "container") != 0)
                return;
        (*argc)--;
        (*argv)++;
        if (strcmp((*argv)[1], "ls") == 0 || strcmp((*argv)[1], "list") == 0)
                (*argv)[1] = ps;
}

int docker_main(struct docker *d, int argc, char **argv) {
        const struct docker_command *c;
        const char *word;

        cli_error_name("docker");
        skip_container(&argc, &argv);
        word = argc > 1 ? argv[1] : "--help";
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
                return overview();
        if (strcmp(word, "--version") == 0 || strcmp(word, "-v") == 0)
                return cli_say("Docker version " VERSION ", hermes-sandbox\n");
        c = find(word);
        if (!c) {
                cli_error(word[0] == '-'
                                  ? "unknown flag: '%s': hermes-sandbox's docker takes flags behind "
                                    "its command: see docker --help"
                                  : "'%s' is not a docker command of hermes-sandbox: see docker --help",
                          word);
                return word[0] == '-' ? DOCKER_USAGE : DOCKER_FAILED;
        }
        return c->run(d, argc - 1, argv + 1);
}
