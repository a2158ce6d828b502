/*
 * A walk without recursion: one level of the stack for each open folder. Every step opens one component below the
 * folder that it was read from, and what was opened is looked at again, so that a name that changes meanwhile is at
 * worst left out.
 */
#include "common/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"

void pack_init(struct pack *p, int fd, filepath_say_fn *say, void *userdata) {
        archive_out_init(&p->out, fd);
        p->say = say;
        p->progress = NULL;
        p->userdata = userdata;
        p->failed = false;
        p->bytes = 0;
        p->depth = 0;
}

static void left_out(struct pack *p, const char *what, const char *why) {
        p->failed = true;
        p->say(p->userdata, what, p->path.text, why);
}

static void cannot_read(struct pack *p, int error) {
        left_out(p, "cannot read", strerror(error));
}

static void progress(struct pack *p) {
        if (p->progress)
                p->progress(p->userdata, p->path.text, p->bytes);
}

static struct archive_entry entry_of(const struct stat *st, const char *name) {
        return (struct archive_entry){
                .mode = st->st_mode & 07777,
                .mtime_s = st->st_mtim.tv_sec,
                .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
                .name = name,
        };
}

static bool put(struct pack *p, enum archive_type type, const struct archive_entry *e) {
        if (archive_put_entry(&p->out, type, e) == 0)
                return true;
        cannot_read(p, ENAMETOOLONG);
        return false;
}

/* --- a file ------------------------------------------------------------------------------------- */

/* What of a file is read: from @at on, up to @data_end, where a hole begins, and at last up to @end. */
struct reading {
        int fd;
        bool sparse;
        uint64_t at, data_end, end;
};

/* Behind data, or at the front: past a hole, if there is one. */
static void pass_hole(struct pack *p, struct reading *r) {
        off_t data = lseek(r->fd, (off_t)r->at, SEEK_DATA), hole;
        uint64_t to;

        if (data < 0 && errno != ENXIO) {
                r->sparse = false;
                r->data_end = r->end;
                return;
        }
        to = data < 0 || (uint64_t)data > r->end ? r->end : (uint64_t)data;
        if (to > r->at)
                archive_put_hole(&p->out, to - r->at);
        r->at = to;
        hole = data < 0 ? -1 : lseek(r->fd, data, SEEK_HOLE);
        r->data_end = hole <= data || (uint64_t)hole > r->end ? r->end : (uint64_t)hole;
}

/* Up to the end, as it was told. Returns whether all was there. */
static bool put_contents(struct pack *p, struct reading *r) {
        while (r->at < r->end && p->out.error == 0) {
                size_t most = ARCHIVE_DATA_MAX;
                ssize_t n;

                if (r->sparse && r->at >= r->data_end)
                        pass_hole(p, r);
                if (r->at >= r->end)
                        break;
                if (most > r->data_end - r->at)
                        most = r->data_end - r->at;
                n = pread(r->fd, archive_data_room(&p->out), most, (off_t)r->at);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        cannot_read(p, errno);
                        return false;
                }
                if (n == 0 && r->end == ARCHIVE_SIZE_MAX)
                        return true;
                if (n == 0) {
                        left_out(p, "cannot read", "it became shorter meanwhile");
                        return false;
                }
                archive_put_data(&p->out, (size_t)n);
                r->at += (uint64_t)n;
                p->bytes += (uint64_t)n;
                progress(p);
        }
        return true;
}

