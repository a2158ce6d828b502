/* The words after `exec`, judged. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/errmsg.h"
#include "common/proto.h"

struct cli_exec_args {
        bool help;
        bool json;
        bool input;         /* -i */
        const char *script; /* --script FILE, or NULL: then request has the command */
        const char *script_arg[1];
        struct exec_request
                request; /* strings point into argv and the environment, env to static memory */
};

/* Makes @text, the contents of a->script, the request's command; it stays the caller's. */
void cli_exec_args_set_script(struct cli_exec_args *a, const char *text);

/* argv[0] is "exec"; @environ_list is looked at for -e KEY. Returns 0, or -EINVAL and a line in *e:
 * bad usage. */
int cli_exec_args_parse(struct cli_exec_args *a, int argc, char **argv, char **environ_list,
                        struct errmsg *e);
