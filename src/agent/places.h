/*
 * What places.c, scrub.c and proof.c share: where a command can write, and how all was at the handshake.
 *
 * The descriptors stay open for ever: listing, attributes and counters through them need no right that the
 * agent lacks, whatever mode a command leaves.
 */
#pragma once

#include "agent/agent.h"

#include <dirent.h>
#include <sys/stat.h>

#define PLACES_MAX 32

/* The top of a place. ctime is the one time that nobody can set, and so not be restored. */
struct place_top {
        dev_t dev;
        ino_t ino;
        mode_t mode;
        uid_t uid;
        gid_t gid;
        struct timespec atime, mtime;
        unsigned flags;     /* FS_IOC_GETFLAGS; 0 where the file system has none */
        uint64_t xattrs;    /* digest of the names and values that only a privileged process can set */
        bool owners_xattrs; /* there is one that its owner can set, such as an ACL */
};

struct place {
        char name[PROTO_NAME_MAX +
                  1]; /* its mount point as the mount table has it, cut where it is long */
        int fd;       /* of its top */
        bool emptied; /* a command can write at its top: listed, emptied, restored */
        bool counted; /* a tmpfs: blocks and inodes are compared */
        bool queues;  /* an mqueue: its entries are POSIX message queues */
        struct place_top top;
        uint64_t free_blocks, free_inodes;
};

/* /proc/net/sockstat and sockstat6. */
struct places_sockets {
        unsigned used;         /* of every family, connected, listening or unreachable */
        unsigned tcp, tcp6;    /* hashed: all but closed ones and those in TIME_WAIT */
        unsigned tcp_timewait; /* of both families */
};

struct places {
        size_t n;
        int proc_fd;     /* /proc */
        int mounts_fd;   /* /proc/self/mountinfo */
        int sockets_fd;  /* /proc/net/sockstat */
        int sockets6_fd; /* its like for IPv6; -1: the kernel has none */
        uint64_t mounts; /* digest of the mount table */
        struct places_sockets sockets;
        struct place place[PLACES_MAX];
};

/* NULL until places_init() has succeeded. */
const struct places *places_get(void);
/* A digest of the mount table, without what the kernel may change by itself. 0, or -errno. */
int places_mounts(int fd, uint64_t *ret);

/* --- proof.c: how it is now ---------------------------------------------------------------------- */

/* The first entry of a directory but for "." and "..", or the next one; NULL at the end, where errno is 0,
 * and on an error, where it is not. One buffer serves all: only one listing can be under way, and an entry
 * stands until the next call. */
const struct dirent *proof_first(int fd);
const struct dirent *proof_next(int fd);
/* These return 0, or -errno. */
int proof_top(int fd, struct place_top *ret);
int proof_counters(int fd, uint64_t *ret_blocks, uint64_t *ret_inodes);
int proof_sockets(const struct places *all, struct places_sockets *ret);
bool proof_top_equal(const struct place_top *a, const struct place_top *b);

/* Gives back the memory that the readings took. */
void proof_forget(void);

/* True: all is as @all says. Else fills the check that fails and its place. */
bool proof(const struct places *all, struct scrubbed *ret);
