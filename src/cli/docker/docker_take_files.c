/* --volume, --mount and --tmpfs: folders and files of this machine, and folders that are in memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/docker/docker_take.h"

/* A socket of an engine, by its name or by what it is. */
static bool is_socket(const char *path) {
        const char *base = strrchr(path, '/');
        struct stat st;

        base = base ? base + 1 : path;
        return strcmp(base, "docker.sock") == 0 || strcmp(base, "containerd.sock") == 0 ||
               strcmp(base, "podman.sock") == 0 || (stat(path, &st) == 0 && S_ISSOCK(st.st_mode));
}

/* It is copied. */
static int add_file(struct run_words *r, const struct run_flag *f, const char *value, const char *src,
                    const char *dst, bool read_only, struct errmsg *e) {
        const char *fault = mount_dst_fault(dst);
        struct run_file file = { .flag = f, .fd = -1 };

        if (!read_only)
                return take_refused(f, value, -EPERM,
                                    "it is a file, and only folders can be written through: with :ro "
                                    "(--mount: readonly) a file is copied",
                                    e);
        if (fault)
                return errmsg_set(e, -EINVAL, "--%s: %.200s %s", f->f.name, dst, fault);
        for (int i = 0; i < r->n_files; i++)
                if (strcmp(r->files[i].dst, dst) == 0)
                        return errmsg_set(e, -EINVAL, "--%s: duplicate mount point: %.200s", f->f.name,
                                          dst);
        if (r->n_files == RUN_FILES_MAX)
                return errmsg_set(e, -EINVAL, "--%s: more than %d files: put them into a folder",
                                  f->f.name, RUN_FILES_MAX);
        /* For as long as the program runs. */
        file.src = strdup(src);
        file.dst = strdup(dst);
        if (!file.src || !file.dst)
                abort();
        file.at = file.dst;
        r->files[r->n_files++] = file;
        return 0;
}

static int add_mount(struct run_words *r, const struct run_flag *f, const char *value, const char *src,
                     const char *dst, bool read_only, struct errmsg *e) {
        char *text, what[32];
        struct stat st;
        int code;

        if (src[0] != '/' && src[0] != '.')
                return take_refused(
                        f, value, -EPERM,
                        "there are no volumes; a folder of this machine is named by its whole path", e);
        if (is_socket(src))
                return take_refused(f, value, -EACCES,
                                    "nothing allows it: no sandbox reaches a socket of the host", e);
        if (stat(src, &st) == 0 && S_ISREG(st.st_mode))
                return add_file(r, f, value, src, dst, read_only, e);
        if (stat(src, &st) == 0 && !S_ISDIR(st.st_mode))
                return take_refused(f, value, -EPERM, "it is neither a folder nor a file", e);
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
                return take_invalid(f, value, "less than 4096 bytes", e);
        dst = strchr(copy, ':');
        if (!dst)
                return take_refused(f, value, -EPERM,
                                    "there are no volumes; expected SRC:DST or SRC:DST:ro", e);
        *dst++ = '\0';
        options = strchr(dst, ':');
        if (options)
                *options++ = '\0';
        while ((word = strsep(&options, ",")))
                if (strcmp(word, "ro") == 0 || strcmp(word, "readonly") == 0)
                        read_only = true;
                else if (strcmp(word, "z") != 0 && strcmp(word, "Z") != 0 && strcmp(word, "rw") != 0 &&
                         strcmp(word, "rprivate") != 0 && strcmp(word, "private") != 0)
                        return take_refused(f, value, -EPERM, "of its options ro, rw, z and Z are known",
                                            e);
        return add_mount(r, f, value, copy, dst, read_only, e);
}

/* Of a tmpfs; as much of it as there is room for. */
static void add_other(char *other, size_t cap, const char *word) {
        size_t len = strlen(other);

        snprintf(other + len, cap - len, "%s%s", len > 0 ? "," : "", word);
}

/* As the profile's are: what need not be told. */
static bool is_as_ours(const char *word) {
        static const char *const ours[] = {
                "", "defaults", "rw", "exec", "nosuid", "nodev", "mode=1777"
        };

        for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
                if (strcmp(word, ours[i]) == 0)
                        return true;
        return false;
}

