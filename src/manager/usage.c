#include "manager/usage.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

#define SAMPLE_MIN_US 1000000

const struct usage_roots usage_roots_system = { "/proc", "" };

/* The file's start, NUL-terminated; false when it cannot be read. */
static bool slurp(const char *path, char *buf, size_t cap) {
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        size_t len = 0;
        ssize_t n;

        if (fd < 0)
                return false;
        while (len < cap - 1 && (n = read(fd, buf + len, cap - 1 - len)) > 0)
                len += (size_t)n;
        buf[len] = '\0';
        return len > 0;
}

/* Is @word one of the comma-separated @list, @len bytes long? */
static bool has_word(const char *list, size_t len, const char *word) {
        size_t n = strlen(word);

        for (const char *p = list; p + n <= list + len; p++)
                if ((p == list || p[-1] == ',') && memcmp(p, word, n) == 0 &&
                    (p + n == list + len || p[n] == ','))
                        return true;
        return false;
}

/* The path in "ID:CONTROLLERS:PATH" of the line with @controller, or with no controllers where that is "" (v2). */
static bool group_path(const char *groups, const char *controller, char *ret, size_t cap) {
        for (const char *line = groups; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                const char *list = strchr(line, ':'), *path;
                size_t len;

                if (!list || !(path = strchr(++list, ':')))
                        return false;
                len = (size_t)(path - list);
                if (*controller ? !has_word(list, len, controller) : len > 0)
                        continue;
                path++;
                return (size_t)snprintf(ret, cap, "%.*s", (int)strcspn(path, "\n"), path) < cap;
        }
        return false;
}

/* Splits a line of mountinfo(5) into words, in place; returns how many. */
static size_t split(char *line, char *words[], size_t max) {
        size_t n = 0;
        char *save;

        for (char *w = strtok_r(line, " ", &save); w && n < max; w = strtok_r(NULL, " ", &save))
                words[n++] = w;
        return n;
}

/* Is it the mount of @controller ("": of v2)? Fills root and mount point of it. */
static bool is_mount(char *line, const char *controller, char **ret_root, char **ret_point) {
        char *words[24];
        size_t n = split(line, words, 24), i = 6;

        while (i < n && strcmp(words[i], "-") != 0)
                i++;
        if (i + 3 >= n)
                return false;
        if (strcmp(words[i + 1], *controller ? "cgroup" : "cgroup2") != 0)
                return false;
        if (*controller && !has_word(words[i + 3], strlen(words[i + 3]), controller))
                return false;
        *ret_root = words[3];
        *ret_point = words[4];
        return true;
}

/* The folder of @path in the hierarchy of @controller. */
static bool group_folder(const struct usage_roots *roots, const char *controller, const char *path,
                         char *ret, size_t cap) {
        char mounts[PATH_MAX], *line = NULL, *root, *point;
        size_t room = 0, len;
        bool found = false;
        FILE *f;

        snprintf(mounts, sizeof(mounts), "%s/self/mountinfo", roots->proc);
        f = fopen(mounts, "re");
        while (f && !found && getline(&line, &room, f) > 0) {
                line[strcspn(line, "\n")] = '\0';
                if (!is_mount(line, controller, &root, &point))
                        continue;
                /* What is mounted may be a part of the hierarchy: that of an outer container, say. */
                len = strcmp(root, "/") == 0 ? 0 : strlen(root);
                if (strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
                        continue;
                found = (size_t)snprintf(ret, cap, "%s%s%s", roots->prefix, point, path + len) < cap;
        }
        free(line);
        if (f)
                fclose(f);
        return found;
}

/* A number behind @key at the start of a line; @key "" is the file's first word. "max" is USAGE_NO_LIMIT. */
static uint64_t number(const char *folder, const char *file, const char *key) {
        char path[PATH_MAX + 64], buf[8192];
        size_t len = strlen(key);
        char *end;

        snprintf(path, sizeof(path), "%s/%s", folder, file);
        if (!slurp(path, buf, sizeof(buf)))
                return USAGE_UNKNOWN;
        for (const char *line = buf; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                uint64_t n;

                if (strncmp(line, key, len) != 0)
                        continue;
                if (strncmp(line + len, "max", 3) == 0)
                        return USAGE_NO_LIMIT;
                n = strtoull(line + len, &end, 10);
                return end == line + len ? USAGE_UNKNOWN : n;
        }
        return USAGE_UNKNOWN;
}

/* What v1 says where there is no limit is the largest number of pages, in bytes. */
static uint64_t limit_v1(uint64_t n) {
        return n != USAGE_UNKNOWN && n > (uint64_t)1 << 60 ? USAGE_NO_LIMIT : n;
}

static uint64_t without(uint64_t bytes, uint64_t inactive) {
        if (bytes == USAGE_UNKNOWN || inactive == USAGE_UNKNOWN)
                return bytes;
        return bytes > inactive ? bytes - inactive : 0;
}

static void read_memory(const char *folder, bool v2, struct usage *u) {
        u->memory_bytes = without(
                number(folder, v2 ? "memory.current" : "memory.usage_in_bytes", ""),
                number(folder, "memory.stat", v2 ? "inactive_file " : "total_inactive_file "));
        u->memory_max_bytes = v2 ? number(folder, "memory.max", "")
                                 : limit_v1(number(folder, "memory.limit_in_bytes", ""));
}

static void read_cpu(const char *folder, bool v2, struct usage *u) {
        uint64_t n = number(folder, v2 ? "cpu.stat" : "cpuacct.usage", v2 ? "usage_usec " : "");

        u->cpu_us = v2 || n == USAGE_UNKNOWN ? n : n / 1000;
}

static void read_pids(const char *folder, bool v2, struct usage *u) {
        (void)v2;
        u->pids = number(folder, "pids.current", "");
        u->pids_max = number(folder, "pids.max", "");
}

static const struct {
        const char *controller; /* of v1; where that hierarchy has it not, v2's has */
        void (*read)(const char *folder, bool v2, struct usage *u);
} readers[] = {
        { "memory", read_memory },
        { "cpuacct", read_cpu },
        { "pids", read_pids },
};

void usage_read(const struct usage_roots *roots, pid_t pid, const char *container, struct usage *ret) {
        char file[PATH_MAX], groups[8192], path[PATH_MAX], folder[PATH_MAX + 64];

        memset(ret, 0xff, sizeof(*ret));
        snprintf(file, sizeof(file), "%s/%d/cgroup", roots->proc, (int)pid);
        if (!slurp(file, groups, sizeof(groups)))
                return;
        for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
                const char *controller = readers[i].controller;

                if (!group_path(groups, controller, path, sizeof(path))) {
                        controller = "";
                        if (!group_path(groups, controller, path, sizeof(path)))
                                continue;
                }
                if (strstr(path, container) &&
                    group_folder(roots, controller, path, folder, sizeof(folder)))
                        readers[i].read(folder, !*controller, ret);
        }
}

uint64_t usage_cpu_per_mille(struct usage_sample *s, uint64_t cpu_us, uint64_t now_us) {
        uint64_t ret = USAGE_UNKNOWN, passed = now_us - s->at_us;

        if (cpu_us == USAGE_UNKNOWN)
                return USAGE_UNKNOWN;
        if (s->at_us && passed > 0 && cpu_us >= s->cpu_us)
                ret = (cpu_us - s->cpu_us) * 1000 / passed;
        if (!s->at_us || passed >= SAMPLE_MIN_US)
                *s = (struct usage_sample){ .cpu_us = cpu_us, .at_us = now_us };
        return ret;
}
