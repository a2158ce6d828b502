/*
 * session open --mount: folders of this machine, opened here with the caller's own rights. The manager carries
 * the other end of a socket pair to the broker, which reads from it what shall be mounted, and learns from the
 * kernel whose it is.
 */
#pragma once

#include <stdbool.h>

#include "common/errmsg.h"
#include "common/mount_proto.h"

struct cli_mounts {
        int n;
        struct cli_mount {
                const char *text; /* "SRC:DST[:ro]", as it was given */
                int source_len, target,
                        target_len; /* where in it SRC ends, where DST begins, and its bytes */
                bool read_only;
        } of[MOUNT_MAX];
};

/* Takes "SRC:DST[:ro]" apart; the text stays the caller's. 0, or -EINVAL and a line that begins with @what. */
int cli_mounts_add(struct cli_mounts *m, const char *what, const char *text, struct errmsg *e);

/* Opens them all and writes them to a socket pair. Returns 0 and the end that is for the broker, which is the
 * caller's now, or an exit status and a line in *e. */
int cli_mounts_open(const struct cli_mounts *m, const char *what, int *ret_fd, struct errmsg *e);

/* Makes @target, an absolute path in the sandbox below one of the folders, a link to @to there, with the caller's rights;
 * an empty file of that name makes room. The folders before it are made. 0, also where it lies in none of them, or an exit
 * status and a line in *e that begins with @what. */
int cli_mounts_link(const struct cli_mounts *m, const char *target, const char *to, const char *what,
                    struct errmsg *e);

/* Where it goes that is meant for @target, an absolute path of @len bytes, in another folder: behind @front, which ends
 * with a slash, by the name of that place, as sessions may share the other folder. False: that name is too long. */
bool cli_mount_aside(const char *front, const char *target, int len, char ret[MOUNT_DST_MAX + 1]);
