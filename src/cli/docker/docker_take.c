/* What the value of a flag means. Nothing here looks at the profile: docker_judge.c does. */
#include <ctype.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/cli_words.h"
#include "cli/docker/docker_exec.h"
#include "cli/docker/docker_take.h"

/* The ones that a profile may have; then the agent's own. */
static const struct {
        unsigned number;
        char name[17];
} capabilities[] = {
        { CAP_CHOWN, "CHOWN" },   { CAP_DAC_OVERRIDE, "DAC_OVERRIDE" },
        { CAP_FOWNER, "FOWNER" }, { CAP_FSETID, "FSETID" },
        { CAP_SETUID, "SETUID" }, { CAP_NET_BIND_SERVICE, "NET_BIND_SERVICE" },
        { CAP_SETGID, "SETGID" },
};
#define N_CAPABILITIES (sizeof(capabilities) / sizeof(capabilities[0]))

int take_invalid(const struct run_flag *f, const char *value, const char *expected, struct errmsg *e) {
        return errmsg_set(e, -EINVAL, "invalid argument \"%.80s\" for \"--%s\" flag: expected %s", value,
                          f->f.name, expected);
}

int take_refused(const struct run_flag *f, const char *value, int how, const char *why,
                 struct errmsg *e) {
        return errmsg_set(e, how, "--%s %.120s: refused: %s", f->f.name, value, why);
}

static int warn(struct run_words *r, const struct run_flag *f, const char *value) {
        if (r->n_warnings < RUN_WARNINGS_MAX) {
                r->warnings[r->n_warnings].flag = f;
                r->warnings[r->n_warnings++].value = value;
        }
        return 0;
}

/* --- numbers ------------------------------------------------------------------------------------------ */

/* Digits, and a fraction of at most nine, in billionths. False: it is none. */
static bool parse_nano(const char *s, const char **ret_end, uint64_t *ret_whole, uint64_t *ret_nano) {
        uint64_t whole = 0, nano = 0, unit = 1000000000;
        const char *begin = s;

        for (; isdigit((unsigned char)*s); s++) {
                if (whole > UINT64_MAX / 100)
                        return false;
                whole = whole * 10 + (uint64_t)(*s - '0');
        }
        if (s == begin && *s != '.')
                return false;
        if (*s == '.')
                for (s++; isdigit((unsigned char)*s); s++)
                        nano += (uint64_t)(*s - '0') * (unit /= 10);
        *ret_end = s;
        *ret_whole = whole;
        *ret_nano = nano;
        return true;
}

bool take_parse_bytes(const char *s, uint64_t *ret) {
        static const char units[] = "bkmgt";
        uint64_t whole, nano, unit = 1;
        const char *end, *letter;

        if (!parse_nano(s, &end, &whole, &nano))
                return false;
        if (*end) {
                letter = strchr(units, tolower((unsigned char)*end));
                if (!letter)
                        return false;
                unit = UINT64_C(1) << (10 * (letter - units));
                end++;
                if (unit > 1 && tolower((unsigned char)*end) == 'i')
                        end++;
                if (unit > 1 && tolower((unsigned char)*end) == 'b')
                        end++;
                if (*end)
                        return false;
        }
        if (whole > (UINT64_C(1) << 62) / unit)
                return false;
        *ret = whole * unit + (uint64_t)((unsigned __int128)nano * unit / 1000000000);
        return true;
}

/* 0 and -1 are without a limit to docker. */
static int take_bytes(const struct run_flag *f, const char *value, uint64_t *ret, struct errmsg *e) {
        if (strcmp(value, "-1") == 0)
                *ret = 0;
        else if (!take_parse_bytes(value, ret))
                return take_invalid(f, value, "a size such as 512m or 2g", e);
        *ret = *ret > 0 ? *ret : RUN_UNLIMITED;
        return 0;
}

int take_memory(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        return take_bytes(f, value, &r->memory_bytes, e);
}

int take_shm(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        return take_bytes(f, value, &r->shm_bytes, e);
}

