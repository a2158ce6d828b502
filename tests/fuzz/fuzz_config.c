/*
 * The reader of sandbox.yaml. What it takes must come out of config_show() in a form that it takes
 * again, and that then shows the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *show(const struct config *c, size_t *ret_len) {
        char *text = NULL;
        FILE *f = open_memstream(&text, ret_len);

        if (!f || config_show(c, f) < 0)
                abort();
        fclose(f);
        return text;
}

static void say(void *userdata, const char *line) {
        *(size_t *)userdata += strlen(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct config *a, *b;
        struct errmsg e = { "" };
        char *first, *second;
        size_t first_len, second_len, said = 0;

        if (config_load_memory("fuzz", data, size, &a, &e) < 0) {
                if (strncmp(e.text, "fuzz:", 5) != 0 || !strstr(e.text, ": found "))
                        abort();
                return 0;
        }
        config_unenforced(a, say, &said);
        first = show(a, &first_len);
        if (config_load_memory("shown", first, first_len, &b, &e) < 0) {
                fprintf(stderr, "%s\n", e.text);
                abort();
        }
        second = show(b, &second_len);
        if (first_len != second_len || memcmp(first, second, first_len) != 0)
                abort();
        for (size_t i = 0; i < a->n_profiles; i++)
                if (memcmp(a->profiles[i].recipe, b->profiles[i].recipe, CONFIG_RECIPE) != 0)
                        abort();
        free(first);
        free(second);
        config_free(a);
        config_free(b);
        return 0;
}
