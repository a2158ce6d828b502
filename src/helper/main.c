/* hermes-docker-enable: every constant of it. helper.c tells what it does with them. */
#include <stddef.h>

#include "helper/helper.h"

int main(int argc, char **argv) {
        static const char *const tool_argv[] = { "usermod", "-aG", "docker", "_hermes-engine", NULL };
        static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
                                           NULL };
        static const struct helper h = {
                .caller_group = "hermes-sandbox",
                .account = "_hermes-engine",
                .group = "docker",
                .etc = "/etc",
                .owner = 0,
                .tool = "/usr/sbin/usermod",
                .tool_argv = tool_argv,
                .env = env,
                .log_socket = "/dev/log",
                /* usermod itself waits up to 15 s for the lock of the account files. */
                .deadline_ms = 30000,
                .retry_ms = 200,
                .last_resort_s = 40,
        };

        (void)argv; /* never read: argv[0], too, is the caller's */
        if (argc < 1)
                return EX_USAGE;
        helper_prologue(&h);
        return helper_run(&h, argc);
}
