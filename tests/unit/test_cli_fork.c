/* Children that are waited for, of a program that was started with SIGCHLD ignored. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli_spawn.h"
#include "cli/docker/docker_child.h"

/* Who would wait for ever is ended. */
static int setup(void **state) {
        (void)state;
        alarm(20);
        return signal(SIGCHLD, SIG_IGN) == SIG_ERR ? -1 : 0;
}

static int seven(void *userdata) {
        (void)userdata;
        return 7;
}

static void work_in_a_child(void **state) {
        sigset_t before;

        (void)state;
        docker_hold_signals(&before);
        assert_int_equal(docker_end_as(docker_in_child(seven, NULL, &before), &before), 7);
}

static void programs(void **state) {
        static const char *const exits[] = { "/bin/sh", "-c", "exit 5", NULL };
        static const char *const says[] = { "/bin/sh", "-c", "echo said; exit 6", NULL };
        char *text = NULL;

        (void)state;
        assert_int_equal(spawn_run(exits, -1, -1), 5);
        signal(SIGCHLD, SIG_IGN);
        assert_int_equal(spawn_read(says, &text), 6);
        assert_string_equal(text, "said\n");
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(work_in_a_child, setup),
                cmocka_unit_test_setup(programs, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
