/* What the file tool does in a session of run's: files that --volume FILE:DST:ro names are copied, as folders alone can be
 * mounted, and the place that --workdir names is made. */
#pragma once

#include "cli/docker/docker.h"
#include "cli/docker/docker_flags.h"

/* Reads them all, with the caller's rights, and keeps what was read. Returns 0, or -errno and a line in *e: one cannot
 * be read, is no regular file any more, or is larger than RUN_FILE_BYTES_MAX. */
int run_files_read(struct run_words *r, struct errmsg *e);

/* Makes the links to those that are not copied to their own place, with the caller's rights. 0, or an exit status and a
 * line in *e. */
int run_files_link(const struct run_words *r, struct errmsg *e);

/* Puts one that was read into @session, as the session's user, the folders before it made where they are not there.
 * Once in a process, whose stdin it takes. Returns 0, or DOCKER_USAGE after a line. */
int run_file_put(const struct docker *d, const struct run_file *f, const char *session);

/* Makes @workdir and the folders before it, with mode 0755, as the session's user; what is there stays as it is. Returns 0;
 * or DOCKER_USAGE after a line: it cannot be made, or not be entered. */
int run_workdir_make(const struct docker *d, const char *workdir, const char *session);
