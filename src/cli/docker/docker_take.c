/* What the value of a flag means. Nothing here looks at the profile: docker_judge.c does. */
#include <ctype.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_words.h"
#include "cli/docker/docker_exec.h"
#include "cli/docker/docker_flags.h"

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

static int invalid(const struct run_flag *f, const char *value, const char *expected, struct errmsg *e) {
        return errmsg_set(e, -EINVAL, "invalid argument \"%.80s\" for \"--%s\" flag: expected %s", value,
                          f->f.name, expected);
}

static int refused(const struct run_flag *f, const char *value, int how, const char *why,
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

/* "512m", "1.5g", "64MiB": docker's sizes, by 1024. */
static bool parse_bytes(const char *s, uint64_t *ret) {
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
        else if (!parse_bytes(value, ret))
                return invalid(f, value, "a size such as 512m or 2g", e);
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
                return invalid(f, value, "a number such as 0.5 or 2", e);
        r->cpu_nano = whole * 1000000000 + nano;
        r->cpu_nano = r->cpu_nano > 0 ? r->cpu_nano : RUN_UNLIMITED;
        return 0;
}

int take_pids(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        size_t digits = strspn(value, "0123456789");

        if (strcmp(value, "-1") == 0)
                r->pids = RUN_UNLIMITED;
        else if (digits == 0 || digits > 9 || value[digits])
                return invalid(f, value, "a whole number", e);
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

/* --- files ---------------------------------------------------------------------------------------------- */

/* A socket of an engine, by its name or by what it is. */
static bool is_socket(const char *path) {
        const char *base = strrchr(path, '/');
        struct stat st;

        base = base ? base + 1 : path;
        return strcmp(base, "docker.sock") == 0 || strcmp(base, "containerd.sock") == 0 ||
               strcmp(base, "podman.sock") == 0 || (stat(path, &st) == 0 && S_ISSOCK(st.st_mode));
}

static int add_mount(struct run_words *r, const struct run_flag *f, const char *value, const char *src,
                     const char *dst, bool read_only, struct errmsg *e) {
        char *text, what[32];
        int code;

        if (src[0] != '/' && src[0] != '.')
                return refused(
                        f, value, -EPERM,
                        "there are no volumes; a folder of this machine is named by its whole path", e);
        if (is_socket(src))
                return refused(f, value, -EACCES,
                               "nothing allows it: no sandbox reaches a socket of the host", e);
        /* For as long as the program runs. */
        if (asprintf(&text, "%s:%s%s", src, dst, read_only ? ":ro" : "") < 0)
                abort();
        snprintf(what, sizeof(what), "--%s", f->f.name);
        code = cli_mounts_add(&r->mounts, what, text, e);
        if (code < 0)
                free(text);
        return code;
}

/* SRC:DST, and behind a further colon words with commas between them. */
int take_volume(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        char copy[4096], *dst, *options, *word;
        bool read_only = false;

        if ((size_t)snprintf(copy, sizeof(copy), "%s", value) >= sizeof(copy))
                return invalid(f, value, "less than 4096 bytes", e);
        dst = strchr(copy, ':');
        if (!dst)
                return refused(f, value, -EPERM, "there are no volumes; expected SRC:DST or SRC:DST:ro",
                               e);
        *dst++ = '\0';
        options = strchr(dst, ':');
        if (options)
                *options++ = '\0';
        while ((word = strsep(&options, ",")))
                if (strcmp(word, "ro") == 0 || strcmp(word, "readonly") == 0)
                        read_only = true;
                else if (strcmp(word, "z") != 0 && strcmp(word, "Z") != 0 && strcmp(word, "rw") != 0 &&
                         strcmp(word, "rprivate") != 0 && strcmp(word, "private") != 0)
                        return refused(f, value, -EPERM, "of its options ro, rw, z and Z are known", e);
        return add_mount(r, f, value, copy, dst, read_only, e);
}

static int add_tmpfs(struct run_words *r, const struct run_flag *f, const char *path, int path_len,
                     uint64_t bytes, struct errmsg *e) {
        int i = 0;

        if (path_len == 0 || path_len > NARROW_PATH_MAX || path[0] != '/')
                return invalid(f, path, "an absolute path", e);
        while (i < r->n_tmpfs && (r->tmpfs[i].path_len != path_len ||
                                  memcmp(r->tmpfs[i].path, path, (size_t)path_len) != 0))
                i++;
        if (i == NARROW_TMPFS_MAX)
                return errmsg_set(e, -EINVAL, "--%s: more than %d places", f->f.name, NARROW_TMPFS_MAX);
        r->tmpfs[i].path = path;
        r->tmpfs[i].path_len = path_len;
        r->tmpfs[i].bytes = bytes;
        if (i == r->n_tmpfs)
                r->n_tmpfs++;
        return 0;
}

/* PATH[:size=N,…]. What else may stand there (rw, exec, mode=…) the profile's tmpfs has. */
int take_tmpfs(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        const char *colon = strchr(value, ':');
        char copy[512], *options = copy, *word;
        uint64_t bytes = 0;

        if ((size_t)snprintf(copy, sizeof(copy), "%s", colon ? colon + 1 : "") >= sizeof(copy))
                return invalid(f, value, "fewer options", e);
        while ((word = strsep(&options, ",")))
                if (strncmp(word, "size=", 5) == 0 && !parse_bytes(word + 5, &bytes))
                        return invalid(f, value, "a size such as size=512m", e);
        return add_tmpfs(r, f, value, colon ? (int)(colon - value) : (int)strlen(value), bytes, e);
}

/* key=value,… */
struct mount_words {
        const char *type, *src, *dst;
        bool read_only;
        uint64_t bytes;
};

static bool take_mount_word(struct mount_words *m, char *word) {
        const char *key = strsep(&word, "=");

        if (strcmp(key, "type") == 0 && word)
                m->type = word;
        else if ((strcmp(key, "source") == 0 || strcmp(key, "src") == 0) && word)
                m->src = word;
        else if ((strcmp(key, "target") == 0 || strcmp(key, "dst") == 0 ||
                  strcmp(key, "destination") == 0) &&
                 word)
                m->dst = word;
        else if (strcmp(key, "readonly") == 0 || strcmp(key, "ro") == 0)
                m->read_only = !word || strcmp(word, "true") == 0 || strcmp(word, "1") == 0;
        else if (strcmp(key, "tmpfs-size") == 0 && word)
                return parse_bytes(word, &m->bytes);
        else
                return strcmp(key, "tmpfs-mode") == 0;
        return true;
}

/* @words is taken apart. */
static int take_mount_words(struct run_words *r, const struct run_flag *f, const char *value,
                            char *words, struct errmsg *e) {
        struct mount_words m = { .type = "volume" };
        char *word;

        while ((word = strsep(&words, ",")))
                if (!take_mount_word(&m, word))
                        return refused(
                                f, value, -EPERM,
                                "known are type, source, target, readonly, tmpfs-size, tmpfs-mode", e);
        if (!m.dst)
                return invalid(f, value, "a target=", e);
        if (strcmp(m.type, "tmpfs") == 0) {
                /* The path as it stands in the flag's own word, which stays. */
                const char *at = strstr(value, m.dst);

                return add_tmpfs(r, f, at, (int)strlen(m.dst), m.bytes, e);
        }
        if (strcmp(m.type, "bind") != 0)
                return refused(f, value, -EPERM,
                               "there are no volumes: type=bind and type=tmpfs are taken", e);
        if (!m.src)
                return invalid(f, value, "a source=", e);
        return add_mount(r, f, value, m.src, m.dst, m.read_only, e);
}

int take_mount(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        char *words = strdup(value);
        int code;

        if (!words)
                abort();
        code = take_mount_words(r, f, value, words, e);
        free(words);
        return code;
}

int take_storage(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)e;
        r->storage = true;
        return warn(r, f, value);
}

/* --- rights --------------------------------------------------------------------------------------------- */

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
        return refused(f, value, -EACCES,
                       "a profile can have CHOWN, DAC_OVERRIDE, FOWNER, FSETID and NET_BIND_SERVICE "
                       "(capabilities); nothing allows others",
                       e);
}

