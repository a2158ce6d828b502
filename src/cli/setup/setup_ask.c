#include "cli/setup/setup_ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/setup/setup_options.h"
#include "common/cleanup.h"

/* One line without the blanks around it, a new string; NULL at the end of the input. */
static char *read_line(FILE *in) {
        char *line = NULL, *start, *text;
        size_t cap = 0;
        ssize_t n = getline(&line, &cap, in);

        if (n < 0) {
                free(line);
                return NULL;
        }
        start = line + strspn(line, " \t");
        for (size_t len = strlen(start); len > 0 && strchr(" \t\r\n", start[len - 1]); len--)
                start[len - 1] = '\0';
        text = strdup(start);
        if (!text)
                abort();
        free(line);
        return text;
}

/* One setting, until an answer passes the check. */
static int ask_setting(struct setup_options *o, enum setting s, const struct config_profile *now,
                       bool (*check)(void *userdata, const struct setup_options *o), void *userdata,
                       FILE *in, FILE *out) {
        char buf[SETTING_TEXT];

        for (;;) {
                char *answer;

                fprintf(out, "%s [%s]: ", setup_settings[s].question, setup_in_force(now, s, buf));
                fflush(out);
                answer = read_line(in);
                if (!answer)
                        return -ENODATA;
                if (!*answer || setup_is_in_force(now, s, answer)) {
                        free(answer);
                        return 0;
                }
                o->values[s] = answer;
                if (check(userdata, o))
                        return 0;
                o->values[s] = NULL;
                free(answer);
        }
}

int setup_ask_settings(struct setup_options *o, const struct config_profile *now,
                       bool (*check)(void *userdata, const struct setup_options *o), void *userdata,
                       FILE *in, FILE *out) {
        fprintf(out, "The profile %s. An empty answer leaves what stands in brackets.\n", now->name);
        for (enum setting s = 0; s < N_SETTINGS; s++) {
                int r = ask_setting(o, s, now, check, userdata, in, out);

                if (r < 0)
                        return r;
        }
        return 0;
}

int setup_ask_user(struct setup_options *o, bool (*usable)(const char *name), FILE *in, FILE *out) {
        for (;;) {
                char *answer;

                fputs("A user who may use the sandbox from now on, such as your agent's [nobody]: ",
                      out);
                fflush(out);
                answer = read_line(in);
                if (!answer)
                        return -ENODATA;
                if (*answer && !usable(answer)) {
                        fputs("There is no such user.\n", out);
                        free(answer);
                        continue;
                }
                if (*answer)
                        o->add_user = answer;
                else
                        free(answer);
                return 0;
        }
}

int setup_ask_yes(const char *question, FILE *in, FILE *out) {
        for (;;) {
                _cleanup_free_ char *answer = NULL;

                fprintf(out, "%s [Y/n] ", question);
                fflush(out);
                answer = read_line(in);
                if (!answer || strcasecmp(answer, "n") == 0 || strcasecmp(answer, "no") == 0)
                        return 0;
                if (!*answer || strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0)
                        return 1;
        }
}
