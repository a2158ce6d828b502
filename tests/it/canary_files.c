/* Residues in files, and in the attributes of HOME's top. */
#include "canary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

/* linux/fs.h, whose other contents clash with the C library's. */
#define GET_FLAGS _IOR('f', 1, long)
#define SET_FLAGS _IOW('f', 2, long)
#define NODUMP_FL 0x40
#define NOATIME_FL 0x80

static const char *const places[] = { "/tmp", HOME, SHM };

int make_file(int dir, const char *name) {
        int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

        need(fd >= 0 && write(fd, "canary", 6) == 6, name);
        return fd;
}

int open_dir(const char *dir) {
        int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        need(fd >= 0, dir);
        return fd;
}

static void file(const char *dir) {
        close(make_file(open_dir(dir), "canary"));
}

static void odd_names(const char *unused) {
        char longest[256];
        const char *const names[] = { ".hidden", "...", "-rf", " ", "a\nb", "\xff\xfe", "*", longest };

        (void)unused;
        memset(longest, 'x', 255);
        longest[255] = '\0';
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
                for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
                        close(make_file(open_dir(places[i]), names[n]));
}

static void closed_dirs(const char *dir) {
        static const char *const names[] = { "a", "a/b", "a/b/c", "a/d" };
        int top = open_dir(dir);

        for (int i = 0; i < 4; i++)
                need(mkdirat(top, names[i], 0755) == 0, names[i]);
        close(make_file(top, "a/b/c/f"));
        close(make_file(top, "a/f"));
        need(fchmodat(top, "a/f", 0, 0) == 0 && fchmodat(top, "a/b/c/f", 0, 0) == 0, "chmod");
        for (int i = 3; i >= 0; i--)
                need(fchmodat(top, names[i], 0, 0) == 0, "chmod");
        check(faccessat(top, "a/f", F_OK, 0) < 0, "an open directory");
}

static void links(const char *dir) {
        int top = open_dir(dir);

        need(symlinkat("/etc", top, "etc") == 0 && symlinkat("..", top, "up") == 0 &&
                     symlinkat("self", top, "self") == 0 && symlinkat("/dev", top, "dev") == 0,
             "symlink");
        close(make_file(top, "one"));
        need(mkdirat(top, "sub", 0755) == 0 && linkat(top, "one", top, "sub/two", 0) == 0, "link");
}

static void nodes(const char *dir) {
        struct sockaddr_un sun = { .sun_family = AF_UNIX };
        int top = open_dir(dir), s = socket(AF_UNIX, SOCK_STREAM, 0);

        snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/socket", dir);
        need(mkfifoat(top, "fifo", 0600) == 0, "mkfifo");
        need(s >= 0 && bind(s, (struct sockaddr *)&sun, sizeof(sun)) == 0, "bind");
}

static void sparse(const char *dir) {
        int fd = make_file(open_dir(dir), "sparse");

        need(ftruncate(fd, 40 * MB) == 0 && pwrite(fd, "x", 1, 40 * MB - 1) == 1, "sparse");
}

static void many(const char *dir) {
        int top = open_dir(dir);
        char name[16];

        for (int i = 0; i < 10000; i++) {
                snprintf(name, sizeof(name), "%d", i);
                close(make_file(top, name));
        }
}

/* More folders than descriptors, usually, and a longer path than PATH_MAX; AppArmor allows twice as much
 * (its path_max) and looks at the whole of it each time. */
