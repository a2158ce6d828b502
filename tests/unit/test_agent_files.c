/* The agent's binary as a command: under the file tool's name it is that tool, and it never becomes an agent. */
#include "agentrun.h"

static struct rig rig;

static int begin(void **state) {
        *state = &rig;
        rig_start(&rig, "10000");
        rig_accept(&rig);
        return 0;
}

static int end(void **state) {
        rig_stop(*state);
        return 0;
}

static struct run ordered(struct rig *r, struct exec_order o, const char *const *args) {
        struct run x = { .channel = 1 };

        rig_order(r, 1, o, args, NULL);
        rig_collect(r, &x, 1);
        return x;
}

static void tool(void **state) {
        const char *const args[] = { "no-such-verb", "-x", NULL };

        for (int i = 0; i < 2; i++) {
                struct run x = ordered(*state, (struct exec_order){ .files = true }, args);

                assert_int_equal(x.end.code, 64);
                assert_int_equal(x.len[0], 0);
                assert_non_null(strstr(x.out[1], "no-such-verb"));
                run_done(&x);
                x = ordered(*state, (struct exec_order){ .files = true, .use_stdin = true }, args);
                assert_int_equal(x.end.code, 64);
                run_done(&x);
                /* Prepared beforehand, and with something beside it forked. */
                if (i == 0)
                        rig_sh(*state, 2, (struct exec_order){ .detached = true }, "exec sleep 300");
        }
}

/* Whoever calls it, and as what. */
static void never_an_agent(void **state) {
        struct rig *r = *state;
        struct run x = rig_run(r, 1,
                               "for id in 10000 0; do " AGENT_PATH
                               " $id 10001 1900000000 65536 1000; echo $?; done; " AGENT_PATH
                               "; echo $?; " AGENT_PATH " 10000 10001 0 0 1000; echo $?");

        run_equals(&x, 0, "64\n64\n64\n64\n", "");
        says_nothing(r);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
        const struct CMUnitTest tests[] = {
                CASE(tool),
                CASE(never_an_agent),
        };
        int unfit = rig_unfit();

        return unfit ? unfit : cmocka_run_group_tests(tests, NULL, NULL);
}
