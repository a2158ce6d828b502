/*
 * The folder of one sandbox, <runtime-dir>/<tag>, and the listening socket in it. The folder's group
 * comes from the setgid bit of the runtime folder: it is made under a umask and never chmod()ed, since a
 * chmod by someone who is not in that group would clear the bit.
 */
#pragma once

#include <sys/types.h>

struct sockdir {
        int fd;     /* the runtime folder */
        char *path; /* absolute */
};

/* Opens the runtime folder, which must be there. Returns 0 or -errno; sockdir_done() in any case. */
int sockdir_init(struct sockdir *d, const char *runtime_dir);
void sockdir_done(struct sockdir *d);

/* Whose process the sandbox's agent is, and so who must reach the socket. */
enum sockdir_for {
        SOCKDIR_GROUP, /* one with the group of the folder: 0750, and the socket 0660 */
        SOCKDIR_CALLER, /* one of any uid: 0711, and the socket 0666. The runtime folder keeps everybody on the host
                           out, and the one sandbox has only this folder in it */
};

/* Makes the folder @tag and listens in it (AGENT_SOCKET). Returns 0 and the descriptor, which the caller owns, or
 * -errno, and then nothing of it is left; -EPERM: for a caller's agent, but others may pass the runtime folder. */
int sockdir_make(struct sockdir *d, const char *tag, enum sockdir_for whom, int *ret_fd);
/* Listens anew in the folder @tag, for whom the folder was made: the socket that was there is no longer found by its
 * name. Returns 0 and the descriptor, which the caller owns, or -errno. */
int sockdir_listen_again(struct sockdir *d, const char *tag, int *ret_fd);
/* The folder's absolute path: a new string, or NULL. */
char *sockdir_path(const struct sockdir *d, const char *tag);
/* Removes folder and socket; what is not there is no error. */
void sockdir_remove(struct sockdir *d, const char *tag);
/* Calls @wanted for each folder that is named like a sandbox's, and removes those it says false to. */
void sockdir_sweep(struct sockdir *d, _Bool (*wanted)(void *userdata, const char *tag), void *userdata);

/* Binds a socket of @type to the name @name in the folder @dir_fd, with @mode (of 0666), and listens. A path of any
 * length works. Returns 0 or -errno. */
int sockdir_listen(int dir_fd, const char *name, mode_t mode, int type, int *ret_fd);
