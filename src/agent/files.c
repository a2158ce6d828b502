#include "agent/files.h"

#include <stdio.h>

#include "common/exitcode.h"

int files_main(int argc, char **argv) {
        fprintf(stderr, "%s: unknown verb: %s\n", FILES_NAME, argc > 1 ? argv[1] : "");
        return EXIT_USAGE;
}
