#include "engine/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mount_proto.h"

static void cleanup_file(FILE **f) {
        if (*f)
                fclose(*f);
}
#define _cleanup_file_ _cleanup_(cleanup_file)

/* The next field, in which the kernel writes space, tab, newline and backslash as \ooo. Moves *p behind it. */
static int get_path(const char **p, char ret[PATH_MAX]) {
        const char *s = *p;
        size_t n = 0;

        for (; *s && *s != ' ' && *s != '\n'; n++) {
                if (n + 1 >= PATH_MAX)
                        return -EPROTO;
                if (s[0] == '\\') {
                        if (strspn(s + 1, "0123") < 1 || strspn(s + 1, "01234567") < 3 ||
                            strncmp(s + 1, "000", 3) == 0)
                                return -EPROTO;
                        ret[n] = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
                        s += 4;
                } else {
                        ret[n] = *s++;
                }
        }
        ret[n] = '\0';
        if (n == 0 || *s != ' ')
                return -EPROTO;
        *p = s + 1;
        return 0;
}

/* "rw,nosuid": whole words. */
static bool has_ro(const char *options) {
        return strncmp(options, "ro", 2) == 0 && strchr(", \n", options[2]);
}

int mountinfo_parse(const char *line, struct mountinfo *ret) {
        int parent, end = 0;
        const char *p;

        if (sscanf(line, "%d %d %u:%u %n", &ret->id, &parent, &ret->major, &ret->minor, &end) != 4 ||
            !end)
                return -EPROTO;
        p = line + end;
        if (get_path(&p, ret->root) < 0 || get_path(&p, ret->point) < 0 || ret->point[0] != '/')
                return -EPROTO;
        ret->read_only = has_ro(p);
        return 0;
}

static FILE *open_table(pid_t pid) {
        char path[64] = "/proc/self/mountinfo";

        if (pid)
                snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
        return fopen(path, "re");
}

/* A line that we do not understand might be the one: it is an error, never skipped. */
static int find(pid_t pid, bool (*is_it)(const struct mountinfo *m, const void *what), const void *what,
                struct mountinfo *ret) {
        _cleanup_file_ FILE *f = open_table(pid);
        _cleanup_free_ struct mountinfo *m = malloc(sizeof(*m));
        _cleanup_free_ char *line = NULL;
        size_t cap = 0;
        bool found = false;

        if (!f || !m)
                return f ? -ENOMEM : -errno;
        while (getline(&line, &cap, f) >= 0) {
                if (mountinfo_parse(line, m) < 0)
                        return -EPROTO;
                if (!is_it(m, what))
                        continue;
                if (found)
                        return -EEXIST;
                found = true;
                *ret = *m;
        }
        if (ferror(f))
                return -EIO;
        return found ? 0 : -ENOENT;
}

static bool has_id(const struct mountinfo *m, const void *what) {
        return m->id == *(const int *)what;
}

int mountinfo_by_id(pid_t pid, int id, struct mountinfo *ret) {
        return find(pid, has_id, &id, ret);
}

static bool has_point(const struct mountinfo *m, const void *what) {
        return strcmp(m->point, what) == 0;
}

int mountinfo_by_point(pid_t pid, const char *point, struct mountinfo *ret) {
        return find(pid, has_point, point, ret);
}

int mountinfo_of_fd(int fd) {
        _cleanup_file_ FILE *f = NULL;
        char path[64], line[256];
        int id;

        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
        f = fopen(path, "re");
        if (!f)
                return -errno;
        while (fgets(line, sizeof(line), f))
                if (sscanf(line, "mnt_id: %d", &id) == 1 && id >= 0)
                        return id;
        return -ENOENT;
}

int mountinfo_root_of(const struct mountinfo *on, const char *path, char ret[PATH_MAX]) {
        const char *point = strcmp(on->point, "/") == 0 ? "" : on->point;
        const char *root = strcmp(on->root, "/") == 0 ? "" : on->root;
        int n;

        if (!mount_path_below(path, point))
                return -EINVAL;
        path += strlen(point);
        if (strcmp(path, "/") == 0)
                path = "";
        n = snprintf(ret, PATH_MAX, "%s%s", root, path);
        if (n >= PATH_MAX)
                return -ENAMETOOLONG;
        if (n == 0)
                snprintf(ret, PATH_MAX, "/");
        return 0;
}
