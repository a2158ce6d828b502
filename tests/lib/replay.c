/*
 * main() of a fuzz target in a normal test run: each argument is a file, or a folder of files, whose bytes
 * are one input. Without libFuzzer, hence with any compiler and beside any sanitizer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An input of exactly its size on the heap, so that a read past its end is one that ASan sees. */
static int replay(int dirfd, const char *name) {
        _cleanup_fd_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
        _cleanup_free_ uint8_t *data = NULL;
        struct stat st;
        size_t size = 0;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return 0;
        data = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
        if (!data)
                return -ENOMEM;
        while (size < (size_t)st.st_size) {
                ssize_t n = read(fd, data + size, (size_t)st.st_size - size);

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                size += (size_t)n;
        }
        LLVMFuzzerTestOneInput(data, size);
        return 1;
}

static int replay_folder(const char *path) {
        DIR *dir = opendir(path);
        struct dirent *entry;
        int n = 0, r = 0;

        if (!dir)
                return errno == ENOTDIR ? replay(AT_FDCWD, path) : -errno;
        while (r >= 0 && (entry = readdir(dir)))
                if (entry->d_name[0] != '.') {
                        r = replay(dirfd(dir), entry->d_name);
                        if (r >= 0)
                                n += r;
                }
        closedir(dir);
        return r < 0 ? r : n;
}

int main(int argc, char **argv) {
        int n = 0;

        LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
        for (int i = 1; i < argc; i++) {
                int r = replay_folder(argv[i]);

                if (r < 0) {
                        fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
                        return 1;
                }
                n += r;
        }
        printf("%d inputs\n", n);
        return 0;
}
