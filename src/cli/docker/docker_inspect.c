/* docker inspect and docker image inspect: JSON as docker has it, of what is known, or a template's text. */
#include <stdlib.h>
#include <string.h>

#include "cli/docker/docker_ask.h"
#include "cli/docker/docker_list.h"
#include "cli/docker/docker_template.h"
#include "cli/docker/docker_words.h"
#include "common/image_name.h"

enum { FORMAT, SIZE, TYPE };

static const struct docker_flag flags[] = {
        { "format", 'f', true, FORMAT },
        { "size", 's', false, SIZE },
        { "type", 0, true, TYPE },
        { .name = "" },
};

static const char inspect_help[] =
        "\n"
        "  -f, --format TEMPLATE  such as '{{.State.Status}}' or '{{json .Config.Labels}}'\n"
        "  --type TYPE            container, or image\n";

struct look {
        const struct docker *docker;
        const char *format; /* or NULL: JSON */
        bool containers, images;
        struct docker_out out;
        size_t n; /* shown */
        int code;
};

static void show(struct look *l, const struct doc *d) {
        struct errmsg e;

        if (!l->format) {
                fputs(l->n++ == 0 ? "[\n    " : ",\n    ", l->out.f);
                doc_json_object(d, "", 0, l->out.f, 4, 1);
                return;
        }
        l->n++;
        if (docker_template(l->format, d, l->out.f, &e) < 0) {
                cli_line("%s", e.text);
                l->code = DOCKER_FAILED;
        }
        fputc('\n', l->out.f);
}

/* Is a field of that name in the template? Its price is a question to the engine. */
static bool wants_image_id(const struct look *l) {
        return !l->format || strstr(l->format, ".Image}") || strstr(l->format, ".Image ") ||
               strstr(l->format, "json .}");
}

/* An image that is there, by its name or its id, with @of that profile's alone. 1: found; 0: not; negative, with a line
 * in a->error: it cannot be known. */
static int find_image(const struct look *l, const char *word, const char *of, struct docker_answer *a,
                      struct image_info *ret) {
        const struct ask q = { .op = ASK_IMAGE_LIST, .form = ANSWER_RECORDS };
        const char *id = strncmp(word, "sha256:", 7) == 0 ? word + 7 : word;
        int r;

        if (docker_ask(l->docker, &q, a) != 0)
                return -1;
        while ((r = docker_answer_image(a, ret)) > 0)
                if (ret->present &&
                    (of ? strcmp(ret->profile, of) == 0 && image_name_means(word, ret->name)
                        : image_name_means(word, ret->name) ||
                                     (strlen(id) >= 4 && strncmp(ret->id, "sha256:", 7) == 0 &&
                                      strncmp(ret->id + 7, id, strlen(id)) == 0)))
                        return 1;
        return r;
}

/* 1: shown, 0: there is none, -1: it cannot be known, and it is said why. */
static int show_container(struct look *l, const char *word) {
        struct docker_answer a, images = { .p = NULL };
        struct session_info s;
        struct image_info i;
        static struct doc d;
        bool known = false;
        int r = docker_ask_session(l->docker, word, &a, &s);

        if (r == 0) {
                if (wants_image_id(l))
                        known = find_image(l, s.image, s.profile, &images, &i) == 1;
                docker_doc_container(&d, &s, known ? i.id : NULL);
                show(l, &d);
                docker_answer_done(&images);
        } else if (a.reason != REJECT_NO_SESSION)
                docker_say_refusal(a.reason, a.error.text, word);
        docker_answer_done(&a);
        return r == 0 ? 1 : a.reason == REJECT_NO_SESSION ? 0 : -1;
}

static int show_image(struct look *l, const char *word) {
        struct docker_answer a;
        struct image_info i;
        static struct doc d;
        int r = find_image(l, word, NULL, &a, &i);

        if (r > 0) {
                docker_doc_image(&d, &i);
                show(l, &d);
        } else if (r < 0)
                cli_error("%s", a.error.text);
        docker_answer_done(&a);
        return r;
}

static void look_at(struct look *l, const char *word) {
        int r = l->containers ? show_container(l, word) : 0;

        if (r == 0 && l->images)
                r = show_image(l, word);
        if (r > 0)
                return;
        l->code = DOCKER_FAILED;
        if (r == 0)
                cli_line(l->containers && l->images ? "Error: No such object: %s"
                         : l->images                ? "Error: No such image: %s"
                                                    : "Error: No such container: %s",
                         word);
}

static int look_at_all(struct look *l, char **words, int n) {
        int r;

        docker_out_init(&l->out);
        for (int i = 0; i < n; i++)
                look_at(l, words[i]);
        if (!l->format)
                fputs(l->n > 0 ? "\n]\n" : "[]\n", l->out.f);
        else if (l->n == 0)
                fputc('\n', l->out.f);
        r = docker_out_done(&l->out);
        return l->code != 0 ? l->code : r;
}

static int inspect(struct look *l, int argc, char **argv) {
        struct docker_words w;
        struct errmsg e;
        const char *value;
        int i;

        docker_words_init(&w, argc, argv, true);
        while ((i = docker_words_next(&w, flags, sizeof(flags[0]), &value, &e)) >= 0) {
                if (flags[i].id == FORMAT)
                        l->format = docker_template_of(value);
                if (flags[i].id != TYPE)
                        continue;
                l->containers = strcmp(value, "container") == 0;
                l->images = strcmp(value, "image") == 0;
                if (!l->containers && !l->images) {
                        cli_line("\"%.80s\" is not a valid value for --type: container or image", value);
                        return DOCKER_FAILED;
                }
        }
        if (i == DOCKER_WORDS_HELP)
                return docker_help("inspect", inspect_help);
        if (i == DOCKER_WORDS_BAD)
                return docker_bad_words("inspect", &e);
        if (w.n_operands == 0)
                return docker_too_few("inspect", 1);
        return look_at_all(l, argv + 1, w.n_operands);
}

int docker_inspect(const struct docker *d, int argc, char **argv) {
        struct look l = { .docker = d, .containers = true, .images = true };

        return inspect(&l, argc, argv);
}

int docker_image(const struct docker *d, int argc, char **argv) {
        struct look l = { .docker = d, .images = true };
        const char *word = argc > 1 ? argv[1] : "--help";

        if (strcmp(word, "--help") == 0)
                return docker_help("image", NULL);
        if (strcmp(word, "inspect") == 0)
                return inspect(&l, argc - 1, argv + 1);
        if (strcmp(word, "ls") == 0 || strcmp(word, "list") == 0)
                return docker_images(d, argc - 1, argv + 1);
        if (strcmp(word, "pull") == 0)
                return docker_pull(d, argc - 1, argv + 1);
        cli_error("'image %s' is not a docker command of hermes-sandbox: image inspect, ls and pull are",
                  word);
        return DOCKER_FAILED;
}
