/* The change of the drop-in: worked out, judged with all the rest of the configuration, shown, made. */
#pragma once

#include "cli/setup/setup.h"
#include "cli/setup/setup_file.h"
#include "config/node.h"

struct change {
        struct setup_file file;
        const struct setup_places *places;
        char *have; /* what the drop-in holds; NULL: there is none */
        size_t have_len;
        char *want; /* what it shall hold; NULL: as it is */
        size_t want_len;
        struct config *config; /* the whole configuration with it */
};

/* Opens the drop-in of @p, which outlives *ret; @write: to change it. 0, or an exit code. */
int change_open(struct change *ret, const struct setup_places *p, bool write);
void change_done(struct change *c);

/* Works out what @o makes of it, and reads the whole configuration with that. 0, EXIT_CONFIG after a line on
 * stderr, or another exit code; then nothing of @c has changed. */
int change_prepare(struct change *c, const struct setup_options *o);

/* The change as a unified diff on stdout. 0, or an exit code. */
int change_show(const struct change *c);

/* Makes it. 0, or an exit code; then nothing has changed. */
int change_make(struct change *c);
/* Takes it back. As above. */
int change_undo(struct change *c);
