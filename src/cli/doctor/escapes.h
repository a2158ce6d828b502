/* Known ways out of a container, and which versions have them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum escape_of { ESCAPE_RUNC, ESCAPE_ENGINE };

/* Affected from @from on ("0": from the first one), and no more at @fixed. */
struct escape_range {
        const char *from, *fixed;
};

struct escape {
        const char *id;
        enum escape_of of;
        /* A sandbox's own command can try it; else it takes a call of the API that hermes-sandbox never makes. */
        bool from_inside;
        const char *what;
        struct escape_range ranges[10]; /* upstream's, up to the first without @fixed */
        const char *debian[4]; /* Debian's versions that have the fix at an older upstream number */
};

extern const struct escape escapes[];
extern const size_t n_escapes;

enum escape_verdict {
        ESCAPE_FIXED,
        ESCAPE_OPEN,
        ESCAPE_UNSURE, /* upstream's number is too low, and a distribution may have mended it */
        ESCAPE_UNKNOWN /* that is no version */
};

/* Judges @version, as the program says it ("1.1.5+ds1", "1.0.0-rc93"). @package is the version of Debian's package that
 * it comes from, or NULL. *ret_fixed is the version that has the fix, where it is not FIXED or UNKNOWN. */
enum escape_verdict escape_judge(const struct escape *x, const char *version, const char *package,
                                 const char **ret_fixed);
