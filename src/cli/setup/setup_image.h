/* Is the image there, and how it comes. */
#pragma once

#include "cli/setup/setup.h"

enum image_state { IMAGE_THERE, IMAGE_MISSING };

/* Asks the engine at @socket for @image. 0 and *ret, or an exit code. */
int setup_image_look(const char *socket, const char *image, enum image_state *ret);

/* Has the manager pull @image, which is @profile's, else builds it if it is one that `image build` makes. 0, or an exit
 * code: it is not there. What was tried has said why. */
int setup_image_get(const struct setup_places *p, const char *profile, const char *engine_socket,
                    const char *image);