static void put_file(struct pack *p, int dir, const char *in_dir, const char *name) {
        /* It may be a pipe by now, whose opening would wait for a writer. */
        _cleanup_fd_ int fd = openat(dir, in_dir,
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct archive_entry e;
        struct reading r = { .fd = fd };
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0) {
                cannot_read(p, errno);
                return;
        }
        if (!S_ISREG(st.st_mode)) {
                left_out(p, "cannot read", "it became something else meanwhile");
                return;
        }
        e = entry_of(&st, name);
        /* The kernel's own files in /proc have no size and contents all the same. */
        e.size = st.st_size > 0 ? (uint64_t)st.st_size : ARCHIVE_SIZE_UNKNOWN;
        if (!put(p, ARCHIVE_FILE, &e))
                return;
        progress(p);
        r.end = st.st_size > 0 ? (uint64_t)st.st_size : ARCHIVE_SIZE_MAX;
        r.sparse = st.st_size > 0 && (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size;
        r.data_end = r.sparse ? 0 : r.end;
        archive_put_close(&p->out, r.at, put_contents(p, &r));
}

static void put_link(struct pack *p, int dir, const char *in_dir, struct archive_entry *e) {
        char target[ARCHIVE_TARGET_MAX + 1];
        ssize_t n = readlinkat(dir, in_dir, target, sizeof(target));

        if (n < 0 || (size_t)n >= sizeof(target)) {
                cannot_read(p, n < 0 ? errno : ENAMETOOLONG);
                return;
        }
        target[n] = '\0';
        e->target = target;
        put(p, ARCHIVE_LINK, e);
}

/* --- folders ------------------------------------------------------------------------------------ */

/* What the kernel shows there is no file that anybody wrote, and some of it cannot be read to an end. */
static bool is_kernels(int fd) {
        struct statfs fs;

        return fstatfs(fd, &fs) == 0 &&
               (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
                fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC);
}

/* Puts the folder and stands in it. */
static void enter(struct pack *p, int dir, const char *in_dir, const char *name, size_t path_len) {
        int fd = openat(dir, in_dir, O_RDONLY | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
        struct pack_level *l = &p->levels[p->depth];
        struct archive_entry e;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                cannot_read(p, errno);
        else if (p->depth == ARCHIVE_DEPTH_MAX)
                left_out(p, "left out", "too many folders within folders");
        else if (p->depth > 0 && st.st_dev != l[-1].dev && is_kernels(fd))
                left_out(p, "left out", "it is the kernel's");
        else {
                e = entry_of(&st, name);
                if (put(p, ARCHIVE_DIR, &e)) {
                        l->fd = take_fd(&fd);
                        l->dev = st.st_dev;
                        l->path_len = path_len;
                        l->names.error = 0;
                        l->names.at = l->names.len = 0;
                        p->depth++;
                        return;
                }
        }
        close_fd(fd);
        filepath_pop(&p->path, path_len);
}

static void leave(struct pack *p) {
        struct pack_level *l = &p->levels[--p->depth];

        archive_put_up(&p->out);
        close(l->fd);
        filepath_pop(&p->path, l->path_len);
}

/* One entry; a folder's own entries come afterwards. */
static void put_any(struct pack *p, int dir, const char *in_dir, const char *name, size_t path_len) {
        struct archive_entry e;
        struct stat st;

        if (fstatat(dir, in_dir, &st, AT_SYMLINK_NOFOLLOW) < 0)
                cannot_read(p, errno);
        else if (S_ISDIR(st.st_mode)) {
                enter(p, dir, in_dir, name, path_len);
                return;
        } else if (S_ISREG(st.st_mode))
                put_file(p, dir, in_dir, name);
        else if (S_ISLNK(st.st_mode)) {
                e = entry_of(&st, name);
                put_link(p, dir, in_dir, &e);
        } else
                left_out(p, "left out",
                         S_ISFIFO(st.st_mode)   ? "it is a named pipe"
                         : S_ISSOCK(st.st_mode) ? "it is a socket"
                                                : "it is a device");
        filepath_pop(&p->path, path_len);
}

/* The next name in the folder where we stand, NULL at its end. */
static const char *next_name(struct pack *p) {
        struct pack_level *l = &p->levels[p->depth - 1];
        const char *name = p->out.error == 0 ? walk_next(&l->names, l->fd) : NULL;

        if (!name && l->names.error)
                cannot_read(p, -l->names.error);
        return name;
}

const char *pack_name(const char *path, char ret[ARCHIVE_NAME_MAX + 1]) {
        size_t end = strlen(path), begin;

        while (end > 0 && path[end - 1] == '/')
                end--;
        for (begin = end; begin > 0 && path[begin - 1] != '/';)
                begin--;
        if (end - begin > ARCHIVE_NAME_MAX)
                return NULL;
        memcpy(ret, path + begin, end - begin);
        ret[end - begin] = '\0';
        if (strcmp(ret, ".") == 0 || strcmp(ret, "..") == 0)
                ret[0] = '\0';
        return ret;
}

int pack_path(struct pack *p, const char *path) {
        char of_path[ARCHIVE_NAME_MAX + 1];
        const char *name = pack_name(path, of_path);

        filepath_init(&p->path, path);
        if (!name) {
                cannot_read(p, ENAMETOOLONG);
                return 0;
        }
        put_any(p, AT_FDCWD, path[0] ? path : ".", name, p->path.len);
        while (p->depth > 0) {
                const char *next = next_name(p);

                if (next)
                        put_any(p, p->levels[p->depth - 1].fd, next, next,
                                filepath_push(&p->path, next));
                else
                        leave(p);
        }
        return p->out.error;
}

int pack_stream(struct pack *p, int fd, const char *name, uint32_t mode) {
        struct archive_entry e = { .mode = mode, .size = ARCHIVE_SIZE_UNKNOWN, .name = name };
        struct timespec now;
        uint64_t size = 0;
        ssize_t n = 1;

        clock_gettime(CLOCK_REALTIME, &now);
        e.mtime_s = now.tv_sec;
        e.mtime_ns = (uint32_t)now.tv_nsec;
        filepath_init(&p->path, name);
        if (!put(p, ARCHIVE_FILE, &e))
                return 0;
        while (p->out.error == 0 && n != 0) {
                n = read(fd, archive_data_room(&p->out), ARCHIVE_DATA_MAX);
                if (n < 0 && errno != EINTR) {
                        cannot_read(p, errno);
                        break;
                }
                if (n <= 0)
                        continue;
                archive_put_data(&p->out, (size_t)n);
                size += (uint64_t)n;
                p->bytes += (uint64_t)n;
                progress(p);
        }
        archive_put_close(&p->out, size, n == 0);
        return p->out.error;
}

int pack_end(struct pack *p) {
        return archive_out_end(&p->out);
}