int take_cpus(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        uint64_t whole, nano;
        const char *end;

        if (!parse_nano(value, &end, &whole, &nano) || *end || whole > 1000000)
                return take_invalid(f, value, "a number such as 0.5 or 2", e);
        r->cpu_nano = whole * 1000000000 + nano;
        r->cpu_nano = r->cpu_nano > 0 ? r->cpu_nano : RUN_UNLIMITED;
        return 0;
}

int take_pids(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        size_t digits = strspn(value, "0123456789");

        if (strcmp(value, "-1") == 0)
                r->pids = RUN_UNLIMITED;
        else if (digits == 0 || digits > 9 || value[digits])
                return take_invalid(f, value, "a whole number", e);
        else
                r->pids = strtoul(value, NULL, 10);
        r->pids = r->pids > 0 ? r->pids : RUN_UNLIMITED;
        return 0;
}

/* --- what it is called, and how it runs ---------------------------------------------------------------- */

int take_detach(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)f;
        (void)e;
        r->detach = value == NULL;
        return 0;
}

int take_input(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)f;
        (void)e;
        r->input = value == NULL;
        return 0;
}

int take_tty(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)f;
        (void)e;
        r->tty = value == NULL;
        return 0;
}

int take_remove(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)f;
        (void)e;
        r->remove = value == NULL;
        return 0;
}

int take_name(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
        size_t len = strlen(value);

        (void)f;
        if (len < 2 || strspn(value, chars) != len || strchr("_.-", value[0]))
                return errmsg_set(e, -EINVAL,
                                  "Error response from daemon: Invalid container name (%.80s), only "
                                  "[a-zA-Z0-9][a-zA-Z0-9_.-] are allowed.",
                                  value);
        if (len > PROTO_NAME_MAX)
                return errmsg_set(e, -EINVAL, "--name %.80s: a name has at most %d characters", value,
                                  PROTO_NAME_MAX);
        r->name = value;
        return 0;
}

/* K alone has the value "". The last one of a name counts. */
int take_label(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        static char with_value[PROTO_LABELS_MAX][PROTO_LABEL_MAX + 2];
        size_t len = strcspn(value, "=");
        uint32_t i = 0;

        if (len == 0 || strlen(value) + (value[len] == '\0') > PROTO_LABEL_MAX)
                return errmsg_set(e, -EINVAL, "--%s %.80s: expected K or K=V of at most %d bytes",
                                  f->f.name, value, PROTO_LABEL_MAX);
        while (i < r->n_labels && (strncmp(r->labels[i], value, len) != 0 || r->labels[i][len] != '='))
                i++;
        if (i == PROTO_LABELS_MAX)
                return errmsg_set(e, -EINVAL, "--%s: more than %d labels", f->f.name, PROTO_LABELS_MAX);
        if (value[len] == '\0') {
                snprintf(with_value[i], sizeof(with_value[i]), "%s=", value);
                value = with_value[i];
        }
        r->labels[i] = value;
        if (i == r->n_labels)
                r->n_labels++;
        return 0;
}

int take_run_env(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        const char *pair = docker_env(value, environ, e);

        if (!pair)
                return e->text[0] ? -EINVAL : 0;
        if (r->n_env == PROTO_OPEN_ENV_MAX)
                return errmsg_set(e, -EINVAL, "--%s: more than %d variables", f->f.name,
                                  PROTO_OPEN_ENV_MAX);
        r->env[r->n_env++] = pair;
        return 0;
}

int take_workdir(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)f;
        if (value[0] != '/' || strlen(value) > PROTO_PATH_MAX)
                return errmsg_set(e, -EINVAL,
                                  "the working directory '%.80s' is invalid, it needs to be an absolute "
                                  "path",
                                  value);
        r->workdir = value;
        return 0;
}

int take_user(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)f;
        r->user = true;
        return cli_parse_user("run", "--user", value, &r->uid, &r->gid, e);
}

/* --- rights --------------------------------------------------------------------------------------------- */

int take_storage(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)e;
        r->storage = true;
        return warn(r, f, value);
}

const char *run_capability_name(unsigned number) {
        for (size_t i = 0; i < N_CAPABILITIES; i++)
                if (capabilities[i].number == number)
                        return capabilities[i].name;
        return "?";
}

