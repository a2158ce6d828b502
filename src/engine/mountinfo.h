/* Where a mount lies: the lines of /proc/PID/mountinfo (proc_pid_mountinfo(5)). */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct mountinfo {
        int id;
        unsigned major, minor; /* of the file system */
        bool read_only;        /* this mount, or the file system under it */
        char root[PATH_MAX];   /* the folder of the file system that is mounted here */
        char point[PATH_MAX];  /* where, as that process sees it */
};

/* Reads one line. Returns 0, or -EPROTO. */
int mountinfo_parse(const char *line, struct mountinfo *ret);

/* The mount of that id in the table of @pid (0: this process). Returns 0, -ENOENT, or another -errno. */
int mountinfo_by_id(pid_t pid, int id, struct mountinfo *ret);

/* The one mount at @point. Returns 0, -ENOENT, -EEXIST (more than one, the one over the other), or another
 * -errno. */
int mountinfo_by_point(pid_t pid, const char *point, struct mountinfo *ret);

/* The id of the mount that the descriptor's file is on, by /proc/self/fdinfo. Returns it or -errno. */
int mountinfo_of_fd(int fd);

/* The file's place in its own file system, from the path by which this process would reach it and the mount that
 * it is on: what mountinfo's root field says of a mount of it. Returns 0, or -EINVAL: @path is not below that
 * mount; -ENAMETOOLONG. */
int mountinfo_root_of(const struct mountinfo *on, const char *path, char ret[PATH_MAX]);
