/* docker version and info: whether it works at all, and with what. */
#include <string.h>
#include <sys/utsname.h>

#include "cli/docker/docker_ask.h"
#include "cli/docker/docker_list.h"
#include "cli/docker/docker_template.h"
#include "cli/docker/docker_words.h"

static const struct docker_flag format_flags[] = {
        { "format", 'f', true, 0 },
        { .name = "" },
};

/* Takes --format alone. True: go on; else *ret is the exit status. */
static bool take_format(const char *command, int argc, char **argv, const char **ret_format, int *ret) {
        struct docker_words w;
        struct errmsg e;
        const char *value;
        int i;

        *ret_format = NULL;
        docker_words_init(&w, argc, argv, true);
        while ((i = docker_words_next(&w, format_flags, sizeof(format_flags[0]), &value, &e)) >= 0)
                *ret_format = docker_template_of(value);
        if (i == DOCKER_WORDS_HELP)
                *ret = docker_help(command, "\n  -f, --format TEMPLATE\n");
        else if (i == DOCKER_WORDS_BAD)
                *ret = docker_bad_words(command, &e);
        else if (w.n_operands > 0) {
                cli_line("\"docker %s\" accepts no arguments.", command);
                *ret = DOCKER_FAILED;
        } else
                return true;
        return false;
}

static int show(const char *format, const struct doc *doc) {
        struct docker_out out;
        struct errmsg e;
        int r, code;

        docker_out_init(&out);
        r = docker_template(format, doc, out.f, &e);
        fputc('\n', out.f);
        if (r < 0)
                cli_line("%s", e.text);
        code = docker_out_done(&out);
        return r < 0 ? DOCKER_FAILED : code;
}

/* --- version -------------------------------------------------------------------------------------------- */

int docker_version(const struct docker *d, int argc, char **argv) {
        static struct doc doc;
        struct docker_answer a;
        struct image_info p;
        struct utsname u;
        const char *format;
        int code;

        if (!take_format("version", argc, argv, &format, &code))
                return code;
        /* Is the manager there, does it reach broker and engine, and may the caller use the profile? */
        code = docker_ask_profile(d, d->profile, false, &a, &p);
        docker_answer_done(&a);
        if (code != 0)
                return docker_fail(a.error.text);
        if (uname(&u) < 0)
                u.machine[0] = u.release[0] = '\0';
        doc_init(&doc);
        doc_string(&doc, "Client.Version", VERSION);
        doc_string(&doc, "Client.Os", "linux");
        doc_string(&doc, "Client.Arch", u.machine);
        doc_string(&doc, "Server.Platform.Name", "hermes-sandbox");
        doc_string(&doc, "Server.Version", VERSION);
        doc_string(&doc, "Server.Os", "linux");
        doc_string(&doc, "Server.Arch", u.machine);
        doc_string(&doc, "Server.KernelVersion", u.release);
        if (format)
                return show(format, &doc);
        return cli_say("Client: hermes-sandbox's docker\n"
                       " Version:  " VERSION "\n"
                       "\n"
                       "Server: hermes-sandbox\n"
                       " Version:  " VERSION "\n");
}

/* --- info ----------------------------------------------------------------------------------------------- */

/* Of the caller's own sessions. 0, or a line in a->error. */
static int count(const struct docker *d, struct docker_answer *a, uint64_t n[4]) {
        const struct ask q = { .op = ASK_SESSION_LIST, .form = ANSWER_RECORDS };
        struct session_info s;
        int r = docker_ask(d, &q, a);

        while (r == 0 && (r = docker_answer_session(a, &s)) > 0) {
                n[0]++;
                n[s.status]++;
                r = 0;
        }
        return r;
}

static int show_info(const struct docker *d, const struct image_info *p, const uint64_t n[4],
                     const char *format) {
        static struct doc doc;
        struct docker_out out;
        struct utsname u;

        if (uname(&u) < 0)
                u.machine[0] = u.release[0] = '\0';
        doc_init(&doc);
        doc_number(&doc, "Containers", n[0]);
        doc_number(&doc, "ContainersRunning", n[SESSION_IS_RUNNING]);
        doc_number(&doc, "ContainersPaused", 0);
        doc_number(&doc, "ContainersStopped", n[SESSION_IS_STOPPED]);
        doc_string(&doc, "Driver", "hermes-sandbox");
        doc_string(&doc, "KernelVersion", u.release);
        doc_string(&doc, "OSType", "linux");
        doc_string(&doc, "Architecture", u.machine);
        doc_string(&doc, "ServerVersion", VERSION);
        doc_string(&doc, "Sandbox.Profile", d->profile);
        doc_string(&doc, "Sandbox.Image", p->name);
        doc_bool(&doc, "Sandbox.ImagePresent", p->present);
        if (format)
                return show(format, &doc);
        docker_out_init(&out);
        fprintf(out.f, "Server: hermes-sandbox\n Containers: %llu\n  Running: %llu\n  Stopped: %llu\n",
                (unsigned long long)n[0], (unsigned long long)n[SESSION_IS_RUNNING],
                (unsigned long long)n[SESSION_IS_STOPPED]);
        fprintf(out.f,
                " Server Version: " VERSION "\n Storage Driver: hermes-sandbox\n Kernel Version: %s\n"
                " OSType: linux\n Architecture: %s\n Profile: %s\n Image: %s%s\n",
                u.release, u.machine, d->profile, p->name, p->present ? "" : " (not there yet)");
        return docker_out_done(&out);
}

int docker_info(const struct docker *d, int argc, char **argv) {
        struct docker_answer profile, sessions = { .p = NULL };
        uint64_t n[4] = { 0 };
        struct image_info p;
        const char *format;
        int code;

        if (!take_format("info", argc, argv, &format, &code))
                return code;
        code = docker_ask_profile(d, d->profile, true, &profile, &p);
        if (code != 0)
                code = docker_fail(profile.error.text);
        else if (count(d, &sessions, n) != 0)
                code = docker_fail(sessions.error.text);
        else
                code = show_info(d, &p, n, format);
        docker_answer_done(&sessions);
        docker_answer_done(&profile);
        return code;
}
