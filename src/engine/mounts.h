/*
 * The host folders of one sandbox: what the caller wrote on his pair of sockets (common/mount_proto.h), judged by what
 * the kernel says of him and of the folders, and by the config.
 *
 * What is promised of each folder that goes through: a process of @uid has opened it with its own rights, it is not
 * root's process nor the manager's, the folder lies below allowed_file_paths, and its destination hides nothing
 * of ours.
 */
#pragma once

#include <sys/types.h>

#include "common/errmsg.h"
#include "common/mount_proto.h"
#include "engine/engined.h"

struct mount {
        int fd; /* O_PATH: this folder, wherever its name leads by now */
        bool read_only;
        char *dst;
};

struct mounts {
        uid_t uid; /* of the caller, by SO_PEERCRED of his pair */
        gid_t gid;
        size_t n;
        struct mount of[MOUNT_MAX];
};

/* Frees it and closes its descriptors. NULL is allowed. */
void mounts_free(struct mounts *m);

/* Exactly once: @m is the callee's, or NULL and @why is the line that says why not; @error is ENGINE_E_NOT_ALLOWED or
 * ENGINE_E_REFUSED then. */
typedef void (*mounts_done)(void *userdata, struct mounts *m, enum engine_error error, const char *why);

/*
 * Reads what the caller has written on the other end of @sock, which is this call's from now on, and checks the
 * caller. Waits for MOUNTS_WAIT_MS at most. @done may be called before it returns. Returns 0, or -errno: nothing was
 * begun and @done is not called.
 */
#define MOUNTS_WAIT_MS 2000
#define MOUNTS_READERS_MAX 16 /* at once; one more is -EBUSY */
int mounts_read(struct broker *b, int sock, mounts_done done, void *userdata);
/* Ends what is under way: each @done is called. */
void mounts_drop_all(struct broker *b);

/* Folders and destinations against config and profile. Returns 0, or a line in *e and -EPERM (the caller may not mount
 * that), -EINVAL (a destination that cannot be) or -ENOMEM. */
int mounts_check(const struct mounts *m, const struct config *c, const struct config_profile *p,
                 struct errmsg *e);

/* The started container of init process @pid has exactly these folders at these places, and they still lie where
 * they may: compares /proc/@pid/mountinfo. Returns 0, or a line in *e and -EPERM (they do not, or no longer), -EIO (there is
 * nothing to compare) or -ENOMEM. */
int mounts_verify(const struct mounts *m, const struct config *c, pid_t pid, struct errmsg *e);
