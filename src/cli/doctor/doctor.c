/* Options, the table of checks, and the exit status. */
#include "cli/doctor/doctor.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/exitcode.h"

#define PROGRAM "hermes-sandbox doctor"
/* All waiting together: what is healthy answers in a tenth of it. */
#define BUDGET_MS 1700

static const char help[] =
        "usage: hermes-sandbox doctor [--json] [--root DIR]\n"
        "\n"
        "Looks at all that the sandbox needs: engine, accounts, sockets, limits, images, audit, disk, clock.\n"
        "One line for each thing: ok, warning or failure, and the command that mends it. Exit status 1 when\n"
        "something fails. Who is not root is told what only root can see.\n"
        "\n"
        "  --json          an array of objects {check, result, text, mend}\n"
        "  --root DIR      looks at another tree, such as a chroot: every file and socket below DIR\n"
        "  --socket PATH   the manager's socket\n"
        "  --help          this text\n"
        "\n"
        "examples:\n"
        "  sudo hermes-sandbox doctor\n"
        "  sudo hermes-sandbox doctor --json | jq -r '.[] | select(.result != \"ok\").mend'\n";

static const struct {
        const char *name;
        void (*run)(struct doctor *d);
} checks[] = {
        { "manager", check_manager },
        { "engine", check_engine },
        { "escapes", check_escapes },
        { "accounts", check_accounts },
        { "docker-group", check_docker_group },
        { "sockets", check_sockets },
        { "helper", check_helper },
        { "config", check_config },
        { "layers", check_layers },
        { "image", check_images },
        { "auditd", check_auditd },
        { "audit-rules", check_audit_rules },
        { "audit-log", check_audit_log },
        { "audit-record", check_audit_record },
        { "uid", check_uid },
        { "disk", check_disk },
        { "clock", check_clock },
};

void doctor_run(struct doctor *d) {
        for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
                d->check = checks[i].name;
                checks[i].run(d);
        }
}

static bool any_failure(const struct doctor *d) {
        for (size_t i = 0; i < d->n_lines; i++)
                if (d->lines[i].result == DOCTOR_FAILURE)
                        return true;
        return false;
}

static int usage(FILE *err, const char *problem, const char *what) {
        fprintf(err, PROGRAM ": %s%s: try " PROGRAM " --help\n", problem, what);
        return EXIT_USAGE;
}

static bool want_color(FILE *out) {
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

        return isatty(fileno(out)) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static int look_and_print(struct doctor *d, bool json, FILE *out, FILE *err) {
        int r;

        d->end_ms = doctor_now_ms() + BUDGET_MS;
        doctor_look(d);
        doctor_run(d);
        r = json ? doctor_print_json(d, out) : doctor_print(d, want_color(out), out);
        if (r < 0)
                fprintf(err, PROGRAM ": cannot write: %s\n", strerror(-r));
        r = r < 0 ? EXIT_OS : any_failure(d);
        doctor_done(d);
        return r;
}

int doctor_command(const struct doctor *preset, int argc, char **argv, FILE *out, FILE *err) {
        enum { JSON = 256, ROOT, SOCKET };
        static const struct option options[] = {
                { "json", no_argument, NULL, JSON },
                { "root", required_argument, NULL, ROOT },
                { "socket", required_argument, NULL, SOCKET },
                { "help", no_argument, NULL, 'h' },
                { NULL, 0, NULL, 0 },
        };
        struct doctor d = *preset;
        bool json = false;
        int c;

        optind = 0; /* glibc: start anew, so that a test can call this twice */
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
                switch (c) {
                case JSON:
                        json = true;
                        break;
                case ROOT:
                        d.root = optarg;
                        break;
                case SOCKET:
                        d.socket = optarg;
                        break;
                case 'h':
                        fputs(help, out);
                        return fflush(out) != 0 || ferror(out) ? EXIT_OS : 0;
                case ':':
                        return usage(err, "a value is missing behind ", argv[optind - 1]);
                default:
                        return usage(err, "unknown option: ", argv[optind - 1]);
                }
        }
        if (optind < argc)
                return usage(err, "too many arguments: ", argv[optind]);
        if (d.root[0] && (d.root[0] != '/' || strlen(d.root) > PATH_MAX / 2))
                return usage(err, "--root: expected an absolute path, found ", d.root);
        return look_and_print(&d, json, out, err);
}
