/* What the files that read the values of flags share. */
#pragma once

#include "cli/docker/docker_flags.h"

/* A value that makes no sense: -EINVAL and a line in *e. */
int take_invalid(const struct run_flag *f, const char *value, const char *expected, struct errmsg *e);
/* One that is refused: @how (-EPERM, -EACCES) and a line in *e. */
int take_refused(const struct run_flag *f, const char *value, int how, const char *why,
                 struct errmsg *e);

/* "512m", "1.5g", "64MiB": docker's sizes, by 1024. False: it is none. */
bool take_parse_bytes(const char *s, uint64_t *ret);
