#include "cli/image/image.h"
#include "config/config.h"

int main(int argc, char **argv) {
        static const struct image_paths paths = {
                .config = CONFIG_PATH,
                .dropins = CONFIG_DROPIN_DIR,
                .mmdebstrap = "/usr/bin/mmdebstrap",
                .apt = "/etc/apt",
                .os_release = "/etc/os-release",
                .tmp = "/var/tmp",
                .cache = "/var/cache/hermes-sandbox",
        };

        return image_command(&paths, argc, argv, stdout, stderr);
}
