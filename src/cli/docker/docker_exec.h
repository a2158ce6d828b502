/* A command in a sandbox, and its end as docker tells it. */
#pragma once

#include "cli/docker/docker.h"
#include "common/proto.h"

/*
 * Runs @q until its end, its terminal's size filled in. @input: fd 0 is passed on; @word is what the sandbox was called.
 * Returns the command's own exit status, or docker's: @refused where no command ran.
 */
int docker_exec_run(const struct docker *d, struct exec_request *q, bool input, const char *word,
                    int refused);

/* "K=V", or K with its value in @environ_list. NULL: there is none to be set; *e is empty then, or has a line. */
const char *docker_env(const char *word, char **environ_list, struct errmsg *e);
