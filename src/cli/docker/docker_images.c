/* docker images and pull: the images of the profiles. */
#include <string.h>

#include "cli/cli_ask.h"
#include "cli/docker/docker_ask.h"
#include "cli/docker/docker_list.h"
#include "cli/docker/docker_words.h"
#include "common/image_name.h"

static void put_image(FILE *out, const struct image_info *i, bool quiet) {
        const char *id = strncmp(i->id, "sha256:", 7) == 0 ? i->id + 7 : i->id;
        struct image_name n;

        image_name_parse(i->name, &n);
        if (quiet)
                fprintf(out, "%.12s\n", id);
        else
                fprintf(out, "%-32.*s   %-28.*s   %-12.12s   %-20.19s   %lluMB\n", n.repository_len,
                        n.repository, n.tag_len > 0 ? n.tag_len : 6, n.tag_len > 0 ? n.tag : "<none>",
                        id, i->created, (unsigned long long)(i->bytes / 1000000));
}

int docker_images(const struct docker *d, int argc, char **argv) {
        static const struct docker_flag flags[] = { { "quiet", 'q', false, 0 }, { .name = "" } };
        const struct ask q = { .op = ASK_IMAGE_LIST, .form = ANSWER_RECORDS };
        struct docker_words w;
        struct docker_answer a;
        struct image_info i;
        struct docker_out out;
        struct errmsg e;
        const char *value;
        bool quiet = false;
        int r;

        docker_words_init(&w, argc, argv, true);
        while ((r = docker_words_next(&w, flags, sizeof(flags[0]), &value, &e)) >= 0)
                quiet = value == NULL;
        if (r == DOCKER_WORDS_HELP)
                return docker_help("images", "\n  -q, --quiet  ids alone\n");
        if (r == DOCKER_WORDS_BAD)
                return docker_bad_words("images", &e);
        r = docker_ask(d, &q, &a);
        docker_out_init(&out);
        if (!quiet && r == 0)
                fprintf(out.f, "%-32s   %-28s   %-12s   %-20s   %s\n", "REPOSITORY", "TAG", "IMAGE ID",
                        "CREATED", "SIZE");
        while (r == 0 && (r = docker_answer_image(&a, &i)) > 0) {
                r = 0;
                if (i.present)
                        put_image(out.f, &i, quiet);
        }
        if (r != 0)
                docker_fail(a.error.text);
        docker_answer_done(&a);
        return docker_out_done(&out) != 0 || r != 0 ? DOCKER_FAILED : 0;
}

/* --- pull ----------------------------------------------------------------------------------------------- */

/* The profile that has that image, as a label of ASK_IMAGE_PULL. 0, or an exit status and what was said. */
static int profile_of(const struct docker *d, const char *image, char *label, size_t cap) {
        const struct ask q = { .op = ASK_IMAGE_LIST, .form = ANSWER_RECORDS };
        struct docker_answer a;
        struct image_info i;
        int r = docker_ask(d, &q, &a);

        if (r != 0)
                r = docker_fail(a.error.text);
        else {
                while ((r = docker_answer_image(&a, &i)) > 0 && !image_name_means(image, i.name))
                        ;
                if (r > 0)
                        snprintf(label, cap, "profile=%s", i.profile);
                else {
                        cli_error(
                                "pull: %s is no profile's image: an image is named under image, in a file of "
                                "/etc/hermes-sandbox/sandbox.d",
                                image);
                }
                r = r > 0 ? 0 : DOCKER_FAILED;
        }
        docker_answer_done(&a);
        return r;
}

int docker_pull(const struct docker *d, int argc, char **argv) {
        static const struct docker_flag flags[] = { { "quiet", 'q', false, 0 },
                                                    { "platform", 0, true, 1 },
                                                    { .name = "" } };
        char label[PROTO_LABEL_MAX + 1];
        struct ask q = { .op = ASK_IMAGE_PULL, .n_labels = 1, .labels = { label } };
        struct docker_words w;
        struct errmsg e;
        const char *value;
        int i, r;

        docker_words_init(&w, argc, argv, true);
        while ((i = docker_words_next(&w, flags, sizeof(flags[0]), &value, &e)) >= 0)
                if (flags[i].id == 1)
                        return docker_fail(
                                "pull: --platform: refused: which image it is the profile says (image)");
        if (i == DOCKER_WORDS_HELP)
                return docker_help("pull", NULL);
        if (i == DOCKER_WORDS_BAD)
                return docker_bad_words("pull", &e);
        if (w.n_operands != 1)
                return docker_too_few("pull", 1);
        r = profile_of(d, argv[1], label, sizeof(label));
        if (r != 0)
                return r;
        r = cli_ask(&d->cli, &q, cli_take_say, NULL, &e);
        if (r != 0 && e.text[0])
                docker_fail(e.text);
        return r != 0 ? DOCKER_FAILED : 0;
}
