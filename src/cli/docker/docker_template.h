/*
 * The part of Go's templates that docker's callers use: text as it stands, and in it {{.A.B}}, {{json .A.B}},
 * {{json .}}, {{.Label "k"}} and {{index .A.B "k"}}, the last one for labels.
 */
#pragma once

#include <stdio.h>

#include "cli/docker/docker_doc.h"
#include "common/errmsg.h"

/* Writes @format with what @d has to @out. Returns 0, or -EINVAL and a line in *e: what is not known is never written
 * as if it were empty. What came before is written in both cases. */
int docker_template(const char *format, const struct doc *d, FILE *out, struct errmsg *e);

/* The template that a word behind --format is: "json" is all of it as JSON; "" is NULL, as if there were none. */
const char *docker_template_of(const char *word);

/* "\t" and "\n" of two characters each become one, and blanks around it go: what docker does for its lists. Returns an
 * allocated string. */
char *docker_template_of_list(const char *format);
