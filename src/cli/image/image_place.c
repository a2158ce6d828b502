#include "cli/image/image_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

static int cannot(struct errmsg *e, const char *what, const char *path) {
        int error = errno;

        return errmsg_set(e, -error, "cannot %s %s: %s", what, path, strerror(error));
}

/* A folder of root's that nobody else can write in, or see into where @mode says so. */
static int make_folder(const char *path, mode_t mode, struct errmsg *e) {
        struct stat st;

        if (mkdir(path, mode) < 0 && errno != EEXIST)
                return cannot(e, "make", path);
        if (lstat(path, &st) < 0)
                return cannot(e, "look at", path);
        if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0022))
                return errmsg_set(e, -EPERM, "%s is no folder that is root's alone to write: remove it",
                                  path);
        return 0;
}

/* The packages are trusted by their names and sizes alone once apt has checked and kept them. */
static int open_cache(struct image_place *p, const char *cache, const char *suite, struct errmsg *e) {
        char dir[1024];
        int r = make_folder(cache, 0700, e);

        if (r < 0)
                return r;
        snprintf(dir, sizeof(dir), "%s/%s", cache, suite);
        snprintf(p->archives, sizeof(p->archives), "%s/%s/archives", cache, suite);
        r = make_folder(dir, 0755, e);
        if (r == 0)
                r = make_folder(p->archives, 0755, e);
        if (r < 0)
                return r;
        p->lock_fd = open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (p->lock_fd < 0)
                return cannot(e, "open", cache);
        if (flock(p->lock_fd, LOCK_EX | LOCK_NB) == 0)
                return 0;
        return errno == EWOULDBLOCK
                       ? errmsg_set(e, -EBUSY,
                                    "another image build runs (it holds %s): wait for its end", cache)
                       : cannot(e, "lock", cache);
}

static int open_layer(struct image_place *p, struct errmsg *e) {
        char path[1040];

        p->layer_fd = open(p->tmp, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (p->layer_fd >= 0)
                return 0;
        snprintf(path, sizeof(path), "%s/layer", p->folder);
        p->layer_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (p->layer_fd < 0)
                return cannot(e, "make", path);
        unlink(path);
        return 0;
}

int image_place_init(struct image_place *p, const char *tmp, const char *cache, const char *suite,
                     struct errmsg *e) {
        char work[1040];
        int r;

        *p = IMAGE_PLACE_NONE;
        p->tmp = tmp;
        p->cache = cache;
        r = open_cache(p, cache, suite, e);
        if (r < 0)
                return r;
        if ((size_t)snprintf(p->folder, sizeof(p->folder), "%s/hermes-sandbox-image.XXXXXX", tmp) >=
            sizeof(p->folder))
                r = errmsg_set(e, -ENAMETOOLONG, "--tmp: too long a path");
        else if (!mkdtemp(p->folder))
                r = cannot(e, "make a folder in", tmp);
        if (r < 0) {
                p->folder[0] = '\0';
                return r;
        }
        snprintf(work, sizeof(work), "%s/work", p->folder);
        if (mkdir(work, 0755) < 0 || chmod(work, 0755) < 0)
                return cannot(e, "make", work);
        return open_layer(p, e);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        (void)st;
        (void)type;
        (void)ftw;
        remove(path);
        return 0;
}

void image_place_done(struct image_place *p) {
        /* Nobody but root gets into it, so that no name changes meanwhile. */
        if (p->folder[0])
                nftw(p->folder, remove_one, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        p->folder[0] = '\0';
        p->layer_fd = close_fd(p->layer_fd);
        p->lock_fd = close_fd(p->lock_fd);
}

/* As apt names the file of a package: a colon becomes "%3a". */
static bool is_version(const char *in_file, size_t len, const char *version, size_t version_len) {
        size_t at = 0;

        for (size_t i = 0; i < version_len; i++) {
                const char *c = version[i] == ':' ? "%3a" : &version[i];
                size_t n = version[i] == ':' ? 3 : 1;

                if (at + n > len || memcmp(in_file + at, c, n) != 0)
                        return false;
                at += n;
        }
        return at == len;
}

bool image_place_outdated(const char *file, const struct image_packages *now) {
        const char *version = strchr(file, '_'), *arch = strrchr(file, '_');
        size_t len = strlen(file), name_len, arch_len;
        bool outdated = false;

        if (!version || version == arch || len < 4 || strcmp(file + len - 4, ".deb") != 0)
                return false;
        name_len = (size_t)(version - file);
        arch_len = (size_t)(file + len - 4 - (arch + 1));
        for (size_t i = 0; i < now->n; i++) {
                const char *line = now->lines[i], *v, *a;

                if (strncmp(line, file, name_len) != 0 || line[name_len] != ' ')
                        continue;
                v = line + name_len + 1;
                a = strchr(v, ' ') + 1;
                if (strlen(a) != arch_len || strncmp(a, arch + 1, arch_len) != 0)
                        continue;
                if (is_version(version + 1, (size_t)(arch - version - 1), v, (size_t)(a - 1 - v)))
                        return false;
                outdated = true;
        }
        return outdated;
}

void image_place_prune(const struct image_place *p, const struct image_packages *now) {
        DIR *d = opendir(p->archives);
        struct dirent *one;

        while (d && (one = readdir(d)))
                if (image_place_outdated(one->d_name, now))
                        unlinkat(dirfd(d), one->d_name, 0);
        if (d)
                closedir(d);
}
