/*
 * rm: without recursion and without following a link. What could not be removed has its line, and the folders above it
 * stay without one. A folder that is too deep for the stack is moved to the front, so that any depth can be removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/files.h"
#include "common/archive.h"
#include "common/cleanup.h"
#include "common/filepath.h"
#include "common/pack.h"
#include "common/walk.h"

#define LEVELS 64

struct rm_level {
        int fd;
        bool kept; /* something in it is still there */
        size_t path_len;
        char name[ARCHIVE_NAME_MAX + 1]; /* in the folder before it */
        struct walk_names names;
};

struct rm {
        bool failed;
        struct filepath path;
        unsigned depth;
        unsigned moved; /* folders, over all */
        bool again;     /* one was moved since the first folder was read */
        struct rm_level levels[LEVELS];
};

static void keep(struct rm *r, const char *why) {
        files_say(NULL, "cannot remove", r->path.text, why);
        r->failed = true;
        if (r->depth > 0)
                r->levels[r->depth - 1].kept = true;
}

/* Into the folder where it began, which is then read again. */
static void move_to_front(struct rm *r, int dir, const char *in_dir) {
        char name[40];

        snprintf(name, sizeof(name), ".hermes-rm-%u", r->moved++);
        if (renameat(dir, in_dir, r->levels[0].fd, name) < 0)
                keep(r, strerror(errno));
        else
                r->again = true;
}

static void enter(struct rm *r, int dir, const char *in_dir, size_t path_len) {
        struct rm_level *l = &r->levels[r->depth];
        int fd;

        if (r->depth == LEVELS) {
                move_to_front(r, dir, in_dir);
                filepath_pop(&r->path, path_len);
                return;
        }
        fd = openat(dir, in_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) {
                keep(r, strerror(errno));
                filepath_pop(&r->path, path_len);
                return;
        }
        l->fd = fd;
        l->kept = false;
        l->path_len = path_len;
        l->names.error = 0;
        l->names.at = l->names.len = 0;
        /* At the top it is a path, and remove() has it. */
        l->name[0] = '\0';
        if (r->depth > 0)
                strcpy(l->name, in_dir);
        r->depth++;
}

/* Back to the folder before it, which then goes; @top is the path of the first one. */
static void leave(struct rm *r, const char *top) {
        struct rm_level *l = &r->levels[--r->depth];

        close(l->fd);
        if (l->kept) {
                if (r->depth > 0)
                        r->levels[r->depth - 1].kept = true;
        } else if (unlinkat(r->depth > 0 ? r->levels[r->depth - 1].fd : AT_FDCWD,
                            r->depth > 0 ? l->name : top, AT_REMOVEDIR) < 0)
                keep(r, strerror(errno));
        filepath_pop(&r->path, l->path_len);
}

static void remove_entry(struct rm *r, int dir, const char *name) {
        size_t before = filepath_push(&r->path, name);
        struct stat st;

        if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
                filepath_pop(&r->path, before);
        else if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
                enter(r, dir, name, before);
        else {
                keep(r, strerror(errno));
                filepath_pop(&r->path, before);
        }
}

static void remove_tree(struct rm *r, const char *top) {
        enter(r, AT_FDCWD, top, r->path.len);
        while (r->depth > 0) {
                struct rm_level *l = &r->levels[r->depth - 1];
                const char *name = walk_next(&l->names, l->fd);

                if (name)
                        remove_entry(r, l->fd, name);
                else if (r->depth == 1 && r->again && lseek(l->fd, 0, SEEK_SET) == 0) {
                        r->again = false;
                        l->names.at = l->names.len = 0;
                } else {
                        if (l->names.error)
                                keep(r, strerror(-l->names.error));
                        leave(r, top);
                }
        }
}

static void remove_path(struct rm *r, const char *path, bool recursive, bool force) {
        char name[ARCHIVE_NAME_MAX + 1];
        const char *last = pack_name(path, name);
        struct stat st;

        filepath_init(&r->path, path);
        if (last && last[0] == '\0')
                keep(r, "it is no name in a folder");
        else if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                if (errno != ENOENT || !force)
                        keep(r, strerror(errno));
        } else if (S_ISDIR(st.st_mode) && !recursive)
                keep(r, "it is a folder: rm -r removes it and all that is in it");
        else if (S_ISDIR(st.st_mode))
                remove_tree(r, path);
        else if (unlinkat(AT_FDCWD, path, 0) < 0)
                keep(r, strerror(errno));
}

int files_rm(char **paths, bool recursive, bool force) {
        struct rm *r = files_memory(sizeof(*r));

        if (!r)
                return 1;
        for (; *paths; paths++)
                remove_path(r, *paths, recursive, force);
        return r->failed;
}
