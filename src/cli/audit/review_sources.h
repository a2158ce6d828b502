/* Which files, which account: what the options say, else this system's. */
#pragma once

#include "cli/audit/review.h"
#include "cli/audit/review_files.h"
#include "cli/audit/review_log.h"
#include "cli/audit/review_options.h"
#include "common/errmsg.h"

/*
 * Opens the kernel's trail into @files. 0; 1: there is none, with a line in *e that says so; -errno with
 * a line in *e, -EACCES where it may not be read.
 */
int review_sources_log(const struct review_options *o, const struct review_paths *p,
                       struct review_files *files, struct errmsg *e);

/* Opens the readable trail. Returns the same; 1 where its current file is missing, with those that
 * rotation left in @files. */
int review_sources_trail(const struct review_options *o, const struct review_paths *p,
                         struct review_files *files, struct errmsg *e);

/* Whose records count. 0, or -ENOENT with a line in *e: there is no such account. */
int review_sources_whose(const struct review_options *o, const struct review_paths *p,
                         struct review_source *ret, struct errmsg *e);
