/* The daemons: started or told to read again; and the proof that what was asked for is what runs. */
#pragma once

#include "cli/setup/setup.h"

/* Starts what does not run and has what runs read its configuration again. 0, or an exit code. */
int setup_service_up(const struct setup_options *o, const struct setup_places *p);

/* Waits until the manager has @profile as it stands there, runs a command in a sandbox of it, and shows what is
 * enforced. 0, or an exit code. */
int setup_service_prove(const struct setup_places *p, const struct config_profile *profile);
