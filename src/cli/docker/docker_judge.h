/* The words of a run against the profile. */
#pragma once

#include "cli/docker/docker_flags.h"

/*
 * Makes of @r what the manager is asked for: *ret's narrowing, user, labels, environment; its strings are @r's and @p's.
 * Nothing is narrowed that the profile has so already. Says in @r's files where each is copied to, and whether its workdir
 * has to be made. Returns 0; or -EPERM, or -EACCES: the manager shall record it, with the flag's name in *ret_flag and a
 * line in *e that names the key which would allow it; or -EINVAL and a line.
 */
int run_judge(struct run_words *r, const struct image_info *p, struct open_request *ret,
              const char **ret_flag, struct errmsg *e);

/* Says on stderr what is asked for and not given: one line for each flag. Returns how many. */
int run_warn(const struct run_words *r, const struct image_info *p);
