/* ls: the entries as they come, for the caller to sort and to show. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/files.h"
#include "common/archive.h"
#include "common/cleanup.h"
#include "common/walk.h"

struct ls {
        bool failed;
        struct walk_names names;
        struct archive_out out;
};

static char kind_of(mode_t mode) {
        static const struct {
                mode_t type;
                char kind;
        } kinds[] = { { S_IFREG, '-' }, { S_IFDIR, 'd' }, { S_IFLNK, 'l' }, { S_IFBLK, 'b' },
                      { S_IFCHR, 'c' }, { S_IFIFO, 'p' }, { S_IFSOCK, 's' } };

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if ((mode & S_IFMT) == kinds[i].type)
                        return kinds[i].kind;
        return '?';
}

static void cannot_read(struct ls *l, const char *path, int error) {
        files_say(NULL, "cannot read", path, strerror(error));
        l->failed = true;
}

/* @name in @dir, shown as @name. */
static void put_item(struct ls *l, int dir, const char *name) {
        char target[ARCHIVE_TARGET_MAX + 1] = "";
        struct archive_entry e = { .name = name, .target = target };
        struct stat st;
        ssize_t n;
        int r;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                cannot_read(l, name, errno);
                return;
        }
        e.kind = kind_of(st.st_mode);
        e.mode = st.st_mode & 07777;
        e.mtime_s = st.st_mtim.tv_sec;
        e.mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
        e.size = (uint64_t)st.st_size;
        e.links = (uint32_t)st.st_nlink;
        e.uid = st.st_uid;
        e.gid = st.st_gid;
        n = S_ISLNK(st.st_mode) ? readlinkat(dir, name, target, sizeof(target) - 1) : 0;
        target[n > 0 ? n : 0] = '\0';
        r = archive_put_entry(&l->out, ARCHIVE_ITEM, &e);
        if (r < 0)
                cannot_read(l, name, -r);
}

static void put_folder(struct ls *l, const char *path, int fd, bool heading) {
        struct archive_entry e = { .kind = 'd', .name = "", .target = path };
        const char *name;

        if (heading && archive_put_entry(&l->out, ARCHIVE_ITEM, &e) < 0)
                cannot_read(l, path, ENAMETOOLONG);
        l->names.at = l->names.len = 0;
        while ((name = walk_next(&l->names, fd)))
                put_item(l, fd, name);
        if (l->names.error)
                cannot_read(l, path, -l->names.error);
}

/* Folders come last, as what stands behind a heading is in that folder. */
static void put_path(struct ls *l, const char *path, bool folders, bool heading) {
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0) {
                if (folders)
                        put_folder(l, path, fd, heading);
        } else if (folders)
                return;
        else if (errno == ENOTDIR || errno == ENOENT)
                put_item(l, AT_FDCWD, path);
        else
                cannot_read(l, path, errno);
}

int files_ls(char **paths) {
        struct ls *l = files_memory(sizeof(*l));

        if (!l)
                return 1;
        archive_out_init(&l->out, STDOUT_FILENO);
        for (int folders = 0; folders < 2; folders++)
                for (char **p = paths; *p; p++)
                        put_path(l, (*p)[0] ? *p : ".", folders, paths[1] != NULL);
        return archive_out_end(&l->out) < 0 || l->failed;
}
