/* hermes-sandbox-image, which `hermes-sandbox image build` and `image remove` execute: root's way to make and remove
 * images. It reaches the engine's socket itself. */
#pragma once

#include <stdio.h>

#include "cli/image/image_engine.h"
#include "cli/image/image_options.h"
#include "common/errmsg.h"

/* Where things are on this system; a test has them elsewhere. */
struct image_paths {
        const char *config, *dropins; /* sandbox.yaml(5), for engine.socket */
        const char *mmdebstrap;
        const char *apt;        /* folder of sources.list */
        const char *os_release; /* os-release(5) */
        const char *tmp;        /* absolute: where an image is put together */
        const char *cache;      /* absolute: packages that came over the network once */
};

/* Runs the program with main()'s arguments; results go to @out, complaints to @err. Returns the exit code: 0,
 * EXIT_USAGE, EXIT_NO_MANAGER (no engine), EXIT_NOT_ALLOWED, EXIT_CONFIG, EXIT_SANDBOX, or EXIT_SIGNAL + a signal. */
int image_command(const struct image_paths *p, int argc, char **argv, FILE *out, FILE *err);

/* --- build and remove, each on an open engine ---
 * 0; a signal's number; or -errno with a line in *e. */
int image_build(const struct image_paths *p, const struct image_options *o, struct image_engine *g,
                int signal_fd, FILE *out, FILE *err, struct errmsg *e);
int image_remove(const struct image_options *o, struct image_engine *g, FILE *out, struct errmsg *e);
