/*
 * The two daemons kept up where there is no systemd. Root's for as long as it runs: it opens no socket,
 * reads no file and parses nothing. All names and places come from main().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/errmsg.h"

#define SUPERVISOR_DAEMONS 2

struct sup_folder {
        const char *path;
        const char *user, *group;
        mode_t mode;
};

struct sup_daemon {
        const char *name;
        const char *log;         /* file name in log_dir */
        const char *const *argv; /* argv[0] is the absolute path of setpriv */
};

struct sup_config {
        const char *pid_file;             /* locked for as long as we run; its content means nothing */
        const char *log_dir;              /* one of the folders, root's alone */
        const struct sup_folder *folders; /* ended by a NULL path */
        struct sup_daemon daemons[SUPERVISOR_DAEMONS]; /* in the order of their start */
        unsigned backoff_first_ms, backoff_max_ms;
        unsigned settled_ms;  /* a life of this length forgets the back-off */
        unsigned deadline_ms; /* from TERM to KILL, for each daemon */
};

/* Starts in the background and returns 0 once the lock is held and both daemons are forked, also when
 * one runs already (which then tries again what it holds back); else 1 after one line on stderr. */
int supervisor_start(const struct sup_config *c);

/* Ends the one that runs and waits until it and both daemons are gone. Called a second time meanwhile, it tells them
 * so by a second SIGTERM. 0, also when none runs; else 1
 * after one line on stderr. */
int supervisor_stop(const struct sup_config *c);

/* Makes the folders that are missing, and puts group and mode of the others right. One that belongs to
 * another user than it should is refused. 0 or -errno and a line in *e. */
int sup_make_folders(const struct sup_folder *f, struct errmsg *e);

/* Opens a daemon's log for appending, in a folder that must be root's and writable by nobody else, so
 * that no other account can have put a link there. Over 5 MiB, it is moved to NAME.1 first. A
 * descriptor or -errno. */
int sup_open_log(const char *dir, const char *name, uid_t owner);
