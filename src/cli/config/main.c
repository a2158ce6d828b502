#include "cli/config/commands.h"

int main(int argc, char **argv) {
        return config_command(argc, argv, stdout, stderr);
}
