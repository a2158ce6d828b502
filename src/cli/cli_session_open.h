/* session open: its options, and the request that comes of them. */
#pragma once

#include "cli/cli.h"
#include "cli/cli_mount.h"
#include "cli/cli_opts.h"
#include "common/errmsg.h"
#include "common/proto_open.h"

struct cli_session_open {
        bool help;
        struct open_request request; /* its strings stand in argv and the environment */
        struct cli_mounts mounts;
        const char *env[PROTO_OPEN_ENV_MAX];
};

extern const struct cli_opt cli_session_open_opts[];

/* Options and at most one name. Returns 0, or -EINVAL and a line in *e: bad usage. */
int cli_session_open_parse(struct cli_session_open *o, int argc, char **argv, char **environ_list,
                           struct errmsg *e);
/* Opens it and says its name. Returns the exit status of the program, with a line in *e where it is not 0. */
int cli_session_open_run(const struct cli *c, struct cli_session_open *o, struct errmsg *e);