int take_security(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        size_t len = strcspn(value, "=:");

        (void)r;
        if (len == 17 && strncmp(value, "no-new-privileges", 17) == 0 &&
            (value[17] == '\0' || strcmp(value + 18, "true") == 0))
                return 0;
        return refused(f, value, -EACCES,
                       "nothing allows it: no-new-privileges, seccomp and AppArmor are as they are", e);
}

int take_namespace(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)r;
        if (strcmp(value, "host") == 0 || strncmp(value, "container:", 10) == 0)
                return refused(f, value, -EACCES, "nothing allows it: a sandbox has its own", e);
        if (value[0] == '\0' || strcmp(value, "private") == 0 ||
            (strcmp(f->f.name, "ipc") == 0 &&
             (strcmp(value, "shareable") == 0 || strcmp(value, "none") == 0)))
                return 0;
        return invalid(f, value, "private", e);
}

int take_network(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        if (strcmp(value, "host") == 0 || strncmp(value, "container:", 10) == 0)
                return refused(f, value, -EACCES, "nothing allows it: a sandbox has its own", e);
        r->network = value;
        return 0;
}

int take_entrypoint(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        (void)r;
        return value[0] == '\0' ? 0 : refused(f, value, -EPERM, f->text, e);
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
        if (f->decision == FLAG_POLICY || off)
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
