/* What a sandbox looks like to a command in it. */
#include "canary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TMPFS 0x01021994             /* linux/magic.h, TMPFS_MAGIC */
#define GET_FLAGS _IOR('f', 1, long) /* linux/fs.h, FS_IOC_GETFLAGS */

/* Any bytes as one printable word. */
static void put_word(const char *s, size_t n) {
        for (; n > 0; s++, n--)
                if (*s > ' ' && *s < 0x7f && *s != '\\')
                        putchar(*s);
                else
                        printf("\\%02x", (unsigned char)*s);
}

static void look_at_xattrs(const char *dir) {
        char names[4096], value[4096];
        ssize_t n = listxattr(dir, names, sizeof(names)), len;

        for (char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
                len = getxattr(dir, p, value, sizeof(value));
                printf("  xattr %s ", p);
                put_word(value, len > 0 ? (size_t)len : 0);
                puts("");
        }
}

static void look_at_entries(const char *dir) {
        DIR *d = opendir(dir);
        struct dirent *e;
        struct stat st;

        if (!d) {
                printf("  cannot be read: %s\n", strerror(errno));
                return;
        }
        while ((e = readdir(d))) {
                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                printf("  ");
                put_word(e->d_name, strlen(e->d_name));
                if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                        printf(" %o %u:%u %ld %ju", st.st_mode, st.st_uid, st.st_gid, (long)st.st_nlink,
                               (uintmax_t)st.st_ino);
                puts("");
        }
        closedir(d);
}

static void look_at_place(const char *dir) {
        struct statfs fs;
        struct stat st;
        int fd, flags = 0;

        if (lstat(dir, &st) < 0 || statfs(dir, &fs) < 0) {
                printf("%s: %s\n", dir, strerror(errno));
                return;
        }
        printf("%s: %o %u:%u dev %ju ino %ju links %ld size %jd mtime %jd.%ld", dir, st.st_mode,
               st.st_uid, st.st_gid, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, (long)st.st_nlink,
               (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        /* A look at the entries sets it to now: only one that was chosen is a residue. */
        if (st.st_atim.tv_sec <= CHOSEN_TIME)
                printf(" atime %jd", (intmax_t)st.st_atim.tv_sec);
        if (fs.f_type == TMPFS)
                printf(" blocks %ju inodes %ju", (uintmax_t)fs.f_bfree, (uintmax_t)fs.f_ffree);
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && ioctl(fd, GET_FLAGS, &flags) == 0)
                printf(" flags %x", flags);
        close(fd);
        puts("");
        look_at_xattrs(dir);
        look_at_entries(dir);
}

static void look_at_file(const char *path) {
        FILE *f = fopen(path, "re");
        char line[4096];

        printf("%s:\n", path);
        while (f && fgets(line, sizeof(line), f))
                printf("  %s", line);
        if (f)
                fclose(f);
}

/* Of sockets only what is not a counter: addresses and state, or type and name. */
static void look_at_sockets(const char *path, const char *form) {
        char line[1024], a[256], b[256], c[256];
        FILE *f = fopen(path, "re");

        printf("%s:\n", path);
        while (f && fgets(line, sizeof(line), f)) {
                a[0] = b[0] = c[0] = '\0';
                if (sscanf(line, form, a, b, c) > 0)
                        printf("  %s %s %s\n", a, b, c);
        }
        if (f)
                fclose(f);
}

/* The value of a line of /proc/PID/status; "" when there is none. */
static void status_field(const char *pid, const char *key, char value[64]) {
        char path[300], line[256];
        FILE *f;

        value[0] = '\0';
        snprintf(path, sizeof(path), "/proc/%s/status", pid);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, key, strlen(key)) == 0)
                        snprintf(value, 64, "%.*s", (int)strcspn(line + strlen(key), "\n"),
                                 line + strlen(key));
        if (f)
                fclose(f);
}

static void look_at_processes(void) {
        DIR *d = opendir("/proc");
        struct dirent *e;
        char name[64], uid[64];

        puts("processes:");
        while (d && (e = readdir(d))) {
                if (e->d_name[0] < '0' || e->d_name[0] > '9' || atoi(e->d_name) == getpid())
                        continue;
                status_field(e->d_name, "Name:\t", name);
                status_field(e->d_name, "Uid:\t", uid);
                printf("  %s %s\n", name, uid);
        }
        if (d)
                closedir(d);
}

/* What it was born with. */
static void look_at_self(char **environ_) {
        static const char *const keys[] = { "Name:\t",   "Umask:\t",  "Uid:\t",    "Gid:\t",
                                            "SigBlk:\t", "SigIgn:\t", "SigPnd:\t", "ShdPnd:\t",
                                            "CapInh:\t", "CapPrm:\t", "Threads:\t" };
        char value[64], cwd[4096];
        struct rlimit r;

        puts("self:");
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                status_field("self", keys[i], value);
                printf("  %s%s\n", keys[i], value);
        }
        printf("  cwd %s nice %d slack %d groups %d leader %d\n", getcwd(cwd, sizeof(cwd)),
               getpriority(PRIO_PROCESS, 0), prctl(PR_GET_TIMERSLACK), getgroups(0, NULL),
               getsid(0) == getpid() && getpgrp() == getpid());
        for (int i = 0; i < RLIM_NLIMITS; i++)
                if (getrlimit(i, &r) == 0)
                        printf("  rlimit %d %jx %jx\n", i, (uintmax_t)r.rlim_cur, (uintmax_t)r.rlim_max);
        for (char **e = environ_; *e; e++)
                printf("  %s\n", *e);
}

void look(void) {
        static const char *const places[] = { "/tmp",     "/home",       "/home/sandbox", "/dev",
                                              "/dev/shm", "/dev/mqueue", "/dev/pts",      "/etc" };
        static const char *const files[] = {
                "/proc/sysvipc/shm",    "/proc/sysvipc/msg",         "/proc/sysvipc/sem",
                "/proc/self/mountinfo", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname"
        };

        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
                look_at_place(places[i]);
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
                look_at_file(files[i]);
        look_at_sockets("/proc/net/tcp", "%*s %255s %255s %255s");
        look_at_sockets("/proc/net/tcp6", "%*s %255s %255s %255s");
        look_at_sockets("/proc/net/udp", "%*s %255s %255s %255s");
        look_at_sockets("/proc/net/udp6", "%*s %255s %255s %255s");
        look_at_sockets("/proc/net/unix", "%*s %*s %*s %*s %255s %255s %*s %255s");
        look_at_processes();
        look_at_self(environ);
}
