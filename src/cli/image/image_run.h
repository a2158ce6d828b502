/*
 * mmdebstrap, in namespaces of its own: its processes (it is no parent of some of them, as maintainer scripts start what
 * they like) end with it, and its mounts are nobody else's.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/errmsg.h"

struct image_run_setup {
        char *const *argv; /* [0] is the program's path */
        char *const *envp;
        int stdin_fd;
        const char *folder; /* on the host mode 0700; the program sees folder/work in its place */
        int signal_fd;      /* of signalfd(2): whatever comes there ends it */
        int verbose;        /* its stderr goes to ours, too */
        int (*output)(void *userdata, const uint8_t *p, size_t len,
                      struct errmsg *e); /* less than 0 ends it */
        void *userdata;
};

/*
 * Runs it to its end, with the signals' default actions and an empty mask. Returns 0; a signal's number (it came, or
 * was said by @output with -EINTR); or -errno and a line in *e: what @output returned, -ECHILD (it failed; the line has
 * its own words), -ENOSPC (the same, and it said so), or another one (it could not be started). In each case nothing
 * of it runs any more.
 */
int image_run(const struct image_run_setup *s, struct errmsg *e);

/* The number of a signal that is pending at @signal_fd and is taken off it, or 0. */
int image_run_signal(int signal_fd);
