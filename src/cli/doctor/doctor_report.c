/* The lines, and how they are shown. What stands in them may come from the engine or from a command: it is escaped
 * here, in one place. */
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/escape.h"
#include "common/exitcode.h"
#include "common/jsonw.h"

/* Of one text; what is longer is cut. */
#define TEXT_MAX 1024

static const struct {
        const char *name, *color;
} results[] = {
        [DOCTOR_OK] = { "ok", "\033[32m" },
        [DOCTOR_WARNING] = { "warning", "\033[33m" },
        [DOCTOR_FAILURE] = { "failure", "\033[31m" },
};

static void *need(void *p) {
        if (p)
                return p;
        fputs("hermes-sandbox: doctor: out of memory\n", stderr);
        exit(EXIT_OS);
}

void doctor_say(struct doctor *d, enum doctor_result result, const char *mend, const char *fmt, ...) {
        char text[TEXT_MAX];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        d->lines = need(reallocarray(d->lines, d->n_lines + 1, sizeof(*d->lines)));
        d->lines[d->n_lines++] = (struct doctor_line){
                .check = d->check,
                .result = result,
                .text = need(strdup(text)),
                .mend = mend ? need(strdup(mend)) : NULL,
        };
}

void doctor_say_needs_root(struct doctor *d, const char *what) {
        doctor_say(d, DOCTOR_WARNING, DOCTOR_AS_ROOT, "%s: not looked at: needs root", what);
}

static void put_shown(FILE *out, const char *s) {
        char buf[4 * TEXT_MAX + 8];
        struct text t;

        text_init(&t, buf, sizeof(buf));
        text_add_shown(&t, s, strlen(s));
        fputs(buf, out);
}

int doctor_print(const struct doctor *d, bool color, FILE *out) {
        unsigned n[3] = { 0 };

        for (size_t i = 0; i < d->n_lines; i++) {
                const struct doctor_line *l = &d->lines[i];

                n[l->result]++;
                fprintf(out, "%s%-8s%s %-13s ", color ? results[l->result].color : "",
                        results[l->result].name, color ? "\033[0m" : "", l->check);
                put_shown(out, l->text);
                fputc('\n', out);
                if (!l->mend)
                        continue;
                fputs("         mend: ", out);
                put_shown(out, l->mend);
                fputc('\n', out);
        }
        fprintf(out, "%u ok, %u warning%s, %u failure%s\n", n[DOCTOR_OK], n[DOCTOR_WARNING],
                n[DOCTOR_WARNING] == 1 ? "" : "s", n[DOCTOR_FAILURE], n[DOCTOR_FAILURE] == 1 ? "" : "s");
        return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

int doctor_print_json(const struct doctor *d, FILE *out) {
        struct jsonw j;
        int r;

        jsonw_init_file(&j, out);
        jsonw_array(&j);
        for (size_t i = 0; i < d->n_lines; i++) {
                jsonw_object(&j);
                jsonw_key(&j, "check");
                jsonw_str(&j, d->lines[i].check);
                jsonw_key(&j, "result");
                jsonw_str(&j, results[d->lines[i].result].name);
                jsonw_key(&j, "text");
                jsonw_str(&j, d->lines[i].text);
                jsonw_key(&j, "mend");
                jsonw_str(&j, d->lines[i].mend);
                jsonw_object_end(&j);
        }
        jsonw_array_end(&j);
        r = jsonw_done(&j);
        if (r < 0)
                return r;
        return fputc('\n', out) == EOF || fflush(out) != 0 ? -EIO : 0;
}

void doctor_done(struct doctor *d) {
        for (size_t i = 0; i < d->n_lines; i++) {
                free(d->lines[i].text);
                free(d->lines[i].mend);
        }
        free(d->lines);
        d->lines = NULL;
        d->n_lines = 0;
        config_free(d->config);
        d->config = NULL;
        json_decref(d->status);
        json_decref(d->version);
        json_decref(d->info);
        d->status = d->version = d->info = NULL;
}