int take_cap_add(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        const char *name = strncasecmp(value, "CAP_", 4) == 0 ? value + 4 : value;

        for (size_t i = 0; i < N_CAPABILITIES; i++) {
                unsigned number = capabilities[i].number;

                if (strcasecmp(capabilities[i].name, name) != 0)
                        continue;
                if (number == CAP_SETUID || number == CAP_SETGID)
                        r->agents_own = true;
                else
                        r->capabilities |= UINT64_C(1) << number;
                return 0;
        }
        return take_refused(
                f, value, -EACCES,
                "a profile can have CHOWN, DAC_OVERRIDE, FOWNER, FSETID and NET_BIND_SERVICE "
                "(capabilities); nothing allows others",
                e);
}

/* ALL, or one that may be unknown here: then nobody has it. */
int take_cap_drop(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        const char *name = strncasecmp(value, "CAP_", 4) == 0 ? value + 4 : value;

        (void)f;
        (void)e;
        for (size_t i = 0; i < N_CAPABILITIES; i++)
                if (strcasecmp(name, "ALL") == 0 || strcasecmp(name, capabilities[i].name) == 0)
                        r->dropped |= UINT64_C(1) << capabilities[i].number;
        return 0;
}

int take_read_only(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)f;
        (void)e;
        r->read_only = value == NULL;
        r->writable = value != NULL;
        return 0;
}

int take_security(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        size_t len = strcspn(value, "=:");

        (void)r;
        if (len == 17 && strncmp(value, "no-new-privileges", 17) == 0 &&
            (value[17] == '\0' || strcmp(value + 18, "true") == 0))
                return 0;
        return take_refused(f, value, -EACCES,
                            "nothing allows it: no-new-privileges, seccomp and AppArmor are as they are",
                            e);
}

int take_namespace(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        if (strcmp(value, "host") == 0 || strncmp(value, "container:", 10) == 0)
                return take_refused(f, value, -EACCES, "nothing allows it: a sandbox has its own", e);
        if (strcmp(f->f.name, "ipc") == 0 &&
            (strcmp(value, "shareable") == 0 || strcmp(value, "none") == 0))
                return warn(r, f, value);
        if (value[0] == '\0' || strcmp(value, "private") == 0)
                return 0;
        return take_invalid(f, value, "private", e);
}

int take_network(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        if (strcmp(value, "host") == 0 || strncmp(value, "container:", 10) == 0)
                return take_refused(f, value, -EACCES, "nothing allows it: a sandbox has its own", e);
        r->network = value;
        return 0;
}

int take_entrypoint(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)r;
        return value[0] == '\0' ? 0 : take_refused(f, value, -EPERM, f->text, e);
}

int take_restart(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)e;
        return value[0] == '\0' || strcmp(value, "no") == 0 ? 0 : warn(r, f, value);
}

int take_pull(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)e;
        return strcmp(value, "missing") == 0 ? 0 : warn(r, f, value);
}

/* --- all of them ------------------------------------------------------------------------------------------ */

static int take(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        bool off = !f->f.value && value;

        if (f->take)
                return f->take(r, f, value, e);
        if (f->decision == FLAG_POLICY)
                return off ? warn(r, f, value) : 0;
        if (off)
                return 0;
        if (f->decision == FLAG_WARNED)
                return warn(r, f, value);
        return errmsg_set(e, f->decision == FLAG_AUDITED ? -EACCES : -EPERM, "--%s%s%.120s: refused: %s",
                          f->f.name, value ? " " : "", value ? value : "", f->text);
}

int run_words_parse(struct run_words *r, int argc, char **argv, struct errmsg *e) {
        struct docker_words w;
        const char *value;
        int i;

        memset(r, 0, sizeof(*r));
        r->name = r->workdir = "";
        docker_words_init(&w, argc, argv, false);
        while ((i = docker_words_next(&w, run_flags, sizeof(run_flags[0]), &value, e)) >= 0) {
                int code = take(r, &run_flags[i], value, e);

                if (code < 0) {
                        r->refused = &run_flags[i];
                        return code;
                }
        }
        if (i != DOCKER_WORDS_END)
                return i;
        if (w.next < argc)
                r->image = argv[w.next++];
        r->command = argv + w.next;
        r->n_command = argc - w.next;
        return 0;
}
