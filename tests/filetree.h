/*
 * Trees of files for the tests of archive, pack and unpack: one in which nothing may ever change, beside the folder
 * that a stream is written into.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A digest of all that is in @folder, which is closed: names, types, modes, sizes, contents, link targets. Times
 * are left out, as reading changes some. */
static inline uint64_t tree_digest(int folder, uint64_t *ret_entries);

static inline uint64_t tree_mix(uint64_t h, const void *p, size_t len) {
        const unsigned char *b = p;

        for (size_t i = 0; i < len; i++)
                h = (h ^ b[i]) * UINT64_C(0x100000001b3);
        return h;
}

static inline uint64_t tree_contents(int folder, const char *name, const struct stat *st, uint64_t h,
                                     uint64_t *ret_entries) {
        static char buf[65536];

        if (S_ISDIR(st->st_mode)) {
                int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                return fd < 0 ? h : tree_mix(h, &(uint64_t){ tree_digest(fd, ret_entries) }, 8);
        }
        if (S_ISLNK(st->st_mode)) {
                ssize_t n = readlinkat(folder, name, buf, sizeof(buf));

                return tree_mix(h, buf, n > 0 ? (size_t)n : 0);
        }
        if (S_ISREG(st->st_mode) && st->st_size < (1 << 24)) {
                int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

                for (ssize_t n; fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0;)
                        h = tree_mix(h, buf, (size_t)n);
                if (fd >= 0)
                        close(fd);
        }
        return h;
}

/* The order in which a folder tells its entries does not matter: their digests are added up. */
static inline uint64_t tree_digest(int folder, uint64_t *ret_entries) {
        DIR *d = fdopendir(folder);
        struct dirent *e;
        uint64_t sum = 0;

        while (d && (e = readdir(d))) {
                uint64_t h = UINT64_C(0xcbf29ce484222325);
                struct stat st;

                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                    fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                ++*ret_entries;
                h = tree_mix(h, e->d_name, strlen(e->d_name) + 1);
                h = tree_mix(h, &st.st_mode, sizeof(st.st_mode));
                if (!S_ISDIR(st.st_mode))
                        h = tree_mix(h, &st.st_size, sizeof(st.st_size));
                sum += tree_contents(folder, e->d_name, &st, h, ret_entries);
        }
        if (d)
                closedir(d);
        return sum;
}

static inline uint64_t tree_digest_of(const char *path) {
        uint64_t n = 0;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? 0 : tree_digest(fd, &n) + n;
}

/* Removes all that is in @folder, which is closed, however deep; each entry is shown to @look first. */
static inline void tree_empty(int folder, void (*look)(const char *name, const struct stat *st)) {
        DIR *d = fdopendir(folder);
        struct dirent *e;

        while (d && (e = readdir(d))) {
                struct stat st;

                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                    fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (look)
                        look(e->d_name, &st);
                if (S_ISDIR(st.st_mode)) {
                        int fd;

                        if (fchmodat(folder, e->d_name, 0700, 0) < 0)
                                continue;
                        fd = openat(folder, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                        if (fd >= 0)
                                tree_empty(fd, look);
                }
                unlinkat(folder, e->d_name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
        }
        if (d)
                closedir(d);
}

static inline void tree_remove(const char *path) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0)
                tree_empty(fd, NULL);
        rmdir(path);
}

static inline void tree_file(const char *path, const char *text, mode_t mode) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, mode) < 0)
                abort();
        close(fd);
}