static int add_tmpfs(struct run_words *r, const struct run_flag *f, const char *path, int path_len,
                     uint64_t bytes, const char *other, struct errmsg *e) {
        int i = 0;

        if (path_len == 0 || path_len > NARROW_PATH_MAX || path[0] != '/')
                return take_invalid(f, path, "an absolute path", e);
        while (i < r->n_tmpfs && (r->tmpfs[i].path_len != path_len ||
                                  memcmp(r->tmpfs[i].path, path, (size_t)path_len) != 0))
                i++;
        if (i == NARROW_TMPFS_MAX)
                return errmsg_set(e, -EINVAL, "--%s: more than %d places", f->f.name, NARROW_TMPFS_MAX);
        r->tmpfs[i].path = path;
        r->tmpfs[i].path_len = path_len;
        r->tmpfs[i].bytes = bytes;
        snprintf(r->tmpfs[i].other, sizeof(r->tmpfs[i].other), "%s", other);
        if (i == r->n_tmpfs)
                r->n_tmpfs++;
        return 0;
}

/* PATH[:size=N,…]. What else may stand there (noexec, mode=…) is told, where the profile's is otherwise. */
int take_tmpfs(struct run_words *r, const struct run_flag *f, const char *value, struct errmsg *e) {
        const char *colon = strchr(value, ':');
        char copy[512], other[sizeof(r->tmpfs[0].other)] = "", *options = copy, *word;
        uint64_t bytes = 0;

        if ((size_t)snprintf(copy, sizeof(copy), "%s", colon ? colon + 1 : "") >= sizeof(copy))
                return take_invalid(f, value, "fewer options", e);
        while ((word = strsep(&options, ","))) {
                bool size = strncmp(word, "size=", 5) == 0;

                if (size && !take_parse_bytes(word + 5, &bytes))
                        return take_invalid(f, value, "a size such as size=512m", e);
                if (!size && !is_as_ours(word))
                        add_other(other, sizeof(other), word);
        }
        return add_tmpfs(r, f, value, colon ? (int)(colon - value) : (int)strlen(value), bytes, other,
                         e);
}

/* key=value,… */
struct mount_words {
        const char *type, *src, *dst;
        const char *mode; /* of a tmpfs */
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
                return take_parse_bytes(word, &m->bytes);
        else if (strcmp(key, "tmpfs-mode") == 0 && word)
                m->mode = word;
        else
                return false;
        return true;
}

/* @words is taken apart. */
static int add_tmpfs_mount(struct run_words *r, const struct run_flag *f, const char *value,
                           const struct mount_words *m, struct errmsg *e) {
        char other[sizeof(r->tmpfs[0].other)] = "";

        if (m->read_only)
                add_other(other, sizeof(other), "readonly");
        if (m->mode && strtoul(m->mode, NULL, 8) != 01777) {
                char mode[32];

                snprintf(mode, sizeof(mode), "tmpfs-mode=%s", m->mode);
                add_other(other, sizeof(other), mode);
        }
        /* The path as it stands in the flag's own word, which stays. */
        return add_tmpfs(r, f, strstr(value, m->dst), (int)strlen(m->dst), m->bytes, other, e);
}

static int take_mount_words(struct run_words *r, const struct run_flag *f, const char *value,
                            char *words, struct errmsg *e) {
        struct mount_words m = { .type = "volume" };
        char *word;

        while ((word = strsep(&words, ",")))
                if (!take_mount_word(&m, word))
                        return take_refused(
                                f, value, -EPERM,
                                "known are type, source, target, readonly, tmpfs-size, tmpfs-mode", e);
        if (!m.dst)
                return take_invalid(f, value, "a target=", e);
        if (strcmp(m.type, "tmpfs") == 0)
                return add_tmpfs_mount(r, f, value, &m, e);
        if (strcmp(m.type, "bind") != 0)
                return take_refused(f, value, -EPERM,
                                    "there are no volumes: type=bind and type=tmpfs are taken", e);
        if (!m.src)
                return take_invalid(f, value, "a source=", e);
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
