/*
 * The docker shim's readers of words: the input is an argument list, its words ended by NUL, for the parser with run's
 * table, and the first word is a template. Every word is used once, none is read behind its end, and what a template
 * does not know it refuses with a line.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/docker/docker_flags.h"
#include "cli/docker/docker_template.h"

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
        if (!ok)
                abort();
}

static void parse(char **argv, int argc, bool any) {
        struct docker_words w;
        struct errmsg e;
        const char *value;
        int i, n = 0;

        docker_words_init(&w, argc, argv, any);
        while ((i = docker_words_next(&w, run_flags, sizeof(run_flags[0]), &value, &e)) >= 0) {
                check(run_flags[i].f.name[0] && (value || !run_flags[i].f.value));
                check(++n <= argc * 4096);
        }
        check(w.next <= argc && w.n_operands < argc);
        check(i != DOCKER_WORDS_BAD || e.text[0]);
}

static void render(const char *format) {
        static const char *const labels[] = { "a=1", "b=" };
        static struct doc d;
        struct errmsg e = { "" };
        char *text = NULL, *of_list;
        size_t len;
        FILE *f = open_memstream(&text, &len);
        int r;

        check(f != NULL);
        doc_init(&d);
        doc_string(&d, "Id", "0123");
        doc_bool(&d, "State.Running", true);
        doc_labels(&d, "Labels", labels, 2);
        doc_raw(&d, "Config.Entrypoint", "null");
        of_list = docker_template_of_list(format);
        r = docker_template(of_list, &d, f, &e);
        check(r == 0 || e.text[0]);
        free(of_list);
        fclose(f);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *argv[WORDS_MAX + 1], *copy = malloc(size + 1);
        char command[] = "run";
        int argc = 1;

        check(copy != NULL);
        argv[0] = command;
        for (int any = 0; any < 2; any++, argc = 1) {
                memcpy(copy, data, size);
                copy[size] = '\0';
                for (size_t i = 0; i < size && argc < WORDS_MAX; i += strlen(copy + i) + 1)
                        argv[argc++] = copy + i;
                argv[argc] = NULL;
                parse(argv, argc, any);
        }
        copy[size] = '\0';
        if (size > 0)
                render(copy);
        free(copy);
        return 0;
}
