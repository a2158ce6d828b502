/* Whom setup works for, and who shall use the sandbox. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "cli/setup/setup.h"

bool setup_user_exists(const char *name);

/* Puts @name into the group hermes-sandbox unless he is in it, and warns where he is in docker, which is root. With
 * @dry_run it only says what it would do. 0, or an exit code. */
int setup_user_add(const char *name, bool dry_run);

/* Puts the scripts of @from into ~/.hermes/scripts of the user who called: with sudo that is $SUDO_UID. All that is done
 * there is done with his ids, and no symbolic link is followed. A script of that name that is not ours is kept as
 * NAME.old. 0, or an exit code. */
int setup_scripts_install(const char *from, bool dry_run);

/* The same below @home with the ids that we have. Says what it did. 0, or an exit code. */
int setup_scripts_copy(const char *from, const char *home);
