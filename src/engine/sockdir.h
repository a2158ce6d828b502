/*
 * The folder of one sandbox, <runtime-dir>/<tag>, and the listening socket in it. The folder's group
 * comes from the setgid bit of the runtime folder: it is made under a umask and never chmod()ed, since a
 * chmod by someone who is not in that group would clear the bit.
 */
#pragma once

struct sockdir {
        int fd;     /* the runtime folder */
        char *path; /* absolute */
};

/* Opens the runtime folder, which must be there. Returns 0 or -errno; sockdir_done() in any case. */
int sockdir_init(struct sockdir *d, const char *runtime_dir);
void sockdir_done(struct sockdir *d);

/* Makes the folder @tag (0750) and listens in it (AGENT_SOCKET, 0660). Returns 0 and the descriptor,
 * which the caller owns, or -errno, and then nothing of it is left. */
int sockdir_make(struct sockdir *d, const char *tag, int *ret_fd);
/* Listens anew in the folder @tag: the socket that was there is no longer found by its name. Returns 0 and
 * the descriptor, which the caller owns, or -errno. */
int sockdir_listen_again(struct sockdir *d, const char *tag, int *ret_fd);
/* The folder's absolute path: a new string, or NULL. */
char *sockdir_path(const struct sockdir *d, const char *tag);
/* Removes folder and socket; what is not there is no error. */
void sockdir_remove(struct sockdir *d, const char *tag);
/* Calls @wanted for each folder that is named like a sandbox's, and removes those it says false to. */
void sockdir_sweep(struct sockdir *d, _Bool (*wanted)(void *userdata, const char *tag), void *userdata);

/* Binds a socket of @type to the name @name in the folder @dir_fd, 0660, and listens. A path of any
 * length works. Returns 0 or -errno. */
int sockdir_listen(int dir_fd, const char *name, int type, int backlog, int *ret_fd);