static void deep(const char *dir) {
        int at = open_dir(dir), next;

        for (int i = 0; i < 1500; i++) {
                need(mkdirat(at, "ddd", 0755) == 0, "mkdir");
                next = openat(at, "ddd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                need(next >= 0, "ddd");
                close(at);
                at = next;
        }
        close(make_file(at, "f"));
}

/* None of them can be entered. */
static void deep_closed(const char *dir) {
        int top = open_dir(dir), at = top, next;

        for (int i = 0; i < 500; i++) {
                need(mkdirat(at, "d", 0755) == 0, "mkdir");
                next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                need(next >= 0, "d");
                need(at == top || fchmod(at, 0) == 0, "chmod");
                at = next;
        }
}

/* @fd gets bytes until the place is full. */
static void fill(int fd) {
        static char block[65536];
        ssize_t n;

        memset(block, 'x', sizeof(block));
        while ((n = write(fd, block, sizeof(block))) > 0)
                ;
        check(n < 0, "no end");
}

static void full(const char *dir) {
        int fd = make_file(open_dir(dir), "full");

        fill(fd);
        need(write(fd, "x", 1) < 0, "room");
        check(errno == ENOSPC, "not full");
}

static void full_inodes(const char *dir) {
        int top = open_dir(dir), fd;
        struct statfs s;
        char name[16];

        need(fstatfs(top, &s) == 0, dir);
        errno = ENOTSUP;
        need(s.f_files < 100000, "the number of inodes is not bounded");
        for (int i = 0;; i++) {
                snprintf(name, sizeof(name), "%d", i);
                fd = openat(top, name, O_CREAT | O_WRONLY | O_EXCL, 0600);
                if (fd < 0)
                        break;
                close(fd);
        }
        check(errno == ENOSPC, "not full");
}

/* --- the top of HOME --------------------------------------------------------------------------------- */

static void home_mode(const char *octal) {
        struct stat st;
        mode_t mode = (mode_t)strtoul(octal, NULL, 8);

        need(chmod(HOME, mode) == 0 && stat(HOME, &st) == 0, "chmod");
        check((st.st_mode & 07777) == mode, "mode");
}

static void home_group(const char *unused) {
        gid_t groups[2];
        struct stat st;

        (void)unused;
        need(getgroups(2, groups) == 1 && chown(HOME, (uid_t)-1, groups[0]) == 0, "chown");
        check(stat(HOME, &st) == 0 && st.st_gid == groups[0], "group");
}

static void home_times(const char *unused) {
        const struct timespec t[2] = { { CHOSEN_TIME, 1 }, { CHOSEN_TIME, 2 } };
        struct stat st;

        (void)unused;
        need(utimensat(AT_FDCWD, HOME, t, 0) == 0 && stat(HOME, &st) == 0, "utimensat");
        check(st.st_mtime == CHOSEN_TIME, "mtime");
}

static void home_xattr(const char *unused) {
        (void)unused;
        need(setxattr(HOME, "user.canary", "canary", 6, 0) == 0, "user.canary");
        check(getxattr(HOME, "user.canary", NULL, 0) == 6, "user.canary");
}

/* Version 2, then tag, permissions and id of each entry (linux/posix_acl_xattr.h). */
static void home_acl(const char *name) {
        static const uint16_t acl[] = { 2,      0,      1,    7, 0xffff, 0xffff, 2,    7,
                                        7,      0,      4,    0, 0xffff, 0xffff, 0x10, 7,
                                        0xffff, 0xffff, 0x20, 0, 0xffff, 0xffff };

        need(setxattr(HOME, name, acl, sizeof(acl), 0) == 0, name);
        check(getxattr(HOME, name, NULL, 0) == sizeof(acl), name);
}

static void home_flags(const char *unused) {
        int fd = open_dir(HOME), flags = 0;

        (void)unused;
        need(ioctl(fd, GET_FLAGS, &flags) == 0, "flags");
        flags |= NODUMP_FL | NOATIME_FL;
        need(ioctl(fd, SET_FLAGS, &flags) == 0, "flags");
        flags = 0;
        check(ioctl(fd, GET_FLAGS, &flags) == 0 && (flags & NODUMP_FL), "flags");
}

const struct residue file_residues[] = {
        { "file-tmp", file, "/tmp", NULL },
        { "file-home", file, HOME, NULL },
        { "file-shm", file, SHM, NULL },
        { "odd-names", odd_names, NULL, NULL },
        { "closed-dirs-tmp", closed_dirs, "/tmp", NULL },
        { "closed-dirs-home", closed_dirs, HOME, NULL },
        { "closed-dirs-shm", closed_dirs, SHM, NULL },
        { "links-tmp", links, "/tmp", NULL },
        { "links-home", links, HOME, NULL },
        { "nodes", nodes, "/tmp", NULL },
        { "sparse", sparse, "/tmp", NULL },
        { "many", many, "/tmp", NULL },
        { "deep", deep, "/tmp", NULL },
        { "deep-home", deep, HOME, NULL },
        { "deep-closed", deep_closed, HOME, NULL },
        { "full-tmp", full, "/tmp", NULL },
        { "full-home", full, HOME, NULL },
        { "full-shm", full, SHM, NULL },
        { "full-inodes", full_inodes, "/tmp", NULL },
        { "home-000", home_mode, "000", NULL },
        { "home-sticky", home_mode, "3777", NULL },
        { "home-group", home_group, NULL, NULL },
        { "home-times", home_times, NULL, NULL },
        { "home-xattr", home_xattr, NULL, NULL },
        { "home-acl", home_acl, "system.posix_acl_access", NULL },
        { "home-default-acl", home_acl, "system.posix_acl_default", NULL },
        { "home-flags", home_flags, NULL, NULL },
        { NULL, NULL, NULL, NULL },
};
