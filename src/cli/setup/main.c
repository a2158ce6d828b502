#include "cli/setup/setup.h"

int main(int argc, char **argv) {
        return setup_main(argc, argv);
}
